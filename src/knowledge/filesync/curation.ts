import { vectorKeyOf } from "../memory/embed/vector-text.ts";
import type { StoredVectors } from "../memory/embed/stored-vectors.ts";
import type { NodeRecord } from "../memory/model.ts";
import type { Verdicts } from "../memory/verdicts.ts";
import { asJudged, findDuplicates, isHolding, NOT_ANY_MORE, type Duplicate } from "./duplicates.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";
import type { Band } from "./options.ts";
import { DUPLICATES, type ProjectMemory } from "./project-memory.ts";
import type { CurationState, ProjectState, Review } from "./state.ts";
import { titleOf } from "./types.ts";

/**
 * Reviews the memories of a project once nobody has changed anything for a while. Memories that nobody has touched for long are
 * told of. Those that say the same as another one are linked to it, and get no file of their own. No memory is changed,
 * invalidated or deleted: that is for people.
 */
export type Curation = {
  isOn: boolean;
  staleDays: number;
  /** Where a language model decides whether memories say the same; above it they do. */
  band: Band;
  /** What servers with an engine had it decide. */
  verdicts: Verdicts;
  /** Undefined where no model is configured: texts alone are compared. */
  vectors: StoredVectors | undefined;
};

export type CurationDeps = { memory: ProjectMemory; curation: Curation; nowMs: number };

const DAY_MS = 86_400_000;

/** What is to be made anew as memories, or what was told of them, have changed. */
export function uncurated({ linked, review }: CurationState, isTouched: (id: string) => boolean): CurationState {
  return {
    key: "",
    sawAllVectors: false,
    throughSeq: 0,
    verdicts: "",
    linked,
    review: {
      stale: review.stale.filter(({ id }) => !isTouched(id)),
      duplicates: review.duplicates.filter(({ id, of }) => !isTouched(id) && !isTouched(of.id)),
    },
  };
}

/**
 * Whether something has changed since the findings were made: memories, settings, the day, verdicts, or vectors that were
 * missing.
 */
export async function needsCuration(deps: CurationDeps, { curation: before }: ProjectState): Promise<boolean> {
  const { memory, curation } = deps;
  if (before.key !== keyOf(deps)) return true;
  if (before.verdicts !== (await memory.verdictStamp(curation.verdicts))) return true;
  if (before.sawAllVectors || curation.vectors === undefined) return false;
  return (await memory.vectorProgress(curation.vectors)).throughSeq !== before.throughSeq;
}

function keyOf({ curation: { staleDays, band, vectors }, nowMs }: CurationDeps): string {
  return JSON.stringify([staleDays, band, vectors?.model, Math.floor(nowMs / DAY_MS)]);
}

