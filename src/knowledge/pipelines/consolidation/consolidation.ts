import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import type { RunChange } from "../../dreaming/runs.ts";
import { findDuplicates, isHolding, leaveUndecided, NOT_ANY_MORE } from "../../filesync/duplicates.ts";
import type { Band } from "../../filesync/options.ts";
import { DUPLICATES } from "../../filesync/project-memory.ts";
import type { Draft } from "../../memory/draft.ts";
import type { StoredVectors } from "../../memory/embed/stored-vectors.ts";
import { edgeId } from "../../memory/ids.ts";
import { accepted, edgeInput } from "../../memory/input.ts";
import { DEFAULT_NAMESPACE, type NodeRecord } from "../../memory/model.ts";
import { ALL_REALMS } from "../../memory/realms.ts";
import type { Version } from "../../memory/rows.ts";
import { nodeKey, putSaidEdge } from "../../memory/save.ts";
import type { MemoryStore } from "../../memory/store.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import type { PipelineMetrics } from "../metrics.ts";
import { advance, runOnce, type PipelineDeps, type RunOutcome } from "../run.ts";
import { agentRunOf, follow, FOLLOWS, lastMemories, type Link } from "./conversations.ts";
import type { ConsolidationReader } from "./reader.ts";

/**
 * Makes the links between memories that nobody has made: from each memory of a conversation to the one before it
 * (`follows`), and from those that say the same to the one that stands for all (`duplicate_of`). It reads what has changed
 * since its watermark, and what has got a vector since then. It changes, invalidates and deletes nothing.
 */
export type ConsolidationDeps = PipelineDeps & {
  store: MemoryStore;
  reader: ConsolidationReader;
  clock: Clock;
  metrics: PipelineMetrics;
  /** Where somebody has to decide whether memories say the same; above it they do. */
  band: Band;
  /** Undefined where no model is configured: texts alone are compared. */
  vectors: StoredVectors | undefined;
};

const KIND = "consolidation";

const consolidationPosition = z.object({
  /** The commit up to which texts are compared and conversations linked. */
  seq: z.number(),
  /** The same for vectors of a model. */
  near: z.object({ model: z.string(), seq: z.number() }).optional(),
  last: lastMemories,
});
type Position = z.output<typeof consolidationPosition>;

const AT_THE_BEGINNING: Position = { seq: 0, last: [] };

/** Resolves to whether more has changed than one run takes. */
export async function consolidate(deps: ConsolidationDeps, databaseId: number): Promise<boolean> {
  const { runs, store, reader } = deps;
  const from = await runs.watermark(databaseId, KIND);
  const before = from.position === undefined ? AT_THE_BEGINNING : consolidationPosition.parse(from.position);
  const { seq: headSeq } = await store.head(databaseId);
  const fresh = await changedSince(deps, databaseId, before.seq, headSeq);
  const embedded = await embeddedSince(deps, databaseId, before);
  const sessions = await reader.sessionsOf(fresh.nodes.flatMap((node) => agentRunOf(node) ?? []));
  const { links, last } = follow(fresh.nodes, before.last, sessions);
  links.push(...(await duplicatesAmong(deps, databaseId, fresh.nodes, undefined)));
  if (embedded !== undefined) links.push(...(await duplicatesAmong(deps, databaseId, embedded.nodes, deps.vectors)));
  const near = embedded === undefined ? before.near : { model: embedded.model, seq: embedded.seq };
  const position: Position = { seq: fresh.seq, ...(near !== undefined && { near }), last };
  await commitLinks(deps, { databaseId, kind: KIND, from }, { links, position, records: fresh.nodes.length });
  return fresh.hasMore || embedded?.hasMore === true;
}

/** Looks at a database again only after its memory or vectors have changed: one query tells for all databases. */
export class Consolidations {
  readonly #deps: ConsolidationDeps;
  /** By database: the head that was there before the last look that left nothing. */
  readonly #settled = new Map<number, string>();
  #heads = new Map<number, string>();

  constructor(deps: ConsolidationDeps) {
    this.#deps = deps;
  }

