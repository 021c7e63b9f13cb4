import { duplicateKeyOf } from "../memory/content-hash.ts";
import type { Draft, RecordKey } from "../memory/draft.ts";
import { FIELDS } from "../memory/fields.ts";
import { MEMORY_LIMITS } from "../memory/limits.ts";
import type { EdgeRecord, NodeRecord, Props } from "../memory/model.ts";
import type { RealmRights } from "../memory/realms.ts";
import { nodeKey, putSaidEdge, saveNode } from "../memory/save.ts";
import type { Needs } from "../memory/writer.ts";
import { isDreamSource, sourceOf } from "./dream-job.ts";
import { mayReplaceEdge, mayReplaceNode } from "./replaces.ts";
import type { Refusal, Resolved, SeenEdge, SeenNode } from "./resolve.ts";
import { PROPOSAL_ACTIONS, type ProposalAction } from "./proposals.ts";
import type { RunChange } from "./runs.ts";

/** What of the proposals becomes of the memory, and what of them is refused. */
export type DreamPlan = {
  changes: RunChange[];
  accepted: Record<ProposalAction, number>;
  refused: Refusal[];
};

export type PlanContext = {
  runId: string;
  realms: readonly string[];
  rights: RealmRights;
  maxWrites: number;
  /** The ids among what the proposals are about, and are linked with, that are entities. */
  entities: ReadonlySet<string>;
  /** The versions of edges, `<id> <version>`, that a dream or a pipeline wrote: others were stated by a person. */
  edgesWritten: ReadonlySet<string>;
};

/** What the plan must know of the catalog. */
export function needsOf(resolved: readonly Resolved[]): Needs {
  const keys: RecordKey[] = [];
  const duplicateKeys: string[] = [];
  const edgesOf = new Set<string>();
  const seen = (record: SeenNode | SeenEdge): void => {
    keys.push({ kind: record.kind, id: record.id });
    if (record.kind === "node") edgesOf.add(record.id);
  };
  for (const each of resolved) {
    switch (each.action) {
      case "add":
        keys.push(nodeKey(each.id));
        if (each.input.kind === "memory") duplicateKeys.push(keyOfAdded(each));
        break;
      case "update":
        keys.push(nodeKey(each.target.id));
        if (each.duplicateKey !== undefined) duplicateKeys.push(each.duplicateKey);
        break;
      case "link":
        keys.push({ kind: "edge", id: each.id }, nodeKey(each.input.src), nodeKey(each.input.dst));
        break;
      case "merge":
        for (const record of [each.into, ...each.from]) seen(record);
        break;
      case "invalidate":
        seen(each.target);
        if (each.by.kind !== "link") seen(each.by);
    }
  }
  return { keys, duplicateKeys, edgesOf: [...edgesOf] };
}

/** The edges that proposals would end. */
export function endedEdges(resolved: readonly Resolved[]): string[] {
  const ended = resolved.flatMap((each) =>
    each.action === "invalidate" && each.target.kind === "edge" ? [each.target.id] : [],
  );
  return [...new Set(ended)];
}

/** The memories that proposals would end, or let stand for others: whose edges say what they are about. */
export function comparedNodes(resolved: readonly Resolved[]): string[] {
  return needsOf(resolved).edgesOf?.slice() ?? [];
}

function keyOfAdded({ input, realm }: Extract<Resolved, { action: "add" }>): string {
  return duplicateKeyOf({ realm, memoryType: input.memory_type, content: input.content ?? "" });
}

/**
 * Plans a commit: looks at each proposal in the light of what is there now, and refuses what it must not do. Says the same
 * of the same draft, for a commit may be planned again.
 */
export class DreamPlanner {
  readonly #draft: Draft;
  readonly #context: PlanContext;
  readonly #changes = new Map<string, RunChange>();
  readonly #accepted: DreamPlan["accepted"];
  readonly #refused: Refusal[] = [];
  /** Edges of this run, by the key of their proposal. */
  readonly #links = new Map<string, string>();
  #proposal = 0;

  constructor(draft: Draft, context: PlanContext) {
    this.#draft = draft;
    this.#context = context;
    this.#accepted = Object.fromEntries(PROPOSAL_ACTIONS.map((action) => [action, 0])) as DreamPlan["accepted"];
  }

