import { EngineError, messageOf, type ErrorCode } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { SHADOWED } from "./macros.ts";

/**
 * DuckDB's errors, which come as JSON in the message (`errors_as_json`), as errors for the client.
 */
export type DuckDbError = {
  type: string;
  message: string;
  /** Byte offset into the statement. */
  position?: number;
  subtype?: string;
  name?: string;
};

export function readDuckDbError(error: unknown): DuckDbError {
  const text = messageOf(error);
  const brace = text.indexOf("{");
  try {
    const fields = JSON.parse(text.slice(brace)) as Record<string, string | undefined>;
    const read: DuckDbError = { type: fields["exception_type"] ?? "", message: fields["exception_message"] ?? text };
    if (fields["position"] !== undefined) read.position = Number(fields["position"]);
    if (fields["error_subtype"] !== undefined) read.subtype = fields["error_subtype"];
    if (fields["name"] !== undefined) read.name = fields["name"];
    return read;
  } catch {
    const type = /^(.*?) Error: /.exec(text)?.[1] ?? "";
    return { type, message: type === "" ? text : text.slice(type.length + " Error: ".length) };
  }
}

/** Whether the position is in the query: inside a macro of ours it counts in the macro's text. */
export function isInQuery(error: DuckDbError): boolean {
  const inner = /function call "([^("]+)\(|argument types '([^('(]+)\(|Macro ([^(]+)\(/.exec(error.message);
  const name = inner?.[1] ?? inner?.[2] ?? inner?.[3];
  return name === undefined || !SHADOWED.has(name);
}

const OUT_OF_MEMORY = /Out of Memory|bad_alloc|bad allocation|cannot allocate|failed to allocate|could not allocate/i;
const OURS = new Set(["Internal", "INTERNAL", "Fatal", "FATAL", "IO", "Permission", "Interrupt", "INTERRUPT"]);

export function isOutOfMemory(error: DuckDbError): boolean {
  return error.type === "Out of Memory" || OUT_OF_MEMORY.test(error.message);
}

export function memoryBudgetError(memoryBytes: number): EngineError {
  return new EngineError("budget_exceeded", `the query needs more than its memory budget of ${memoryBytes} bytes`, {
    headers: { "X-Engine-Budget-Limit": `memory_bytes=${memoryBytes}` },
  });
}

/** The error for the client; `columns` are the names it may have meant. */
export function asEngineError(
  error: DuckDbError,
  place: { line: number; column: number } | undefined,
  columns: Iterable<string>,
  memoryBytes: number,
): EngineError {
  if (isOutOfMemory(error)) return memoryBudgetError(memoryBytes);
  const code: ErrorCode = OURS.has(error.type)
    ? "query_failed"
    : error.type === "Parser"
      ? "parse_error"
      : "invalid_query";
  const isColumn = error.subtype === "COLUMN_NOT_FOUND" && error.name !== undefined;
  const suggestion = isColumn ? nearest(error.name ?? "", columns) : undefined;
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  const message = isColumn ? `there is no column ${JSON.stringify(error.name)}${hint}` : firstLines(error.message);
  return new EngineError(code, message, {
    ...place,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

/** DuckDB repeats the statement under some messages; ours carry line and column instead. */
function firstLines(message: string): string {
  const statement = message.indexOf("\n\nLINE ");
  return (statement === -1 ? message : message.slice(0, statement)).trim();
}
