import { isUtf8 } from "node:buffer";
import { EngineError } from "../../core/errors.ts";

/** What a ticket of Arrow Flight asks for. */
export type FlightTicket = { database: string; query: string };

/**
 * Reads the request message of `DoGet`: a protobuf `Ticket { bytes ticket = 1; }` around a JSON object
 * `{"database": "default", "query": "…", "language": "sql"}` of which only `query` must be there.
 *
 * @throws EngineError `bad_request_body`, or `parse_error` for a query without text.
 */
export function readTicket(message: Uint8Array): FlightTicket {
  const bytes = ticketBytes(message);
  if (!isUtf8(bytes)) throw refused("the ticket is not valid UTF-8");
  const { database = "default", query, language = "sql", ...others } = objectOf(bytes);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw refused(`the ticket has no member ${shown(unknown)}, only "database", "query" and "language"`);
  }
  if (typeof database !== "string") throw refused("the ticket's database must be a text");
  if (typeof language !== "string") throw refused("the ticket's language must be a text");
  if (language !== "sql") throw refused(`this server has no query language ${shown(language)}, only "sql"`);
  if (typeof query !== "string") throw refused('the ticket must have a text "query"');
  if (query.trim() === "") throw new EngineError("parse_error", "the query text is empty");
  return { database, query };
}

function objectOf(bytes: Uint8Array): Record<string, unknown> {
  const value = parsed(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw refused("the ticket is not a JSON object");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refused('the ticket is not JSON: it is an object {"database": "…", "query": "…"}');
  }
}

/** A position in a message, and how to go on from there. */
type Cursor = { bytes: Uint8Array; at: number };

const MAX_VARINT_BYTES = 10;

/** The field 1 of the message; its last occurrence counts, as everywhere in protobuf. Unknown fields are skipped. */
function ticketBytes(bytes: Uint8Array): Uint8Array {
  const cursor: Cursor = { bytes, at: 0 };
  let ticket = new Uint8Array();
  while (cursor.at < bytes.byteLength) {
    const tag = varint(cursor);
    const [field, wireType] = [Math.floor(tag / 8), tag % 8];
    if (field === 0) throw malformed();
    if (wireType === 0) varint(cursor);
    else if (wireType === 1) take(cursor, 8);
    else if (wireType === 5) take(cursor, 4);
    else if (wireType === 2) {
      const value = take(cursor, varint(cursor));
      if (field === 1) ticket = value;
    } else throw malformed();
  }
  return ticket;
}

/** Numbers past 2^53 are no lengths and no tags; their value does not matter where they are skipped. */
function varint(cursor: Cursor): number {
  let value = 0;
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) throw malformed();
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return value;
  }
  throw malformed();
}

function take(cursor: Cursor, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const end = cursor.at + sizeBytes;
  if (end > cursor.bytes.byteLength) throw malformed();
  const value = cursor.bytes.subarray(cursor.at, end) as Uint8Array<ArrayBuffer>;
  cursor.at = end;
  return value;
}

const SHOWN_CHARS = 100;

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}

function malformed(): EngineError {
  return refused("the request is not a protobuf message Ticket");
}

function refused(message: string): EngineError {
  return new EngineError("bad_request_body", message);
}
