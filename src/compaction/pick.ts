import type { ExtentSummary } from "../catalog/catalog.ts";

/**
 * Which extents of one (table, UTC day) are worth merging now.
 *
 * Size tiers: extents are put on levels by their rows, each level `minExtents` times as large as the one below, and a
 * level is merged when it has `minExtents` of them. So a row climbs a level with every merge, and is written at most
 * about log(rows of the day ÷ rows of a flush) to that base: three times when a day has 14,000 flushes of a table, with
 * the default of 24. Rows count, not bytes, because a `tlm` extent shrinks several times when it becomes Parquet, and
 * levels by bytes would mix fresh extents with merged ones of ten times their rows. What a merge takes from its level
 * goes along with all that lies on lower ones: those rows skip a level.
 *
 * An extent is finished, and never written again, when it is Parquet of at least `FINISHED_BYTES` within one day.
 *
 * A day that gets no more rows would stay in a hundred pieces; it is settled: once it was quiet for an hour or an eighth
 * of its age, whichever is longer, what is still `tlm` or spans days is merged, and the smallest of the others with it
 * until eight are left; but not one that is many times larger than all smaller ones together, so that a few late rows
 * do not have a whole day written again.
 *
 * Where `tlm` is the format of the past (`PickRules.isTlmPast`), what is left of it is rewritten without waiting for its
 * day to be quiet.
 *
 * Other programs read published extents only (`catalog/publishable.ts`). Where what is not published yet may not wait for
 * its level (`PickRules.publish`), it is merged as soon as some of it is due, all of the day together, and nothing else
 * with it; so a day is merged at most once per lag, a row is written about once more, and the outputs go up the levels
 * as others do.
 *
 * Nothing here does I/O: `pick.test.ts` plays a day of several tables against it.
 */
export type Candidate = Pick<ExtentSummary, "id" | "format" | "rows" | "sizeBytes" | "minAtNs" | "maxAtNs"> & {
  beginSnapshot?: number;
  isUnpublished?: boolean;
};

export type PickRules = {
  /** Extents that a level must have to be merged, and how many times larger each level is than the one below. */
  minExtents: number;
  nowMs: number;
  /** Bytes of inputs that one merge may have. */
  maxInputBytes: number;
  /** Whether new extents are Parquet, so that `tlm` extents are leftovers to be migrated. */
  isTlmPast?: boolean;
  publish?: PublishRule;
};

/** What has to be published now. */
export type PublishRule = {
  isDue: (extent: Candidate) => boolean;
  /** Also extents that are finished by their size. */
  withFinished?: boolean;
};

/** Extents are left alone from there on. */
export const FINISHED_BYTES = 128 * 1024 * 1024;
/** A merge ends a file there. Larger ones would have more different ids than a filter can tell apart. */
export const TARGET_BYTES = 160 * 1024 * 1024;
/** A merge is one transaction, and opens each of its files. */
export const MAX_INPUTS = 1_000;
const NS_PER_MS = 1_000_000n;
export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** A day is settled after it was quiet for this part of its age. */
const QUIET_SHARE = 1 / 8;
/** As many unfinished extents of a day are left alone. */
const SETTLED_EXTENTS = 8;
/** An extent with more than so many times the rows of all smaller ones is not written again for their sake. */
const SETTLE_RATIO = 4;

/** The day of a time as the milliseconds of its midnight, UTC. */
export function dayOf(atNs: bigint): number {
  return floorTo(atNs / NS_PER_MS - (atNs % NS_PER_MS < 0n ? 1n : 0n), BigInt(DAY_MS));
}

function floorTo(value: bigint, unit: bigint): number {
  return Number(value - (((value % unit) + unit) % unit));
}

export function spansDays({ minAtNs, maxAtNs }: Pick<Candidate, "minAtNs" | "maxAtNs">): boolean {
  return dayOf(minAtNs) !== dayOf(maxAtNs);
}

function isFinished(extent: Candidate): boolean {
  return extent.format === "parquet" && extent.sizeBytes >= FINISHED_BYTES && !spansDays(extent);
}

/** The inputs of the merge to be done next, in order of time; undefined when there is none. All are of one day. */
export function pickMerge(extents: readonly Candidate[], rules: PickRules): Candidate[] | undefined {
  const open = extents.filter((extent) => !isFinished(extent)).sort(byTime);
  return (
    pickUnpublished(extents, rules) ?? pickTier(open, rules) ?? pickSettling(open, rules) ?? pickMigration(open, rules)
  );
}

/** When the first of the `tlm` extents may be migrated; never, where there is none. */
export function migratesAtMs(extents: readonly Candidate[]): number {
  return Math.min(...extents.filter(({ format }) => format === "tlm").map((extent) => arrivalOf(extent) + HOUR_MS));
}

