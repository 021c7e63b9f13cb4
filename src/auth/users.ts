import { NOW, type RecordRow, type RecordStore, type Statement } from "../db/records.ts";
import { USER_NAME, type CallerRole } from "../config/kinds.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { foldName } from "../core/names.ts";
import type { AuditAction, AuditLog, Origin } from "./audit.ts";
import { storedRole } from "./stored-caller.ts";
import type { OnRevoked } from "./token-cache.ts";
import { passwordVersion } from "./web/voucher.ts";
import { checkNewPassword, type Passwords } from "./passwords.ts";

/** Those who sign in. Names have no case; there is always an admin left, once there was one. */
export type User = {
  id: string;
  name: string;
  role: CallerRole;
  /** `local`: with a password kept here. `idp`: an identity provider vouches. */
  source: "local" | "idp";
  createdAtMs: number;
  updatedAtMs: number;
};

export type NewUser = { name: string; password: string; role: CallerRole };

const COLUMNS = "id, name, role, source, created_at_ms, updated_at_ms";
/** More than any list shows: past it an administrator asks for a name. */
const MAX_LISTED = 1_000;

export type UsersOptions = {
  records: RecordStore;
  newId: IdSource;
  passwords: Passwords;
  audit: AuditLog;
  onRevoked: OnRevoked;
};

export class Users {
  readonly #options: UsersOptions;

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  /** By name. */
  async list(): Promise<User[]> {
    const sql = `SELECT ${COLUMNS} FROM users ORDER BY folded_name LIMIT ?`;
    return (await this.#options.records.rows(sql, [MAX_LISTED])).map(toUser);
  }

  /** A user with the hash of the password; undefined when there is none of that name. */
  async find(name: string): Promise<{ user: User; passwordHash: string | undefined } | undefined> {
    if (!USER_NAME.test(name)) return undefined;
    const sql = `SELECT ${COLUMNS}, password_hash FROM users WHERE folded_name = ?`;
    const [row] = await this.#options.records.rows(sql, [foldName(name)]);
    if (row === undefined) return undefined;
    const hash = row["password_hash"];
    return { user: toUser(row), passwordHash: typeof hash === "string" ? hash : undefined };
  }

  /** Throws `invalid_parameter` for a name or password that may not be, `conflict` when the name is taken. */
  async create({ name, password, role }: NewUser, origin: Origin): Promise<User> {
    const insert = await this.#insertion({ name, password, role });
    const entry = this.#entry("user.create", name, origin, { role });
    const outcome = await this.#options.records.transact([insert, entry]);
    if (!outcome.done) throw new EngineError("conflict", `there is a user ${name} already`);
    return await this.#existing(name);
  }

  async hasAny(): Promise<boolean> {
    return (await this.#options.records.rows("SELECT id FROM users LIMIT 1")).length > 0;
  }

  /** Creates the first user; does nothing where there is one. Resolves to whether it did. */
  async seed(user: NewUser, origin: Origin): Promise<boolean> {
    // Most starts find one, and a hash takes a while.
    if (await this.hasAny()) return false;
    const outcome = await this.#options.records.transact([
      { sql: "SELECT id FROM users LIMIT 1", mustReturn: 0 },
      await this.#insertion(user, { anyPassword: true }),
      this.#entry("user.seed", user.name, origin, { role: user.role }),
    ]);
    return outcome.done;
  }

