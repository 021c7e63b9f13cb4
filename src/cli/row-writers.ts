import type { CliContext } from "./context.ts";
import { fieldText, isNumber, splitRow, type Field } from "./row.ts";
import { layoutTable, renderHeader, renderRow, type Cell, type TableLayout } from "./table.ts";
import { visible } from "./text.ts";

export const FORMATS = ["table", "json", "ndjson", "csv"] as const;
export type Format = (typeof FORMATS)[number];

/** Prints the rows of a result as they come. Each gets rows as lines of NDJSON; memory does not grow with the result. */
export interface RowWriter {
  row(line: string): Promise<void>;
  end(): Promise<void>;
}

export function createRowWriter(format: Format, context: CliContext): RowWriter {
  const output = new BlockOutput(context);
  if (format === "table") return new TableWriter(output, context);
  if (format === "csv") return new CsvWriter(output);
  return format === "json" ? new JsonArrayWriter(output) : new NdjsonWriter(output);
}

const BLOCK_CHARS = 65_536;

/** Gathers lines into blocks, so that a row does not cost a system call. */
class BlockOutput {
  readonly #context: CliContext;
  #block = "";

  constructor(context: CliContext) {
    this.#context = context;
  }

  async add(text: string): Promise<void> {
    this.#block += text;
    if (this.#block.length >= BLOCK_CHARS) await this.flush();
  }

  async flush(): Promise<void> {
    const block = this.#block;
    this.#block = "";
    if (block !== "") await this.#context.write(block);
  }
}

class NdjsonWriter implements RowWriter {
  readonly #output: BlockOutput;

  constructor(output: BlockOutput) {
    this.#output = output;
  }

  row(line: string): Promise<void> {
    return this.#output.add(`${line}\n`);
  }

  end(): Promise<void> {
    return this.#output.flush();
  }
}

/** One JSON array, a row a line. */
class JsonArrayWriter implements RowWriter {
  readonly #output: BlockOutput;
  #rows = 0;

  constructor(output: BlockOutput) {
    this.#output = output;
  }

  row(line: string): Promise<void> {
    return this.#output.add(this.#rows++ === 0 ? `[\n  ${line}` : `,\n  ${line}`);
  }

  async end(): Promise<void> {
    await this.#output.add(this.#rows === 0 ? "[]\n" : "\n]\n");
    await this.#output.flush();
  }
}

/**
 * CSV as RFC 4180 has it, with `\n` for line ends as psql and DuckDB print it. NULL is an empty field and the empty
 * string a quoted one, so that the two stay apart.
 */
class CsvWriter implements RowWriter {
  readonly #output: BlockOutput;
  #columns: readonly string[] | undefined;

  constructor(output: BlockOutput) {
    this.#output = output;
  }

  async row(line: string): Promise<void> {
    const fields = splitRow(line);
    if (this.#columns === undefined) {
      this.#columns = fields.map((field) => field.name);
      await this.#output.add(`${this.#columns.map(csvField).join(",")}\n`);
    }
    const values = inOrder(fields, this.#columns).map((raw) => csvField(fieldText(raw)));
    await this.#output.add(`${values.join(",")}\n`);
  }

  end(): Promise<void> {
    return this.#output.flush();
  }
}

function csvField(text: string | null): string {
  if (text === null) return "";
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The values of a row in the order of the columns; a column that the row lacks is null. */
function inOrder(fields: readonly Field[], columns: readonly string[]): string[] {
  const aligned = fields.length === columns.length && fields.every((field, i) => field.name === columns[i]);
  if (aligned) return fields.map((field) => field.raw);
  const byName = new Map(fields.map((field) => [field.name, field.raw]));
  return columns.map((name) => byName.get(name) ?? "null");
}

/** Rows that decide the layout; those that follow are printed in it. */
const LAYOUT_ROWS = 1_000;
const DEFAULT_TERMINAL_WIDTH = 80;

/** An aligned table. On a terminal it is cut to the terminal's width; elsewhere nothing is cut. */
class TableWriter implements RowWriter {
  readonly #output: BlockOutput;
  readonly #context: CliContext;
  #columns: readonly string[] = [];
  #waiting: Cell[][] = [];
  #layout: TableLayout | undefined;
  #rows = 0;

  constructor(output: BlockOutput, context: CliContext) {
    this.#output = output;
    this.#context = context;
  }

  async row(line: string): Promise<void> {
    const fields = splitRow(line);
    if (this.#rows++ === 0) this.#columns = fields.map((field) => field.name);
    const cells = inOrder(fields, this.#columns).map(cellOf);
    if (this.#layout !== undefined) {
      await this.#output.add(`${renderRow(cells, this.#layout)}\n`);
      return;
    }
    this.#waiting.push(cells);
    if (this.#waiting.length === LAYOUT_ROWS) await this.#layOut();
  }

  async end(): Promise<void> {
    if (this.#layout === undefined && this.#rows > 0) await this.#layOut();
    await this.#output.add(`(${this.#rows} ${this.#rows === 1 ? "row" : "rows"})\n`);
    const hidden = this.#layout?.hiddenColumns ?? 0;
    if (hidden > 0) await this.#output.add(`(${hidden} more columns do not fit; --format json shows all)\n`);
    await this.#output.flush();
  }

  async #layOut(): Promise<void> {
    const { stdout } = this.#context.deps;
    const rows = this.#waiting;
    const header = this.#columns.map((name, i) => ({
      text: visible(name),
      align: rows.find((row) => row[i]?.text !== "NULL")?.[i]?.align ?? "left",
    }));
    this.#layout = layoutTable(
      header,
      rows,
      stdout.isTTY === true ? (stdout.columns ?? DEFAULT_TERMINAL_WIDTH) : undefined,
    );
    await this.#output.add(`${renderHeader(header, this.#layout, this.#context.style)}\n`);
    for (const row of rows) await this.#output.add(`${renderRow(row, this.#layout)}\n`);
    this.#waiting = [];
  }
}

function cellOf(raw: string): Cell {
  return { text: visible(fieldText(raw) ?? "NULL"), align: isNumber(raw) ? "right" : "left" };
}
