import { NOW, type RecordRow, type RecordStore, type Statement } from "../db/records.ts";
import type { AuditLog, Origin } from "../auth/audit.ts";
import type { WorkerBackend } from "../auth/authenticator.ts";
import type { Caller, WorkerIdentity } from "../auth/caller.ts";
import { mayReach, ownerFilter, ownerOf, type Asker } from "../auth/owner.ts";
import { hashToken, isToken, newToken, previewOf } from "../auth/tokens.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Random } from "../core/random.ts";
import { jsonOf, optionalNumber, optionalText, textOf, type Job } from "./job.ts";
import { namesKind, type JobKind, type JobKinds } from "./kinds.ts";
import type { JobsOf, Labels } from "./lanes.ts";

/**
 * Nodes that claim jobs over HTTP. Each has a token of its own, shown once and kept as a hash: the token says who holds
 * a job, and revoking it ends what the worker holds.
 *
 * A worker belongs to who made it, and has that one's jobs. An admin may admit it for kinds: then it has everybody's jobs
 * of these, and is shown the credentials that they name.
 */
export type Worker = WorkerIdentity & {
  status: WorkerStatus;
  preview: string;
  host: string | undefined;
  createdBy: string;
  createdAtMs: number;
  registeredAtMs: number | undefined;
  seenAtMs: number | undefined;
  revokedAtMs: number | undefined;
};

/**
 * - `new`: it has not come yet.
 * - `online`, `draining`: it was heard of not long ago; one that drains takes no further jobs.
 * - `offline`: it has been silent for too long.
 * - `revoked`: its token is not good any more.
 */
export const WORKER_STATUSES = ["new", "online", "draining", "offline", "revoked"] as const;
export type WorkerStatus = (typeof WORKER_STATUSES)[number];

export type NewWorker = {
  name: string;
  /** Kinds of jobs that it may claim, by the names that `JobKinds.claimable` gives; undefined for all. */
  capabilities?: readonly string[] | undefined;
  labels?: Labels | undefined;
  /** Kinds of which it may have everybody's jobs, as only admins may say; those of an admin have all by default. */
  admitted?: readonly string[] | undefined;
};

export type WorkersOptions = {
  records: RecordStore;
  newId: IdSource;
  random: Random;
  audit: AuditLog;
  /** After this long without a heartbeat a worker is shown as offline. */
  offlineMs: number;
};

/** Workers with a good token. */
const MAX_WORKERS = 10_000;
/** That a worker was heard of is written this seldom. */
const SEEN_NOTED_EVERY_MS = 10_000;
/** What one heartbeat tells. */
const MAX_CANCELS = 1_000;

const COLUMNS =
  "id, name, preview, capabilities, labels, host, drain, owner, admitted, created_by, created_at_ms, registered_at_ms, seen_at_ms, " +
  "revoked_at_ms, CASE WHEN revoked_at_ms IS NOT NULL THEN 'revoked' WHEN seen_at_ms IS NULL THEN 'new' " +
  "WHEN seen_at_ms < ? THEN 'offline' WHEN drain = 1 THEN 'draining' ELSE 'online' END AS status";

export class Workers implements WorkerBackend {
  readonly #options: WorkersOptions;

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Rejects with `conflict` when there are too many. */
  async create(
    { name, capabilities, labels = {}, ...asked }: NewWorker,
    origin: Origin & { caller: Caller },
  ): Promise<{ token: string; worker: Worker }> {
    const { records, newId, random } = this.#options;
    const [id, token] = [newId(), newToken("worker", random)];
    const sql =
      "INSERT INTO workers (id, name, token_hash, preview, capabilities, labels, drain, owner, admitted, created_by, " +
      "created_at_ms) SELECT ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ? WHERE (SELECT count(*) FROM workers WHERE revoked_at_ms IS NULL) < ? " +
      "RETURNING id";
    // Without a word an admin's has everybody's jobs, and another one's none of these.
    const isOfAdmin = ownerFilter(origin.caller) === undefined;
    const admitted = asked.admitted ?? (isOfAdmin ? undefined : []);
    const kinds = capabilities === undefined ? null : JSON.stringify(capabilities);
    const shown = [id, name, hashToken(token), previewOf(token), kinds, JSON.stringify(labels)];
    const owned = [ownerOf(origin.caller), admitted === undefined ? null : JSON.stringify(admitted)];
    const details = { name, capabilities: capabilities ?? null, admitted: admitted ?? null };
    const outcome = await records.transact([
      { sql, values: [...shown, ...owned, origin.caller.subject, NOW, MAX_WORKERS], mustReturn: 1 },
      this.#entry("worker.create", id, origin, details),
    ]);
    if (!outcome.done) throw new EngineError("conflict", `there are ${MAX_WORKERS} workers: revoke some first`);
    return { token, worker: await this.get(id, origin.caller) };
  }

