import { checkMayUse, type Caller } from "../auth/caller.ts";
import { ownerOf } from "../auth/owner.ts";
import type { IdSource } from "../core/ids.ts";
import { foldName } from "../core/names.ts";
import { NOW, type RecordRow, type RecordStore } from "../db/records.ts";
import { WORKBENCH_LIMITS } from "./limits.ts";
import { containing, queryTextIn, type QueryText, type SavedQueryFilter } from "./saved-queries.ts";

export type RunQuery = QueryText & {
  /** `ok`, or the code of the error. */
  outcome: string;
  rows: number | undefined;
  elapsedMs: number | undefined;
};

export type HistoryEntry = RunQuery & { id: string; ranAtMs: number };

/**
 * What a caller has run, as the page says it where they did: programs that ask by the thousand keep none. Nobody reads
 * another's. Entries of databases that the caller may not use now are not shown.
 */
export class QueryHistory {
  readonly #records: RecordStore;
  readonly #newId: IdSource;

  constructor({ records, newId }: { records: RecordStore; newId: IdSource }) {
    this.#records = records;
    this.#newId = newId;
  }

  /** The newest first. */
  async list({ search, before, limit }: SavedQueryFilter, caller: Caller): Promise<HistoryEntry[]> {
    const tests = ["owner = ?", "ran_at_ms >= ?"];
    const { databases: scope } = caller;
    if (scope?.length === 0) return [];
    const oldest = { nowPlusMs: -WORKBENCH_LIMITS.historyMs };
    const values: (string | number | typeof oldest)[] = [ownerOf(caller), oldest];
    if (scope !== undefined) {
      tests.push(`query_database IN (${scope.map(() => "?").join(", ")})`);
      values.push(...scope.map(foldName));
    }
    if (search !== undefined) {
      const inText = containing("query_text", search);
      tests.push(inText.test);
      values.push(...inText.values);
    }
    if (before !== undefined) {
      tests.push("id < ?");
      values.push(before);
    }
    const sql = `SELECT * FROM query_history WHERE ${tests.join(" AND ")} ORDER BY id DESC LIMIT ?`;
    return (await this.#records.rows(sql, [...values, limit])).map(toEntry);
  }

  /** Forgets what is too old, and the oldest of too many. Throws `forbidden` for a database that the caller may not use. */
  async add({ language, text, database, outcome, rows, elapsedMs }: RunQuery, caller: Caller): Promise<HistoryEntry> {
    checkMayUse(caller, database);
    const owner = ownerOf(caller);
    const { historyEntries, historyMs } = WORKBENCH_LIMITS;
    const written = await this.#records.transact([
      {
        sql:
          "INSERT INTO query_history (owner, id, ran_at_ms, language, query_text, query_database, outcome, row_count, " +
          "elapsed_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        values: [
          owner,
          this.#newId(),
          NOW,
          language,
          text,
          foldName(database),
          outcome,
          rows ?? null,
          elapsedMs ?? null,
        ],
        mustReturn: 1,
      },
      {
        sql: "DELETE FROM query_history WHERE owner = ? AND ran_at_ms < ?",
        values: [owner, { nowPlusMs: -historyMs }],
      },
      {
        sql:
          "DELETE FROM query_history WHERE owner = ? AND id <= " +
          "(SELECT id FROM query_history WHERE owner = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        values: [owner, owner, historyEntries],
      },
    ]);
    const row = written.done ? written.rows[0]?.[0] : undefined;
    if (row === undefined) throw new Error("an entry of the history was not kept");
    return toEntry(row);
  }

  /** One's own: one entry, or all. */
  async forget(caller: Caller, id?: string): Promise<void> {
    const owner = ownerOf(caller);
    const [test, values] = id === undefined ? ["", [owner]] : [" AND id = ?", [owner, id]];
    await this.#records.write({ sql: `DELETE FROM query_history WHERE owner = ?${test}`, values });
  }
}

function toEntry(row: RecordRow): HistoryEntry {
  return {
    ...queryTextIn(row),
    id: String(row["id"]),
    ranAtMs: Number(row["ran_at_ms"]),
    outcome: String(row["outcome"]),
    rows: row["row_count"] === null ? undefined : Number(row["row_count"]),
    elapsedMs: row["elapsed_ms"] === null ? undefined : Number(row["elapsed_ms"]),
  };
}
