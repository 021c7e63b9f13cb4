import type { IdSource } from "../../core/ids.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../db/records.ts";
import type { RecordKey } from "../memory/draft.ts";

/**
 * The ledger of pipelines that write memories: which ran, how far each has read, and what each run changed. One ledger
 * serves all kinds, those that a job carries out and those of a duty.
 *
 * Statements are for the transaction that commits what a run did, so that its memories, its watermark and its end are
 * there together or not at all.
 */
export const PIPELINE_KINDS = ["dreaming", "consolidation", "ci_correlate", "file_promote"] as const;
export type PipelineKind = (typeof PIPELINE_KINDS)[number];

export const RUN_STATUSES = ["queued", "running", "done", "failed", "cancelled"] as const;
export type PipelineStatus = (typeof RUN_STATUSES)[number];

export const RUN_TRIGGERS = ["manual", "schedule", "poll"] as const;
export type RunTrigger = (typeof RUN_TRIGGERS)[number];

/** Counts by name, nested at will. */
export type RunStats = { readonly [name: string]: number | string | boolean | null | RunStats };

export type RunError = { code: string; message: string };

/** How far a run is, while it runs. */
export type RunProgress = { phase: string; events: number; proposals: number; written: number };

export type PipelineRun = {
  id: string;
  databaseId: number;
  kind: PipelineKind;
  status: PipelineStatus;
  mode: string | undefined;
  focus: string | undefined;
  trigger: RunTrigger;
  requestedBy: string | undefined;
  engine: string | undefined;
  model: string | undefined;
  createdAtMs: number;
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  eventsScanned: number;
  memoriesWritten: number;
  error: RunError | undefined;
  jobId: string | undefined;
  sessionId: string | undefined;
  agentRunId: string | undefined;
  workerId: string | undefined;
  stats: RunStats;
  /** Only of a run under way: JSON. */
  progress: unknown;
  revertedAtMs: number | undefined;
};

export type NewPipelineRun = {
  databaseId: number;
  kind: PipelineKind;
  trigger: RunTrigger;
  mode?: string | undefined;
  focus?: string | undefined;
  requestedBy?: string | undefined;
  engine?: string | undefined;
  model?: string | undefined;
  sessionId?: string | undefined;
};

export type RunEnd = {
  status: "done" | "failed" | "cancelled";
  eventsScanned: number;
  memoriesWritten: number;
  stats: RunStats;
  error?: RunError | undefined;
};

/** A record that a run wrote. */
export type RunChange = RecordKey & {
  /** Which of the run's proposals: those of one number are taken back together. */
  proposal: number;
  /** Undefined where there was nothing of that id. */
  versionBefore: number | undefined;
  versionAfter: number;
};

/** What has a place that it comes to; `dreaming_schedule` is when the next dream of a schedule is due. */
export type WatermarkKind = PipelineKind | "dreaming_schedule";

/** How far a pipeline has read, and the text by which an advance makes sure that nobody else advanced it. */
export type Watermark = { position: unknown; text: string | undefined };

export type RunList = { kind?: PipelineKind | undefined; limit: number; offset: number };

const CHANGES_AT_ONCE = [64, 8, 1] as const;

const INTERRUPTED: RunError = { code: "interrupted", message: "the process that ran it ended" };

/**
 * Of a run that is neither done nor given up its job knows more: the holder may have died, and the operator may have
 * cancelled it. A job that is not there any more was forgotten long after it ended.
 */
const LIVE_STATUS =
  "CASE WHEN r.status NOT IN ('queued', 'running') OR r.job_id IS NULL THEN r.status WHEN j.status = 'queued' THEN 'queued' " +
  "WHEN j.status = 'leased' THEN 'running' WHEN j.status = 'cancelled' THEN 'cancelled' ELSE 'failed' END";
