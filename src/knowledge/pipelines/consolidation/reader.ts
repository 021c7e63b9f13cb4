import type { RecordStore } from "../../../db/records.ts";
import { chunksOf } from "../../memory/store.ts";

/** What consolidation asks of the catalog that nothing else does. */
export class ConsolidationReader {
  readonly #records: Pick<RecordStore, "rows">;

  constructor(records: Pick<RecordStore, "rows">) {
    this.#records = records;
  }

  /** How far the memory of each database is, and its vectors of a model: as a text that differs once either goes on. */
  async heads(model: string | undefined): Promise<Map<number, string>> {
    const sql =
      "SELECT h.database_id, h.seq, v.through_seq FROM memory_heads h " +
      "LEFT JOIN memory_vector_heads v ON v.database_id = h.database_id AND v.model = ?";
    const rows = await this.#records.rows(sql, [model ?? ""]);
    return new Map(
      rows.map((row) => [Number(row["database_id"]), [row["seq"], row["through_seq"]].map(String).join(" ")]),
    );
  }

  /** Of those runs of the agent that are in a session, which one. */
  async sessionsOf(runIds: readonly string[]): Promise<Map<string, string>> {
    const sessions = new Map<string, string>();
    for (const chunk of chunksOf([...new Set(runIds)])) {
      const places = chunk.map(() => "?").join(", ");
      const sql = `SELECT id, session_id FROM agent_runs WHERE session_id IS NOT NULL AND id IN (${places})`;
      for (const row of await this.#records.rows(sql, chunk)) {
        sessions.set(String(row["id"]), String(row["session_id"]));
      }
    }
    return sessions;
  }
}
