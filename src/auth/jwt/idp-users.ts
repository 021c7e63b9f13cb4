import { NOW, type RecordStore, type Statement } from "../../db/records.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import { foldName } from "../../core/names.ts";
import type { AuditAction, AuditLog, Origin } from "../audit.ts";
import type { Caller } from "../caller.ts";
import { storedRole } from "../stored-caller.ts";
import type { Vouched } from "./idp-rules.ts";

export type IdpUsersOptions = { records: RecordStore; newId: IdSource; audit: AuditLog; log: Log };

type Known = { id: string; name: string; role: Caller["role"]; vouchedAtMs: number };
type From = Omit<Origin, "caller">;

/** More than two requests that change one user at a time take turns; nobody loses that often. */
const MAX_TRIES = 5;

/**
 * The users for whom an identity provider vouches, made when they first come. A user keeps the first name; the role is
 * what the provider said last, by the time at which it issued the token: an older token does not bring an older role
 * back.
 */
export class IdpUsers {
  readonly #options: IdpUsersOptions;

  constructor(options: IdpUsersOptions) {
    this.#options = options;
  }

  /** Rejects with `forbidden` when a new user's name is somebody else's, and with the errors of the records. */
  async signIn(vouched: Vouched, from: From): Promise<Caller> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const known = await this.#find(vouched.subject);
      if (known === undefined) {
        await this.#create(vouched, from);
        continue;
      }
      if (vouched.atMs < known.vouchedAtMs) return callerOf(known);
      if (vouched.role === known.role) {
        if (vouched.atMs > known.vouchedAtMs) this.#note(known, vouched);
        return callerOf(known);
      }
      if (await this.#changeRole(known, vouched, from)) return callerOf({ ...known, role: vouched.role });
    }
    throw new EngineError("unavailable", "the user is being changed by others; try again", {
      headers: { "Retry-After": "1" },
    });
  }

  async #find(subject: string): Promise<Known | undefined> {
    const sql = "SELECT id, name, role, vouched_at_ms FROM users WHERE source = 'idp' AND subject = ?";
    const [row] = await this.#options.records.rows(sql, [subject]);
    if (row === undefined) return undefined;
    const { id, name, role, vouched_at_ms: vouchedAtMs } = row;
    return { id: String(id), name: String(name), role: storedRole(role), vouchedAtMs: Number(vouchedAtMs) };
  }

  /** Makes the user, unless another request has just done so. */
  async #create({ subject, name, role, atMs }: Vouched, from: From): Promise<void> {
    const { records, newId, log } = this.#options;
    const sql =
      "INSERT INTO users (id, name, folded_name, role, source, subject, vouched_at_ms, created_at_ms, updated_at_ms) " +
      "VALUES (?, ?, ?, ?, 'idp', ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id";
    const values = [newId(), name, foldName(name), role, subject, atMs, NOW, NOW];
    const entry = this.#entry("user.create", { name, role }, from);
    if ((await records.transact([{ sql, values, mustReturn: 1 }, entry])).done) {
      log.info({ user: name, role }, "a user of the identity provider came first, and was made");
      return;
    }
    const other = "SELECT id FROM users WHERE folded_name = ? AND (source <> 'idp' OR subject <> ?)";
    if ((await records.rows(other, [foldName(name), subject])).length === 0) return;
    // Whoever can have an account of that name at the provider must not become the user who has it here.
    log.warn({ user: name, subject }, "a user of the identity provider was refused: another user has that name");
    throw new EngineError(
      "forbidden",
      `there is another user ${name} here: an administrator must delete that one first`,
    );
  }

  /** Whether it was done; not when a newer token has come in between, or the user was deleted. */
  async #changeRole({ id, name, vouchedAtMs }: Known, { role, atMs }: Vouched, from: From): Promise<boolean> {
    const { records } = this.#options;
    const sql =
      "UPDATE users SET role = ?, vouched_at_ms = ?, updated_at_ms = ? WHERE id = ? AND vouched_at_ms = ? RETURNING id";
    const change: Statement = { sql, values: [role, atMs, NOW, id, vouchedAtMs], mustReturn: 1 };
    return (await records.transact([change, this.#entry("user.role", { name, role }, from)])).done;
  }

  /** Beside the request, which does not wait for it. */
  #note({ id, name }: Known, { atMs }: Vouched): void {
    const { records, log } = this.#options;
    const sql = "UPDATE users SET vouched_at_ms = ? WHERE id = ? AND vouched_at_ms < ?";
    records.transact([{ sql, values: [atMs, id, atMs] }]).catch((error: unknown) => {
      log.warn({ user: name, reason: messageOf(error) }, "when a user was last vouched for was not noted");
    });
  }

  #entry(action: AuditAction, { name, role }: Pick<Vouched, "name" | "role">, from: From): Statement {
    const origin: Origin = { ...from, caller: { subject: name, kind: "idp" } };
    return this.#options.audit.statement({ origin, action, target: name, outcome: "ok", details: { role } });
  }
}

function callerOf({ id, name, role }: Known): Caller {
  return { subject: name, kind: "idp", role, databases: undefined, userId: id };
}
