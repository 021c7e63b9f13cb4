import type { RecordStore, RecordValue, Statement } from "../../../src/db/records.ts";
import { Batch } from "../../../src/fabric/batch.ts";
import type { Machine } from "../machine.ts";
import type { JobPlanted } from "./world.ts";

/** Mistakes as the fabric could have them, each put where a correct one would ask or say the right thing. */
export const PLANTED_IN_JOBS = {
  /** Whoever knows the job's id and its holder's name may write. */
  "the fence is not checked": spoiltSql([
    ["id = ? AND holder = ? AND fence = ?", "id = ? AND holder = ? AND ? IS NOT NULL"],
    ["AND fence = by_fence", "AND by_fence IS NOT NULL"],
  ]),
  "the end of a lease is not checked": spoiltSql([["lease_expires_at_ms > ?", "? IS NOT NULL"]]),
  "the sweep forgets cancellations": spoiltSql([
    ["CASE WHEN cancel_requested = 1 THEN 'cancelled' WHEN attempt <", "CASE WHEN attempt <"],
  ]),
  "the sweep does not count attempts": spoiltSql([["WHEN attempt < max_attempts THEN", "WHEN 1 = 1 THEN"]]),
  /** A lease ends by the clock of whichever node sweeps. */
  "nodes sweep by their own clocks": {
    records: (records, machine) =>
      withWrites(records, (statement) =>
        records.write(statement.sql.includes("ended_id") ? byClockOf(machine, statement) : statement),
      ),
  },
  "keys do not keep jobs away": { sql: "DROP INDEX jobs_once;" },
  "a claim does not look at the status": spoiltSql([
    ["WHERE status = 'queued' AND lane = ?", "WHERE status IN ('queued', 'leased') AND lane = ?"],
  ]),
  "fences do not grow": spoiltSql([["fence = fence + 1", "fence = fence + 0"]]),
  "a claim is early": spoiltSql([["AND run_after_ms <= ?", "AND run_after_ms - 10000 <= ?"]]),
  "a second completion replaces the first": spoiltSql([
    ["CASE WHEN status = 'done' THEN result ELSE with_result END", "with_result"],
  ]),
  "jobs that run are retried": spoiltSql([["status IN ('failed', 'cancelled') AND", "status <> 'done' AND"]]),
  "a failure that may be retried loses a cancellation": spoiltSql([
    ["CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE 'queued' END", "'queued'"],
  ]),
  /** The callers of one batch get each other's answers. */
  "answers of a batch are mixed up": {
    verbs({ enqueue }) {
      type Asked = Parameters<typeof enqueue>;
      const batch = new Batch(async (asked: readonly Asked[]) => {
        const answers = await Promise.all(asked.map((args) => enqueue(...args)));
        return answers.toReversed();
      }, 8);
      return { enqueue: (...args) => batch.add(args) };
    },
  },
  "a job is acknowledged although it is not stored": {
    records: (records) =>
      withWrites(records, async (statement) => {
        const rows = records.write(statement);
        if (!statement.sql.startsWith("INSERT INTO jobs")) return await rows;
        return await rows.catch(() => unstoredRows(statement));
      }),
  },
  "nobody sweeps": { verbs: () => ({ sweep: async () => [] }) },
  /** A message that is lost is never made up for. */
  "a claim relies on what it was told": {
    records: (records) => ({
      ...withWrites(records, (statement) => records.write(statement)),
      rows: async (sql, values) => (sql.startsWith("WITH RECURSIVE heads") ? [] : await records.rows(sql, values)),
    }),
  },
} as const satisfies Record<string, JobPlanted>;

/** Statements with other texts in place of some. */
function spoiltSql(texts: readonly (readonly [right: string, wrong: string])[]): JobPlanted {
  return {
    records: (records) =>
      withWrites(records, (statement) => {
        const sql = texts.reduce((text, [right, wrong]) => text.replace(right, wrong), statement.sql);
        return records.write({ ...statement, sql });
      }),
  };
}

function withWrites(records: RecordStore, write: RecordStore["write"]): RecordStore {
  return {
    rows: (sql, values) => records.rows(sql, values),
    write,
    transact: (statements) => records.transact(statements),
  };
}

function byClockOf({ clock }: Machine, statement: Omit<Statement, "mustReturn">): Omit<Statement, "mustReturn"> {
  const values = statement.values?.map((value): RecordValue => {
    return typeof value === "object" && value !== null ? clock.nowMs() + value.nowPlusMs : value;
  });
  return values === undefined ? statement : { ...statement, values };
}

/** Rows as the database would have returned them. */
function unstoredRows({ values = [] }: Omit<Statement, "mustReturn">): Record<string, unknown>[] {
  const [id, kind, lane, , , database, key, , , payload] = values;
  const counts = { attempt: 0, max_attempts: 1, backoff_ms: 0, lease_ms: 1, fence: 0, cancel_requested: 0 };
  const owner = { subject: "anonymous", caller_kind: "anonymous", role: "admin", databases: null };
  const times = { run_after_ms: 0, created_at_ms: 0, updated_at_ms: 0 };
  const row = { id, kind, lane, status: "queued", database_name: database, dedup_key: key, payload };
  return [{ ...row, ...counts, ...owner, ...times }];
}
