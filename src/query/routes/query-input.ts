import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { HttpRequest } from "../../io/http/http.ts";
import type { QueryLanguage } from "../contract/query.ts";
import { addParameters, type ParameterValue } from "../parse/parameters.ts";

/** What a client sends to be run: a text, and values for its parameters. */
export type QueryInput = { text: string; language: QueryLanguage; parameters: Map<string, ParameterValue> };

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const parameter = z.union([scalar, z.array(scalar)]);

/** `params` of a JSON body. */
export const paramsField = z.union([z.record(z.string(), parameter), z.array(parameter)]).optional();

const HEADER = "x-engine-param-";

/** Values of all parameters together, those in lists counted one by one. Longer lists belong into a table. */
const MAX_VALUES = 10_000;

/** The text, with the values that headers have: `X-Engine-Param-since: 2026-01-01`. */
export function queryInput(request: HttpRequest, text: string, language: QueryLanguage): QueryInput {
  const input: QueryInput = { text, language, parameters: new Map() };
  const headers = request.headerNames().filter((name) => name.startsWith(HEADER));
  addParameters(
    input.parameters,
    headers.map((name) => [name.slice(HEADER.length), request.header(name) ?? ""] as const),
  );
  if (text.trim() === "") throw new EngineError("parse_error", EMPTY);
  refuseParameters(input);
  return input;
}

const EMPTY = "the query text is empty";

function refuseParameters({ language, parameters }: QueryInput): void {
  if (language !== "kql" || parameters.size === 0) return;
  throw new EngineError("invalid_parameter", "a query in KQL takes no parameters: write the values into a `let`");
}

/** A body that is the text. */
export function textInput(request: HttpRequest, bytes: Uint8Array, language: QueryLanguage): QueryInput {
  if (!isUtf8(bytes)) throw new EngineError("parse_error", "the query text is not valid UTF-8");
  return queryInput(request, decoded(bytes), language);
}

/**
 * A body `{"query": "…", "params": {"since": "2026-01-01"}}`; `params` may be an array, of `$1`, `$2` and so on. For KQL
 * `{"query": "…", "language": "kql"}`.
 */
export function jsonInput(request: HttpRequest, bytes: Uint8Array): QueryInput {
  const { query, ...rest } = fieldsOf(bytes, ["query", "language", "params"]);
  const { text, language } = textOfQuery(query, rest["language"]);
  return withParams(queryInput(request, text, language), rest["params"]);
}

/** The same with `database`, for a check; the text may be empty, which is for the check to say. */
export function checkInput(request: HttpRequest, bytes: Uint8Array): QueryInput & { database: string } {
  const { query, database = "default", ...rest } = fieldsOf(bytes, ["query", "language", "params", "database"]);
  if (typeof database !== "string") throw refused("database: is the name of a database");
  const { text, language } = textOfQuery(query, rest["language"]);
  const input: QueryInput =
    text.trim() === "" ? { text, language, parameters: new Map() } : queryInput(request, text, language);
  return { ...withParams(input, rest["params"]), database };
}

function fieldsOf(bytes: Uint8Array, names: readonly string[]): Record<string, unknown> {
  const text = textOf(bytes);
  // Counted before each of its integers is read anew, which takes far longer.
  if (hasMoreValues(parsed(text), MAX_VALUES)) {
    throw refused(`the body has more than ${MAX_VALUES} values: put long lists into a table, or send them as one text`);
  }
  const body = parsed(text, exactInteger as (key: string, value: unknown) => unknown);
  if (!isObject(body)) throw refused("the body is a JSON object with `query`, and `params` where it has parameters");
  const unknown = Object.keys(body).find((name) => !names.includes(name));
  if (unknown === undefined) return body;
  const shown = names.map((name) => `\`${name}\``);
  const list = `${shown.slice(0, -1).join(", ")} and ${shown.at(-1) ?? ""}`;
  throw refused(`${unknown.slice(0, 100)}: there is no such field, only ${list}`);
}

function textOfQuery(query: unknown, language: unknown = "sql"): { text: string; language: QueryLanguage } {
  if (typeof query !== "string") throw refused("query: is the text of one query");
  if (language !== "sql" && language !== "kql") throw refused("language: is `sql` or `kql`");
  return { text: query, language };
}

function withParams(input: QueryInput, params: unknown = {}): QueryInput {
  const isList = Array.isArray(params);
  if (!isList && !isObject(params)) throw refused("params: is an object of values by name, or an array of them");
  const named = isList ? params.map((value, i) => [String(i + 1), value] as const) : Object.entries(params);
  addParameters(
    input.parameters,
    named.map(([name, value]) => [name, valueOf(name, value)] as const),
  );
  refuseParameters(input);
  return input;
}

function valueOf(name: string, value: unknown): ParameterValue {
  if (Array.isArray(value)) return value.map((item) => valueOf(name, item));
  if (value === null || ["string", "number", "bigint", "boolean"].includes(typeof value))
    return value as ParameterValue;
  const shown = JSON.stringify(name.slice(0, 100));
  throw new EngineError(
    "invalid_parameter",
    `the parameter ${shown} is an object: send it as text, and cast it to JSON`,
  );
}

/** Integers keep all their digits. */
function exactInteger(_key: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
}

function hasMoreValues(value: unknown, most: number): boolean {
  // Without recursion: nesting is the sender's choice.
  const waiting: unknown[] = [value];
  for (let found = 0; waiting.length > 0; found++) {
    if (found + waiting.length > most) return true;
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    const items: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (found + items.length > most) return true;
    for (const item of items) waiting.push(item);
  }
  return false;
}

function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw refused("the body is not valid UTF-8");
  return decoded(bytes);
}

function parsed(text: string, reviver?: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch (error) {
    // V8's message quotes the text around the mistake.
    const place = /at position \d+|Unexpected end/.exec(messageOf(error))?.[0] ?? "";
    throw refused(`the body is not JSON ${place}`.trim());
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decoded({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

function refused(message: string): EngineError {
  return new EngineError("bad_request_body", message);
}
