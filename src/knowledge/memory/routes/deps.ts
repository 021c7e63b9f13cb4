import { z } from "zod";
import { databaseHeader } from "../../../server/schemas.ts";
import type { BriefWriter } from "../recall/brief.ts";
import type { RecallService } from "../recall/service.ts";
import type { MemoryService } from "../service.ts";
import { textToUs } from "../times.ts";

/** What the routes of memories work with. */
export type MemoryDeps = {
  memory: MemoryService;
  recall: RecallService;
  /** Undefined where there is no agent. */
  brief?: BriefWriter | undefined;
};

export const TAG = "Memory";

export const inDatabase = z.object({ "x-database": databaseHeader });

/** A time as a parameter of the query. */
export function timeParameter(doc: string) {
  return z
    .string()
    .transform((text, context) => {
      const us = textToUs(text);
      if (us !== undefined) return us;
      context.addIssue({ code: "custom", message: "accepted is an RFC 3339 time with an offset" });
      return z.NEVER;
    })
    .optional()
    .describe(doc);
}
