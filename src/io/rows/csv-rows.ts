import { once } from "node:events";
import type { CsvError, Info, Parser } from "csv-parse";
import { LIMITS } from "../../core/limits.ts";
import { foldName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { visible } from "../../core/visible.ts";
import type { Origin } from "./batcher.ts";
import { fieldWriter, type FieldWriter } from "./csv-values.ts";
import { UnreadableRows } from "./unreadable-rows.ts";
import { LineCounter } from "./line-counter.ts";
import type { InputRow } from "./row-cutter.ts";

export type CsvOptions = {
  origin: Origin;
  delimiter: string;
  /** Of the table, where it is there: they say how values are written. */
  columns: readonly ColumnSpec[];
};

type Fields = readonly (string | null)[];
type ParsedRow = { record: Fields; info: Pick<Info, "bytes"> };
/** Rows, and what is wrong with that behind them. */
type Parsed = { found: readonly ParsedRow[]; failure: Error | undefined };

/**
 * The rows of CSV (RFC 4180, in UTF-8; lines end with CRLF or LF), in the pieces in which they come. The first line that
 * is not blank is the header. An empty field is no value (the row is sent without it); an empty text is `""`.
 */
export async function* csvRows(
  chunks: AsyncIterable<Uint8Array>,
  options: CsvOptions,
): AsyncGenerator<readonly InputRow[]> {
  const { origin, delimiter } = options;
  const lines = new LineCounter();
  const text = new TextChecker(origin, lines);
  const parsing = await startParser(delimiter);
  let encoder: RowEncoder | undefined;
  const rowsOf = ({ found, failure }: Parsed): InputRow[] => {
    const rows: InputRow[] = [];
    for (const { record, info } of found) {
      const line = lines.take(info.bytes);
      if (encoder === undefined) encoder = new RowEncoder(record, line, options);
      else rows.push(encoder.encode(record, line));
    }
    if (failure !== undefined) throw failure;
    return rows;
  };
  try {
    for await (const chunk of chunks) {
      text.check(chunk);
      lines.add(chunk);
      const rows = rowsOf(await parsing.write(chunk));
      if (rows.length > 0) yield rows;
    }
    text.end();
    const rows = rowsOf(await parsing.end());
    if (rows.length > 0) yield rows;
  } catch (error) {
    throw isCsvError(error) ? csvFailure(error, origin, lines.next()) : error;
  }
}

/** The parser as two steps that give what they found. */
async function startParser(delimiter: string): Promise<{
  write(chunk: Uint8Array): Promise<Parsed>;
  end(): Promise<Parsed>;
}> {
  const { parse } = await import("csv-parse");
  const parser: Parser = parse({
    delimiter,
    record_delimiter: ["\n", "\r\n"],
    skip_empty_lines: true,
    // How many fields there must be is said in our own words.
    relax_column_count: true,
    info: true,
    max_record_size: LIMITS.ingestBodyBytes,
    cast: (value, { quoting }) => (value === "" && !quoting ? null : value),
  });
  let found: ParsedRow[] = [];
  let failure: Error | undefined;
  parser.on("data", (row: ParsedRow) => found.push(row));
  parser.on("error", (error) => (failure ??= error));
  const take = (): Parsed => {
    const taken = { found, failure };
    found = [];
    return taken;
  };
  return {
    async write(chunk) {
      await new Promise<void>((resolve) => parser.write(chunk, () => resolve()));
      return take();
    },
    async end() {
      parser.end();
      await once(parser, "close");
      return take();
    },
  };
}

/** Bytes that are no UTF-8 would silently become other text. */
class TextChecker {
  readonly #origin: Origin;
  readonly #lines: LineCounter;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });

  constructor(origin: Origin, lines: LineCounter) {
    this.#origin = origin;
    this.#lines = lines;
  }

  check(chunk: Uint8Array): void {
    try {
      this.#decoder.decode(chunk, { stream: true });
    } catch (error) {
      throw this.#refused(error);
    }
  }

  end(): void {
    try {
      this.#decoder.decode();
    } catch (error) {
      throw this.#refused(error);
    }
  }

  #refused(error: unknown): UnreadableRows {
    const hint = "convert it, as by `iconv -f latin1 -t utf-8`";
    const line = this.#lines.next();
    return new UnreadableRows(`${this.#origin.shown} is not UTF-8, in line ${line} or below; ${hint}`, {
      cause: error,
      line,
    });
  }
}

