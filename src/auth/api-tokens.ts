import { NOW, type RecordRow, type RecordStore } from "../db/records.ts";
import type { CallerRole } from "../config/kinds.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import type { AuditLog, Origin } from "./audit.ts";
import type { TokenBackend } from "./authenticator.ts";
import { lowerRole, roleIncludes, scopeIncludes, scopeOf, type Caller, type Scope } from "./caller.ts";
import { scopeOfColumn, scopeToColumn, storedRole } from "./stored-caller.ts";
import type { OnRevoked } from "./token-cache.ts";
import { STATIC_PREFIX } from "./static-tokens.ts";
import { hashToken, isToken, newToken, previewOf } from "./tokens.ts";

/**
 * Long-lived tokens that callers make for programs: of a role and for databases that do not pass their own. A token is
 * never more than its owner: a user's ends with the user and sinks with the user's role, one made with a token of the
 * configuration ends when that is taken out of it. It is shown once and kept as a hash.
 */
export type ApiToken = {
  id: string;
  name: string;
  preview: string;
  owner: string;
  role: CallerRole;
  databases: Scope;
  createdAtMs: number;
  expiresAtMs: number | undefined;
  lastUsedAtMs: number | undefined;
};

export type NewApiToken = {
  name: string;
  role: CallerRole;
  /** Undefined for those of the caller. */
  databases?: readonly string[] | undefined;
  expiresAtMs?: number | undefined;
};

export type ApiTokensOptions = {
  records: RecordStore;
  newId: IdSource;
  random: Random;
  audit: AuditLog;
  onRevoked: OnRevoked;
  log: Log;
  /** The callers whom the configuration names. */
  staticCallers: readonly Caller[];
  /** Whether others may be who they say they are without a token, and then tokens mean nothing. */
  isOn: boolean;
};

const MAX_PER_OWNER = 1_000;
/** Nobody here learns that an account of another issuer has ended, so what hangs on it ends by itself. */
const MAX_FOREIGN_TTL_MS = 90 * 86_400_000;
/** When a token was last used is written this seldom. */
const USE_NOTED_EVERY_MS = 60_000;

export class ApiTokens implements TokenBackend {
  readonly #options: ApiTokensOptions;

  constructor(options: ApiTokensOptions) {
    this.#options = options;
  }

  /** Throws `forbidden` for what the caller does not have, `conflict` where tokens make no sense. */
  async create(
    request: NewApiToken,
    origin: Origin & { caller: Caller },
  ): Promise<{ token: string; record: ApiToken }> {
    const { caller } = origin;
    const databases = request.databases === undefined ? caller.databases : scopeOf(request.databases);
    this.#check(request, caller, databases);
    const { records, newId, random, audit } = this.#options;
    const token = newToken("api", random);
    const id = newId();
    const { name, role, expiresAtMs } = request;
    const insert =
      "INSERT INTO api_tokens (id, hash, name, preview, owner, user_id, role, databases, created_at_ms, expires_at_ms) " +
      "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM api_tokens WHERE owner = ?) < ? RETURNING id";
    const owner = caller.subject;
    const shown = [name, previewOf(token), owner, caller.userId ?? null, role, scopeToColumn(databases)];
    const values = [id, hashToken(token), ...shown, NOW, expiresAtMs ?? null, owner, MAX_PER_OWNER];
    const details = { name, role, databases: databases ?? null };
    const outcome = await records.transact([
      { sql: insert, values, mustReturn: 1 },
      audit.statement({ origin, action: "token.create", target: id, outcome: "ok", details }),
    ]);
    if (!outcome.done) throw new EngineError("conflict", `${owner} has ${MAX_PER_OWNER} tokens: revoke some first`);
    const record = await this.#find(id);
    if (record === undefined) throw new EngineError("conflict", "the token was revoked in this moment");
    return { token, record };
  }

