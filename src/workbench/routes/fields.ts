import { z } from "zod";
import { isName } from "../../core/names.ts";
import { WORKBENCH_LIMITS } from "../limits.ts";

/** Text that every catalog keeps as it is. */
export function keptText(maxChars: number) {
  return z
    .string()
    .max(maxChars)
    .refine((text) => text.isWellFormed() && !text.includes("\0"), "accepted is Unicode text without NUL");
}

export const language = z.enum(["sql", "kql"]);
export const queryText = keptText(WORKBENCH_LIMITS.queryChars).min(1);
export const databaseName = z.string().refine(isName, "accepted is the name of a database");

/** What lists are searched by. */
export const searched = keptText(WORKBENCH_LIMITS.searchChars)
  .min(1)
  .optional()
  .describe("Only those with that in their texts.");

export const idPath = z.object({ id: z.uuid().toLowerCase() });
