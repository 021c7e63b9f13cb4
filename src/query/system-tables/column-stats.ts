import type { ExtentRecord, TableRecord } from "../../catalog/catalog.ts";
import type { SystemRow } from "../../feature/system-table.ts";
import { foldName } from "../../core/names.ts";
import { formatColumnType, type ColumnSpec, type ColumnStats } from "../../format/types.ts";
import { nsToRfc3339 } from "../../format/time-text.ts";

/**
 * The rows of `system.column_stats`: what the statistics of a table's extents say together of each of its columns. No
 * file is opened. Bounds hold for every value; they may be wider than the values for long strings, of which extents keep
 * the beginning.
 */
export async function* columnStatsRows(
  table: TableRecord,
  extents: AsyncIterable<Pick<ExtentRecord, "rows" | "stats">>,
): AsyncGenerator<SystemRow> {
  const totals = new Map(table.columns.map((column) => [foldName(column.name), new Totals(column)]));
  let all = 0;
  for await (const { rows, stats } of extents) {
    all += rows;
    for (const own of stats) totals.get(foldName(own.name))?.add(own, rows);
  }
  for (const total of totals.values()) yield { table_name: table.name, ...total.row(all) };
}

class Totals {
  readonly #column: ColumnSpec;
  #extents = 0;
  #values = 0;
  #min: string | undefined;
  #max: string | undefined;
  /** Values of an extent may be there without a bound on them. */
  #hasMin = true;
  #hasMax = true;

  constructor(column: ColumnSpec) {
    this.#column = column;
  }

  add({ nullCount, min, max }: ColumnStats, rowCount: number): void {
    this.#extents++;
    this.#values += rowCount - nullCount;
    if (rowCount === nullCount) return;
    this.#hasMin &&= min !== undefined;
    this.#hasMax &&= max !== undefined;
    if (min !== undefined && (this.#min === undefined || this.#isLess(min, this.#min))) this.#min = min;
    if (max !== undefined && (this.#max === undefined || this.#isLess(this.#max, max))) this.#max = max;
  }

  #isLess(a: string, b: string): boolean {
    const { kind } = this.#column.type;
    if (kind === "int" || kind === "long" || kind === "timestamp") return BigInt(a) < BigInt(b);
    if (kind === "real") return Number(a) < Number(b);
    return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
  }

  /** An extent without the column has NULL in all its rows. */
  row(rows: number): SystemRow {
    const { name, type } = this.#column;
    const shown = (bound: string | undefined): string | undefined =>
      bound !== undefined && type.kind === "timestamp" ? nsToRfc3339(BigInt(bound)) : bound;
    return {
      name,
      type: formatColumnType(type),
      extents: this.#extents,
      values: this.#values,
      nulls: rows - this.#values,
      min: this.#hasMin ? shown(this.#min) : undefined,
      max: this.#hasMax ? shown(this.#max) : undefined,
    };
  }
}