  plan(resolved: readonly Resolved[]): DreamPlan {
    for (const [i, each] of resolved.entries()) {
      this.#proposal = i;
      const refusal = this.#carryOut(each);
      if (refusal === undefined) this.#accepted[each.action]++;
      else this.#refused.push(refusal);
    }
    return { changes: [...this.#changes.values()], accepted: this.#accepted, refused: this.#refused };
  }

  #carryOut(each: Resolved): Refusal | undefined {
    const writes = each.action === "merge" ? each.from.length + 1 : 1;
    if (this.#changes.size + writes > this.#context.maxWrites) return "limit";
    switch (each.action) {
      case "add":
        return this.#add(each);
      case "update":
        return this.#update(each);
      case "link":
        return this.#link(each);
      case "merge":
        return this.#merge(each);
      case "invalidate":
        return this.#invalidate(each);
    }
  }

  #add(each: Extract<Resolved, { action: "add" }>): Refusal | undefined {
    const { id, input } = each;
    if (this.#isTouched("node", id)) return "twice";
    const before = this.#draft.version("node", id);
    // What somebody erased or ended is not brought back.
    if (before?.erased === true) return "changed";
    if (before !== undefined) return holds(before.record) ? "duplicate" : "changed";
    if (input.kind === "memory" && this.#draft.confirmable(keyOfAdded(each)) !== undefined) return "duplicate";
    const said = { ...input, props: this.#propsWith({}, each) };
    const { record } = saveNode(said, this.#context.rights, () => id).plan(this.#draft);
    this.#note("node", id, undefined, record.version);
    return undefined;
  }

  #update(each: Extract<Resolved, { action: "update" }>): Refusal | undefined {
    const found = this.#seenNode(each.target);
    if (typeof found === "string") return found;
    if (found.trust === "stated") return "stated";
    const { content = found.content, tags = found.tags, importance = found.importance, duplicateKey } = each;
    const isSame =
      content === found.content && importance === found.importance && tags.join("\n") === found.tags.join("\n");
    if (isSame) return "duplicate";
    const saysOther = content !== found.content && duplicateKey !== undefined;
    if (saysOther && this.#draft.confirmable(duplicateKey) !== undefined) return "duplicate";
    this.#say(found, { content, tags, importance }, each);
    return undefined;
  }

  #link({ key, id, input, realm, ...why }: Extract<Resolved, { action: "link" }>): Refusal | undefined {
    if (this.#isTouched("edge", id)) return "twice";
    for (const end of [input.src, input.dst]) {
      const node = this.#draft.node(end);
      if (node === undefined) return "unknown_record";
      if (node.realm !== realm || !this.#context.realms.includes(realm)) return "realm";
      if (!holds(node)) return "changed";
    }
    const before = this.#draft.version("edge", id);
    if (before?.erased === true) return "changed";
    const edge = before?.kind === "edge" ? before.record : undefined;
    if (edge !== undefined && holds(edge)) {
      if (key !== undefined) this.#links.set(key, id);
      return "duplicate";
    }
    if (edge !== undefined && !isDreamSource(edge.invalidatedBy)) return "changed";
    const props = this.#propsWith(edge?.props ?? {}, why);
    const { record } = putSaidEdge({ ...input, props: { ...props } }, { id, realm }, this.#draft);
    this.#note("edge", id, edge?.version, record.version);
    if (key !== undefined) this.#links.set(key, id);
    return undefined;
  }

  #merge(each: Extract<Resolved, { action: "merge" }>): Refusal | undefined {
    const into = this.#seenNode(each.into);
    if (typeof into === "string") return into;
    const { content = into.content } = each;
    if (content !== into.content && into.trust === "stated") return "stated";
    const from: NodeRecord[] = [];
    for (const seen of each.from) {
      const node = this.#seenNode(seen);
      if (typeof node === "string") return node;
      if (node.trust === "stated") return "stated";
      if (node.realm !== into.realm) return "realm";
      if (!this.#mayReplaceNode(node, into)) return "rule";
      from.push(node);
    }
    for (const node of from) this.#end(node, each.reason);
    const tags = [...new Set([into, ...from].flatMap((node) => node.tags))].slice(0, MEMORY_LIMITS.tags);
    const importance = Math.max(...[into, ...from].map((node) => node.importance));
    if (into.trust !== "stated") this.#say(into, { content, tags, importance }, each);
    return undefined;
  }

  #invalidate({ target, by, reason }: Extract<Resolved, { action: "invalidate" }>): Refusal | undefined {
    if (target.kind === "edge") return this.#invalidateEdge(target, by, reason);
    const found = this.#seenNode(target);
    if (typeof found === "string") return found;
    if (by.kind !== "node") return "rule";
    const instead = this.#draft.node(by.id);
    if (instead === undefined) return "unknown_record";
    if (!holds(instead)) return "changed";
    if (found.trust === "stated") return "stated";
    if (instead.realm !== found.realm || !this.#mayReplaceNode(found, instead)) return "rule";
    this.#end(found, reason);
    return undefined;
  }

  #invalidateEdge(
    target: SeenEdge,
    by: Extract<Resolved, { action: "invalidate" }>["by"],
    reason: string,
  ): Refusal | undefined {
    if (this.#isTouched("edge", target.id)) return "twice";
    const found = this.#draft.edge(target.id);
    if (found === undefined || found.version !== target.version || !holds(found)) return "changed";
    if (!this.#context.realms.includes(found.realm)) return "realm";
    if (by.kind === "node") return "rule";
    if (!this.#context.edgesWritten.has(`${found.id} ${found.version}`)) return "stated";
    const instead = this.#draft.edge(by.kind === "edge" ? by.id : (this.#links.get(by.key) ?? ""));
    if (instead === undefined) return "unknown_record";
    if (!holds(instead)) return "changed";
    if (instead.id === found.id || instead.realm !== found.realm) return "rule";
    if (!mayReplaceEdge(found, instead, this.#isEntity)) return "rule";
    const ended = this.#draft.putEdge({ ...found, ...this.#ending(found, reason) });
    this.#note("edge", found.id, found.version, ended.version);
    return undefined;
  }

  /** What the memory was about before this run: a run must not make its own grounds for ending it. */
  #mayReplaceNode(old: NodeRecord, by: NodeRecord): boolean {
    const edgesOf = (id: string): EdgeRecord[] => this.#draft.edgesOf(id).filter(holds);
    const before = edgesOf(old.id).filter((edge) => !this.#isTouched("edge", edge.id));
    return mayReplaceNode(old, before, by, edgesOf(by.id), this.#isEntity);
  }

  readonly #isEntity = (id: string): boolean =>
    this.#context.entities.has(id) || this.#draft.node(id)?.kind === "entity";

  /** The record, if it is what the model was shown and this run has not changed it. */
  #seenNode({ id, version }: SeenNode): NodeRecord | Refusal {
    if (this.#isTouched("node", id)) return "twice";
    const node = this.#draft.node(id);
    if (node === undefined || node.version !== version || !holds(node)) return "changed";
    return this.#context.realms.includes(node.realm) ? node : "realm";
  }

  #say(
    node: NodeRecord,
    said: Pick<NodeRecord, "content" | "tags" | "importance">,
    why: Pick<Resolved, "reason" | "evidence">,
  ): void {
    const from = {
      trust: "derived",
      source: sourceOf(this.#context.runId),
      props: this.#propsWith(node.props, why),
    } as const;
    // What it said before held until now.
    const validFromUs = said.content === node.content ? node.validFromUs : this.#draft.stampUs;
    const record = this.#draft.putNode({ ...node, ...said, ...from, validFromUs });
    this.#note("node", node.id, node.version, record.version);
  }

  #end(node: NodeRecord, reason: string): void {
    const ended = this.#draft.putNode({ ...node, ...this.#ending(node, reason) });
    this.#note("node", node.id, node.version, ended.version);
  }

  #ending({ validFromUs }: Pick<NodeRecord, "validFromUs">, reason: string) {
    const { stampUs } = this.#draft;
    return {
      invalidatedAtUs: stampUs,
      invalidatedBy: sourceOf(this.#context.runId),
      invalidationReason: reason,
      validToUs: Math.max(stampUs, validFromUs),
    };
  }

  /** The record's own, and what the run says of it, as far as there is room. */
  #propsWith(props: Props, { reason, evidence }: Pick<Resolved, "reason" | "evidence">): Record<string, unknown> {
    const run = this.#context.runId;
    const briefly = evidence.map((each) => ("event" in each ? { event: each.event } : each));
    const all = { ...props, dream: { run, reason, evidence } };
    const brief = { ...props, dream: { run, evidence: briefly } };
    // As callers may give it, for a record must pass that check again where it is imported or synchronized.
    for (const each of [all, brief]) {
      const read = FIELDS.props.safeParse(each);
      if (read.success) return read.data;
    }
    return { ...props };
  }

  #isTouched(kind: RecordKey["kind"], id: string): boolean {
    return this.#changes.has(`${kind} ${id}`);
  }

  #note(kind: RecordKey["kind"], id: string, versionBefore: number | undefined, versionAfter: number): void {
    const proposal = this.#proposal;
    this.#changes.set(`${kind} ${id}`, { kind, id, proposal, versionBefore, versionAfter });
  }
}

function holds({ validToUs, invalidatedAtUs }: Pick<NodeRecord, "validToUs" | "invalidatedAtUs">): boolean {
  return validToUs === undefined && invalidatedAtUs === undefined;
}
