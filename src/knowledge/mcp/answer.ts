import { cutAfter } from "../../core/cut-text.ts";
import type { EngineError } from "../../core/errors.ts";
import { MCP_LIMITS } from "./limits.ts";
import type { Tool, ToolResult } from "./tool.ts";

/**
 * The answer of a tool: a structured result, and the same as text for clients that read no other. Where the text would be
 * longer than `maxBytes`, the ends of the result's lists are left out first, then the ends of its texts, and
 * `truncated` says so.
 */
export function fitted(
  result: ToolResult,
  lists: Tool["lists"],
  maxBytes: number = MCP_LIMITS.textBytes,
): { value: ToolResult; text: string } {
  const whole = JSON.stringify(result);
  if (Buffer.byteLength(whole) <= maxBytes) return { value: result, text: whole };
  for (const longest of TEXT_CHARS) {
    const value = withinLists({ ...(clipped(result, longest) as ToolResult), truncated: true }, lists, maxBytes);
    if (value === undefined) continue;
    return { value, text: JSON.stringify(value) };
  }
  throw new Error("the answer of a tool does not fit, however much of it is left out");
}

/** Characters that stay of each text, whatever its length: all, then fewer and fewer. */
const TEXT_CHARS = [Number.POSITIVE_INFINITY, 8_192, 2_048, 512, 128] as const;
/** Items that stay of a list that is not one of those named: a text of which a million are is no text any more. */
const ITEMS = 200;

/** As much of the lists as there is room for, those named last left out first; undefined when not one item fits. */
function withinLists(result: ToolResult, lists: Tool["lists"], maxBytes: number): ToolResult | undefined {
  const value: ToolResult = { ...result };
  const full = lists.flatMap((name) => (Array.isArray(result[name]) ? [{ name, items: result[name] }] : []));
  for (const { name } of full) value[name] = [];
  let left = maxBytes - Buffer.byteLength(JSON.stringify(value));
  if (left < 0) return undefined;
  const isEmpty = full.every(({ items }) => items.length === 0);
  let taken = 0;
  for (const { name, items } of full) {
    const some: unknown[] = [];
    for (const item of items as unknown[]) {
      const sizeBytes = Buffer.byteLength(JSON.stringify(item)) + 1;
      if (sizeBytes > left) break;
      left -= sizeBytes;
      some.push(item);
    }
    taken += some.length;
    value[name] = some;
    if (some.length < items.length) break;
  }
  return taken === 0 && !isEmpty ? undefined : value;
}

/** The value with the ends of its long texts left out; what is shorter stays the same. */
function clipped(value: unknown, longest: number, depth = 0): unknown {
  if (longest === Number.POSITIVE_INFINITY) return value;
  if (typeof value === "string") return cutAfter(value, longest);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = depth > 1 ? value.slice(0, ITEMS) : value;
    return items.map((item) => clipped(item, longest, depth + 1));
  }
  const entries = Object.entries(value);
  const some = depth > 1 ? entries.slice(0, ITEMS) : entries;
  return Object.fromEntries(some.map(([key, inner]) => [cutAfter(key, longest), clipped(inner, longest, depth + 1)]));
}

/** As the routes tell errors, so that a model can mend its call: `{error: {code, message, …}}`. */
export function errorText({ code, message, details }: EngineError, requestId: string): string {
  const { line, column, suggestion, hint, budget, headers } = details;
  const retryAfterSecs = headers?.["Retry-After"];
  const retry = retryAfterSecs === undefined ? {} : { retry_after_secs: Number(retryAfterSecs) };
  const shown = cutAfter(message, MESSAGE_CHARS);
  return JSON.stringify({
    error: { code, message: shown, request_id: requestId, line, column, suggestion, hint, budget, ...retry },
  });
}

const MESSAGE_CHARS = 4_096;
