import { z } from "zod";
import type { TableRecord } from "../catalog/catalog.ts";
import { formatColumnType } from "../format/types.ts";
import { CALLER_ROLES } from "../config/kinds.ts";
import type { HttpResponse } from "../io/http/http.ts";
import { jsonResponse, type RouteResponse } from "./route.ts";
import { nameSchemas } from "./schema-names.ts";

/** Bodies and headers that several routes share. */

export const errorBody = z
  .object({
    error: z.object({
      code: z.string().describe("Stable code."),
      message: z.string().describe("For people; may change."),
      request_id: z.string(),
      line: z.int().optional().describe("1-based line in the body or query."),
      column: z.union([z.int(), z.string()]).optional().describe("Column name (ingest) or character (query)."),
      suggestion: z.string().optional().describe("A name or an expression that may have been meant."),
      hint: z.string().optional().describe("What to write instead; the message ends with it."),
      budget: z
        .object({ name: z.string(), used: z.int(), allowed: z.int() })
        .optional()
        .describe("Of `budget_exceeded`: which budget, what was used of it, and what was allowed."),
    }),
  })
  .describe("Every error has this shape.");

export const databaseHeader = z.string().default("default").describe("Database.");

const flagText = z.string().regex(/^(true|false)$/i, "accepted are true and false");

/** `true` or `false`, as a header spells it. */
export function flagHeader(defaultValue: boolean, doc: string) {
  return flagText
    .default(String(defaultValue))
    .transform((text) => text.toLowerCase() === "true")
    .describe(doc);
}

/** The same where no header is an answer of its own. */
export function optionalFlagHeader(doc: string) {
  return flagText
    .transform((text) => text.toLowerCase() === "true")
    .optional()
    .describe(doc);
}

export const column = z.object({ name: z.string(), type: z.string() });
export const inferTypes = z
  .boolean()
  .nullable()
  .describe("Whether new columns get types by their values where a request does not say; null: as the server does.");
export const clusterBy = z.array(z.string()).describe("Columns by which compaction orders rows of one time.");

export const health = z.object({
  status: z.enum(["ok", "draining"]),
  version: z.string(),
  query_confinement: z.string().optional(),
});

/** Of a route that deletes one thing. */
export const deletedResponse: RouteResponse = {
  status: 200,
  description: "Deleted.",
  type: "application/json",
  schema: z.object({ deleted: z.literal(true) }),
};

export function deleted(): HttpResponse {
  return jsonResponse(200, { deleted: true });
}

export const callerRole = z.enum(CALLER_ROLES);

const MAX_LEVELS = 200;

/**
 * Any JSON value, of so few levels that what walks it later may do so by recursion. Checks of the object that it is part of
 * walk it, too: they do not run where it is refused.
 */
export const anyJson = z.unknown().refine(isShallow, {
  error: `arrays and objects are nested deeper than ${MAX_LEVELS} levels`,
  abort: true,
});

/** Text that every catalog keeps as it is. */
export function keptText(maxChars: number) {
  return z.string().max(maxChars).refine(isKeptText, "accepted is Unicode text without NUL");
}

/** JSON that every catalog keeps as it is. `anyJson` bounds the depth, and is checked first. */
export const keptJson = anyJson.refine(
  isKeptJson,
  "texts are Unicode without NUL, and numbers within the range of a double",
);

export function isKeptText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

function isKeptJson(value: unknown): boolean {
  if (typeof value === "string") return isKeptText(value);
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isKeptText(key) && isKeptJson(inner));
}

/** A name that databases and logs can hold. */
export function shortText(maxChars: number) {
  const accepted = "accepted are characters that are no control characters";
  return z
    .string()
    .min(1)
    .max(maxChars)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), accepted);
}

export function timeOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

export function timeOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : timeOf(atMs);
}

/** Level by level: a document of a megabyte may be nested half a million times. */
function isShallow(document: unknown): boolean {
  let level = [document].filter(isContainer);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) return false;
    level = level.flatMap((container) => Object.values(container)).filter(isContainer);
  }
  return true;
}

function isContainer(part: unknown): part is object {
  return typeof part === "object" && part !== null;
}

export function columnsOf(table: TableRecord): { name: string; type: string }[] {
  return table.columns.map(({ name, type }) => ({ name, type: formatColumnType(type) }));
}

nameSchemas({ Error: errorBody, Column: column, Health: health });
