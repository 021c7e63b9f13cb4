import { tableFromIPC, type Table } from "@uwdata/flechette";
import type { ArrowMessage } from "../base/arrow-messages.ts";
import {
  byteLength,
  cellJson,
  cellsOf,
  cellText,
  comparableNumber,
  isNull,
  kindOf,
  textStart,
  type Cells,
  type ValueKind,
} from "./cell-values.ts";

/** A column of a result, as the grid knows it. */
export type ResultColumn = {
  name: string;
  /** The type that the table has, where the server says it; else that of Arrow. */
  type: string;
  kind: ValueKind;
};

/** A cell to show: its text, or the beginning of a long one; null for NULL. */
export type ShownCell = string | null;

export type CopyFormat = "tsv" | "json" | "markdown";
export type CellRange = { fromRow: number; toRow: number; columns: readonly number[] };

/** Longer texts are shown as their beginning: nobody reads more in a cell, and to lay them out would take seconds. */
const SHOWN_CHARS = 300;
/** Rows that are looked at before others have their turn. */
const ROWS_AT_ONCE = 20_000;

type StoredBatch = { start: number; rows: number; columns: readonly Cells[] };
type Place = { batch: StoredBatch; index: number };

/**
 * The rows of an answer, in the buffers in which they came: nothing is made of a value before it is shown, compared or
 * copied. Rows have an order of their own (`sort`, `filter`); row numbers are by that order.
 */
export class ResultStore {
  columns: readonly ResultColumn[] = [];
  #schema: Uint8Array | undefined;
  #batches: StoredBatch[] = [];
  #rows = 0;
  /** Row numbers as they came, in the order that is shown; undefined for that in which they came. */
  #order: Uint32Array | undefined;
  #text = "";
  #sort: { column: number; isDescending: boolean } | undefined;
  /** Counts the arrangements: one that takes longer than the next must not undo it. */
  #turn = 0;

  /** Rows that are shown. */
  get rows(): number {
    return this.#order?.length ?? this.#rows;
  }

  /** Rows that came. */
  get allRows(): number {
    return this.#rows;
  }

