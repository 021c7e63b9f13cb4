import type { RecordStore } from "../../../src/db/records.ts";

/** What became of one row of `jobs`: the row before, which a new job does not have, and after, which a forgotten one lacks. */
export type Move = { old: JobRow | undefined; new: JobRow | undefined };

/** Columns that the rules are about. */
export type JobRow = {
  id: string;
  kind: string;
  status: string;
  lane: string;
  run_after_ms: number;
  database_name: string | null;
  dedup_key: string | null;
  attempt: number;
  max_attempts: number;
  lease_ms: number;
  fence: number;
  holder: string | null;
  lease_expires_at_ms: number | null;
  cancel_requested: number;
  progress: string | null;
  result: string | null;
};

const COLUMNS =
  "id kind status lane run_after_ms database_name dedup_key attempt max_attempts lease_ms fence holder " +
  "lease_expires_at_ms cancel_requested progress result";

/**
 * Triggers by which the database itself writes down every change of a job, in the order of the changes: nothing that
 * happens between two looks is missed, however many statements there were.
 */
export const SQLITE_MOVES = `
CREATE TABLE job_moves (seq INTEGER PRIMARY KEY AUTOINCREMENT, old text, new text);
CREATE TRIGGER job_inserted AFTER INSERT ON jobs BEGIN
  INSERT INTO job_moves (old, new) VALUES (NULL, ${jsonOf("NEW")});
END;
CREATE TRIGGER job_updated AFTER UPDATE ON jobs BEGIN
  INSERT INTO job_moves (old, new) VALUES (${jsonOf("OLD")}, ${jsonOf("NEW")});
END;
CREATE TRIGGER job_deleted AFTER DELETE ON jobs BEGIN
  INSERT INTO job_moves (old, new) VALUES (${jsonOf("OLD")}, NULL);
END;`;

/** The same for PostgreSQL, statement by statement. */
export const POSTGRES_MOVES = [
  "CREATE TABLE engine.job_moves (seq bigserial PRIMARY KEY, old text, new text)",
  `CREATE FUNCTION engine.write_down_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO engine.job_moves (old, new) VALUES (
      CASE WHEN TG_OP <> 'INSERT' THEN to_json(OLD)::text END, CASE WHEN TG_OP <> 'DELETE' THEN to_json(NEW)::text END);
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER job_moved AFTER INSERT OR UPDATE OR DELETE ON engine.jobs
    FOR EACH ROW EXECUTE FUNCTION engine.write_down_move()`,
] as const;

/** Moves after the one with this number, and the number of the last. */
export async function movesAfter(records: RecordStore, seq: number): Promise<{ moves: Move[]; seq: number }> {
  const rows = await records.rows("SELECT seq, old, new FROM job_moves WHERE seq > ? ORDER BY seq", [seq]);
  const moves = rows.map((row) => ({ old: toRow(row["old"]), new: toRow(row["new"]) }));
  return { moves, seq: Number(rows.at(-1)?.["seq"] ?? seq) };
}

function toRow(text: unknown): JobRow | undefined {
  return typeof text === "string" ? (JSON.parse(text) as JobRow) : undefined;
}

function jsonOf(row: "OLD" | "NEW"): string {
  const pairs = COLUMNS.split(" ").map((name) => `'${name}', ${row}.${name}`);
  return `json_object(${pairs.join(", ")})`;
}
