import type { CliContext } from "./context.ts";
import { fieldText, isNumber, splitRow, type Field } from "./row.ts";
import { layoutTable, renderHeader, renderRow, type Cell, type TableLayout } from "./table.ts";
import { harmless, visible } from "./text.ts";

export const FORMATS = ["table", "json", "ndjson", "csv", "tsv", "markdown", "arrow", "parquet"] as const;
export type Format = (typeof FORMATS)[number];
/** Those that are made of rows here; the others the server makes. */
export type RowFormat = Exclude<Format, "csv" | "arrow" | "parquet">;

export function isServerFormat(format: Format): format is Exclude<Format, RowFormat> {
  return format === "csv" || isBinary(format);
}

export function isBinary(format: Format): boolean {
  return format === "arrow" || format === "parquet";
}

const NDJSON = "application/x-ndjson";

/** What the server is asked for. */
export const MEDIA_TYPES: Readonly<Record<Format, string>> = {
  table: NDJSON,
  json: NDJSON,
  ndjson: NDJSON,
  csv: "text/csv",
  tsv: NDJSON,
  markdown: NDJSON,
  arrow: "application/vnd.apache.arrow.stream",
  parquet: "application/vnd.apache.parquet",
};

/** Prints the rows of a result as they come. Each gets rows as lines of NDJSON; memory does not grow with the result. */
export interface RowWriter {
  row(line: string): Promise<void>;
  end(): Promise<void>;
}

export function createRowWriter(format: RowFormat, context: CliContext): RowWriter {
  const output = new BlockOutput(context);
  switch (format) {
    case "table":
      return new TableWriter(output, context);
    case "tsv":
      return new HeadedWriter(guarded(output, context), TSV);
    case "markdown":
      return new HeadedWriter(output, MARKDOWN);
    case "json":
      return new JsonArrayWriter(guarded(output, context));
    case "ndjson":
      return new NdjsonWriter(guarded(output, context));
  }
}

/** What goes to a terminal moves no cursor there; a pipe gets every character as it is. */
function guarded(output: LineOutput, { deps: { stdout } }: CliContext): LineOutput {
  if (stdout.isTTY !== true) return output;
  return { add: (text) => output.add(harmless(text)), flush: () => output.flush() };
}

type LineOutput = { add(text: string): Promise<void>; flush(): Promise<void> };

const BLOCK_CHARS = 65_536;

/** Gathers lines into blocks, so that a row does not cost a system call. */
class BlockOutput implements LineOutput {
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
  readonly #output: LineOutput;

  constructor(output: LineOutput) {
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
  readonly #output: LineOutput;
  #rows = 0;

  constructor(output: LineOutput) {
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

/** How a format writes the names of the columns, and each row, as whole lines. */
type Lines = { head(first: readonly Field[]): string; row(values: readonly string[]): string };

/** The names of the columns, which are those of the first row, then a line for each row. */
class HeadedWriter implements RowWriter {
  readonly #output: LineOutput;
  readonly #lines: Lines;
  #columns: readonly string[] | undefined;

  constructor(output: LineOutput, lines: Lines) {
    this.#output = output;
    this.#lines = lines;
  }

  async row(line: string): Promise<void> {
    const fields = splitRow(line);
    if (this.#columns === undefined) {
      this.#columns = fields.map((field) => field.name);
      await this.#output.add(this.#lines.head(fields));
    }
    await this.#output.add(this.#lines.row(inOrder(fields, this.#columns)));
  }

  end(): Promise<void> {
    return this.#output.flush();
  }
}

/** In the way of PostgreSQL's COPY and ClickHouse. */
const TSV: Lines = {
  head: (first) => tsvLine(first.map(({ name }) => name)),
  row: (values) => tsvLine(values.map(fieldText)),
};

function tsvLine(fields: readonly (string | null)[]): string {
  return `${fields.map(tsvField).join("\t")}\n`;
}

const TSV_ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** A tab within a value is `\t`, a line break `\n`, and NULL is `\N`. */
function tsvField(text: string | null): string {
  return text === null ? "\\N" : text.replace(/[\\\t\n\r]/g, (char) => TSV_ESCAPES[char] ?? char);
}

/** A table of GitHub's Markdown. Numbers stand at the right where the first row has them. */
const MARKDOWN: Lines = {
  head: (first) =>
    markdownLine(first.map(({ name }) => markdownText(name))) +
    markdownLine(first.map(({ raw }) => (isNumber(raw) ? "--:" : "---"))),
  row: (values) => markdownLine(values.map((raw) => markdownText(fieldText(raw) ?? "NULL"))),
};

function markdownLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |\n`;
}

/** Nothing in a value may end its cell, be taken for a mark, or be HTML. */
function markdownText(text: string): string {
  const lines = text
    .split(/\r\n|[\r\n]/)
    .map((line) => line.replace(/[\\`*_{}[\]<>|#~$&]/g, (char) => MARKDOWN_ENTITIES[char] ?? `\\${char}`));
  return lines.map(visible).join("<br>");
}

const MARKDOWN_ENTITIES: Readonly<Record<string, string>> = { "<": "&lt;", "&": "&amp;" };

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

/** An aligned table. On a terminal it is cut to the terminal's width; elsewhere, and on one without a width, nothing is cut. */
class TableWriter implements RowWriter {
  readonly #output: LineOutput;
  readonly #context: CliContext;
  #columns: readonly string[] = [];
  #waiting: Cell[][] = [];
  #layout: TableLayout | undefined;
  #rows = 0;

  constructor(output: LineOutput, context: CliContext) {
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
      stdout.isTTY === true ? (stdout.columns ?? DEFAULT_TERMINAL_WIDTH) || undefined : undefined,
    );
    await this.#output.add(`${renderHeader(header, this.#layout, this.#context.style)}\n`);
    for (const row of rows) await this.#output.add(`${renderRow(row, this.#layout)}\n`);
    this.#waiting = [];
  }
}

function cellOf(raw: string): Cell {
  return { text: visible(fieldText(raw) ?? "NULL"), align: isNumber(raw) ? "right" : "left" };
}
