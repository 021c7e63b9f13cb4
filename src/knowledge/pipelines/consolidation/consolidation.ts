import { z } from "zod";
import type { Clock } from "../../../core/clock.ts";
import { asJudged, findDuplicates, isHolding, isOfConflict, leaveUndecided } from "../../filesync/duplicates.ts";
import type { Band } from "../../filesync/options.ts";
import { DUPLICATES } from "../../filesync/project-memory.ts";
import type { StoredVectors } from "../../memory/embed/stored-vectors.ts";
import type { NodeRecord } from "../../memory/model.ts";
import { ALL_REALMS, isPrivateRealm } from "../../memory/realms.ts";
import { pairOf, type MemoryPair, type Verdicts } from "../../memory/verdicts.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import { agentRunOf, follow, lastMemories, type Link } from "./conversations.ts";
import { commitLinks, type LinkDeps } from "./links.ts";
import type { ConsolidationReader } from "./reader.ts";

/**
 * Makes the links between memories that nobody has made: from each memory of a conversation to the one before it
 * (`follows`), and from those that say the same to the one that stands for all (`duplicate_of`). It reads what has changed
 * since its watermark, and what has got a vector since then. It changes, invalidates and deletes nothing. Pairs of which a
 * language model is to say whether they say the same are noted for `judging.ts`.
 */
export type ConsolidationDeps = LinkDeps & {
  reader: ConsolidationReader;
  clock: Clock;
  /** Where somebody has to decide whether memories say the same; above it they do. */
  band: Band;
  /** Undefined where no model is configured: texts alone are compared. */
  vectors: StoredVectors | undefined;
  /** Undefined where no language model is to be asked. */
  verdicts: Verdicts | undefined;
};

const KIND = "consolidation";

const consolidationPosition = z.object({
  /** The commit up to which texts are compared and conversations linked. */
  seq: z.number(),
  /** The same for vectors of a model. */
  near: z
    .object({
      model: z.string(),
      seq: z.number(),
      /** Whether pairs for a language model were noted up to there; absent in what earlier versions wrote. */
      noted: z.boolean().default(false),
    })
    .optional(),
  last: lastMemories,
});
type Position = z.output<typeof consolidationPosition>;

const AT_THE_BEGINNING: Position = { seq: 0, last: [] };

/** How far consolidation has read; a text that another version wrote is an error. */
export async function placeOf({ runs }: Pick<LinkDeps, "runs">, databaseId: number) {
  const from = await runs.watermark(databaseId, KIND);
  const position = from.position === undefined ? AT_THE_BEGINNING : consolidationPosition.parse(from.position);
  return { place: { databaseId, kind: KIND, from } as const, position };
}

/** Resolves to whether more has changed than one run takes. */
export async function consolidate(deps: ConsolidationDeps, databaseId: number): Promise<boolean> {
  const { store, reader, verdicts } = deps;
  const { place, position: before } = await placeOf(deps, databaseId);
  const { seq: headSeq } = await store.head(databaseId);
  const fresh = await changedSince(deps, databaseId, before.seq, headSeq);
  const embedded = await embeddedSince(deps, databaseId, before);
  const sessions = await reader.sessionsOf(fresh.nodes.flatMap((node) => agentRunOf(node) ?? []));
  const { links, last } = follow(fresh.nodes, before.last, sessions);
  links.push(...(await duplicatesAmong(deps, databaseId, fresh.nodes, undefined)).links);
  await verdicts?.dropChanged(databaseId, fresh.nodes);
  if (embedded !== undefined) {
    const alike = await duplicatesAmong(deps, databaseId, embedded.nodes, deps.vectors);
    links.push(...alike.links);
    // Before the place moves on: what is noted twice is noted once.
    await verdicts?.open(databaseId, alike.undecided);
  }
  const near =
    embedded === undefined ? before.near : { model: embedded.model, seq: embedded.seq, noted: verdicts !== undefined };
  const position: Position = { seq: fresh.seq, ...(near !== undefined && { near }), last };
  await commitLinks(deps, place, { links, position, records: fresh.nodes.length });
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

/**
 * Those whose vectors have come. With another model that is all of them, and also where pairs are to be noted now that were
 * passed over before. Undefined where no model is configured.
 */
async function embeddedSince(
  deps: ConsolidationDeps,
  databaseId: number,
  { near }: Position,
): Promise<(Changed & { model: string }) | undefined> {
  const { vectors, verdicts } = deps;
  if (vectors === undefined) return undefined;
  const { model } = vectors;
  const { throughSeq } = await vectors.progress(databaseId);
  const goesOn = near?.model === model && (near.noted || verdicts === undefined);
  return { model, ...(await changedSince(deps, databaseId, goesOn ? near.seq : 0, throughSeq)) };
}

/** What comparing has found. */
export type Alike = { links: Link[]; undecided: MemoryPair[] };

/** Pairs with one of the nodes that say the same, or may; each is compared within its realm. */
export async function duplicatesAmong(
  { store, clock, band, verdicts }: Pick<ConsolidationDeps, "store" | "clock" | "band" | "verdicts">,
  databaseId: number,
  changed: readonly NodeRecord[],
  vectors: StoredVectors | undefined,
): Promise<Alike> {
  const nowUs = clock.nowMs() * 1_000;
  const byRealm = Map.groupBy(
    changed.filter((node) => isHolding(node, nowUs)),
    ({ realm }) => realm,
  );
  const alike: Alike = { links: [], undecided: [] };
  for (const [realm, ofRealm] of byRealm) {
    const recent = await store.newestIn(databaseId, realm, PIPELINE_LIMITS.comparedMemories);
    // Comparing vectors costs the square: of a large import so many at a time.
    const atOnce = vectors === undefined ? ofRealm.length : PIPELINE_LIMITS.changedRecords;
    for (let start = 0; start < ofRealm.length; start += atOnce) {
      const own = ofRealm.slice(start, start + atOnce);
      const byId = new Map([...recent, ...own].map((node) => [node.id, node]));
      const nodes = [...byId.values()].filter((node) => isHolding(node, nowUs));
      const known = vectors === undefined ? new Map<string, Float32Array>() : await vectors.of(databaseId, nodes);
      const among = new Set(own.map(({ id }) => id));
      const isJudged = verdicts !== undefined && vectors !== undefined && mayBeShown(realm);
      const judged = isJudged ? await verdicts.among(databaseId, nodes) : undefined;
      const decide = judged === undefined ? leaveUndecided : asJudged(judged);
      const found = await findDuplicates(nodes, known, { band, decide, among });
      for (const { node, of, is } of found) {
        if (is === "same") alike.links.push({ realm, src: node.id, dst: of.id, rel: DUPLICATES });
        else if (isJudged && !isOfConflict(node, of)) alike.undecided.push(pairOf(databaseId, node, of));
      }
    }
  }
  return alike;
}

/**
 * Whether a language model is shown what a realm says, without anybody asking. The engine is the installation's, and one
 * person chose it for all: as with dreams, no realm of a single user is shown to it.
 */
export function mayBeShown(realm: string): boolean {
  return !isPrivateRealm(realm);
}
