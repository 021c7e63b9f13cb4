import { NOW, type RecordValue, type Statement } from "../db/records.ts";
import { checkMayUse } from "../auth/caller.ts";
import { ownerOf } from "../auth/owner.ts";
import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import { Batch } from "./batch.ts";
import { JOB_COLUMNS, ownerValues, toJob, type Job, type JobOwner } from "./job.ts";
import type { JobKind } from "./kinds.ts";
import { laneKey, type Labels, type Lane } from "./lanes.ts";
import { FABRIC_LIMITS, JOB_DEFAULTS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { boundedJson } from "./refusals.ts";

/** What is asked for. What is absent is as the kind says, or `JOB_DEFAULTS`. */
export type NewJob = {
  kind: string;
  payload: unknown;
  priority?: number | undefined;
  /** From now on, by the database's clock. */
  delayMs?: number | undefined;
  /** A time by the database's clock, instead; one that is past is now, for nobody goes ahead of those who wait. */
  runAfterMs?: number | undefined;
  /** While a job of this owner, kind, database and key is unfinished, another is not enqueued. */
  dedupKey?: string | undefined;
  maxAttempts?: number | undefined;
  backoffMs?: number | undefined;
  workerId?: string | undefined;
  selector?: Labels | undefined;
  database?: string | undefined;
  credentials?: readonly string[] | undefined;
  traceContext?: string | undefined;
};

/** `deduped`: the job was there before. */
export type Enqueued = { job: Job; deduped: boolean };

type Prepared = {
  id: string;
  lane: string;
  kind: string;
  database: string | undefined;
  dedupKey: string | undefined;
  owner: string;
  /** The row in SQL, and its values. */
  row: string;
  values: RecordValue[];
};

const COLUMNS =
  "id, kind, status, lane, priority, run_after_ms, database_name, dedup_key, worker_id, selector, payload, credentials, " +
  "owner, subject, caller_kind, role, databases, trace_context, attempt, max_attempts, backoff_ms, lease_ms, fence, " +
  "cancel_requested, created_at_ms, updated_at_ms";
/** What is the same for every new job. */
const FIXED: Readonly<Record<string, string>> = { status: "'queued'", attempt: "0", fence: "0", cancel_requested: "0" };
const NAMES = COLUMNS.split(", ");
/** A row; `due` stands for when it may be claimed. */
const rowOf = (due: string) =>
  `(${NAMES.map((name) => (name === "run_after_ms" ? due : (FIXED[name] ?? "?"))).join(", ")})`;
const ROW = rowOf("?");
const ROW_DUE_AT = rowOf("CASE WHEN CAST(? AS bigint) > ? THEN CAST(? AS bigint) ELSE ? END");
const ROWS_PER_STATEMENT = 64;
/** A job that is in the way may be finished in the moment in which it is looked up. */
const ATTEMPTS = 5;

/** Jobs that are to be stored with something else, or not at all. */
export type PreparedJobs = {
  ids: readonly string[];
  /** One of a transaction; it says how many rows it must return. */
  statement: Statement;
  /** To be called when that is done: tells those who wait for jobs. */
  stored: () => void;
};

/** Stores jobs, many with one statement when many are asked for at once. */
export class Enqueue {
  readonly #ports: FabricPorts;
  readonly #inserts: Batch<Prepared, Job | undefined>;

  constructor(ports: FabricPorts) {
    this.#ports = ports;
    this.#inserts = new Batch((jobs) => this.#insert(jobs), ROWS_PER_STATEMENT);
  }

  /**
   * Resolves when the job is durable. The job runs with the owner's rights.
   *
   * Rejects with `invalid_parameter` for an unknown kind, `bad_request_body` for a payload that is not of the kind,
   * `forbidden` for a database that is not the owner's, `body_too_large`.
   */
  async enqueue(request: NewJob, owner: JobOwner): Promise<Enqueued> {
    const prepared = this.#prepare(request, owner);
    for (let attempt = 1; ; attempt++) {
      const stored = await this.#inserts.add(prepared);
      if (stored !== undefined) return { job: stored, deduped: false };
      const found = await this.#inTheWay(prepared);
      if (found !== undefined) return found;
      if (attempt === ATTEMPTS) throw new EngineError("unavailable", "jobs with this key come and go: try again");
    }
  }

  /** For a transaction of the caller's: at least one job, due at once. Throws as `enqueue` rejects. */
  prepare(requests: readonly NewJob[], owner: JobOwner): PreparedJobs {
    const jobs = requests.map((request) => this.#prepare(request, owner));
    return {
      ids: jobs.map(({ id }) => id),
      statement: { ...insertOf(jobs), mustReturn: jobs.length },
      stored: () => this.#ports.announce([...new Set(jobs.map(({ lane }) => lane))]),
    };
  }

  #prepare(request: NewJob, owner: JobOwner): Prepared {
    const { newId, kinds, leaseMs } = this.#ports;
    const kind = kinds.get(request.kind);
    const database = databaseOf(request, kind, owner);
    const lane: Lane = {
      kind: kind.name,
      database,
      workerId: request.workerId,
      selector: request.selector,
      priority: request.priority ?? JOB_DEFAULTS.priority,
      owner: ownerOf(owner),
    };
    const { credentials = [] } = request;
    const { dedupKey, delayMs = 0, runAfterMs: dueAtMs } = request;
    const due = dueAtMs === undefined ? [{ nowPlusMs: Math.max(0, delayMs) }] : [dueAtMs, NOW, dueAtMs, NOW];
    const [id, key] = [newId(), laneKey(lane)];
    return {
      id,
      lane: key,
      kind: kind.name,
      database,
      dedupKey,
      owner: lane.owner,
      row: dueAtMs === undefined ? ROW : ROW_DUE_AT,
      values: [
        id,
        kind.name,
        key,
        lane.priority,
        ...due,
        database ?? null,
        dedupKey ?? null,
        request.workerId ?? null,
        request.selector === undefined ? null : JSON.stringify(request.selector),
        payloadOf(request.payload, kind),
        credentials.length === 0 ? null : JSON.stringify(credentials),
        lane.owner,
        ...ownerValues(owner),
        request.traceContext ?? null,
        request.maxAttempts ?? kind.maxAttempts ?? JOB_DEFAULTS.maxAttempts,
        request.backoffMs ?? kind.backoffMs ?? JOB_DEFAULTS.backoffMs,
        kind.leaseMs ?? leaseMs,
        NOW,
        NOW,
      ],
    };
  }

  async #insert(jobs: readonly Prepared[]): Promise<(Job | undefined)[]> {
    const rows = await this.#ports.records.write(insertOf(jobs));
    const stored = new Map(rows.map((row) => [String(row["id"]), toJob(row)]));
    const lanes = jobs.filter(({ id }) => isDueAtOnce(stored.get(id))).map(({ lane }) => lane);
    if (lanes.length > 0) this.#ports.announce([...new Set(lanes)]);
    return jobs.map(({ id }) => stored.get(id));
  }

  /** The job that has the key; or this one, when the answer to storing it was lost. */
  async #inTheWay({ id, kind, database, dedupKey, owner }: Prepared): Promise<Enqueued | undefined> {
    const [row] = await this.#ports.records.rows(
      `SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ? UNION ALL SELECT * FROM (SELECT ${JOB_COLUMNS} FROM jobs ` +
        "WHERE owner = ? AND kind = ? AND coalesce(database_name, '') = coalesce(?, '') AND dedup_key = ? " +
        "AND dedup_key IS NOT NULL AND status IN ('queued', 'leased') LIMIT 1) AS holder LIMIT 1",
      [id, owner, kind, database ?? null, dedupKey ?? ""],
    );
    if (row === undefined) return undefined;
    const job = toJob(row);
    return { job, deduped: job.id !== id };
  }
}

