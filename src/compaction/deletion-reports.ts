import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../db/records.ts";

/**
 * What deletions of rows came to: one report each, written in the transaction of the deletion, so that there is one
 * exactly when the rows are gone. The physical deletion adds when the last of their bytes went: when the catalog knows no
 * extent any more that ended with the deletion or before it, since those that merges had replaced by then had the rows
 * as well.
 */
export type DeletionReport = {
  /** Of the job. */
  id: string;
  tableId: number;
  database: string;
  table: string;
  where: string;
  deletedBy: string;
  rows: number;
  /** Extents of which all rows went, and those of which the others were written again. */
  extentsEnded: number;
  extentsRewritten: number;
  /** From this snapshot on no query sees the rows. */
  snapshotId: number;
  committedAtMs: number;
  /** When the object store had none of their bytes any more. */
  bytesGoneAtMs?: number;
};

export type ReportFilter = { limit: number; before?: string | undefined; databases: readonly string[] | undefined };

const COLUMNS =
  "id, table_id, database_name, table_name, condition, deleted_by, row_count, extents_ended, extents_rewritten, " +
  "snapshot_id, committed_at_ms, bytes_gone_at_ms";

export class DeletionReports {
  readonly #records: Pick<RecordStore, "rows" | "write">;

  constructor(records: Pick<RecordStore, "rows" | "write">) {
    this.#records = records;
  }

  /** The report as a part of the deletion's transaction, whose snapshot is the newest by then. */
  statement(report: Omit<DeletionReport, "snapshotId" | "committedAtMs" | "bytesGoneAtMs">): Statement {
    const { id, tableId, database, table, where, deletedBy, rows, extentsEnded, extentsRewritten } = report;
    const sql =
      `INSERT INTO row_deletions (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ` +
      "(SELECT max(id) FROM snapshots), (SELECT committed_at_ms FROM snapshots ORDER BY id DESC LIMIT 1), NULL)";
    return { sql, values: [id, tableId, database, table, where, deletedBy, rows, extentsEnded, extentsRewritten] };
  }

  async find(id: string): Promise<DeletionReport | undefined> {
    const [row] = await this.#records.rows(`SELECT ${COLUMNS} FROM row_deletions WHERE id = ?`, [id]);
    return row === undefined ? undefined : toReport(row);
  }

  /** The newest first. `databases` are folded names; undefined is all of them. */
  async list({ limit, before, databases }: ReportFilter): Promise<DeletionReport[]> {
    const values: RecordValue[] = [];
    const tests: string[] = [];
    if (before !== undefined) {
      tests.push("id < ?");
      values.push(before);
    }
    if (databases !== undefined) {
      // None of an empty list is one of none.
      tests.push(`lower(database_name) IN (${databases.map(() => "?").join(", ") || "NULL"})`);
      values.push(...databases);
    }
    const where = tests.length === 0 ? "" : `WHERE ${tests.join(" AND ")}`;
    const sql = `SELECT ${COLUMNS} FROM row_deletions ${where} ORDER BY id DESC LIMIT ?`;
    return (await this.#records.rows(sql, [...values, limit])).map(toReport);
  }

  /** Those whose bytes are not known to be gone, after the one with that id, at most `limit`. */
  async open(after: string, limit: number): Promise<DeletionReport[]> {
    const sql = `SELECT ${COLUMNS} FROM row_deletions WHERE bytes_gone_at_ms IS NULL AND id > ? ORDER BY id LIMIT ?`;
    return (await this.#records.rows(sql, [after, limit])).map(toReport);
  }

  /** Says that the bytes are gone, as of now. */
  async settle(id: string): Promise<void> {
    const sql = "UPDATE row_deletions SET bytes_gone_at_ms = ? WHERE id = ? AND bytes_gone_at_ms IS NULL";
    await this.#records.write({ sql, values: [NOW, id] });
  }
}

function toReport(row: RecordRow): DeletionReport {
  const report: DeletionReport = {
    id: String(row["id"]),
    tableId: Number(row["table_id"]),
    database: String(row["database_name"]),
    table: String(row["table_name"]),
    where: String(row["condition"]),
    deletedBy: String(row["deleted_by"]),
    rows: Number(row["row_count"]),
    extentsEnded: Number(row["extents_ended"]),
    extentsRewritten: Number(row["extents_rewritten"]),
    snapshotId: Number(row["snapshot_id"]),
    committedAtMs: Number(row["committed_at_ms"]),
  };
  const goneAtMs = row["bytes_gone_at_ms"];
  return goneAtMs === null ? report : { ...report, bytesGoneAtMs: Number(goneAtMs) };
}