/** When `pickMerge` may find something although no extent has come: when the day has been quiet for long enough. */
export function settlesAtMs(extents: readonly Candidate[]): number {
  const days = extents.map(({ minAtNs }) => dayOf(minAtNs));
  const endMs = Math.max(...days) + DAY_MS;
  const arrivedMs = Math.max(...extents.map(arrivalOf));
  // Quiet for q since the arrival, q being an eighth of what is then the age: seven eighths of q are the age by now.
  const shareMs = (Math.max(arrivedMs - endMs, 0) * QUIET_SHARE) / (1 - QUIET_SHARE);
  return Math.max(arrivedMs, endMs) + Math.max(HOUR_MS, shareMs);
}

function pickTier(open: readonly Candidate[], { minExtents, maxInputBytes }: PickRules): Candidate[] | undefined {
  const tiers = new Map<number, Candidate[]>();
  const base = Math.max(minExtents, SETTLE_RATIO);
  for (const extent of open) {
    const tier = Math.floor(Math.log(Math.max(extent.rows, 1)) / Math.log(base) + 1e-9);
    const own = tiers.get(tier);
    if (own === undefined) tiers.set(tier, [extent]);
    else own.push(extent);
  }
  // The highest first: it takes the lower ones along.
  for (const tier of [...tiers.keys()].sort((a, b) => b - a)) {
    const own = tiers.get(tier) ?? [];
    if (own.length < minExtents) continue;
    const lower = open.filter((extent) => extent.rows < base ** tier && !own.includes(extent));
    const inputs = within([...own, ...lower], maxInputBytes);
    if (inputs.length >= 2) return inputs.sort(byTime);
  }
  return undefined;
}

function pickSettling(open: readonly Candidate[], { nowMs, maxInputBytes }: PickRules): Candidate[] | undefined {
  if (open.length === 0 || nowMs < settlesAtMs(open)) return undefined;
  const ascending = open.toSorted((a, b) => a.rows - b.rows);
  const excess = ascending.slice(0, Math.max(open.length - SETTLED_EXTENTS + 1, 0));
  const groups = similar(excess);
  const highest = groups.findLastIndex((group) => group.length >= 2);
  const inputs = new Set(
    groups
      .slice(0, highest + 1)
      .toReversed()
      .flat(),
  );
  // These are written again in any case.
  for (const extent of ascending) if (extent.format === "tlm" || spansDays(extent)) inputs.add(extent);
  return inputs.size === 0 ? undefined : within([...inputs], maxInputBytes).sort(byTime);
}

/**
 * After an hour, so that nodes that still write `tlm`, while the format is being changed one by one, do not have every
 * flush of theirs written again alone.
 */
function pickMigration(
  open: readonly Candidate[],
  { nowMs, maxInputBytes, isTlmPast }: PickRules,
): Candidate[] | undefined {
  if (isTlmPast !== true) return undefined;
  const leftovers = open.filter((extent) => extent.format === "tlm" && arrivalOf(extent) + HOUR_MS <= nowMs);
  return leftovers.length === 0 ? undefined : within(leftovers, maxInputBytes).sort(byTime);
}

function pickUnpublished(
  extents: readonly Candidate[],
  { publish, maxInputBytes }: PickRules,
): Candidate[] | undefined {
  if (publish === undefined) return undefined;
  const { isDue, withFinished = false } = publish;
  const waiting = extents.filter((extent) => extent.isUnpublished === true && (withFinished || !isFinished(extent)));
  if (!waiting.some(isDue)) return undefined;
  // Those that are due first: what does not fit waits for the next merge.
  const inputs = waiting.sort((a, b) => Number(isDue(b)) - Number(isDue(a)) || arrivalOf(a) - arrivalOf(b));
  return within(inputs, maxInputBytes).sort(byTime);
}

/** What has waited for so long is due. */
export function publishAfter(lagMs: number, nowMs: number): PublishRule {
  return { isDue: (extent) => arrivalOf(extent) + lagMs <= nowMs };
}

/** Extents in groups, the smallest first: each begins with one that has many times the rows of all before it. */
function similar(extents: readonly Candidate[]): Candidate[][] {
  const groups: Candidate[][] = [];
  let rows = 0;
  for (const extent of extents.toSorted((a, b) => a.rows - b.rows)) {
    const group = groups.at(-1);
    if (group === undefined || extent.rows > SETTLE_RATIO * rows) groups.push([extent]);
    else group.push(extent);
    rows += extent.rows;
  }
  return groups;
}

/** The first extents that one merge can take; always one. */
function within(extents: readonly Candidate[], maxInputBytes: number): Candidate[] {
  const taken: Candidate[] = [];
  let sizeBytes = 0;
  for (const extent of extents) {
    sizeBytes += extent.sizeBytes;
    if (taken.length > 0 && (sizeBytes > maxInputBytes || taken.length === MAX_INPUTS)) break;
    taken.push(extent);
  }
  return taken;
}

/** When the extent was made, from its id, a UUID of version 7; 0 for any other id. */
function arrivalOf({ id }: Candidate): number {
  const hex = /^([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(id);
  return hex === null ? 0 : Number.parseInt(`${hex[1]}${hex[2]}`, 16);
}

function byTime(a: Candidate, b: Candidate): number {
  if (a.minAtNs !== b.minAtNs) return a.minAtNs < b.minAtNs ? -1 : 1;
  return a.id < b.id ? -1 : Number(a.id > b.id);
}
