import { z } from "zod";
import { NOW, type RecordStore, type Statement } from "../../db/records.ts";
import { EngineError } from "../../core/errors.ts";
import { ticksOf } from "../../fabric/cron.ts";
import { FIELDS } from "./fields.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import { DEFAULT_REALM } from "./model.ts";
import { isPrivateRealm } from "./realms.ts";

/**
 * What can be tuned in the memory of a database: a section for each part that reads it, every value with a default. A part
 * adds its section here.
 */
export const memorySettings = z
  .strictObject({
    recall: z
      .strictObject({
        limit: z.int().min(1).max(MEMORY_LIMITS.recallItems).default(10).describe("Memories of an answer."),
        expand_hops: z.int().min(0).max(MEMORY_LIMITS.recallHops).default(1).describe("How far it spreads over edges."),
      })
      .prefault({})
      .describe("What a recall does where it does not say."),
    dreaming: z
      .strictObject({
        realms: z
          .array(FIELDS.realm.refine((realm) => !isPrivateRealm(realm), "a dream writes to no realm of one user"))
          .min(1)
          .max(MEMORY_LIMITS.dreamRealms)
          .default([DEFAULT_REALM])
          .describe("The realms that a dream reads and writes."),
        max_events: z.int().min(1).max(10_000).default(1_000).describe("Events of one run."),
        max_tokens: z
          .int()
          .min(2_000)
          .max(10_000_000)
          .default(200_000)
          .describe("Tokens of one run, of what the model is sent and what it says; counted between its answers."),
        max_minutes: z.int().min(1).max(60).default(10).describe("Minutes until a run asks the model no further."),
        max_writes: z.int().min(1).max(1_000).default(200).describe("Records that one run writes."),
        schedule: z
          .strictObject({
            cron: z.string().max(200).describe("Five fields, or six with seconds in front; or `@daily` and the like."),
            zone: z.string().max(100).default("UTC").describe("IANA time zone."),
            mode: z.enum(["incremental", "deep"]).default("incremental"),
          })
          .superRefine(({ cron, zone: timeZone }, context) => {
            const message = timingProblem({ cron, timeZone });
            if (message !== undefined) context.addIssue({ code: "custom", path: ["cron"], message });
          })
          .nullable()
          .default(null)
          .describe("When dreams begin by themselves; null: never."),
      })
      .prefault({})
      .describe("What a dream may take."),
    agent: z
      .strictObject({
        firehose_turns: z
          .boolean()
          .default(true)
          .describe("Keeps questions and answers of those who may write as raw observations, too (table `firehose`)."),
      })
      .prefault({})
      .describe("What is kept of the questions that the agent answers."),
  })
  .prefault({});

function timingProblem(timing: { cron: string; timeZone: string }): string | undefined {
  try {
    ticksOf(timing);
    return undefined;
  } catch (error) {
    if (error instanceof EngineError) return error.message;
    throw error;
  }
}

export type MemorySettings = z.output<typeof memorySettings>;

export async function readSettings(records: Pick<RecordStore, "rows">, databaseId: number): Promise<MemorySettings> {
  const sql = "SELECT settings FROM memory_settings WHERE database_id = ?";
  const [row] = await records.rows(sql, [databaseId]);
  return memorySettings.parse(row === undefined ? {} : JSON.parse(String(row["settings"])));
}

export function writeSettings(databaseId: number, settings: MemorySettings): Statement {
  const sql =
    "INSERT INTO memory_settings (database_id, settings, updated_at_ms) VALUES (?, ?, ?) " +
    "ON CONFLICT (database_id) DO UPDATE SET settings = excluded.settings, updated_at_ms = excluded.updated_at_ms";
  return { sql, values: [databaseId, JSON.stringify(settings), NOW] };
}
