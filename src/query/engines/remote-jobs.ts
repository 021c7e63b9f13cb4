import { NOW, type RecordStore } from "../../db/records.ts";
import type { RemoteQueries } from "./remote-queries.ts";

/** What nobody ended, and no engine keeps for so long. */
const FORGOTTEN_MS = 7 * 86_400_000;

/**
 * The queries that jobs have begun at query engines. Each is written down when it begins, so that it ends with its job
 * even where the process that began it is gone: the next holder ends it, or whoever cancels the job.
 */
export class RemoteJobs {
  readonly #records: Pick<RecordStore, "rows" | "write">;
  readonly #remote: Pick<RemoteQueries, "cancel">;

  constructor(records: Pick<RecordStore, "rows" | "write">, remote: Pick<RemoteQueries, "cancel">) {
    this.#records = records;
    this.#remote = remote;
  }

  async begun(jobId: string, { engine, queryId }: { engine: string; queryId: string }): Promise<void> {
    await this.#records.write({
      sql: "DELETE FROM remote_queries WHERE begun_at_ms < ?",
      values: [{ nowPlusMs: -FORGOTTEN_MS }],
    });
    await this.#records.write({
      sql: "INSERT INTO remote_queries (job_id, query_id, engine, begun_at_ms) VALUES (?, ?, ?, ?)",
      values: [jobId, queryId, engine, NOW],
    });
  }

  async ended(jobId: string, queryId: string): Promise<void> {
    await this.#records.write({
      sql: "DELETE FROM remote_queries WHERE job_id = ? AND query_id = ?",
      values: [jobId, queryId],
    });
  }

  /** Ends those of a job that are not known to have ended. Rejects when an engine cannot be told. */
  async endAll(jobId: string): Promise<void> {
    const sql = "SELECT engine, query_id FROM remote_queries WHERE job_id = ?";
    for (const row of await this.#records.rows(sql, [jobId])) {
      const queryId = String(row["query_id"]);
      await this.#remote.cancel(String(row["engine"]), queryId);
      await this.ended(jobId, queryId);
    }
  }
}