  /** Sets a password and ends all sessions of the user. */
  async setPassword(name: string, password: string, origin: Origin): Promise<User> {
    checkNewPassword(password);
    const hash = await this.#options.passwords.hash(password);
    const sql =
      "UPDATE users SET password_hash = ?, updated_at_ms = ? WHERE folded_name = ? AND source = 'local' RETURNING id";
    const outcome = await this.#options.records.transact([
      { sql, values: [hash, NOW, foldName(name)], mustReturn: 1 },
      ...endSessionsOf(name),
      this.#entry("user.password", name, origin),
    ]);
    this.#options.onRevoked();
    const user = await this.#existing(name);
    if (outcome.done) return user;
    const { source } = user;
    throw new EngineError(
      "conflict",
      `${name} signs in with an identity provider (${source}) and has no password here`,
    );
  }

  /**
   * Sets the password of the one who asks, and ends all of the user's sessions but `kept`. Resolves to false when the
   * password is not the one of that hash any more.
   */
  async changePassword(
    user: Pick<User, "id" | "name"> & { passwordHash: string },
    password: string,
    kept: { sessionId: string | undefined; webSessionId: string | undefined },
    origin: Origin,
  ): Promise<boolean> {
    checkNewPassword(password);
    const hash = await this.#options.passwords.hash(password);
    const sql = "UPDATE users SET password_hash = ?, updated_at_ms = ? WHERE id = ? AND password_hash = ? RETURNING id";
    const web = kept.webSessionId ?? "";
    const outcome = await this.#options.records.transact([
      { sql, values: [hash, NOW, user.id, user.passwordHash], mustReturn: 1 },
      { sql: "DELETE FROM sessions WHERE user_id = ? AND id <> ?", values: [user.id, kept.sessionId ?? ""] },
      { sql: "DELETE FROM web_sessions WHERE user_id = ? AND id <> ?", values: [user.id, web] },
      // It was begun with the former password, and goes on with this one.
      { sql: "UPDATE web_sessions SET detail = ? WHERE id = ?", values: [passwordVersion(hash), web] },
      this.#entry("user.password", user.name, origin),
    ]);
    this.#options.onRevoked();
    return outcome.done;
  }

  /**
   * Sessions go on, with the new role. Throws `conflict` when nobody would be admin any more, and for a user whose role
   * an identity provider says anew with every token.
   */
  async setRole(name: string, role: CallerRole, origin: Origin): Promise<User> {
    if ((await this.#existing(name)).source === "idp") {
      throw new EngineError("conflict", `the role of ${name} is the identity provider's to say`);
    }
    const sql = "UPDATE users SET role = ?, updated_at_ms = ? WHERE folded_name = ? RETURNING id";
    const change: Statement = { sql, values: [role, NOW, foldName(name)], mustReturn: 1 };
    await this.#unlessLastAdmin(name, role, [change, this.#entry("user.role", name, origin, { role })]);
    return await this.#existing(name);
  }

  /** Deletes the user with their sessions and tokens. Throws `conflict` when nobody would be admin any more. */
  async remove(name: string, origin: Origin): Promise<void> {
    const sql = "DELETE FROM users WHERE folded_name = ? RETURNING id";
    const change: Statement = { sql, values: [foldName(name)], mustReturn: 1 };
    await this.#unlessLastAdmin(name, undefined, [change, this.#entry("user.delete", name, origin)]);
  }

  async #unlessLastAdmin(name: string, role: CallerRole | undefined, changes: readonly Statement[]): Promise<void> {
    const guard: Statement = {
      sql:
        "SELECT id FROM users WHERE folded_name = ? AND (role <> 'admin' OR EXISTS " +
        "(SELECT 1 FROM users AS others WHERE others.role = 'admin' AND others.folded_name <> ?))",
      values: [foldName(name), foldName(name)],
      mustReturn: 1,
    };
    const outcome = await this.#options.records.transact(role === "admin" ? changes : [guard, ...changes]);
    this.#options.onRevoked();
    if (outcome.done) return;
    await this.#existing(name);
    throw new EngineError("conflict", `${name} is the last admin: make somebody else admin first`);
  }

  async #existing(name: string): Promise<User> {
    const found = await this.find(name);
    if (found === undefined) throw new EngineError("not_found", `there is no user ${name}`);
    return found.user;
  }

  async #insertion({ name, password, role }: NewUser, options?: { anyPassword: true }): Promise<Statement> {
    if (!USER_NAME.test(name)) {
      const rule = "1 to 255 characters of an e-mail address, the first a letter or digit";
      throw new EngineError("invalid_parameter", `the name of a user has ${rule}`);
    }
    // What the operator's configuration says is the operator's choice.
    if (options === undefined) checkNewPassword(password);
    const hash = await this.#options.passwords.hash(password);
    const sql =
      "INSERT INTO users (id, name, folded_name, role, source, password_hash, created_at_ms, updated_at_ms) " +
      "VALUES (?, ?, ?, ?, 'local', ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id";
    return { sql, values: [this.#options.newId(), name, foldName(name), role, hash, NOW, NOW], mustReturn: 1 };
  }

  #entry(action: AuditAction, target: string, origin: Origin, details: Record<string, string> = {}): Statement {
    return this.#options.audit.statement({ origin, action, target, outcome: "ok", details });
  }
}

function endSessionsOf(name: string): Statement[] {
  return ["sessions", "web_sessions"].map((table) => ({
    sql: `DELETE FROM ${table} WHERE user_id IN (SELECT id FROM users WHERE folded_name = ?)`,
    values: [foldName(name)],
  }));
}

function toUser(row: RecordRow): User {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    role: storedRole(row["role"]),
    source: row["source"] === "idp" ? "idp" : "local",
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}