  /** Dropped databases may be among them. */
  async changed(): Promise<Set<number>> {
    const { reader, vectors } = this.#deps;
    this.#heads = await reader.heads(vectors?.model);
    for (const id of this.#settled.keys()) if (!this.#heads.has(id)) this.#settled.delete(id);
    return new Set([...this.#heads].filter(([id, head]) => this.#settled.get(id) !== head).map(([id]) => id));
  }

  /** As `consolidate` does. */
  async consolidate(databaseId: number): Promise<boolean> {
    const head = this.#heads.get(databaseId);
    const hasMore = await consolidate(this.#deps, databaseId);
    if (!hasMore && head !== undefined) this.#settled.set(databaseId, head);
    return hasMore;
  }
}

type Changed = { nodes: NodeRecord[]; seq: number; hasMore: boolean };

/** The memories among the records that have changed. */
async function changedSince(
  { store }: ConsolidationDeps,
  databaseId: number,
  afterSeq: number,
  throughSeq: number,
): Promise<Changed> {
  if (afterSeq >= throughSeq) return { nodes: [], seq: afterSeq, hasMore: false };
  const range = { afterSeq, throughSeq, limit: PIPELINE_LIMITS.changedRecords, rights: ALL_REALMS, realm: undefined };
  const { versions, ...rest } = await store.changed(databaseId, range);
  const nodes = versions.flatMap((version) => {
    return version.kind === "node" && !version.erased && version.record.kind === "memory" ? [version.record] : [];
  });
  return { nodes, ...rest };
}

/** Those whose vectors have come; with another model that is all of them. Undefined where no model is configured. */
async function embeddedSince(
  deps: ConsolidationDeps,
  databaseId: number,
  { near }: Position,
): Promise<(Changed & { model: string }) | undefined> {
  const { vectors } = deps;
  if (vectors === undefined) return undefined;
  const { model } = vectors;
  const { throughSeq } = await vectors.progress(databaseId);
  return { model, ...(await changedSince(deps, databaseId, near?.model === model ? near.seq : 0, throughSeq)) };
}

/** Pairs with one of the nodes that say the same; each is compared within its realm. */
async function duplicatesAmong(
  { reader, clock, band }: ConsolidationDeps,
  databaseId: number,
  changed: readonly NodeRecord[],
  vectors: StoredVectors | undefined,
): Promise<Link[]> {
  const nowUs = clock.nowMs() * 1_000;
  const byRealm = Map.groupBy(
    changed.filter((node) => isHolding(node, nowUs)),
    ({ realm }) => realm,
  );
  const links: Link[] = [];
  for (const [realm, ofRealm] of byRealm) {
    const recent = await reader.recent(databaseId, realm, PIPELINE_LIMITS.comparedMemories);
    // Comparing vectors costs the square: of a large import so many at a time.
    const atOnce = vectors === undefined ? ofRealm.length : PIPELINE_LIMITS.changedRecords;
    for (let start = 0; start < ofRealm.length; start += atOnce) {
      const own = ofRealm.slice(start, start + atOnce);
      const byId = new Map([...recent, ...own].map((node) => [node.id, node]));
      const nodes = [...byId.values()].filter((node) => isHolding(node, nowUs));
      const known = vectors === undefined ? new Map<string, Float32Array>() : await vectors.of(databaseId, nodes);
      const among = new Set(own.map(({ id }) => id));
      const found = await findDuplicates(nodes, known, { band, decide: leaveUndecided, among });
      for (const { node, of, is } of found) {
        if (is === "same") links.push({ realm, src: node.id, dst: of.id, rel: DUPLICATES });
      }
    }
  }
  return links;
}

async function commitLinks(
  deps: ConsolidationDeps,
  place: Parameters<typeof runOnce>[1],
  { links, position, records }: { links: readonly Link[]; position: Position; records: number },
): Promise<void> {
  const missing = await missingLinks(deps, place.databaseId, links);
  if (missing.length === 0) {
    await advance(deps, place, position);
    return;
  }
  const ends = [...new Set(missing.flatMap(({ src, dst }) => [src, dst]))].map(nodeKey);
  const { made } = await runOnce(deps, place, {
    items: missing.length,
    needs: { keys: [...ends, ...missing.map((link) => ({ kind: "edge", id: idOf(link) }) as const)] },
    eventsScanned: 0,
    plan: (draft): RunOutcome & { made: Record<string, number> } => {
      const made: Record<string, number> = { [FOLLOWS]: 0, [DUPLICATES]: 0 };
      const changes = missing.flatMap((link, proposal) => {
        const change = putLink(draft, link);
        if (change === undefined) return [];
        made[link.rel] = (made[link.rel] ?? 0) + 1;
        return [{ ...change, proposal }];
      });
      return { changes, position, memoriesWritten: 0, stats: { records, links: made }, made };
    },
  });
  for (const [relation, count] of Object.entries(made)) deps.metrics.links.inc({ relation }, count);
}

/** Each once. The last memory of a conversation may have been erased since. */
async function missingLinks({ store }: ConsolidationDeps, databaseId: number, links: readonly Link[]): Promise<Link[]> {
  const ends = await store.known(
    databaseId,
    "node",
    links.flatMap(({ src, dst }) => [src, dst]),
  );
  const there = new Set(ends.flatMap(({ current }) => (current?.erased === false ? [current.record.id] : [])));
  const possible = links.filter(({ src, dst }) => there.has(src) && there.has(dst));
  const byId = new Map(possible.map((link) => [idOf(link), link]));
  for (const { current } of await store.known(databaseId, "edge", [...byId.keys()])) {
    if (current !== undefined && !mayBeMade(current)) byId.delete(current.record.id);
  }
  return [...byId.values()];
}

/** Whoever ended or erased a link says that it is none. */
function mayBeMade(before: Version | undefined): boolean {
  if (before === undefined) return true;
  if (before.kind !== "edge" || before.erased) return false;
  return before.record.invalidatedAtUs !== undefined && before.record.invalidationReason === NOT_ANY_MORE;
}

/** Undefined where it is there by now, or one of its ends is gone. */
function putLink(draft: Draft, link: Link): Omit<RunChange, "proposal"> | undefined {
  const id = idOf(link);
  const before = draft.version("edge", id);
  const hasEnds = [link.src, link.dst].every((end) => draft.node(end)?.realm === link.realm);
  if (!hasEnds || !mayBeMade(before)) return undefined;
  const { record } = putSaidEdge(accepted(edgeInput, link), { id, realm: link.realm }, draft);
  return { kind: "edge", id, versionBefore: before?.record.version, versionAfter: record.version };
}

function idOf({ realm, src, dst, rel }: Link): string {
  return edgeId({ realm, src, dst, rel, namespace: DEFAULT_NAMESPACE });
}
