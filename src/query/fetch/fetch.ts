import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import type { PlannedExtent } from "../../catalog/catalog.ts";
import { Semaphore } from "../../core/concurrency.ts";
import { systemCodeOf } from "../../core/errors.ts";
import { ParquetFooterError } from "../../format/parquet-footer.ts";
import { nanosecondName } from "../../format/parquet-times.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { budgetOf } from "../budgets/budget.ts";
import type { ReadBudget } from "../budgets/read-budget.ts";
import { ExtentCache, type ExtentCacheOptions, type Lease } from "./cache/extent-cache.ts";
import { mayBePartial } from "./cache/partial-file.ts";
import { locateFooter, neededBytes } from "./cache/parquet-ranges.ts";
import type { PlannedTable } from "../prune/plan.ts";
import type { LocalExtent, ResolvedTable } from "../contract/tables.ts";
import { reachesBeyond } from "../prune/retention.ts";

/**
 * Brings the extents of a plan to this machine, where the query process opens them: through the extent cache, or in
 * place where the store's objects are local files.
 *
 * Both count toward the query's budget of bytes from the object store. Through the cache it is what is requested, and
 * hits are free. In place nothing is requested, and what counts is what the query may read: the chunks of its columns
 * in Parquet extents, all of `tlm` extents (as if it had no LIMIT, and each time anew).
 */
export type ExtentFetcher = {
  /** Fetches what the tables need. Files stay until `release`. Rejects with `EngineError` or the signal's reason. */
  fetch(tables: readonly FetchTable[], request: FetchRequest): Promise<Fetched>;
  /** Deletes what is kept of extents that are gone; resolves to how many. */
  sweep(goneOf: (extentIds: readonly string[]) => Promise<readonly string[]>): Promise<number>;
};

/** What fetching asks of a planned table. */
export type FetchTable = Pick<PlannedTable, "name" | "columns" | "needed" | "extents" | "visible" | "bounds">;

export type FetchRequest = {
  signal: AbortSignal;
  /** Charged with what is about to be read from the object store. */
  budget: ReadBudget;
  /** Told of each extent that is on this machine, as it has come or was found there. */
  onReady?: (extent: Pick<PlannedExtent, "sizeBytes">) => void;
  /**
   * Where the budget is too small for all extents, a sample of them will do: those that come first in an order which has
   * nothing to do with what is in them, as far as the budget goes. One at least, or it fails as otherwise.
   */
  mayBePartial?: boolean;
};

export type Fetched = {
  /** In the order of the plan's tables. */
  tables: ResolvedTable[];
  /** Extents that were on this machine already. */
  cacheHits: number;
  /** Forgets cached files that somebody deleted; whether there was one, so that fetching again may help. */
  dropMissing(): boolean;
  release(): void;
};

export type ExtentFetcherOptions = Omit<ExtentCacheOptions, "folder" | "capacityBytes"> & {
  /** For stores without local files. */
  cacheDir: string;
  cacheBytes: number;
};

/** Extents of one query under way at a time, so that others find requests to the store free. */
const EXTENTS_PER_QUERY = 16;

export function createExtentFetcher(options: ExtentFetcherOptions): ExtentFetcher {
  const { store, cacheDir, cacheBytes } = options;
  const root = rootOf(store);
  if (root !== undefined) {
    return { fetch: (tables, request) => openInPlace(store, tables, request), sweep: () => Promise.resolve(0) };
  }
  const cache = new ExtentCache({ ...options, folder: cacheDir, capacityBytes: cacheBytes });
  return {
    fetch: (tables, request) => fetchThrough(cache, tables, request),
    sweep: (goneOf) => cache.sweep(goneOf),
  };
}

/** The sizes of the extents that have to be opened for the tables; of most only some columns are read. */
export function bytesToOpen(tables: readonly FetchTable[]): number {
  return tables.flatMap(neededOf).reduce((total, { extent }) => total + extent.sizeBytes, 0);
}

