import { isUtf8 } from "node:buffer";
import { EngineError } from "../../core/errors.ts";
import type { ColumnSet } from "../columns/column-set.ts";
import { newRow, readRow } from "./json-row.ts";
import { RowRefused } from "./row-refused.ts";
import { RowWriter } from "./row-writer.ts";
import type { NdjsonBody, Scanned } from "./scanner.ts";

const LINE_FEED = 0x0a;

/** The lines of one body, read one at a time by the reference reader. */
export class BodyLines {
  readonly #body: NdjsonBody;
  readonly #set: ColumnSet;
  readonly #rowsBefore: number;
  readonly #row = newRow();
  #writer: RowWriter | undefined;

  constructor(body: NdjsonBody, set: ColumnSet) {
    this.#body = body;
    this.#set = set;
    this.#rowsBefore = set.rows;
  }

  /** Reads every line from the one at `start` on, which is the body's `line`th; returns how many lines the body has. */
  readFrom(start: number, line: number): number {
    let number = line;
    for (let at = start; at < this.#body.bytes.length; number++) at = this.readLine(at, number);
    return number - 1;
  }

  /** Reads the line at `start`, if it is not blank, and returns where the next begins. */
  readLine(start: number, line: number): number {
    const { bytes } = this.#body;
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed < 0 ? bytes.length : feed;
    if (isBlank(bytes, start, end)) return end + 1;
    try {
      if (!isUtf8(bytes.subarray(start, end))) throw new RowRefused("the line is not valid UTF-8");
      readRow(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8"), this.#row);
      this.#writer ??= new RowWriter(this.#set, this.#row, this.#body);
      this.#writer.write(line);
    } catch (error) {
      throw error instanceof RowRefused ? refusal(error, line) : error;
    }
    return end + 1;
  }

  /** What was read of a body of so many lines; throws when it has no row, unless there may be none. */
  finish(lines: number): Scanned {
    const rows = this.#set.rows - this.#rowsBefore;
    if (rows === 0 && this.#body.mayBeEmpty !== true) throw new EngineError("bad_request_body", "the body has no rows");
    return { rows, lines };
  }
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}

function refusal(refused: RowRefused, line: number): EngineError {
  const { message, column } = refused;
  const where = column === undefined ? `line ${line}` : `line ${line}, column ${JSON.stringify(column.slice(0, 255))}`;
  return new EngineError("bad_request_body", `${where}: ${message}`, {
    line,
    ...(column === undefined ? {} : { column }),
  });
}
