import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../../core/errors.ts";
import { ColumnSet } from "../../format/columns/column-set.ts";
import type { TextColumn } from "../../format/columns/text-column.ts";
import { BATCH_ROWS, encodeTlm } from "../../format/tlm.ts";
import { TIME_COLUMN, type ColumnSpec } from "../../format/types.ts";
import { foreignColumn, type EngineColumn, type EnginePage, type ForeignRows } from "../contract/engines.ts";

/** Of text, in one file: what is held in memory. */
const FILE_BYTES = 16 * 1024 * 1024;

/**
 * Keeps the rows of an engine in files of one folder, as they come: each value as text, which nothing in this process
 * reads.
 */
export class ForeignSpool {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #paths: string[] = [];
  #columns: readonly EngineColumn[] | undefined;
  #set: ColumnSet | undefined;
  #rows = 0;
  #bytes = 0;
  #heldBytes = 0;

  /** `maxBytes` is of text, all values together. */
  constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Throws `budget_exceeded` for more than the spool may hold. */
  async add({ columns, rows }: Pick<EnginePage, "columns" | "rows">): Promise<void> {
    this.#columns ??= columns;
    if (rows.length === 0) return;
    if (this.#columns === undefined)
      throw new EngineError("engine_failed", "the query engine sent rows before columns");
    for (const row of rows) {
      this.#set ??= emptySet(this.#columns.length);
      this.#append(this.#set, row);
      if (this.#set.rows === BATCH_ROWS || this.#heldBytes >= FILE_BYTES) await this.#flush(this.#set);
    }
  }

  /** All that came; undefined when no columns did. */
  async end(): Promise<ForeignRows | undefined> {
    if (this.#set !== undefined) await this.#flush(this.#set);
    return this.#columns && { columns: this.#columns, paths: this.#paths, rows: this.#rows };
  }

  #append(set: ColumnSet, row: EnginePage["rows"][number]): void {
    const [, ...columns] = set.columns;
    if (row.length !== columns.length) {
      const message = `the query engine sent a row of ${row.length} values for ${columns.length} columns`;
      throw new EngineError("engine_failed", message);
    }
    for (const [i, column] of columns.entries()) {
      const value = row[i];
      if (value === undefined) continue;
      const text = value.toWellFormed();
      this.#heldBytes += Buffer.byteLength(text);
      set.ready(column);
      (column as TextColumn).appendText(text);
    }
    set.endRow();
    this.#rows++;
    if (this.#bytes + this.#heldBytes <= this.#maxBytes) return;
    throw new EngineError(
      "budget_exceeded",
      `the answer has more than ${this.#maxBytes} bytes: keep it as a file, with POST /v1/exports`,
    );
  }

  async #flush(set: ColumnSet): Promise<void> {
    const path = join(this.#folder, `${this.#paths.length}.tlm`);
    await writeFile(path, encodeTlm(set), { mode: 0o600 });
    this.#paths.push(path);
    this.#bytes += this.#heldBytes;
    this.#heldBytes = 0;
    this.#set = undefined;
  }
}

/** Its first column is the time that every extent has, and this one has nothing in. */
function emptySet(columns: number): ColumnSet {
  const texts = Array.from({ length: columns }, (_, i): ColumnSpec => {
    return { name: foreignColumn(i), type: { kind: "string" } };
  });
  return new ColumnSet([{ name: TIME_COLUMN, type: { kind: "timestamp" } }, ...texts]);
}
