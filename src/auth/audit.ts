import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../db/records.ts";
import type { IdSource } from "../core/ids.ts";
import type { Caller } from "./caller.ts";

/**
 * The audit log: who changed rights, credentials or data sources, when, from where, and what came of it. An entry about
 * a change is a part of the change's transaction, so neither is there without the other; a refusal has one of its own.
 * Entries are only ever added. None holds a secret: `details` are names, roles and ids.
 */
export type AuditAction =
  | "auth.login"
  | "auth.logout"
  | "auth.refresh_reuse"
  | "auth.session_end"
  | "token.create"
  | "token.revoke"
  | "user.create"
  | "user.delete"
  | "user.password"
  | "user.role"
  | "user.seed"
  | "credential.create"
  | "credential.delete"
  | "credential.share"
  | "credential.refresh"
  | "credential.rotate"
  | "credential.reveal"
  | "credential.use"
  | "table.drop"
  | "database.drop"
  | "rows.delete"
  | "iceberg.credentials"
  | "query.budget"
  | "query.cancel"
  | "query.end"
  | "query.refuse"
  | "query_engine.add"
  | "query_engine.remove"
  | "oauth.start"
  | "oauth.finish"
  | "worker.create"
  | "worker.revoke"
  | "worker.drain"
  | "worker.admit"
  | "ownership.transfer"
  | "sandbox.create"
  | "sandbox.start"
  | "sandbox.stop"
  | "sandbox.pause"
  | "sandbox.resume"
  | "sandbox.delete"
  | "sandbox_node.cap"
  | "volume.delete"
  | "image.build"
  | "image.delete"
  | "image.share"
  | "workspace.create"
  | "workspace.update"
  | "workspace.delete"
  | "sandbox.exec"
  | "sandbox.interrupt"
  | "sandbox.message"
  | "sandbox.shell"
  | "memory.erase"
  | "memory.settings"
  | "agent.engine"
  | "agent.skills"
  | "agent.session_delete"
  | "dreaming.revert"
  | "dashboard.delete";

export type AuditEvent = {
  origin: Origin;
  action: AuditAction;
  /** What it was done to: a user's name, the id of a token or a credential. */
  target: string;
  outcome: "ok" | "refused" | "failed" | "cancelled";
  details?: Readonly<Record<string, string | number | readonly string[] | null>>;
};

/** Who acts, and how the request came. */
export type Origin = { caller: Pick<Caller, "subject" | "kind">; address: string; requestId: string };

export type AuditEntry = {
  id: string;
  atMs: number;
  actor: string;
  actorKind: string;
  action: string;
  target: string;
  outcome: string;
  address: string;
  requestId: string;
  details: unknown;
};

export type AuditQuery = {
  limit: number;
  /** Only entries before that one. */
  before?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
};

const TARGET_CHARS = 500;

export class AuditLog {
  readonly #records: RecordStore;
  readonly #newId: IdSource;

  constructor(records: RecordStore, newId: IdSource) {
    this.#records = records;
    this.#newId = newId;
  }

  /** The entry as a part of the caller's transaction. */
  statement({ origin, action, target, outcome, details = {} }: AuditEvent): Statement {
    const { caller, address, requestId } = origin;
    const sql =
      "INSERT INTO audit_log (id, at_ms, actor, actor_kind, action, target, outcome, address, request_id, details) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    const shown = target.slice(0, TARGET_CHARS).replaceAll("\0", "");
    const who = [caller.subject, caller.kind];
    const values = [this.#newId(), NOW, ...who, action, shown, outcome, address, requestId, JSON.stringify(details)];
    return { sql, values };
  }

  /** An entry by itself: what was refused changed nothing. */
  async record(event: AuditEvent): Promise<void> {
    await this.#records.transact([this.statement(event)]);
  }

  /** Newest first. */
  async list({ limit, before, actor, action, target }: AuditQuery): Promise<AuditEntry[]> {
    const values: RecordValue[] = [];
    const tests = [
      ["id < ?", before],
      ["actor = ?", actor],
      ["action = ?", action],
      ["target = ?", target],
    ] as const;
    const where = tests.flatMap(([test, value]) => {
      if (value === undefined) return [];
      values.push(value);
      return [test];
    });
    const filter = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`;
    const sql = `SELECT * FROM audit_log ${filter} ORDER BY id DESC LIMIT ?`;
    return (await this.#records.rows(sql, [...values, limit])).map(toEntry);
  }
}

function toEntry(row: RecordRow): AuditEntry {
  return {
    id: String(row["id"]),
    atMs: Number(row["at_ms"]),
    actor: String(row["actor"]),
    actorKind: String(row["actor_kind"]),
    action: String(row["action"]),
    target: String(row["target"]),
    outcome: String(row["outcome"]),
    address: String(row["address"]),
    requestId: String(row["request_id"]),
    details: JSON.parse(String(row["details"])) as unknown,
  };
}