  /** Newest first: the caller's own, or for an administrator all of them; none that reaches beyond the caller's databases. */
  async list(caller: Caller): Promise<ApiToken[]> {
    const mine = isUnscopedAdmin(caller) ? "" : "WHERE owner = ?";
    const sql = `SELECT * FROM api_tokens ${mine} ORDER BY id DESC LIMIT ?`;
    const values = mine === "" ? [] : [caller.subject];
    const all = (await this.#options.records.rows(sql, [...values, MAX_PER_OWNER])).map(toApiToken);
    return all.filter(({ databases }) => scopeIncludes(caller.databases, databases));
  }

  /** Throws `not_found` for a token that `list` does not show to the caller. */
  async revoke(id: string, origin: Origin & { caller: Caller }): Promise<void> {
    const { records, audit } = this.#options;
    const found = await this.#find(id);
    if (found === undefined || !scopeIncludes(origin.caller.databases, found.databases)) throw notFound(id);
    const mine = isUnscopedAdmin(origin.caller) ? "" : " AND owner = ?";
    const values = mine === "" ? [id] : [id, origin.caller.subject];
    const outcome = await records.transact([
      { sql: `DELETE FROM api_tokens WHERE id = ?${mine} RETURNING id`, values, mustReturn: 1 },
      audit.statement({ origin, action: "token.revoke", target: id, outcome: "ok" }),
    ]);
    this.#options.onRevoked();
    if (!outcome.done) throw notFound(id);
  }

  recognizes(token: string): boolean {
    return isToken("api", token);
  }

  async authenticate(token: string): Promise<Caller | undefined> {
    return await this.#callerBy("hash", hashToken(token));
  }

  /** The bearer of the token of that id, which is how a browser's session names the one that it was begun with. */
  async callerOf(tokenId: string): Promise<Caller | undefined> {
    return await this.#callerBy("id", tokenId);
  }

  async #callerBy(column: "hash" | "id", value: string): Promise<Caller | undefined> {
    const sql =
      "SELECT t.id, t.name, t.owner, t.user_id, t.role, t.databases, t.last_used_at_ms, u.role AS user_role, " +
      "CASE WHEN t.last_used_at_ms IS NULL OR t.last_used_at_ms < ? THEN 1 ELSE 0 END AS note_use " +
      "FROM api_tokens t LEFT JOIN users u ON u.id = t.user_id " +
      `WHERE t.${column} = ? AND (t.expires_at_ms IS NULL OR t.expires_at_ms > ?)`;
    const values = [{ nowPlusMs: -USE_NOTED_EVERY_MS }, value, NOW];
    const [row] = await this.#options.records.rows(sql, values);
    if (row === undefined) return undefined;
    const ownerRole = this.#ownerRole(row);
    if (ownerRole === undefined) return undefined;
    if (Number(row["note_use"]) === 1) this.#noteUse(String(row["id"]));
    const userId = row["user_id"];
    return {
      subject: String(row["owner"]),
      kind: "api_token",
      role: lowerRole(ownerRole, storedRole(row["role"])),
      databases: scopeOfColumn(row["databases"]),
      tokenId: String(row["id"]),
      ...(typeof userId === "string" && { userId }),
    };
  }

  /** What the owner may do now; undefined for one who is no more. */
  #ownerRole(row: RecordRow): CallerRole | undefined {
    if (row["user_id"] !== null) return storedRole(row["user_role"]);
    const owner = String(row["owner"]);
    const configured = this.#options.staticCallers.find(({ subject }) => subject === owner);
    if (configured !== undefined) return configured.role;
    return owner.startsWith(STATIC_PREFIX) ? undefined : storedRole(row["role"]);
  }

  #check({ role, name, expiresAtMs }: NewApiToken, caller: Caller, databases: Scope): void {
    if (!this.#options.isOn || caller.kind === "anonymous") {
      throw new EngineError("conflict", "authentication is off: nobody needs a token");
    }
    if (caller.kind === "api_token") throw new EngineError("forbidden", "a token cannot make tokens: sign in");
    if (name.trim() === "") throw new EngineError("invalid_parameter", "the name of a token is empty");
    if (!roleIncludes(caller.role, role)) {
      throw new EngineError("forbidden", `the role ${role} is more than yours, which is ${caller.role}`);
    }
    if (!scopeIncludes(caller.databases, databases)) {
      throw new EngineError("forbidden", "the databases are more than yours");
    }
    if (caller.kind === "oidc" && expiresAtMs === undefined) {
      const days = MAX_FOREIGN_TTL_MS / 86_400_000;
      throw new EngineError("invalid_parameter", `a token of yours must say when it ends, within ${days} days`);
    }
  }

  /** Beside the request, which does not wait for it. */
  #noteUse(id: string): void {
    const { records, log } = this.#options;
    const sql = "UPDATE api_tokens SET last_used_at_ms = ? WHERE id = ?";
    records.transact([{ sql, values: [NOW, id] }]).catch((error: unknown) => {
      log.warn({ tokenId: id, reason: messageOf(error) }, "the last use of a token was not noted");
    });
  }

  async #find(id: string): Promise<ApiToken | undefined> {
    if (id.includes("\0")) return undefined;
    const [row] = await this.#options.records.rows("SELECT * FROM api_tokens WHERE id = ?", [id]);
    return row === undefined ? undefined : toApiToken(row);
  }
}

function notFound(id: string): EngineError {
  return new EngineError("not_found", `there is no token ${id}`);
}

function isUnscopedAdmin({ role, databases }: Caller): boolean {
  return role === "admin" && databases === undefined;
}

function toApiToken(row: RecordRow): ApiToken {
  const optional = (name: string) => (row[name] === null ? undefined : Number(row[name]));
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    preview: String(row["preview"]),
    owner: String(row["owner"]),
    role: storedRole(row["role"]),
    databases: scopeOfColumn(row["databases"]),
    createdAtMs: Number(row["created_at_ms"]),
    expiresAtMs: optional("expires_at_ms"),
    lastUsedAtMs: optional("last_used_at_ms"),
  };
}
