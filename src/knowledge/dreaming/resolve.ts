import type { IdSource } from "../../core/ids.ts";
import { cutAfter } from "../../core/cut-text.ts";
import { EngineError } from "../../core/errors.ts";
import { duplicateKeyOf } from "../memory/content-hash.ts";
import { edgeId, entityId } from "../memory/ids.ts";
import { accepted, edgeInput, nodeInput, type EdgeInput, type NodeInput } from "../memory/input.ts";
import { FIELDS } from "../memory/fields.ts";
import { DEFAULT_REALM, type NodeRecord } from "../memory/model.ts";
import { maskSecrets } from "../memory/secrets.ts";
import { sourceOf, type DreamMode } from "./dream-job.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { inOrder, type Proposal } from "./proposals.ts";
import type { ShownKeys } from "./shown.ts";

/**
 * Why a proposal is refused.
 *
 * - `malformed`: it is not of the schema, or a field of it is not accepted.
 * - `no_evidence`, `unknown_event`: it cites nothing, or what the model was not shown.
 * - `unknown_record`: it is about something that the model was not shown, and that its answer does not add.
 * - `realm`: it writes to a realm that the settings do not have, or joins two realms.
 * - `importance`: it is not between 0 and 1.
 * - `duplicate`: it says what is there already.
 * - `stated`: it would change or end what a person said.
 * - `changed`: the record has changed, or does not hold any more, since the model was shown it.
 * - `rule`: it would end something for something else that is not about the same.
 * - `twice`: the run has changed the record already.
 * - `limit`: the run has written as much as it may.
 */
export const REFUSALS = [
  "malformed",
  "no_evidence",
  "unknown_event",
  "unknown_record",
  "realm",
  "importance",
  "duplicate",
  "stated",
  "changed",
  "rule",
  "twice",
  "limit",
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** What a memory rests on. */
export type Evidence = { event: string; at: string; text: string } | { memory: string };

/** A record as the model was shown it. */
export type SeenNode = { kind: "node"; id: string; version: number };
export type SeenEdge = { kind: "edge"; id: string; version: number; src: string; dst: string };

/** A proposal whose names stand for records of the catalog, and which is sound as far as can be said without reading it. */
export type Resolved = { reason: string; evidence: readonly Evidence[] } & (
  | { action: "add"; id: string; input: NodeInput; realm: string }
  | {
      action: "update";
      target: SeenNode;
      content?: string;
      tags?: readonly string[];
      importance?: number;
      /** Of what it would say then. */
      duplicateKey: string | undefined;
    }
  | {
      action: "link";
      key: string | undefined;
      id: string;
      input: EdgeInput;
      realm: string;
    }
  | { action: "merge"; into: SeenNode; from: readonly SeenNode[]; content?: string }
  | { action: "invalidate"; target: SeenNode | SeenEdge; by: SeenNode | SeenEdge | { kind: "link"; key: string } }
);

export type ResolveContext = {
  shown: ShownKeys;
  realms: readonly string[];
  mode: DreamMode;
  runId: string;
  newId: IdSource;
};

/** A name that the model gave to what its answer adds. */
type Named = ({ kind: "node"; isEntity: boolean } & End) | { kind: "link"; key: string };

type End = { id: string; realm: string };

class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal);
    this.refusal = refusal;
  }
}

/** Of one answer, in the order in which they are to be carried out. */
export function resolveProposals(
  proposals: readonly Proposal[],
  context: ResolveContext,
): { resolved: Resolved[]; refused: Refusal[] } {
  const names = new Map<string, Named>();
  const resolved: Resolved[] = [];
  const refused: Refusal[] = [];
  for (const proposal of inOrder(proposals)) {
    try {
      resolved.push(resolve(proposal, names, context));
    } catch (error) {
      if (error instanceof Refused) refused.push(error.refusal);
      else if (error instanceof EngineError && error.code === "bad_request_body") refused.push("malformed");
      else throw error;
    }
  }
  return { resolved, refused };
}

