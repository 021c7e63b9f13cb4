import { EngineError, messageOf, type ErrorCode, type ErrorDetails } from "../../core/errors.ts";
import { UNREADABLE_EXTENT } from "../../io/duckdb/tlm-scan.ts";
import { budgetError } from "../budgets/budget.ts";
import { isRefusedName, SHADOWED } from "../../io/duckdb/macros.ts";
import type { TypeHint } from "./type-hint.ts";
import { unknownName } from "./unknown-name.ts";

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
  /** Names that DuckDB thinks were meant. */
  candidates?: string[];
  /** The call that fits no function, with the types of its arguments. */
  call?: string;
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
    if (fields["candidates"] !== undefined) read.candidates = fields["candidates"].split(",");
    if (fields["call"] !== undefined) read.call = fields["call"];
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

/** Of values, whenever DuckDB comes to see them: constants are computed before a query runs. */
const OF_VALUES = new Set([
  "Constraint",
  "Conversion",
  "Decimal",
  "Divide by Zero",
  "Invalid Input",
  "Mismatch Type",
  "Object Size",
  "Out of Range",
  "Sequence",
]);

export function isOutOfMemory(error: DuckDbError): boolean {
  return error.type === "Out of Memory" || OUT_OF_MEMORY.test(error.message);
}

/** Spilled past DuckDB's own bound, or a result file past the one that the kernel holds (`ulimit -f`). */
function isOutOfTempSpace(error: DuckDbError): boolean {
  if (error.type === "Out of Memory") return error.message.includes("max_temp_directory_size");
  return (error.type === "IO" || error.type === "") && /file too large/i.test(error.message);
}

/** What is known about an error besides what DuckDB says. */
export type ErrorContext = {
  place: { line: number; column: number } | undefined;
  /** The names that may have been meant. */
  columns: Iterable<string>;
  hint: TypeHint | undefined;
  /** The folder of the process, which no query knows: an error that names it is about a file of ours. */
  folder: string;
  memoryBytes: number;
  tempBytes: number;
};

/** The error for the client. */
export function asEngineError(error: DuckDbError, context: ErrorContext): EngineError {
  const { place, hint, memoryBytes, tempBytes } = context;
  if (isOutOfTempSpace(error)) return budgetError("temp_bytes", tempBytes, tempBytes);
  if (isOutOfMemory(error)) return budgetError("memory_bytes", memoryBytes, memoryBytes);
  const code = codeOf(error, context);
  if (hint !== undefined) {
    const { problem, suggestion } = hint;
    const details: ErrorDetails = { ...place, hint: hint.hint, suggestion };
    return new EngineError(code, `${problem}; ${hint.hint}`, details);
  }
  const { message, ...suggestion } = unknownName(error, context.columns) ?? { message: firstLines(error.message) };
  return new EngineError(code, message, { ...place, ...suggestion });
}

function codeOf({ type, message }: DuckDbError, { folder }: ErrorContext): ErrorCode {
  if (OURS.has(type) || message.startsWith(UNREADABLE_EXTENT) || message.includes(folder)) return "query_failed";
  if (type === "Parser") return "parse_error";
  return OF_VALUES.has(type) && !isRefusedName(message) ? "execution_error" : "invalid_query";
}

/** DuckDB repeats the statement under some messages; ours carry line and column instead. */
function firstLines(message: string): string {
  // The parser's stack, which is bounded, and the binder's, whose message has advice that nobody here can follow.
  if (/^memory exhausted at or near|^Max expression depth limit/.test(message)) return "the query is nested too deeply";
  const statement = message.indexOf("\n\nLINE ");
  const own = statement === -1 ? message : message.slice(0, statement);
  // Nobody here can change a setting.
  return own.replace(/\n\nUse "SET .*$/s, "").trim();
}
