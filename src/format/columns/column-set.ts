import { LIMITS } from "../../core/limits.ts";
import { foldName } from "../../core/names.ts";
import { CATCH_ALL_COLUMN, TIME_COLUMN, type ColumnSpec } from "../types.ts";
import type { AnyColumn } from "./create.ts";
import { LongColumn } from "./long-column.ts";
import { recycleColumn, takeColumn } from "./recycling.ts";

/**
 * Most bytes that the rows of one extent may take, not counting text, which is as long as what was sent. Rows of few
 * bytes can take many: in a table of 2,000 numbers, `{}` takes 16 kB once every column has a value somewhere.
 */
const MAX_EXTENT_BYTES = 1024 * 1024 * 1024;

/** The extent would become too large. */
export class ExtentFull extends Error {
  constructor(maxBytes: number) {
    super(`the rows take more than ${Math.floor(maxBytes / (1024 * 1024))} MiB of columns`);
    this.name = "ExtentFull";
  }
}

/**
 * The extent under construction: the columns of one table, growing by rows and, where the schema may evolve, by
 * columns. `mark` and `rollback` are a savepoint over all of it, new columns included.
 */
export class ColumnSet {
  /** The table's columns first, then new ones in order of appearance. */
  readonly columns: AnyColumn[] = [];
  /** Indexes of the `vector` columns, which every row must fill. */
  readonly vectors: number[] = [];
  /** Index of `at`. */
  readonly timeIndex: number;
  /** Finished rows. */
  rows = 0;
  /**
   * Whether a scan has met a field that none of the columns had when it came. Whoever wants to know clears it before.
   */
  metUnknownField = false;
  readonly #maxBytes: number;
  readonly #tableColumns: number;
  readonly #byName = new Map<string, number>();
  readonly #byFoldedName = new Map<string, number>();
  #markRows = 0;
  #markColumns: number;
  /** Bytes per row of the columns that are stored because of finished rows. */
  #rowBytes = 0;
  #markRowBytes = 0;
  /** Columns readied for what may become their first value; some do not get it, because it does not fit. */
  readonly #starting: AnyColumn[] = [];
  #startingBytes = 0;

  /** Throws when the table has no time column: the catalog promises one. */
  constructor(columns: readonly ColumnSpec[], maxBytes = MAX_EXTENT_BYTES) {
    this.#maxBytes = maxBytes;
    for (const spec of columns) this.#add(spec);
    this.#tableColumns = columns.length;
    this.#markColumns = columns.length;
    this.timeIndex = this.find(TIME_COLUMN);
    if (!(this.columns[this.timeIndex] instanceof LongColumn)) throw new Error("a table needs a timestamp column 'at'");
  }

  /** The time column. */
  get time(): LongColumn {
    return this.columns[this.timeIndex] as LongColumn;
  }

  /** Columns that the table did not have. */
  get newColumns(): ColumnSpec[] {
    return this.columns.slice(this.#tableColumns).map((column) => column.spec);
  }

  /** Names of new `long` columns with a value that no double holds exactly. */
  get wideLongs(): string[] {
    const wide = this.columns.slice(this.#tableColumns).filter((column) => {
      return column.storage === "long" && column.spec.type.kind === "long" && !column.fitsReal();
    });
    return wide.map(({ spec }) => spec.name);
  }

  /** Index of the column of that name: the same spelling, else the same but for ASCII case; -1 when there is none. */
  find(name: string): number {
    return this.#byName.get(name) ?? this.#byFoldedName.get(foldName(name)) ?? -1;
  }

  /** Index of the column that keeps what fits nowhere else, which must be able to hold JSON text; -1 without one. */
  get catchAllIndex(): number {
    const index = this.#byFoldedName.get(CATCH_ALL_COLUMN) ?? -1;
    return this.columns[index]?.storage === "text" ? index : -1;
  }

  /** Adds a column and returns its index; -1 when the table has as many columns as it may have. */
  addColumn(spec: ColumnSpec): number {
    if (this.columns.length >= LIMITS.columnsPerTable) return -1;
    return this.#add(spec);
  }

  /**
   * Readies a column for its value in the current row. Throws `ExtentFull`, before it allocates anything, when that
   * would make the extent too large.
   */
  ready(column: AnyColumn): void {
    if (!column.isStored && !this.#starting.includes(column)) {
      this.#starting.push(column);
      this.#startingBytes += column.rowBytes;
      this.#checkSize();
    }
    column.padTo(this.rows);
  }

  /** Takes back the column's value in the current row, if it has one. */
  takeBack(column: AnyColumn): void {
    column.dropRow(this.rows);
    const at = this.#starting.indexOf(column);
    if (at < 0) return;
    this.#starting.splice(at, 1);
    this.#startingBytes -= column.rowBytes;
  }

  /** Ends the current row. Throws `ExtentFull`. */
  endRow(): void {
    this.rows++;
    if (this.#starting.length > 0) this.#settleStarting();
    this.#checkSize();
  }

  /** Ends so many rows whose values have been appended as blocks. Throws `ExtentFull`. */
  endRows(rows: number): void {
    this.rows += rows;
    if (this.#starting.length > 0) this.#settleStarting();
    this.#checkSize();
  }

  mark(): void {
    this.#markRows = this.rows;
    this.#markColumns = this.columns.length;
    this.#markRowBytes = this.#rowBytes;
    for (const column of this.columns) column.mark();
  }

  /** Back to the last `mark`, as if no row and no column had come since. */
  rollback(): void {
    for (const column of this.columns.splice(this.#markColumns)) {
      this.#byName.delete(column.spec.name);
      this.#byFoldedName.delete(foldName(column.spec.name));
      recycleColumn(column);
    }
    for (const column of this.columns) column.rollback();
    this.rows = this.#markRows;
    this.#rowBytes = this.#markRowBytes;
    this.#starting.length = 0;
    this.#startingBytes = 0;
  }

  /** Gives the builders away when the extent is encoded. The set, and views of its buffers, are of no use afterwards. */
  release(): void {
    for (const column of this.columns.splice(0)) recycleColumn(column);
  }

  #settleStarting(): void {
    for (const column of this.#starting) if (column.isStored) this.#rowBytes += column.rowBytes;
    this.#starting.length = 0;
    this.#startingBytes = 0;
  }

  #checkSize(): void {
    if (this.rows * (this.#rowBytes + this.#startingBytes) > this.#maxBytes) throw new ExtentFull(this.#maxBytes);
  }

  #add(spec: ColumnSpec): number {
    const column = takeColumn(spec);
    const index = this.columns.push(column) - 1;
    this.#byName.set(spec.name, index);
    this.#byFoldedName.set(foldName(spec.name), index);
    if (column.storage === "vector") this.vectors.push(index);
    return index;
  }
}