  /** Newest first, those that are revoked last. */
  async list(asker: Asker): Promise<Worker[]> {
    const owner = ownerFilter(asker);
    const order = "CASE WHEN revoked_at_ms IS NULL THEN 0 ELSE 1 END, id DESC";
    const which = owner === undefined ? "" : "WHERE owner = ? ";
    const sql = `SELECT ${COLUMNS} FROM workers ${which}ORDER BY ${order} LIMIT ?`;
    const values = [this.#offlineBefore, ...(owner === undefined ? [] : [owner]), MAX_WORKERS];
    return (await this.#options.records.rows(sql, values)).map(toWorker);
  }

  async find(id: string): Promise<Worker | undefined> {
    if (id.includes("\0")) return undefined;
    const sql = `SELECT ${COLUMNS} FROM workers WHERE id = ?`;
    const [row] = await this.#options.records.rows(sql, [this.#offlineBefore, id]);
    return row === undefined ? undefined : toWorker(row);
  }

  /** Rejects with `not_found`, also for one that the asker may not reach. */
  async get(id: string, asker: Asker): Promise<Worker> {
    const worker = await this.find(id);
    if (worker === undefined || !mayReach(asker, worker.owner)) throw notFound(id);
    return worker;
  }

  /**
   * The worker's token is not good from here on. The leases of its jobs end, so that the next sweep gives them to others;
   * jobs that no other may have fail. Rejects with `not_found`, also for one that was revoked before.
   */
  async revoke(id: string, origin: Origin & { caller: Caller }): Promise<void> {
    await this.get(id, origin.caller);
    const outcome = await this.#options.records.transact([
      {
        sql: "UPDATE workers SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL RETURNING id",
        values: [NOW, id],
        mustReturn: 1,
      },
      failPinned("worker_id = ? AND status = 'queued'", id),
      failPinned("holder = ? AND worker_id = holder AND status = 'leased'", id),
      {
        sql: "UPDATE jobs SET lease_expires_at_ms = ? WHERE holder = ? AND status = 'leased'",
        values: [NOW, id],
      },
      this.#entry("worker.revoke", id, origin),
    ]);
    if (!outcome.done) throw notFound(id);
  }

  /** Says whether a worker is to take no further jobs. Rejects with `not_found`, also for one that was revoked. */
  async drain(id: string, drain: boolean, origin: Origin & { caller: Caller }): Promise<Worker> {
    await this.get(id, origin.caller);
    const outcome = await this.#options.records.transact([
      {
        sql: "UPDATE workers SET drain = ? WHERE id = ? AND revoked_at_ms IS NULL RETURNING id",
        values: [drain ? 1 : 0, id],
        mustReturn: 1,
      },
      this.#entry("worker.drain", id, origin, { drain: drain ? "on" : "off" }),
    ]);
    if (!outcome.done) throw notFound(id);
    return await this.get(id, origin.caller);
  }

  /**
   * Says of which kinds a worker may have everybody's jobs: all of its capabilities, or those. What it holds it keeps,
   * but is shown no credential for it any more. Whether the caller may say so is for the caller of this to check. Rejects
   * with `not_found`, also for one that was revoked.
   */
  async admit(
    id: string,
    admitted: readonly string[] | undefined,
    origin: Origin & { caller: Caller },
  ): Promise<Worker> {
    await this.get(id, origin.caller);
    const outcome = await this.#options.records.transact([
      {
        sql: "UPDATE workers SET admitted = ? WHERE id = ? AND revoked_at_ms IS NULL RETURNING id",
        values: [admitted === undefined ? null : JSON.stringify(admitted), id],
        mustReturn: 1,
      },
      this.#entry("worker.admit", id, origin, { admitted: admitted ?? null }),
    ]);
    if (!outcome.done) throw notFound(id);
    return await this.get(id, origin.caller);
  }

  async authenticate(token: string): Promise<WorkerIdentity | undefined> {
    if (!isToken("worker", token)) return undefined;
    const sql = `SELECT ${COLUMNS} FROM workers WHERE token_hash = ? AND revoked_at_ms IS NULL`;
    const [row] = await this.#options.records.rows(sql, [this.#offlineBefore, hashToken(token)]);
    return row === undefined ? undefined : toWorker(row);
  }

  /** A worker has started: on a machine of that name, as it says. */
  async register(id: string, host: string | undefined): Promise<void> {
    await this.#options.records.write({
      sql: "UPDATE workers SET host = ?, registered_at_ms = ?, seen_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL",
      values: [host ?? null, NOW, NOW, id],
    });
  }

  /** A worker is there. Resolves to how it stands, and to those of its jobs that somebody cancelled. */
  async heartbeat(id: string): Promise<{ worker: Worker; cancel: string[] }> {
    const { records } = this.#options;
    const isStale = "id = ? AND (seen_at_ms IS NULL OR seen_at_ms < ?)";
    const values = [id, { nowPlusMs: -SEEN_NOTED_EVERY_MS }];
    const stale = await records.rows(`SELECT id FROM workers WHERE ${isStale}`, values);
    if (stale.length > 0) {
      await records.write({ sql: `UPDATE workers SET seen_at_ms = ? WHERE ${isStale}`, values: [NOW, ...values] });
    }
    const sql = "SELECT id FROM jobs WHERE holder = ? AND status = 'leased' AND cancel_requested = 1 LIMIT ?";
    const [worker, rows] = await Promise.all([this.find(id), records.rows(sql, [id, MAX_CANCELS])]);
    if (worker === undefined) throw notFound(id);
    return { worker, cancel: rows.map((row) => textOf(row, "id")) };
  }

  /** How many jobs wait for this worker and no other; at most `most` are counted. */
  async countPinned(id: string, most: number): Promise<number> {
    const sql =
      "SELECT count(*) AS jobs FROM (SELECT 1 AS one FROM jobs WHERE worker_id = ? AND status = 'queued' LIMIT ?) AS counted";
    const [row] = await this.#options.records.rows(sql, [id, most]);
    return Number(row?.["jobs"]);
  }

  get #offlineBefore(): { nowPlusMs: number } {
    return { nowPlusMs: -this.#options.offlineMs };
  }

  #entry(
    action: "worker.create" | "worker.revoke" | "worker.drain" | "worker.admit",
    target: string,
    origin: Origin,
    details: Record<string, string | readonly string[] | null> = {},
  ): Statement {
    return this.#options.audit.statement({ origin, action, target, outcome: "ok", details });
  }
}

