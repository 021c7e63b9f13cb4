import { z } from "zod";
import { isName } from "../../core/names.ts";
import { keptText } from "../../server/schemas.ts";
import { WORKBENCH_LIMITS } from "../limits.ts";

export const language = z.enum(["sql", "kql"]);
export const queryText = keptText(WORKBENCH_LIMITS.queryChars).min(1);
export const databaseName = z.string().refine(isName, "accepted is the name of a database");

/** What lists are searched by. */
export const searched = keptText(WORKBENCH_LIMITS.searchChars)
  .min(1)
  .optional()
  .describe("Only those with that in their texts.");

export const idPath = z.object({ id: z.uuid().toLowerCase() });
