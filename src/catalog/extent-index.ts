import type { ColumnRecord, ExtentTotals, ScanFilter, ScanRequest, TimeRange } from "./catalog.ts";
import { grown } from "../format/columns/growth.ts";
import type { ColumnStats } from "../format/types.ts";
import { compileTest, statsColumn, type RowTest, type StatsColumn } from "./stats-columns.ts";

/**
 * The extents of one table in memory, column by column, so that a scan over 100,000 of them is planned in milliseconds:
 * reading as many rows from a database takes a second. It knows no database; a driver adds to it what was committed
 * since it last looked, and loads statistics when a scan first asks for a column.
 *
 * An extent is a row number here, in the order of the commits, and `seqs` (ascending) is the driver's name for it.
 */
export class ExtentIndex {
  /** By id and kind: a column may have been widened since its statistics were read. */
  readonly #columns = new Map<string, StatsColumn>();
  #rows = 0;
  #seqs = new Float64Array(INITIAL_ROWS);
  #begins = new Float64Array(INITIAL_ROWS);
  /** Infinity while alive. */
  #ends = new Float64Array(INITIAL_ROWS);
  #sizes = new Float64Array(INITIAL_ROWS);
  #rowCounts = new Float64Array(INITIAL_ROWS);
  #minAts = new BigInt64Array(INITIAL_ROWS);
  #maxAts = new BigInt64Array(INITIAL_ROWS);

  get lastSeq(): number {
    return this.#rows === 0 ? -1 : (this.#seqs[this.#rows - 1] ?? -1);
  }