function resolve(proposal: Proposal, names: Map<string, Named>, context: ResolveContext): Resolved {
  const evidence = evidenceOf(proposal, context);
  const reason = reasonOf(proposal);
  if ("importance" in proposal) checkImportance(proposal.importance);
  const why = { reason, evidence };
  const { shown } = context;
  // An entity is no statement: nothing replaces it, and it replaces nothing.
  const memory = (name: string): SeenNode => {
    const found = must(shown.nodes.get(name));
    if (found.kind !== "memory") throw new Refused("rule");
    return seenNode(found);
  };
  const end = (name: string): End => {
    const added = names.get(name);
    return added?.kind === "node" ? added : must(shown.nodes.get(name));
  };
  switch (proposal.action) {
    case "add": {
      const { input, realm } = addedNode(proposal, context);
      const isEntity = input.kind === "entity";
      const id = isEntity ? entityId(realm, input.entity_kind ?? "", input.name ?? "") : context.newId();
      if (proposal.name_it !== undefined) names.set(proposal.name_it, { kind: "node", id, realm, isEntity });
      return { ...why, action: "add", id, input, realm };
    }
    case "update": {
      const { target, tags, importance } = proposal;
      const before = must(shown.nodes.get(target));
      const content =
        proposal.content === undefined ? undefined : accepted(FIELDS.content, proposal.content, "content");
      return {
        ...why,
        action: "update",
        target: seenNode(before),
        ...(content !== undefined && { content }),
        ...(tags !== undefined && { tags: accepted(FIELDS.tags, tags, "tags") }),
        ...(importance !== undefined && { importance }),
        duplicateKey:
          content === undefined || before.kind === "entity" ? undefined : duplicateKeyOf({ ...before, content }),
      };
    }
    case "link": {
      const [src, dst] = [end(proposal.from), end(proposal.to)];
      if (src.id === dst.id) throw new Refused("malformed");
      if (src.realm !== dst.realm) throw new Refused("realm");
      const { realm } = src;
      const { rel, weight } = proposal;
      const input = accepted(edgeInput, { realm, src: src.id, dst: dst.id, rel, weight });
      const key = proposal.name_it === undefined ? undefined : context.newId();
      if (proposal.name_it !== undefined && key !== undefined) names.set(proposal.name_it, { kind: "link", key });
      return { ...why, action: "link", key, id: edgeId({ ...input, realm }), input, realm };
    }
    case "merge": {
      const into = memory(proposal.into);
      const from = [...new Set(proposal.from)].map(memory);
      if (from.some(({ id }) => id === into.id)) throw new Refused("malformed");
      const { content } = proposal;
      const said = content === undefined ? {} : { content: accepted(FIELDS.content, content, "content") };
      return { ...why, action: "merge", into, from, ...said };
    }
    case "invalidate": {
      const seen = (name: string): SeenNode | SeenEdge => {
        const edge = shown.edges.get(name);
        return edge === undefined ? memory(name) : seenEdge(edge);
      };
      const target = seen(proposal.target);
      const by = replacement(proposal.by, names, seen);
      if ("id" in by && by.id === target.id) throw new Refused("rule");
      if ((target.kind === "node") !== (by.kind === "node")) throw new Refused("rule");
      return { ...why, action: "invalidate", target, by };
    }
  }
}

/** What an answer adds itself has no version yet. */
function replacement(
  name: string,
  names: ReadonlyMap<string, Named>,
  seen: (name: string) => SeenNode | SeenEdge,
): SeenNode | SeenEdge | { kind: "link"; key: string } {
  const added = names.get(name);
  if (added === undefined) return seen(name);
  if (added.kind === "node" && added.isEntity) throw new Refused("rule");
  return added.kind === "link" ? added : { kind: "node", id: added.id, version: 0 };
}

function evidenceOf({ evidence }: Proposal, { shown, mode }: ResolveContext): Evidence[] {
  const cited = [...new Set(evidence)].slice(0, DREAMING_LIMITS.evidence);
  if (cited.length === 0) throw new Refused("no_evidence");
  return cited.map((name): Evidence => {
    const event = shown.events.get(name);
    if (event !== undefined) {
      const { id, at, text } = event;
      return { event: id, at, text: cutAfter(text, DREAMING_LIMITS.excerptChars) };
    }
    const memory = mode === "deep" ? shown.nodes.get(name) : undefined;
    if (memory === undefined) throw new Refused("unknown_event");
    return { memory: memory.id };
  });
}

function addedNode(
  proposal: Extract<Proposal, { action: "add" }>,
  { realms, runId }: ResolveContext,
): { input: NodeInput; realm: string } {
  const { kind, memory_type, entity_kind, name, content, tags, importance } = proposal;
  const realm = accepted(FIELDS.realm, proposal.realm ?? realms[0] ?? DEFAULT_REALM, "realm");
  if (!realms.includes(realm)) throw new Refused("realm");
  const about = kind === "memory" ? { memory_type: memory_type ?? "fact" } : { entity_kind, name };
  const given = { realm, kind, ...about, content, tags, importance, trust: "derived", source: sourceOf(runId) };
  return { input: accepted(nodeInput, given), realm };
}

const NO_REASON = "no reason was given";

/** As `invalidationReason` takes it: a record with another one could not be imported or synchronized any more. */
function reasonOf({ reason }: Proposal): string {
  const line = maskSecrets(reason.toWellFormed().replaceAll(/\p{Cc}+/gu, " ")).trim();
  const read = FIELDS.reason.safeParse(cutAfter(line, DREAMING_LIMITS.reasonChars));
  return read.success ? read.data : NO_REASON;
}

function checkImportance(importance: number | undefined): void {
  if (importance !== undefined && !(importance >= 0 && importance <= 1)) throw new Refused("importance");
}

function must<T>(found: T | undefined): T {
  if (found === undefined) throw new Refused("unknown_record");
  return found;
}

function seenNode({ id, version }: Pick<NodeRecord, "id" | "version">): SeenNode {
  return { kind: "node", id, version };
}

function seenEdge({ id, version, src, dst }: Omit<SeenEdge, "kind">): SeenEdge {
  return { kind: "edge", id, version, src, dst };
}