/** `nodes`: all of the project. */
export async function curate(
  deps: CurationDeps,
  nodes: ReadonlyMap<string, NodeRecord | undefined>,
  { files, curation: before }: ProjectState,
): Promise<CurationState> {
  const { memory, curation, nowMs } = deps;
  const { vectors: stored, band } = curation;
  // Before they are read: one that comes meanwhile is looked at the next time.
  const verdictStamp = await memory.verdictStamp(curation.verdicts);
  const progress = stored === undefined ? undefined : await memory.vectorProgress(stored);
  const holding = [...nodes.values()].filter((node) => isHolding(node, nowMs * 1_000));
  const fileOf = new Map(Object.entries(files).map(([name, pair]) => [pair.nodeId, { ...pair, name }]));
  const compared = holding.toSorted((a, b) => b.importance - a.importance || b.updatedAtUs - a.updatedAtUs);
  const vectors =
    stored === undefined
      ? new Map<string, Float32Array>()
      : await memory.vectors(stored, compared.slice(0, FILE_SYNC_LIMITS.comparedMemories));
  const decide = asJudged(await memory.verdicts(curation.verdicts, holding));
  const found = await accepted(memory, await findDuplicates(holding, vectors, { band, decide }));
  const same = found.filter(({ is }) => is === "same");
  const kept = await keptLinks(memory, before.linked, { same, nodes, vectors, nowUs: nowMs * 1_000 });
  const had = new Set(before.linked.map(({ src, dst }) => `${src} ${dst}`));
  await memory.link(
    DUPLICATES,
    same.map(({ node, of }) => [node.id, of.id] as const).filter(([src, dst]) => !had.has(`${src} ${dst}`)),
  );
  const told = (node: NodeRecord) => toldOf(node, fileOf.get(node.id)?.name);
  const staleMs = nowMs - curation.staleDays * DAY_MS;
  const stale: Review["stale"] = [];
  for (const node of holding) {
    const changedMs = touchedMs(node, fileOf.get(node.id));
    if (changedMs < staleMs) stale.push({ ...told(node), changed_at: new Date(changedMs).toISOString() });
  }
  stale.sort((a, b) => (a.changed_at < b.changed_at ? -1 : 1));
  const duplicates: Review["duplicates"] = [];
  for (const { node, of, cosine, is } of [...kept, ...found]) {
    const likeness = cosine === undefined ? null : Math.round(cosine * 10_000) / 10_000;
    duplicates.push({ ...told(node), of: told(of), cosine: likeness, is: is === "same" ? "linked" : "possible" });
  }
  return {
    key: keyOf(deps),
    sawAllVectors: progress?.isComplete ?? false,
    throughSeq: progress?.throughSeq ?? 0,
    verdicts: verdictStamp,
    review: { stale, duplicates },
    linked: [...kept, ...same].map(({ node, of }) => ({
      src: node.id,
      dst: of.id,
      srcKey: vectorKeyOf(node),
      dstKey: vectorKeyOf(of),
    })),
  };
}

function toldOf(node: NodeRecord, file: string | undefined) {
  return { id: node.id, name: node.name ?? titleOf(node.content), ...(file !== undefined && { file }) };
}

/** When somebody last changed what a memory says, or its file; a file that we wrote for it is changed with it. */
function touchedMs(node: NodeRecord, file: { mtimeMs: number; promoted: boolean } | undefined): number {
  return Math.max(node.originUpdatedAtUs / 1_000, file === undefined || file.promoted ? 0 : file.mtimeMs);
}

/** Without those of which somebody has said that they differ. */
async function accepted(memory: ProjectMemory, found: readonly Duplicate[]): Promise<Duplicate[]> {
  const taken: Duplicate[] = [];
  for (const pair of found) {
    const end = await memory.endOfLink(DUPLICATES, pair.node.id, pair.of.id);
    if (end === undefined || end.reason === NOT_ANY_MORE) taken.push(pair);
  }
  return taken;
}

/**
 * Ends the edges of memories that do not say the same any more. Those that could not be compared now, as a vector is missing,
 * are kept for as long as neither says something else.
 */
async function keptLinks(
  memory: ProjectMemory,
  linked: CurationState["linked"],
  {
    same,
    nodes,
    vectors,
    nowUs,
  }: {
    same: readonly Duplicate[];
    nodes: ReadonlyMap<string, NodeRecord | undefined>;
    vectors: ReadonlyMap<string, Float32Array>;
    nowUs: number;
  },
): Promise<Duplicate[]> {
  const wanted = new Map(same.map(({ node, of }) => [`${node.id} ${of.id}`, node.id]));
  const sources = new Set(wanted.values());
  const kept: Duplicate[] = [];
  for (const { src, dst, srcKey, dstKey } of linked) {
    const [node, of] = [nodes.get(src), nodes.get(dst)];
    // With one that does not hold any more, the edge says what was.
    if (wanted.has(`${src} ${dst}`) || !isHolding(node, nowUs) || !isHolding(of, nowUs)) continue;
    const end = await memory.endOfLink(DUPLICATES, src, dst);
    if (end !== undefined) continue;
    const isAsThen = vectorKeyOf(node) === srcKey && vectorKeyOf(of) === dstKey;
    const isCompared = vectors.has(src) && vectors.has(dst);
    if (isAsThen && !isCompared && !sources.has(src)) kept.push({ node, of, cosine: undefined, is: "same" });
    else await memory.unlink(DUPLICATES, src, dst, NOT_ANY_MORE);
  }
  return kept;
}