const RUN_COLUMNS =
  "r.id, r.database_id, r.kind, r.mode, r.focus, r.started_by, r.requested_by, r.engine, r.model, r.created_at_ms, " +
  "r.started_at_ms, r.events_scanned, r.memories_written, r.error_code, r.job_id, r.session_id, r.agent_run_id, " +
  "r.worker_id, r.stats, r.reverted_at_ms, r.status AS stored_status, coalesce(r.progress, j.progress) AS progress, " +
  "coalesce(r.finished_at_ms, j.finished_at_ms) AS finished_at_ms, coalesce(r.error_message, j.error) AS error_message, " +
  `${LIVE_STATUS} AS live_status`;
const FROM_RUNS = "FROM dreaming_runs r LEFT JOIN jobs j ON j.id = r.job_id AND r.status IN ('queued', 'running')";

export class PipelineRuns {
  readonly #records: RecordStore;
  readonly #newId: IdSource;

  constructor({ records, newId }: { records: RecordStore; newId: IdSource }) {
    this.#records = records;
    this.#newId = newId;
  }

  /** For a run that is named before it is stored. */
  newRunId(): string {
    return this.#newId();
  }

  /** A run that waits for its job; stored with that in one transaction. */
  queuedStatement(id: string, run: NewPipelineRun, jobId: string): Statement {
    return insertion(id, run, { status: "queued", jobId });
  }

  /** The run of a job begins, or begins again: whoever holds the job says so, in a transaction that makes sure of that. */
  startStatement(
    id: string,
    { engine, model, workerId }: Pick<PipelineRun, "engine" | "model" | "workerId">,
  ): Statement {
    const sql =
      "UPDATE dreaming_runs SET status = 'running', started_at_ms = coalesce(started_at_ms, ?), finished_at_ms = NULL, " +
      "error_code = NULL, error_message = NULL, engine = ?, model = ?, worker_id = ? WHERE id = ? AND status <> 'done' " +
      "RETURNING id";
    return { sql, values: [NOW, engine ?? null, model ?? null, workerId ?? null, id], mustReturn: 1 };
  }

  /** Writes down how runs ended whose job was given up, before the job is forgotten. */
  settleStatement(databaseId: number, kind: PipelineKind): Statement {
    const sql =
      `UPDATE dreaming_runs SET status = ${ofJob("j.status")}, finished_at_ms = ${ofJob("j.finished_at_ms")}, ` +
      `error_code = CASE WHEN ${ofJob("j.status")} = 'cancelled' THEN 'cancelled' ELSE 'job_failed' END, ` +
      `error_message = coalesce(${ofJob("j.error")}, 'its job was cancelled'), progress = NULL ` +
      "WHERE database_id = ? AND kind = ? AND status IN ('queued', 'running') AND job_id IS NOT NULL AND " +
      "EXISTS (SELECT 1 FROM jobs j WHERE j.id = dreaming_runs.job_id AND j.status IN ('failed', 'cancelled'))";
    return { sql, values: [databaseId, kind] };
  }

