import type { RecordRow, RecordStore, RecordValue } from "../db/records.ts";
import type { Scope } from "../auth/caller.ts";
import { JOB_COLUMNS, JOB_STATUSES, toJob, type Job, type JobStatus } from "./job.ts";

export type JobFilter = {
  kind?: string | undefined;
  status?: JobStatus | undefined;
  /** Only those of that owner. */
  owner?: string | undefined;
  /** Databases that the asker may see; a job about none is then not shown. */
  databases: Scope;
  limit: number;
  /** The id of the last job of the page before. */
  before?: string | undefined;
};

/** A job in a list, without what may be large: see `findJob`. */
export type JobSummary = Omit<Job, "payload" | "progress" | "result">;

const SUMMARY_COLUMNS = JOB_COLUMNS.split(", ")
  .map((name) => (["payload", "progress", "result"].includes(name) ? `CAST(NULL AS text) AS ${name}` : name))
  .join(", ");

/** Newest first. */
export async function listJobs(records: RecordStore, filter: JobFilter): Promise<JobSummary[]> {
  const statuses = filter.status === undefined ? JOB_STATUSES : [filter.status];
  // Jobs of one status and kind, and of one owner where that is asked for, are a range of an index; what is asked for is merged from the ends of such ranges.
  const ranges = (await kindsByStatus(records, statuses, filter.owner)).filter(
    ({ kind }) => filter.kind === undefined || filter.kind === kind,
  );
  if (ranges.length === 0 || filter.databases?.length === 0) return [];
  const parts = ranges.map((range, i) => newestOf(filter, range, `part_${i}`));
  const sql = `${parts.map((part) => part.sql).join(" UNION ALL ")} ORDER BY id DESC LIMIT ?`;
  const rows = await records.rows(sql, [...parts.flatMap(({ values }) => values), filter.limit]);
  return rows.map(toSummary);
}

function toSummary(row: RecordRow): JobSummary {
  const { payload: _payload, progress: _progress, result: _result, ...rest } = toJob(row);
  return rest;
}

export async function findJob(records: RecordStore, id: string): Promise<Job | undefined> {
  if (id.includes("\0")) return undefined;
  const [row] = await records.rows(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`, [id]);
  return row === undefined ? undefined : toJob(row);
}

/** Jobs that are not finished: for metrics. */
export type QueueDepth = { kind: string; status: JobStatus; count: number };

/** More of one kind are not counted, so that counting costs the same whatever there is. */
export const MOST_COUNTED = 100_000;

export async function countUnfinished(records: RecordStore): Promise<QueueDepth[]> {
  const ranges = await kindsByStatus(records, ["queued", "leased"]);
  return await Promise.all(
    ranges.map(async ({ status, kind }) => {
      const sql =
        "SELECT count(*) AS jobs FROM (SELECT 1 AS one FROM jobs WHERE status = ? AND kind = ? LIMIT ?) AS counted";
      const [row] = await records.rows(sql, [status, kind, MOST_COUNTED]);
      return { kind, status, count: Number(row?.["jobs"]) };
    }),
  );
}

type Range = { status: JobStatus; kind: string };

/** Which kinds there are jobs of: one step of an index for each. */
async function kindsByStatus(records: RecordStore, statuses: readonly JobStatus[], owner?: string): Promise<Range[]> {
  const [ofOwner, ofOwnerToo] = owner === undefined ? ["", ""] : ["owner = ? AND ", "j.owner = ? AND "];
  const sql =
    "WITH RECURSIVE kinds (kind) AS (SELECT min(kind) FROM jobs WHERE " +
    `${ofOwner}status = ? UNION ALL ` +
    `SELECT (SELECT min(j.kind) FROM jobs j WHERE ${ofOwnerToo}j.status = ? AND j.kind > kinds.kind) FROM kinds ` +
    "WHERE kinds.kind IS NOT NULL) SELECT kind FROM kinds WHERE kind IS NOT NULL LIMIT ?";
  const asked = owner === undefined ? [] : [owner];
  const found = await Promise.all(
    statuses.map(async (status) => {
      const rows = await records.rows(sql, [...asked, status, ...asked, status, MOST_KINDS]);
      return rows.map(({ kind }) => ({ status, kind: String(kind) }));
    }),
  );
  return found.flat();
}

const MOST_KINDS = 200;

function newestOf({ databases, owner, before, limit }: JobFilter, { status, kind }: Range, name: string) {
  const conditions = ["status = ?", "kind = ?"];
  const values: RecordValue[] = [status, kind];
  if (owner !== undefined) {
    conditions.push("owner = ?");
    values.push(owner);
  }
  if (before !== undefined) {
    conditions.push("id < ?");
    values.push(before);
  }
  if (databases !== undefined) {
    conditions.push(`database_name IN (${databases.map(() => "?").join(", ")})`);
    values.push(...databases);
  }
  const where = conditions.join(" AND ");
  const sql = `SELECT * FROM (SELECT ${SUMMARY_COLUMNS} FROM jobs WHERE ${where} ORDER BY id DESC LIMIT ?) AS ${name}`;
  return { sql, values: [...values, limit] };
}
