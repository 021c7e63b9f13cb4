import { isUtf8 } from "node:buffer";
import { EngineError } from "../../core/errors.ts";
import { QUERY_LANGUAGES, type QueryLanguage } from "../contract/query.ts";
import { MalformedWire, tagOf, WIRE, WireReader } from "../../format/protobuf/wire.ts";

/** What a ticket of Arrow Flight asks for. */
export type FlightTicket = { database: string; query: string; language: QueryLanguage };

/**
 * Reads the request message of `DoGet`: a protobuf `Ticket { bytes ticket = 1; }` around a JSON object
 * `{"database": "default", "query": "…", "language": "sql"}` (or `"kql"`) of which only `query` must be there.
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
  const known = QUERY_LANGUAGES.find((one) => one === language);
  if (known === undefined) throw refused(`there is no query language ${shown(language)}, only "sql" and "kql"`);
  if (typeof query !== "string") throw refused('the ticket must have a text "query"');
  if (query.trim() === "") throw new EngineError("parse_error", "the query text is empty");
  return { database, query, language: known };
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

const TICKET = tagOf(1, WIRE.length);

/**
 * The field 1 of the message; its last occurrence counts, as everywhere in protobuf. Unknown fields are skipped; one of
 * that number but of another type, which libraries do not agree about, is refused.
 */
function ticketBytes(message: Uint8Array): Uint8Array {
  const wire = new WireReader();
  wire.open(message);
  let ticket = new Uint8Array();
  try {
    while (wire.next()) {
      if ((wire.tag & 7) === WIRE.startGroup) throw malformed();
      if (wire.tag >>> 3 === TICKET >>> 3 && wire.tag !== TICKET) throw malformed();
      if (wire.tag === TICKET) ticket = message.subarray(wire.start, wire.stop) as Uint8Array<ArrayBuffer>;
    }
  } catch (error) {
    throw error instanceof MalformedWire ? malformed() : error;
  }
  return ticket;
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