type Needed = { extent: PlannedTable["extents"][number]; columns: readonly string[] | undefined };

async function fetchThrough(
  cache: ExtentCache,
  tables: readonly FetchTable[],
  request: FetchRequest,
): Promise<Fetched> {
  const { budget } = request;
  await cache.open();
  const sampled = request.mayBePartial === true && !budget.fits(bytesToOpen(tables));
  if (sampled) return await fetchSample(cache, tables, request);
  budget.check(certainBytes(cache, tables));
  // One that fails ends the others; those of other queries go on.
  const stop = new AbortController();
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const leases: Lease[] = [];
  const turns = new Semaphore(EXTENTS_PER_QUERY);
  const charge = (sizeBytes: number): void => budget.charge(sizeBytes);
  const bring = ({ extent, columns }: Needed): Promise<LocalExtent> =>
    turns.run(async () => {
      const lease = await cache.acquire(extent, { columns, signal, charge });
      leases.push(lease);
      request.onReady?.(extent);
      return localExtent(extent, lease.path);
    });
  const release = (): void => {
    for (const lease of leases.splice(0)) lease.release();
  };
  try {
    const extents = await allOrNone(tables.flatMap(neededOf).map(bring), (reason) => stop.abort(reason));
    const cacheHits = leases.filter((lease) => lease.hit).length;
    return { tables: resolved(tables, extents), cacheHits, dropMissing: () => dropMissing(leases), release };
  } catch (error) {
    release();
    throw request.signal.aborted ? request.signal.reason : error;
  }
}

/**
 * The extents in the order of a sample, until one does not fit. The first is charged before the others, which must not
 * take the budget from it; of those a few are under way at a time, so that some beyond the one that does not fit may be
 * read in vain, within the budget.
 */
async function fetchSample(
  cache: ExtentCache,
  tables: readonly FetchTable[],
  { budget, signal, onReady }: FetchRequest,
): Promise<Fetched> {
  const ordered = inSampleOrder(tables.flatMap(neededOf));
  const leases = new Map<string, Lease>();
  const turns = new Semaphore(EXTENTS_PER_QUERY);
  const charge = (sizeBytes: number): void => budget.charge(sizeBytes);
  let end = ordered.length;
  let refusal: unknown;
  const release = (): void => {
    for (const lease of leases.values()) lease.release();
    leases.clear();
  };
  const bring = ({ extent, columns }: Needed, place: number): Promise<void> =>
    turns.run(async () => {
      if (place >= end) return;
      try {
        leases.set(extent.id, await cache.acquire(extent, { columns, signal, charge }));
        onReady?.(extent);
      } catch (error) {
        if (budgetOf(error) === undefined) throw error;
        if (place < end) refusal = error;
        end = Math.min(end, place);
      }
    });
  try {
    const [first, ...others] = ordered;
    if (first !== undefined) await bring(first, 0);
    await allOrNone(
      others.map((one, i) => bring(one, i + 1)),
      () => (end = 0),
    );
    if (end === 0 && ordered.length > 0) throw refusal;
  } catch (error) {
    release();
    throw signal.aborted ? signal.reason : error;
  }
  const read = new Set(ordered.slice(0, end).map(({ extent }) => extent.id));
  const kept = withExtents(tables, read);
  const extents = kept
    .flatMap(({ table }) => neededOf(table))
    .map(({ extent }) => localExtent(extent, leases.get(extent.id)?.path ?? ""));
  const all = [...leases.values()];
  const cacheHits = all.filter((lease) => lease.hit).length;
  return { tables: resolvedSample(kept, extents), cacheHits, dropMissing: () => dropMissing(all), release };
}

/** By a hash of the id, in which neither the time of an extent nor its size has a part. */
function inSampleOrder(needed: readonly Needed[]): Needed[] {
  const keyed = needed.map((one) => ({ one, key: createHash("sha256").update(one.extent.id).digest("hex") }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ one }) => one);
}