/** Jobs that nobody else may claim end with their worker. */
function failPinned(which: string, id: string): Statement {
  const sql =
    "UPDATE jobs SET status = CASE WHEN cancel_requested = 1 THEN 'cancelled' ELSE 'failed' END, " +
    "error = 'the only worker that may run it was revoked', finished_at_ms = ?, updated_at_ms = ?, " +
    `lease_expires_at_ms = NULL WHERE ${which}`;
  return { sql, values: [NOW, NOW, id] };
}

/** Whether the worker may have jobs of that kind of everybody. */
export function isAdmitted(
  { capabilities, admitted }: Pick<Worker, "capabilities" | "admitted">,
  kind: JobKind,
): boolean {
  const names = admitted ?? capabilities;
  return names === undefined || namesKind(names, kind);
}

/** Whether the worker may have the job, as it is now. */
export function mayHaveJob(
  worker: WorkerIdentity,
  { kind, owner }: Pick<Job, "kind" | "owner">,
  kinds: JobKinds,
): boolean {
  const known = kinds.get(kind);
  return isAdmitted(worker, known) || (known.needsAdmission !== true && ownerOf(owner) === worker.owner);
}

/** Whose jobs the worker may have. */
export function jobsOfWorker(worker: WorkerIdentity, kinds: JobKinds): JobsOf {
  return { owner: worker.owner, admitted: (kind) => isAdmitted(worker, kinds.get(kind)) };
}

function notFound(id: string): EngineError {
  return new EngineError("not_found", `there is no worker ${id}`);
}

function toWorker(row: RecordRow): Worker {
  const status = WORKER_STATUSES.find((one) => one === row["status"]);
  if (status === undefined) throw new Error(`the status of a worker is ${String(row["status"])}`);
  return {
    id: textOf(row, "id"),
    name: textOf(row, "name"),
    status,
    capabilities: jsonOf(row, "capabilities") as string[] | undefined,
    labels: (jsonOf(row, "labels") as Labels | undefined) ?? {},
    drain: Number(row["drain"]) === 1,
    owner: textOf(row, "owner"),
    admitted: jsonOf(row, "admitted") as string[] | undefined,
    preview: textOf(row, "preview"),
    host: optionalText(row, "host"),
    createdBy: textOf(row, "created_by"),
    createdAtMs: Number(row["created_at_ms"]),
    registeredAtMs: optionalNumber(row, "registered_at_ms"),
    seenAtMs: optionalNumber(row, "seen_at_ms"),
    revokedAtMs: optionalNumber(row, "revoked_at_ms"),
  };
}