  /** Memory, about. */
  get sizeBytes(): number {
    let sizeBytes = this.#seqs.length * ROW_BYTES;
    for (const column of this.#columns.values()) sizeBytes += column.sizeBytes;
    return sizeBytes;
  }

  /** Adds an extent committed after all that are here. */
  add(extent: IndexedExtent): void {
    if (this.#rows === this.#seqs.length) this.#grow(this.#rows * 2);
    const row = this.#rows++;
    this.#seqs[row] = extent.seq;
    this.#begins[row] = extent.beginSnapshot;
    this.#ends[row] = extent.endSnapshot ?? Infinity;
    this.#sizes[row] = extent.sizeBytes;
    this.#rowCounts[row] = extent.rowCount;
    this.#minAts[row] = extent.minAtNs;
    this.#maxAts[row] = extent.maxAtNs;
  }

  /** Notes that an extent has ended; does nothing for one that is not here. */
  end(seq: number, endSnapshot: number): void {
    const row = this.#rowOf(seq);
    if (row < this.#rows && this.#seqs[row] === seq) this.#ends[row] = endSnapshot;
  }

  /** The row of the extent, or of the first one after it. */
  #rowOf(seq: number): number {
    let [low, high] = [0, this.#rows];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#seqs[middle] ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compile(
    filters: readonly ScanFilter[],
    columnOf: (name: string) => ColumnRecord | undefined,
  ): { tests: RowTest[]; used: Map<ColumnRecord, StatsColumn> } {
    const used = new Map<ColumnRecord, StatsColumn>();
    const tests = filters.map(({ tests: own }) =>
      compileTest({ kind: "all", of: own }, (name) => {
        const column = columnOf(name);
        if (column === undefined) return undefined;
        const stats = this.#columnFor(column);
        used.set(column, stats);
        return stats;
      }),
    );
    return { tests, used };
  }

  /**
   * The extents alive at the snapshot that any filter may need. `columnOf` finds a column by name; a test of one that
   * there is not passes. `open` gives a reader of those columns' statistics, for extents first seen with one of them.
   */
  scan(
    request: Omit<ScanRequest, "tableId">,
    columnOf: (name: string) => ColumnRecord | undefined,
    open: (columns: readonly ColumnRecord[]) => StatsLoader,
  ): IndexScan {
    const prepared = this.prepare(request, columnOf);
    return prepared.run(prepared.columns.length === 0 ? () => [] : open(prepared.columns));
  }

  /**
   * A scan that has yet to look at statistics, for drivers that cannot load them while it runs. The index must not be
   * changed until it has run.
   */
  prepare(
    { atSnapshot, filters, top }: Omit<ScanRequest, "tableId">,
    columnOf: (name: string) => ColumnRecord | undefined,
  ): PreparedScan {
    const { rows, total, prunedByTime } = this.#inTime(atSnapshot, filters);
    const { tests, used } = this.#compile(filters, columnOf);
    const stats = [...used.values()];
    const run = (load: StatsLoader): IndexScan => {
      if (used.size > 0) this.#load(rows, used, load);
      const kept = this.#keep(rows, filters, tests);
      const [first] = filters;
      const pruned = { prunedByTime, prunedByStats: kept.prunedByStats };
      if (top === undefined || first === undefined) {
        return { total, ...pruned, seqs: kept.seqs, prunedByTop: { extents: 0, sizeBytes: 0 } };
      }
      return { total, ...pruned, ...this.#keepTop(kept.seqs, first.range, top) };
    };
    const unknown = stats.length === 0 ? [] : rows.filter((row) => !stats.every((column) => column.knows(row)));
    return { columns: [...used.keys()], seqs: unknown.map((row) => this.#seqs[row] ?? 0), run };
  }

  /**
   * Leaves out of a scan for one filter without tests what cannot hold one of its newest (or oldest) rows: extents that
   * lie within the range are counted from that end, and when they have enough rows, those wholly beyond the last of them
   * are not needed.
   */
  #keepTop(all: readonly number[], range: TimeRange, { rows: wanted, newest }: Top): KeptTop {
    const rows = all.map((seq) => this.#rowOf(seq));
    const [near, far] = newest ? [this.#maxAts, this.#minAts] : [this.#minAts, this.#maxAts];
    const inside = rows.filter((row) => this.#isWithin(row, range));
    // Descending by the end of the extent that is further away.
    inside.sort((a, b) => compare(far[newest ? b : a] ?? 0n, far[newest ? a : b] ?? 0n));
    let left = wanted;
    const last = inside.find((row) => (left -= this.#rowCounts[row] ?? 0) <= 0);
    const limit = last === undefined ? undefined : far[last];
    const prunedByTop = { extents: 0, sizeBytes: 0 };
    const seqs = all.filter((_, i) => {
      const row = rows[i] ?? 0;
      const end = near[row] ?? 0n;
      if (limit === undefined || (newest ? end >= limit : end <= limit)) return true;
      prunedByTop.extents++;
      prunedByTop.sizeBytes += this.#sizes[row] ?? 0;
      return false;
    });
    return { seqs, prunedByTop };
  }

  /**
   * Extents that commits brought since (and with) the snapshot `from`, in their order: as many as `limit`, and the rest of
   * the last one's snapshot. `upTo` is the snapshot up to which these are all there are.
   *
   * An extent that begins at the snapshot at which another one ends was made of that: only merges and deletions end
   * extents and begin others in one snapshot. So nothing need be stored to tell them from what a commit brought, as long as
   * the extents that ended are known, which the caller sees to.
   */
  additions({ from, upTo, limit }: { from: number; upTo: number; limit: number }): { seqs: number[]; upTo: number } {
    const rewrites = new Set<number>();
    for (let row = 0; row < this.#rows; row++) {
      const end = this.#ends[row] ?? Infinity;
      if (end >= from && end <= upTo) rewrites.add(end);
    }
    const seqs: number[] = [];
    let last = from;
    for (let row = this.#firstSince(from); row < this.#rows; row++) {
      const begin = this.#begins[row] ?? 0;
      if (begin > upTo) break;
      if (rewrites.has(begin)) continue;
      if (seqs.length >= limit && begin > last) return { seqs, upTo: last };
      seqs.push(this.#seqs[row] ?? 0);
      last = begin;
    }
    return { seqs, upTo };
  }

  /** The first row of that snapshot or a later one. */
  #firstSince(snapshot: number): number {
    let [low, high] = [0, this.#rows];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#begins[middle] ?? 0) < snapshot) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #inTime(atSnapshot: number, filters: readonly ScanFilter[]): InTime {
    const total = { extents: 0, sizeBytes: 0 };
    const inTime = { extents: 0, sizeBytes: 0 };
    const rows: number[] = [];
    for (let row = 0; row < this.#rows; row++) {
      if ((this.#begins[row] ?? 0) > atSnapshot || (this.#ends[row] ?? 0) <= atSnapshot) continue;
      const sizeBytes = this.#sizes[row] ?? 0;
      total.extents++;
      total.sizeBytes += sizeBytes;
      if (!filters.some(({ range }) => this.#overlaps(row, range))) continue;
      inTime.extents++;
      inTime.sizeBytes += sizeBytes;
      rows.push(row);
    }
    return { rows, total, prunedByTime: difference(total, inTime) };
  }

  #keep(rows: readonly number[], filters: readonly ScanFilter[], tests: readonly RowTest[]): Kept {
    const seqs: number[] = [];
    const prunedByStats = { extents: 0, sizeBytes: 0 };
    for (const row of rows) {
      if (filters.some(({ range }, i) => this.#overlaps(row, range) && tests[i]?.(row) !== false)) {
        seqs.push(this.#seqs[row] ?? 0);
        continue;
      }
      prunedByStats.extents++;
      prunedByStats.sizeBytes += this.#sizes[row] ?? 0;
    }
    return { seqs, prunedByStats };
  }

  #overlaps(row: number, { minNs, maxNs }: TimeRange): boolean {
    if (minNs !== undefined && (this.#maxAts[row] ?? 0n) < minNs) return false;
    return maxNs === undefined || (this.#minAts[row] ?? 0n) <= maxNs;
  }

  #isWithin(row: number, { minNs, maxNs }: TimeRange): boolean {
    if (minNs !== undefined && (this.#minAts[row] ?? 0n) < minNs) return false;
    return maxNs === undefined || (this.#maxAts[row] ?? 0n) <= maxNs;
  }

  #columnFor({ id, type }: ColumnRecord): StatsColumn {
    const key = `${id} ${type.kind}`;
    let column = this.#columns.get(key);
    if (column === undefined) {
      column = statsColumn(type, this.#seqs.length);
      this.#columns.set(key, column);
    }
    return column;
  }

  #load(rows: readonly number[], columns: ReadonlyMap<ColumnRecord, StatsColumn>, load: StatsLoader): void {
    const all = [...columns];
    for (const row of rows) {
      if (all.every(([, column]) => column.knows(row))) continue;
      const stats = load(this.#seqs[row] ?? 0);
      for (const [{ name }, column] of all) {
        column.set(
          row,
          this.#rowCounts[row] ?? 0,
          stats.find((of) => of.name === name),
        );
      }
    }
  }

  #grow(capacity: number): void {
    this.#seqs = grown(this.#seqs, capacity);
    this.#begins = grown(this.#begins, capacity);
    this.#ends = grown(this.#ends, capacity);
    this.#sizes = grown(this.#sizes, capacity);
    this.#rowCounts = grown(this.#rowCounts, capacity);
    this.#minAts = grown(this.#minAts, capacity);
    this.#maxAts = grown(this.#maxAts, capacity);
    for (const column of this.#columns.values()) column.grow(capacity);
  }
}

export type IndexedExtent = {
  seq: number;
  beginSnapshot: number;
  endSnapshot: number | undefined;
  sizeBytes: number;
  rowCount: number;
  minAtNs: bigint;
  maxAtNs: bigint;
};

/** Statistics of one extent, of those of the columns that it has. */
export type StatsLoader = (seq: number) => readonly ColumnStats[];

export type PreparedScan = {
  /** The columns that the tests use, and the extents whose statistics of them are to be loaded. */
  columns: ColumnRecord[];
  seqs: number[];
  run(load: StatsLoader): IndexScan;
};

export type IndexScan = {
  seqs: number[];
  total: ExtentTotals;
  prunedByTime: ExtentTotals;
  prunedByStats: ExtentTotals;
  prunedByTop: ExtentTotals;
};

type InTime = Pick<IndexScan, "total" | "prunedByTime"> & { rows: number[] };
type Kept = Pick<IndexScan, "seqs" | "prunedByStats">;
type KeptTop = Pick<IndexScan, "seqs" | "prunedByTop">;

type Top = NonNullable<ScanRequest["top"]>;

const INITIAL_ROWS = 64;
const ROW_BYTES = 7 * 8;

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}

function difference(a: ExtentTotals, b: ExtentTotals): ExtentTotals {
  return { extents: a.extents - b.extents, sizeBytes: a.sizeBytes - b.sizeBytes };
}