  /**
   * Begins a run of a duty, which one process has at a time: an earlier run of its kind that was never ended belongs to a
   * process that is gone. Resolves to the id.
   */
  async begin(run: NewPipelineRun): Promise<string> {
    const id = this.#newId();
    const interrupted =
      "UPDATE dreaming_runs SET status = 'failed', error_code = ?, error_message = ?, finished_at_ms = ?, progress = NULL " +
      "WHERE database_id = ? AND kind = ? AND status = 'running' AND job_id IS NULL";
    const ended = [INTERRUPTED.code, INTERRUPTED.message, NOW, run.databaseId, run.kind];
    await this.#records.transact([
      { sql: interrupted, values: ended },
      insertion(id, run, { status: "running", jobId: undefined }),
    ]);
    return id;
  }

  /** How far a run of a duty is; the progress of a job's is the job's. */
  async progress(id: string, snapshot: RunProgress): Promise<void> {
    const sql = "UPDATE dreaming_runs SET progress = ? WHERE id = ? AND status = 'running'";
    await this.#records.write({ sql, values: [JSON.stringify(snapshot), id] });
  }

  /** Ends a run, if it has not ended. For the transaction that commits its changes. */
  finishStatement(id: string, { status, eventsScanned, memoriesWritten, stats, error }: RunEnd): Statement {
    const sql =
      "UPDATE dreaming_runs SET status = ?, started_at_ms = coalesce(started_at_ms, ?), finished_at_ms = ?, " +
      "events_scanned = ?, memories_written = ?, stats = ?, " +
      "error_code = ?, error_message = ?, progress = NULL WHERE id = ? AND status IN ('queued', 'running') RETURNING id";
    const values = [status, NOW, NOW, eventsScanned, memoriesWritten, JSON.stringify(stats)];
    return { sql, values: [...values, error?.code ?? null, error?.message ?? null, id], mustReturn: 1 };
  }

  /** The same on its own. Resolves to whether the run had not ended before. */
  async finish(id: string, end: RunEnd): Promise<boolean> {
    const { done } = await this.#records.transact([this.finishStatement(id, end)]);
    return done;
  }

  /**
   * Ends a run of a duty that failed. Where the run before it failed with the same error, that one goes on in its place: a
   * duty that fails at every poll has one row, with a count of its attempts, not one a minute.
   */
  async fail(id: string, { databaseId, kind }: Pick<PipelineRun, "databaseId" | "kind">, error: RunError) {
    const previousSql =
      "SELECT id, status, error_code, error_message, stats FROM dreaming_runs " +
      "WHERE database_id = ? AND kind = ? AND id < ? ORDER BY id DESC LIMIT 1";
    const [previous] = await this.#records.rows(previousSql, [databaseId, kind, id]);
    const { status, error_code: code, error_message: message, stats: text } = previous ?? {};
    if (status === "failed" && code === error.code && message === error.message) {
      const stats = JSON.parse(String(text)) as RunStats;
      const more = JSON.stringify({ ...stats, attempts: Number(stats["attempts"] ?? 1) + 1 });
      const { done } = await this.#records.transact([
        {
          sql: "DELETE FROM dreaming_runs WHERE id = ? AND status = 'running' RETURNING id",
          values: [id],
          mustReturn: 1,
        },
        {
          sql: "UPDATE dreaming_runs SET finished_at_ms = ?, stats = ? WHERE id = ? AND stats = ? RETURNING id",
          values: [NOW, more, String(previous?.["id"]), String(text)],
          mustReturn: 1,
        },
      ]);
      if (done) return;
    }
    await this.finish(id, { status: "failed", eventsScanned: 0, memoriesWritten: 0, stats: {}, error });
  }

  /** Newest first. */
  async list(databaseId: number, { kind, limit, offset }: RunList): Promise<PipelineRun[]> {
    const ofKind = kind === undefined ? "" : " AND r.kind = ?";
    const sql = `SELECT ${RUN_COLUMNS} ${FROM_RUNS} WHERE r.database_id = ?${ofKind} ORDER BY r.id DESC LIMIT ? OFFSET ?`;
    const values = [databaseId, ...(kind === undefined ? [] : [kind]), limit, offset];
    return (await this.#records.rows(sql, values)).map(toRun);
  }

  async get(databaseId: number, id: string): Promise<PipelineRun | undefined> {
    if (id.includes("\0")) return undefined;
    const sql = `SELECT ${RUN_COLUMNS} ${FROM_RUNS} WHERE r.database_id = ? AND r.id = ?`;
    const [row] = await this.#records.rows(sql, [databaseId, id]);
    return row === undefined ? undefined : toRun(row);
  }

  /** Notes what was taken back of a run. For the transaction that does it; somebody else may have been first. */
  revertStatements(runId: string, changes: readonly RunChange[]): Statement[] {
    const ofRun = {
      sql: "UPDATE dreaming_runs SET reverted_at_ms = ? WHERE id = ? RETURNING id",
      values: [NOW, runId],
    };
    const sql =
      "UPDATE dreaming_changes SET reverted = 1 WHERE run_id = ? AND record_kind = ? AND record_id = ? AND reverted = 0 " +
      "RETURNING run_id";
    return [
      { ...ofRun, mustReturn: 1 },
      ...changes.map(({ kind, id }) => ({ sql, values: [runId, kind, id], mustReturn: 1 })),
    ];
  }

  async watermark(databaseId: number, kind: WatermarkKind): Promise<Watermark> {
    const sql = "SELECT position FROM dreaming_watermarks WHERE database_id = ? AND kind = ?";
    const [row] = await this.#records.rows(sql, [databaseId, kind]);
    if (row === undefined) return { position: undefined, text: undefined };
    const text = String(row["position"]);
    return { position: JSON.parse(text), text };
  }

  /** Advances a watermark, if it is still the one that was read. For the transaction that commits what was read. */
  advanceStatement(databaseId: number, kind: WatermarkKind, from: Watermark, position: unknown): Statement {
    const text = JSON.stringify(position);
    if (from.text === undefined) {
      const sql =
        "INSERT INTO dreaming_watermarks (database_id, kind, position, updated_at_ms) VALUES (?, ?, ?, ?) " +
        "ON CONFLICT DO NOTHING RETURNING kind";
      return { sql, values: [databaseId, kind, text, NOW], mustReturn: 1 };
    }
    const sql =
      "UPDATE dreaming_watermarks SET position = ?, updated_at_ms = ? " +
      "WHERE database_id = ? AND kind = ? AND position = ? RETURNING kind";
    return { sql, values: [text, NOW, databaseId, kind, from.text], mustReturn: 1 };
  }

  /** What a run wrote. For the transaction that writes it; a record that a run wrote twice is one change. */
  changeStatements(runId: string, changes: readonly RunChange[]): Statement[] {
    const statements: Statement[] = [];
    for (let from = 0; from < changes.length;) {
      const size = CHANGES_AT_ONCE.find((each) => each <= changes.length - from) ?? 1;
      const rows = changes.slice(from, from + size);
      const sql =
        "INSERT INTO dreaming_changes (run_id, record_kind, record_id, proposal, version_before, version_after, reverted) VALUES " +
        `${rows.map(() => "(?, ?, ?, ?, ?, ?, 0)").join(", ")} ON CONFLICT DO NOTHING`;
      statements.push({ sql, values: rows.flatMap((change) => valuesOfChange(runId, change)) });
      from += size;
    }
    return statements;
  }

  /** The versions of those edges that runs of a database wrote, each as `<id> <version>`. */
  async edgesWritten(databaseId: number, ids: readonly string[]): Promise<Set<string>> {
    const sql =
      "SELECT c.record_id, c.version_after FROM dreaming_runs r JOIN dreaming_changes c ON c.run_id = r.id " +
      "WHERE r.database_id = ? AND c.record_kind = 'edge' AND c.record_id = ?";
    const found = await Promise.all(ids.map((id) => this.#records.rows(sql, [databaseId, id])));
    return new Set(found.flat().map((row) => `${String(row["record_id"])} ${Number(row["version_after"])}`));
  }

  /** Those that were not taken back, in the order of proposals. */
  async changes(runId: string): Promise<RunChange[]> {
    const sql =
      "SELECT record_kind, record_id, proposal, version_before, version_after FROM dreaming_changes " +
      "WHERE run_id = ? AND reverted = 0 ORDER BY proposal, record_kind, record_id";
    return (await this.#records.rows(sql, [runId])).map(toChange);
  }
}

/**
 * Ends runs of duties that were begun long ago and never ended: their process is gone. If one is not, its commit is refused,
 * and what it read is read again.
 */
export function settleStaleStatement(staleMs: number): Statement {
  const sql =
    "UPDATE dreaming_runs SET status = 'failed', error_code = ?, error_message = ?, finished_at_ms = ?, progress = NULL " +
    "WHERE status IN ('queued', 'running') AND job_id IS NULL AND started_at_ms < ?";
  return { sql, values: [INTERRUPTED.code, INTERRUPTED.message, NOW, { nowPlusMs: -staleMs }] };
}

/** Of the job of a run that is changed. */
function ofJob(what: string): string {
  return `(SELECT ${what} FROM jobs j WHERE j.id = dreaming_runs.job_id)`;
}

function insertion(
  id: string,
  run: NewPipelineRun,
  { status, jobId }: { status: "queued" | "running"; jobId: string | undefined },
): Statement {
  const sql =
    "INSERT INTO dreaming_runs (id, database_id, kind, status, mode, focus, started_by, requested_by, engine, model, " +
    "created_at_ms, started_at_ms, events_scanned, memories_written, job_id, session_id, stats) " +
    `VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, '{}')`;
  const { databaseId, kind, mode, focus, trigger, requestedBy, engine, model, sessionId } = run;
  const asked = [id, databaseId, kind, status, mode ?? null, focus ?? null, trigger, requestedBy ?? null];
  const times: RecordValue[] = [NOW, status === "running" ? NOW : null];
  return { sql, values: [...asked, engine ?? null, model ?? null, ...times, jobId ?? null, sessionId ?? null] };
}

function valuesOfChange(runId: string, { kind, id, proposal, versionBefore, versionAfter }: RunChange): RecordValue[] {
  return [runId, kind, id, proposal, versionBefore ?? null, versionAfter];
}

function toChange(row: RecordRow): RunChange {
  const before = row["version_before"];
  return {
    kind: row["record_kind"] === "edge" ? "edge" : "node",
    id: String(row["record_id"]),
    proposal: Number(row["proposal"]),
    versionBefore: before === null ? undefined : Number(before),
    versionAfter: Number(row["version_after"]),
  };
}

function toRun(row: RecordRow): PipelineRun {
  const status = oneOf(RUN_STATUSES, row["live_status"]);
  const isUnderWay = status === "queued" || status === "running";
  return {
    id: String(row["id"]),
    databaseId: Number(row["database_id"]),
    kind: oneOf(PIPELINE_KINDS, row["kind"]),
    status,
    mode: optionalText(row["mode"]),
    focus: optionalText(row["focus"]),
    trigger: oneOf(RUN_TRIGGERS, row["started_by"]),
    requestedBy: optionalText(row["requested_by"]),
    engine: optionalText(row["engine"]),
    model: optionalText(row["model"]),
    createdAtMs: Number(row["created_at_ms"]),
    startedAtMs: optionalNumber(row["started_at_ms"]),
    finishedAtMs: isUnderWay ? undefined : optionalNumber(row["finished_at_ms"]),
    eventsScanned: Number(row["events_scanned"]),
    memoriesWritten: Number(row["memories_written"]),
    error: errorOf(row, status),
    jobId: optionalText(row["job_id"]),
    sessionId: optionalText(row["session_id"]),
    agentRunId: optionalText(row["agent_run_id"]),
    workerId: optionalText(row["worker_id"]),
    stats: JSON.parse(String(row["stats"])) as RunStats,
    progress: isUnderWay ? jsonOf(row["progress"]) : undefined,
    revertedAtMs: optionalNumber(row["reverted_at_ms"]),
  };
}

/** Of a run under way: why its last attempt failed. Of one whose job was given up: what the job says. */
function errorOf(row: RecordRow, status: PipelineStatus): RunError | undefined {
  const message = optionalText(row["error_message"]);
  const code = optionalText(row["error_code"]);
  if (code !== undefined) return { code, message: message ?? "" };
  if (message !== undefined) return { code: status === "cancelled" ? "cancelled" : "job_failed", message };
  if (status === "cancelled") return { code: "cancelled", message: "its job was cancelled" };
  return status === "failed" ? INTERRUPTED : undefined;
}

function oneOf<T extends string>(words: readonly T[], value: unknown): T {
  const found = words.find((word) => word === value);
  if (found === undefined) throw new Error(`a stored word of a run is ${String(value)}`);
  return found;
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function optionalNumber(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

function jsonOf(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : undefined;
}