  add({ bytes, kind }: ArrowMessage): void {
    if (kind === "schema") {
      this.#schema = bytes;
      this.columns = columnsOf(tableFromIPC(bytes, OPTIONS));
      return;
    }
    if (kind !== "batch" || this.#schema === undefined) return;
    const table = tableFromIPC([this.#schema, bytes], OPTIONS);
    if (table.numRows === 0) return;
    const columns = table.children.flatMap(({ data }) => data.slice(0, 1).map(cellsOf));
    this.#batches.push({ start: this.#rows, rows: table.numRows, columns });
    this.#rows += table.numRows;
  }

  /** Cells of the rows `[from, to)`, in the columns asked for. */
  window(from: number, to: number, columns: readonly number[]): ShownCell[][] {
    const rows: ShownCell[][] = [];
    for (let row = Math.max(0, from); row < Math.min(to, this.rows); row++) {
      const place = this.#place(row);
      rows.push(
        columns.map((column) => (place === undefined ? null : shown(place.batch.columns[column], place.index))),
      );
    }
    return rows;
  }

  /** The whole value of a cell, as it is copied. */
  cell(row: number, column: number): { text: string | null; json: string } {
    const place = this.#place(row);
    return { text: textAt(place, column), json: jsonAt(place, column) };
  }

  /** A row as a JSON object. */
  rowJson(row: number): string {
    const place = this.#place(row);
    const members = this.columns.map(({ name }, i) => `${JSON.stringify(name)}:${jsonAt(place, i)}`);
    return `{${members.join(",")}}`;
  }

  /** The order of a column's values, NULL last; rows that are equal stay as they came. Undefined: all as they came. */
  async sort(column: number | undefined, isDescending: boolean): Promise<void> {
    this.#sort = column === undefined ? undefined : { column, isDescending };
    await this.arrange();
  }

  /** Leaves the rows that have the text in one of their cells, in any case. All again for an empty text. */
  async filter(text: string): Promise<void> {
    this.#text = text;
    await this.arrange();
  }

  /** Filters and sorts the rows that are here. Rows that come later are left out until it is called again. */
  async arrange(): Promise<void> {
    const turn = ++this.#turn;
    const found = this.#text === "" ? undefined : await this.#found(this.#text, turn);
    if (turn !== this.#turn) return;
    if (this.#sort === undefined) {
      this.#order = found;
      return;
    }
    const order = found ?? Uint32Array.from({ length: this.#rows }, (_, row) => row);
    const compare = await this.#comparison(this.#sort);
    if (turn !== this.#turn) return;
    this.#order = order.sort(compare);
  }

  /** The rows that have the text, as they came; not all of them once another turn has begun. */
  async #found(text: string, turn: number): Promise<Uint32Array> {
    const wanted = text.toLowerCase();
    const found: number[] = [];
    const rows = this.#rows;
    for (let row = 0; row < rows && turn === this.#turn; row++) {
      if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await nextTurn();
      const place = this.#placeOf(row);
      const hasText = place?.batch.columns.some((cells) =>
        cellText(cells, place.index)?.toLowerCase().includes(wanted),
      );
      if (hasText === true) found.push(row);
    }
    return Uint32Array.from(found);
  }

  /** Cells as a text to paste elsewhere. */
  copied({ fromRow, toRow, columns }: CellRange, format: CopyFormat): string {
    const places = Array.from({ length: Math.min(toRow, this.rows) - fromRow }, (_, i) => this.#place(fromRow + i));
    const names = columns.map((column) => this.columns[column]?.name ?? "");
    if (format === "json") {
      const objects = places.map((place) => {
        const members = columns.map((column, i) => `${JSON.stringify(names[i] ?? "")}:${jsonAt(place, column)}`);
        return `  {${members.join(", ")}}`;
      });
      return `[\n${objects.join(",\n")}\n]`;
    }
    const texts = places.map((place) => columns.map((column) => textAt(place, column)));
    if (format === "tsv") return texts.map((row) => row.map(tsvCell).join("\t")).join("\n");
    const rule = columns.map((column) => (this.columns[column]?.kind === "number" ? "--:" : "---"));
    return [
      markdownLine(names.map(markdownCell)),
      markdownLine(rule),
      ...texts.map((row) => markdownLine(row.map(markdownCell))),
    ].join("\n");
  }

  /** Numbers of columns for a chart, of so many rows at most; times in seconds, NULL as null. */
  numbers(columns: readonly number[], most: number): (number | null)[][] {
    const rows = Math.min(this.rows, most);
    return columns.map((column) => {
      return Array.from({ length: rows }, (_, row) => {
        const place = this.#place(row);
        const cells = place?.batch.columns[column];
        return place === undefined || cells === undefined ? null : numberOf(cells, place.index);
      });
    });
  }

  /** Where a row lies, by the order that is shown. */
  #place(row: number): Place | undefined {
    const stored = this.#order === undefined ? row : this.#order[row];
    return stored === undefined ? undefined : this.#placeOf(stored);
  }

  /** Where a row lies, by the order in which they came. */
  #placeOf(stored: number): Place | undefined {
    let [low, high] = [0, this.#batches.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#batches[middle]?.start ?? 0) <= stored) low = middle;
      else high = middle - 1;
    }
    const batch = this.#batches[low];
    return batch === undefined || stored - batch.start >= batch.rows
      ? undefined
      : { batch, index: stored - batch.start };
  }

  /** Compares two rows, by their numbers as they came. */
  async #comparison({ column, isDescending }: { column: number; isDescending: boolean }) {
    const { keys, nulls } = await this.#keys(column);
    const sign = isDescending ? -1 : 1;
    return (a: number, b: number): number => {
      if (nulls[a] !== nulls[b]) return (nulls[a] ?? 0) - (nulls[b] ?? 0);
      const [x, y] = [keys[a], keys[b]];
      if (x === y || x === undefined || y === undefined) return a - b;
      return x < y ? -sign : x > y ? sign : a - b;
    };
  }

  /** A value to compare of each row, as they came. */
  async #keys(column: number): Promise<{ keys: (number | bigint | string | undefined)[]; nulls: Uint8Array }> {
    const nulls = new Uint8Array(this.#rows);
    const keys: (number | bigint | string | undefined)[] = [];
    for (const { columns, rows, start } of this.#batches) {
      const cells = columns[column];
      for (let index = 0; index < rows; index++) {
        const isMissing = cells === undefined || isNull(cells, index);
        if (isMissing) nulls[start + index] = 1;
        keys.push(isMissing ? undefined : comparable(cells, index));
      }
      await nextTurn();
    }
    return { keys, nulls };
  }
}

const OPTIONS = { useBigInt: true } as const;

function columnsOf(table: Table): ResultColumn[] {
  return table.schema.fields.map(({ name, type, metadata }) => {
    const own = metadata?.get("engine.type");
    return { name, type: own ?? typeName(type), kind: own === "dynamic" ? "nested" : kindOf(type) };
  });
}

function typeName(type: { typeId: number; [key: string]: unknown }): string {
  return TYPE_NAMES[type.typeId]?.(type) ?? `type ${type.typeId}`;
}

const TYPE_NAMES: Readonly<Record<number, (type: Record<string, unknown>) => string>> = {
  1: () => "null",
  2: ({ bitWidth, signed }) => `${signed === true ? "int" : "uint"}${String(bitWidth)}`,
  3: ({ precision }) => (precision === 1 ? "float" : "double"),
  4: () => "bytes",
  5: () => "text",
  6: () => "bool",
  7: ({ precision, scale }) => `decimal(${String(precision)}, ${String(scale)})`,
  8: () => "date",
  9: () => "time",
  10: ({ timezone }) => (typeof timezone === "string" && timezone !== "" ? "timestamp" : "timestamp without zone"),
  11: () => "interval",
  12: () => "list",
  13: () => "struct",
  15: () => "bytes",
  16: () => "list",
  17: () => "map",
  19: () => "bytes",
  20: () => "text",
  21: () => "list",
};

/** The whole text of a cell; null for NULL. */
function textAt(place: Place | undefined, column: number): string | null {
  const cells = place?.batch.columns[column];
  return place === undefined || cells === undefined ? null : cellText(cells, place.index);
}

function jsonAt(place: Place | undefined, column: number): string {
  const cells = place?.batch.columns[column];
  return place === undefined || cells === undefined ? "null" : cellJson(cells, place.index);
}

function shown(cells: Cells | undefined, index: number): ShownCell {
  if (cells === undefined || isNull(cells, index)) return null;
  const bytes = kindOf(cells.type) === "text" ? byteLength(cells, index) : undefined;
  if (bytes !== undefined && bytes > SHOWN_CHARS * 4)
    return `${textStart(cells, index, SHOWN_CHARS * 4).slice(0, SHOWN_CHARS)}…`;
  const text = cellText(cells, index) ?? "";
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

function comparable(cells: Cells, index: number): number | bigint | string {
  return comparableNumber(cells, index) ?? cellText(cells, index) ?? "";
}

function numberOf(cells: Cells, index: number): number | null {
  if (isNull(cells, index)) return null;
  const text = cellText(cells, index) ?? "";
  if (kindOf(cells.type) !== "time") {
    const value = Number(text);
    return Number.isFinite(value) ? value : null;
  }
  const ms = Date.parse(/Z$|^\d{4}-\d\d-\d\d$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(ms) ? null : ms / 1_000;
}

function tsvCell(text: string | null): string {
  return (text ?? "").replaceAll(/[\t\n\r]/g, " ");
}

function markdownCell(text: string | null): string {
  return (text ?? "").replaceAll("|", "\\|").replaceAll(/\r?\n/g, " ");
}

function markdownLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function nextTurn(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.addEventListener("message", () => resolve(), { once: true });
    port1.start();
    port2.postMessage(undefined);
  });
}