/** A job whose key another one has is not stored, and not returned. */
function insertOf(jobs: readonly Prepared[]): Pick<Statement, "sql" | "values"> {
  const places = jobs.map(({ row }) => row).join(", ");
  return {
    sql: `INSERT INTO jobs (${COLUMNS}) VALUES ${places} ON CONFLICT DO NOTHING RETURNING ${JOB_COLUMNS}`,
    values: jobs.flatMap(({ values }) => values),
  };
}

function isDueAtOnce(stored: Job | undefined): boolean {
  return stored !== undefined && stored.runAfterMs <= stored.createdAtMs;
}

/** In the form in which names are compared. */
function databaseOf({ database }: NewJob, kind: JobKind, owner: JobOwner): string | undefined {
  if (database !== undefined) {
    checkMayUse(owner, database);
    return foldName(database);
  }
  if (kind.needsDatabase === true) throw new EngineError("bad_request_body", `database: a ${kind.name} job needs one`);
  // What only the engine enqueues is about no database: the owner's say what the job's credentials are opened for.
  if (owner.databases === undefined || kind.enqueue === "nobody") return undefined;
  throw new EngineError("forbidden", "a token that is limited to databases must say which one the job is about");
}

/** The text of what the kind's schema makes of it. */
function payloadOf(payload: unknown, { name, payload: schema }: JobKind): string {
  const result = schema.safeParse(payload);
  if (!result.success) {
    const [issue] = result.error.issues;
    const place = ["payload", ...(issue?.path ?? [])].map(String).join(".");
    throw new EngineError("bad_request_body", `${place}: ${issue?.message ?? "is not accepted"} (kind ${name})`);
  }
  return boundedJson(result.data, FABRIC_LIMITS.payloadBytes, "the payload");
}
