import { NOW, type RecordRow, type RecordStore, type Statement } from "../db/records.ts";
import type { IdSource } from "../core/ids.ts";
import type { Random } from "../core/random.ts";
import type { AuditLog, Origin } from "./audit.ts";
import { unauthorized, type TokenBackend } from "./authenticator.ts";
import type { Caller } from "./caller.ts";
import { storedRole } from "./stored-caller.ts";
import { hashToken, isToken, newToken } from "./tokens.ts";
import type { OnRevoked } from "./token-cache.ts";
import type { User } from "./users.ts";

/**
 * Sessions: one for each sign-in, with access tokens that soon end and a refresh token that is good for one use and is
 * replaced by it. A refresh token that comes a second time was stolen, or its thief's came first: the whole session
 * ends (RFC 9700 §4.14.2). The role is the user's own at the moment of each request.
 */
export type SessionsOptions = {
  records: RecordStore;
  newId: IdSource;
  random: Random;
  audit: AuditLog;
  onRevoked: OnRevoked;
  accessTtlMs: number;
  /** A session that is not refreshed for so long ends. */
  refreshTtlMs: number;
};

export type SessionTokens = {
  accessToken: string;
  refreshToken: string;
  accessTtlMs: number;
  refreshTtlMs: number;
};

/** Tokens and sessions that ended are deleted this many at a time, when somebody signs in. */
const SWEPT_AT_ONCE = 200;

export class Sessions implements TokenBackend {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** A new session of a user who has shown who they are. */
  async open(user: Pick<User, "id" | "name">, origin: Origin): Promise<SessionTokens> {
    const { records, newId, audit, refreshTtlMs } = this.#options;
    const sessionId = newId();
    const session: Statement = {
      sql:
        "INSERT INTO sessions (id, user_id, address, created_at_ms, expires_at_ms) " +
        "SELECT ?, id, ?, ?, ? FROM users WHERE id = ? RETURNING id",
      values: [sessionId, origin.address, NOW, { nowPlusMs: refreshTtlMs }, user.id],
      mustReturn: 1,
    };
    const tokens = this.#newTokens();
    const entry = audit.statement({ origin, action: "auth.login", target: user.name, outcome: "ok" });
    const outcome = await records.transact([session, ...this.#storing(tokens, "?", [sessionId]), entry]);
    // Deleted in this very moment.
    if (!outcome.done) throw unauthorized("there is no such user, or the password is wrong");
    await this.#sweep();
    return tokens;
  }

  /** Exchanges a refresh token. Rejects with `unauthorized`, for one that was used before after ending its session. */
  async refresh(token: string, origin: Omit<Origin, "caller">): Promise<SessionTokens> {
    const { records, refreshTtlMs } = this.#options;
    const hash = hashToken(token);
    const tokens = this.#newTokens();
    const sessionOf = "(SELECT session_id FROM refresh_tokens WHERE hash = ?)";
    const use = "UPDATE refresh_tokens SET used_at_ms = ? WHERE hash = ? AND used_at_ms IS NULL AND expires_at_ms > ?";
    const outcome = await records.transact([
      { sql: `${use} RETURNING hash`, values: [NOW, hash, NOW], mustReturn: 1 },
      ...this.#storing(tokens, sessionOf, [hash]),
      {
        sql: `UPDATE sessions SET expires_at_ms = ? WHERE id = ${sessionOf}`,
        values: [{ nowPlusMs: refreshTtlMs }, hash],
      },
    ]);
    if (outcome.done) return tokens;
    await this.#endIfReused(hash, origin);
    throw unauthorized(
      "the refresh token is not valid: it is unknown, used or expired; sign in again",
      "invalid_token",
    );
  }

  /** Ends a session with all its tokens. */
  async close(sessionId: string, origin: Origin): Promise<void> {
    const { records, audit } = this.#options;
    const entry = audit.statement({ origin, action: "auth.logout", target: origin.caller.subject, outcome: "ok" });
    await records.transact([{ sql: "DELETE FROM sessions WHERE id = ?", values: [sessionId] }, entry]);
    this.#options.onRevoked();
  }

  /** Whether the user has signed in from that network before, as far as sessions are remembered. */
  async hasBeenAt(userId: string, address: string): Promise<boolean> {
    const sql = "SELECT id FROM sessions WHERE user_id = ? AND address = ? LIMIT 1";
    return (await this.#options.records.rows(sql, [userId, address])).length > 0;
  }

  recognizes(token: string): boolean {
    return isToken("access", token);
  }

  async authenticate(token: string): Promise<Caller | undefined> {
    const sql =
      "SELECT u.id, u.name, u.role, s.id AS session_id FROM access_tokens a " +
      "JOIN sessions s ON s.id = a.session_id JOIN users u ON u.id = s.user_id " +
      "WHERE a.hash = ? AND a.expires_at_ms > ? AND s.expires_at_ms > ?";
    const [row] = await this.#options.records.rows(sql, [hashToken(token), NOW, NOW]);
    return row === undefined ? undefined : toCaller(row);
  }

  #newTokens(): SessionTokens {
    const { random, accessTtlMs, refreshTtlMs } = this.#options;
    const [accessToken, refreshToken] = [newToken("access", random), newToken("refresh", random)];
    return { accessToken, refreshToken, accessTtlMs, refreshTtlMs };
  }

  /** Stores new tokens of the session that an expression names. */
  #storing(tokens: SessionTokens, session: string, values: readonly string[]): Statement[] {
    const insert = (table: string, token: string, ttlMs: number): Statement => ({
      sql: `INSERT INTO ${table} (hash, session_id, expires_at_ms) VALUES (?, ${session}, ?)`,
      values: [hashToken(token), ...values, { nowPlusMs: ttlMs }],
    });
    return [
      insert("access_tokens", tokens.accessToken, tokens.accessTtlMs),
      insert("refresh_tokens", tokens.refreshToken, tokens.refreshTtlMs),
    ];
  }

  async #endIfReused(hash: string, origin: Omit<Origin, "caller">): Promise<void> {
    const { records, audit } = this.#options;
    const find =
      "SELECT s.id, u.name FROM refresh_tokens r JOIN sessions s ON s.id = r.session_id " +
      "JOIN users u ON u.id = s.user_id WHERE r.hash = ? AND r.used_at_ms IS NOT NULL";
    const [session] = await records.rows(find, [hash]);
    if (session === undefined) return;
    const caller = { subject: String(session["name"]), kind: "session" } as const;
    await records.transact([
      { sql: "DELETE FROM sessions WHERE id = ?", values: [String(session["id"])] },
      audit.statement({
        origin: { ...origin, caller },
        action: "auth.refresh_reuse",
        target: caller.subject,
        outcome: "refused",
      }),
    ]);
    this.#options.onRevoked();
  }

  async #sweep(): Promise<void> {
    await this.#options.records.transact([deleteExpired("sessions", "id"), deleteExpired("access_tokens", "hash")]);
  }
}

function deleteExpired(table: string, key: string): Statement {
  const sql = `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires_at_ms <= ? LIMIT ?)`;
  return { sql, values: [NOW, SWEPT_AT_ONCE] };
}

function toCaller(row: RecordRow): Caller {
  return {
    subject: String(row["name"]),
    kind: "session",
    role: storedRole(row["role"]),
    databases: undefined,
    userId: String(row["id"]),
    sessionId: String(row["session_id"]),
  };
}