/** Writes rows as JSON, under the names of the header. */
class RowEncoder {
  readonly #origin: Origin;
  readonly #fields: readonly { key: string; keyBytes: number; write: FieldWriter }[];

  constructor(header: Fields, line: number, { origin, columns, delimiter }: CsvOptions) {
    this.#origin = origin;
    checkHeader(header, line, { origin, delimiter });
    this.#fields = header.map((name) => {
      const key = JSON.stringify(name ?? "");
      return { key, keyBytes: Buffer.byteLength(key), write: fieldWriter(name ?? "", columns) };
    });
  }

  encode(record: Fields, line: number): InputRow {
    if (record.length !== this.#fields.length) {
      const fields = `${record.length} ${record.length === 1 ? "field" : "fields"}`;
      const message = `line ${line} of ${this.#origin.shown} has ${fields}, the header ${this.#fields.length}`;
      throw new UnreadableRows(message, { line });
    }
    let json = "";
    let weightBytes = 3;
    for (let i = 0; i < record.length; i++) {
      const value = record[i];
      const field = this.#fields[i];
      if (value === null || value === undefined || field === undefined) continue;
      json += `${json === "" ? "{" : ","}${field.key}:${field.write(value)}`;
      // Of the value as text, which is how it is written where nothing is known of its column.
      weightBytes += field.keyBytes + Buffer.byteLength(value) + 4;
    }
    return { json: json === "" ? "{}" : `${json}}`, weightBytes, line };
  }
}

function checkHeader(header: Fields, line: number, { origin, delimiter }: Pick<CsvOptions, "origin" | "delimiter">) {
  const refuse = (problem: string): UnreadableRows =>
    new UnreadableRows(`line ${line} of ${origin.shown}: ${problem}`, { line });
  const names = header.map((name) => name ?? "");
  const unnamed = names.findIndex((name) => name.trim() === "");
  if (unnamed >= 0) throw refuse(`column ${unnamed + 1} of the header has no name`);
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(foldName(name))) throw refuse(`the header has ${JSON.stringify(visible(name))} twice`);
    seen.add(foldName(name));
  }
  if (names.every((name) => /^-?[0-9.]+$/.test(name))) {
    throw refuse("this is no header but a row of numbers; the first line must name the columns");
  }
  if (names.some((name) => /\r(?!\n)/.test(name))) {
    throw refuse("lines end with CR alone; convert it, as by `tr '\\r' '\\n'`");
  }
  const [only = ""] = names;
  if (names.length > 1) return;
  const other = [",", ";", "\t", "|"].find((char) => char !== delimiter && only.includes(char));
  if (other === undefined) return;
  throw refuse(`the header has one column, ${JSON.stringify(visible(only))}; is the --delimiter '${visible(other)}'?`);
}

function isCsvError(error: unknown): error is CsvError {
  return error instanceof Error && "code" in error && /^(CSV_|INVALID_)/.test(String(error.code));
}

const PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'a quote stands within a field that does not begin with one (write it as "" in quotes)',
  CSV_INVALID_CLOSING_QUOTE: 'something follows the closing quote of a field (a quote within quotes is written "")',
  CSV_QUOTE_NOT_CLOSED: "a quote is opened and never closed",
  CSV_MAX_RECORD_SIZE: `the row has more than ${LIMITS.ingestBodyBytes} bytes; perhaps a quote is never closed`,
};

/** `line` is that with which the row begins. */
function csvFailure(error: CsvError, { shown }: Origin, line: number): UnreadableRows {
  const message = `line ${line} of ${shown}: ${PROBLEMS[error.code] ?? visible(error.message)}`;
  return new UnreadableRows(message, { cause: error, line });
}
