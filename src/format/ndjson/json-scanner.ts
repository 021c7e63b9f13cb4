import { isUtf8 } from "node:buffer";
import { EngineError } from "../../core/errors.ts";
import { ExtentFull, type ColumnSet } from "../columns/column-set.ts";
import { newRow, readRow } from "./oracle.ts";
import { RowRefused } from "./row-refused.ts";
import { RowWriter } from "./row-writer.ts";
import type { BodyScanner, NdjsonBody } from "./scanner.ts";

/** The scanner on JSON.parse: the reference for what every scanner has to make of a body. */
export const jsonScanner: BodyScanner = {
  scan(body, into) {
    into.mark();
    try {
      return scanLines(body, into);
    } catch (error) {
      into.rollback();
      throw error instanceof ExtentFull ? tooLarge(error, into.rows === 0) : error;
    }
  },
};

const LINE_FEED = 0x0a;

function scanLines(body: NdjsonBody, into: ColumnSet): number {
  const bytes = Buffer.from(body.bytes.buffer, body.bytes.byteOffset, body.bytes.byteLength);
  const allUtf8 = isUtf8(bytes);
  const row = newRow();
  const writer = new RowWriter(into, row, body);
  const rowsBefore = into.rows;
  for (let start = 0, line = 1; start < bytes.length; line++) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed < 0 ? bytes.length : feed;
    if (!isBlank(bytes, start, end)) {
      try {
        if (!allUtf8 && !isUtf8(bytes.subarray(start, end))) throw new RowRefused("the line is not valid UTF-8");
        readRow(bytes.toString("utf8", start, end), row);
        writer.write();
      } catch (error) {
        throw error instanceof RowRefused ? refusal(error, line) : error;
      }
    }
    start = end + 1;
  }
  if (into.rows === rowsBefore) throw new EngineError("bad_request_body", "the body has no rows");
  return into.rows - rowsBefore;
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

/** A body that only its neighbours in the flush make too much may come again; one that is too much alone may not. */
function tooLarge(full: ExtentFull, isAlone: boolean): EngineError {
  if (isAlone) return new EngineError("body_too_large", `${full.message}; send them in smaller parts`);
  return new EngineError("too_many_requests", `with others' in the same flush, ${full.message}`, {
    headers: { "Retry-After": "1" },
  });
}
