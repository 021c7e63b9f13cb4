import { z } from "zod";
import { NOW, type RecordStore, type Statement } from "../../db/records.ts";
import { MEMORY_LIMITS } from "./limits.ts";

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