type Kept = { table: FetchTable; leftOut: number };

/** The tables with those of the extents, and those that need not be read. */
function withExtents(tables: readonly FetchTable[], ids: ReadonlySet<string>): Kept[] {
  return tables.map((table) => {
    const extents = table.extents.filter((extent) => ids.has(extent.id) || isBare(table, extent));
    return { table: { ...table, extents }, leftOut: table.extents.length - extents.length };
  });
}

function resolvedSample(kept: readonly Kept[], extents: readonly LocalExtent[]): ResolvedTable[] {
  const tables = resolved(
    kept.map(({ table }) => table),
    extents,
  );
  return tables.map((table, i) => Object.assign(table, { leftOut: kept[i]?.leftOut ?? 0 }));
}

function dropMissing(leases: readonly Lease[]): boolean {
  const missing = leases.filter(({ path }) => !existsSync(path));
  for (const lease of missing) lease.drop();
  return missing.length > 0;
}

/** What has to be requested in any case, so that a query that is far over its budget fails before the first byte. */
function certainBytes(cache: ExtentCache, tables: readonly FetchTable[]): number {
  const sizes = new Map<string, number>();
  for (const { extent, columns } of tables.flatMap(neededOf)) {
    const whole = columns === undefined || !mayBePartial(extent);
    if (whole && !cache.has(extent, columns)) sizes.set(extent.id, extent.sizeBytes);
  }
  return [...sizes.values()].reduce((total, sizeBytes) => total + sizeBytes, 0);
}

async function openInPlace(store: ObjectStore, tables: readonly FetchTable[], request: FetchRequest): Promise<Fetched> {
  const { budget, signal, onReady } = request;
  const pathOf = (extent: PlannedExtent): string => store.localPath?.(extent.key) ?? "";
  const needed = tables.flatMap(neededOf);
  const wholeBytes = bytesToOpen(tables);
  // Footers are read only where it makes a difference: they are many, and DuckDB reads them again.
  if (budget.fits(wholeBytes)) budget.charge(wholeBytes);
  else if (request.mayBePartial === true) return await openSample(tables, pathOf, request);
  else await chargeNeeded(needed, pathOf, { budget, signal });
  for (const { extent } of needed) onReady?.(extent);
  const extents = needed.map(({ extent }) => localExtent(extent, pathOf(extent)));
  return { tables: resolved(tables, extents), cacheHits: 0, dropMissing: () => false, release: () => {} };
}

async function openSample(
  tables: readonly FetchTable[],
  pathOf: (extent: PlannedExtent) => string,
  { budget, signal, onReady }: FetchRequest,
): Promise<Fetched> {
  const ordered = inSampleOrder(tables.flatMap(neededOf));
  const sizes = await sizesOf(ordered, pathOf, signal);
  let end = 0;
  while (end < ordered.length && budget.fits(sizes[end] ?? 0)) budget.charge(sizes[end++] ?? 0);
  if (end === 0) budget.check(sizes[0] ?? 0);
  const sample = ordered.slice(0, end);
  for (const { extent } of sample) onReady?.(extent);
  const kept = withExtents(tables, new Set(sample.map(({ extent }) => extent.id)));
  const extents = kept.flatMap(({ table }) => neededOf(table)).map(({ extent }) => localExtent(extent, pathOf(extent)));
  return { tables: resolvedSample(kept, extents), cacheHits: 0, dropMissing: () => false, release: () => {} };
}

async function chargeNeeded(
  needed: readonly Needed[],
  pathOf: (extent: PlannedExtent) => string,
  { budget, signal }: FetchRequest,
): Promise<void> {
  const all = await sizesOf(needed, pathOf, signal);
  budget.charge(all.reduce((total, sizeBytes) => total + sizeBytes, 0));
}

/** The bytes of each that a query reads. */
function sizesOf(
  needed: readonly Needed[],
  pathOf: (extent: PlannedExtent) => string,
  signal: AbortSignal,
): Promise<number[]> {
  const turns = new Semaphore(EXTENTS_PER_QUERY);
  const sizes = needed.map(({ extent, columns }) =>
    turns.run(async () => {
      signal.throwIfAborted();
      return columns === undefined || extent.format !== "parquet"
        ? extent.sizeBytes
        : bytesOfColumns(pathOf(extent), extent.sizeBytes, columns);
    }),
  );
  return allOrNone(sizes, () => {});
}

/** The whole size where the footer does not tell; that a file is missing is for its reader to say. */
async function bytesOfColumns(path: string, sizeBytes: number, columns: readonly string[]): Promise<number> {
  try {
    const file = await open(path, "r");
    try {
      const footer = await locateFooter(sizeBytes, async (range) => {
        const target = new Uint8Array(range.sizeBytes);
        const { bytesRead } = await file.read(target, 0, range.sizeBytes, range.offset);
        return target.subarray(0, bytesRead);
      });
      return neededBytes(footer, columns);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof ParquetFooterError || systemCodeOf(error) === "ENOENT") return sizeBytes;
    throw error;
  }
}

function neededOf(table: FetchTable): Needed[] {
  const { needed, visible } = table;
  return table.extents.flatMap((extent) => {
    if (isBare(table, extent)) return [];
    const columns =
      needed === undefined || !reachesBeyond(extent, visible) ? needed : withColumn(needed, visible.column);
    return { extent, columns: columns?.map((name) => nameInFile(extent, name)) };
  });
}

/** What a column is called that is read in the place of the table's. */
function nameInFile({ inNanoseconds }: PlannedTable["extents"][number], column: string): string {
  return inNanoseconds?.includes(column) === true ? nanosecondName(column) : column;
}

/**
 * Whether the catalog knows all that the query asks of the extent: `count(*)` and its kin touch no column. Of one that
 * has rows past their retention it does not know how many.
 */
function isBare({ needed, visible }: FetchTable, extent: PlannedExtent): boolean {
  return needed !== undefined && needed.length === 0 && !reachesBeyond(extent, visible);
}

function withColumn(columns: readonly string[], column: string): readonly string[] {
  return columns.includes(column) ? columns : [...columns, column];
}

function localExtent(extent: PlannedTable["extents"][number], path: string): LocalExtent {
  const { id, format, formatVersion, rows, columns, minAtNs, unwidened, inNanoseconds } = extent;
  const apart = { ...(unwidened && { unwidened }), ...(inNanoseconds && { inNanoseconds }) };
  return { id, format, formatVersion, rows, columns, minAtNs, path, ...apart };
}

function resolved(tables: readonly FetchTable[], extents: readonly LocalExtent[]): ResolvedTable[] {
  let next = 0;
  return tables.map((table) => {
    const { name, columns, needed, visible, bounds } = table;
    const bare = table.extents.filter((extent) => isBare(table, extent));
    const own = extents.slice(next, (next += table.extents.length - bare.length));
    const bareRows = bare.reduce((sum, { rows }) => sum + rows, 0);
    return { name, columns, needed, visible, ...(bounds && { bounds }), extents: own, bareRows };
  });
}

/** All results; or the first failure, when nothing is under way any more. */
async function allOrNone<T>(promises: readonly Promise<T>[], onFailure: (reason: unknown) => void): Promise<T[]> {
  try {
    return await Promise.all(promises);
  } catch (error) {
    onFailure(error);
    await Promise.allSettled(promises);
    throw error;
  }
}

/** The folder of the store where its objects are local files. */
export function rootOf(store: ObjectStore): string | undefined {
  const probe = "probe";
  const path = store.localPath?.(probe);
  return path?.endsWith(probe) === true ? path.slice(0, -probe.length) : undefined;
}
