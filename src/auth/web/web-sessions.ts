import { NOW, type RecordRow, type RecordStore, type Statement } from "../../db/records.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import type { ApiTokens } from "../api-tokens.ts";
import type { AuditAction, AuditLog, Origin } from "../audit.ts";
import { unauthorized, type TokenBackend } from "../authenticator.ts";
import type { Caller, CallerKind } from "../caller.ts";
import { networkOf } from "../network.ts";
import type { StaticBackend } from "../static-tokens.ts";
import { storedRole } from "../stored-caller.ts";
import type { OnRevoked } from "../token-cache.ts";
import { hashToken, isToken, newToken } from "../tokens.ts";
import type { WebIssuers } from "./issuers.ts";
import { ASKED_EVERY_MS, BELIEVED_MS, envelopeOf } from "./renewal.ts";
import type { RenewableSession, Renewals, StoredIssued } from "./renewal.ts";
import { passwordVersion, WITHOUT_REFRESH_MS, type Voucher, type VoucherKind } from "./voucher.ts";

/**
 * Browsers that signed in. Each has a cookie, of which a hash is kept, and who vouches for it (`voucher.ts`). The cookie is
 * a secret of its own: no token of the program's others is taken for one, and it is never taken for a token. A new one
 * is made at each sign-in, and the session of the browser's old one ends in the same transaction, so nobody goes on
 * in a session that somebody else began.
 *
 * A session ends when it is not used for `idleMs`. When it was last used is written once a minute at most.
 */
export type WebSessionsOptions = {
  records: RecordStore;
  newId: IdSource;
  random: Random;
  audit: AuditLog;
  onRevoked: OnRevoked;
  log: Log;
  idleMs: number;
  apiTokens: Pick<ApiTokens, "callerOf">;
  /** Those of the configuration. */
  staticTokens: readonly Pick<StaticBackend, "callerOf">[];
  issuers: WebIssuers;
  renewals: Renewals;
};

/** As its owner sees it. */
export type WebSession = {
  id: string;
  voucher: VoucherKind;
  /** The network from which it was begun. */
  address: string;
  userAgent: string;
  createdAtMs: number;
  lastUsedAtMs: number;
  endsAtMs: number | undefined;
};

/** How a browser's request came. */
export type BrowserRequest = Omit<Origin, "caller"> & {
  userAgent: string | undefined;
  /** The hash of the cookie that the browser has from before. */
  formerHash: string | undefined;
};

const USE_NOTED_EVERY_MS = 60_000;
const USER_AGENT_CHARS = 300;
/** Of one principal; with another sign-in the one that was not used for longest ends. */
const MOST = 100;
const SWEPT_AT_ONCE = 200;

export class WebSessions implements TokenBackend {
  readonly #options: WebSessionsOptions;

  constructor(options: WebSessionsOptions) {
    this.#options = options;
  }

  /** A session for one who has shown who they are; resolves to its cookie. */
  async open(voucher: Voucher, caller: Caller, request: BrowserRequest): Promise<string> {
    const { records, newId, random, audit } = this.#options;
    const [id, cookie] = [newId(), newToken("web", random)];
    const { address, requestId, userAgent = "", formerHash } = request;
    const network = networkOf(address);
    const origin: Origin = { caller, address: network, requestId };
    const details = { browser: "web session", voucher: voucher.kind };
    const outcome = await records.transact([
      ...(formerHash === undefined ? [] : [deletion("hash = ?", [formerHash])]),
      this.#insertion({ id, cookie, voucher, caller, network, userAgent: shown(userAgent) }),
      surplus(principalOf(caller)),
      audit.statement({ origin, action: "auth.login", target: caller.subject, outcome: "ok", details }),
    ]);
    if (formerHash !== undefined) this.#options.onRevoked();
    // Whoever vouches has ended in this very moment.
    if (!outcome.done) throw unauthorized("sign-in failed: the user or token was deleted; sign in again");
    await this.#sweep();
    return cookie;
  }

  recognizes(token: string): boolean {
    return isToken("web", token);
  }

  async authenticate(cookie: string, from: Omit<Origin, "caller">): Promise<Caller | undefined> {
    const sql =
      "SELECT w.*, u.name AS user_name, u.role AS user_role, u.password_hash, " +
      `${when("w.last_used_at_ms < ?")} AS note_use, ` +
      `${when("w.asked_at_ms < ?")} AS is_due, ${when("w.asked_at_ms < ?")} AS is_overdue ` +
      "FROM web_sessions w LEFT JOIN users u ON u.id = w.user_id " +
      `WHERE w.hash = ? AND ${LASTS}`;
    const { idleMs } = this.#options;
    // A session that ends sooner than within minutes is noted more often, or it would end while it is used.
    const ages = [Math.min(USE_NOTED_EVERY_MS, idleMs / 4), ASKED_EVERY_MS, BELIEVED_MS];
    const values = [...ages.map((ageMs) => ({ nowPlusMs: -ageMs })), hashToken(cookie), ...this.#lasts()];
    const [row] = await this.#options.records.rows(sql, values);
    const caller = row && (await this.#vouchedFor(row, from));
    if (row === undefined || caller === undefined) return undefined;
    const webSessionId = String(row["id"]);
    if (Number(row["note_use"]) === 1) this.#noteUse(webSessionId);
    return { ...caller, webSessionId };
  }

  /** Those of the caller, the one that was used last first. */
  async list(caller: Caller): Promise<WebSession[]> {
    // The list shows neither the hash nor the sealed refresh token.
    const sql =
      "SELECT id, voucher, address, user_agent, created_at_ms, last_used_at_ms, ends_at_ms FROM web_sessions w " +
      `WHERE principal = ? AND ${LASTS} ORDER BY last_used_at_ms DESC, id LIMIT ?`;
    const rows = await this.#options.records.rows(sql, [principalOf(caller), ...this.#lasts(), MOST]);
    return rows.map(toWebSession);
  }

  /** Ends one of the caller's. Rejects with `not_found` for any other. */
  async end(id: string, origin: Origin & { caller: Caller }): Promise<void> {
    const { caller } = origin;
    const missing = new EngineError("not_found", `you have no session ${id}`);
    if (id.includes("\0")) throw missing;
    const action = id === caller.webSessionId ? "auth.logout" : "auth.session_end";
    const gone = { ...deletion("id = ? AND principal = ?", [id, principalOf(caller)]), mustReturn: 1 };
    if (!(await this.#ended([gone, this.#entry(action, origin, { session: id })]))) throw missing;
  }

  /** Ends all of the caller's but the one that asks; resolves to how many it was. */
  async endOthers(origin: Origin & { caller: Caller }): Promise<number> {
    const { caller } = origin;
    const others = deletion("principal = ? AND id <> ?", [principalOf(caller), caller.webSessionId ?? ""]);
    const outcome = await this.#options.records.transact([
      others,
      this.#entry("auth.session_end", origin, { sessions: "all others" }),
    ]);
    this.#options.onRevoked();
    return outcome.done ? (outcome.rows[0]?.length ?? 0) : 0;
  }

  /** Ends the session of a cookie, if there is one. */
  async close(cookie: string, from: Omit<Origin, "caller">): Promise<void> {
    const hash = hashToken(cookie);
    const find = "SELECT subject, caller_kind FROM web_sessions WHERE hash = ?";
    const [row] = await this.#options.records.rows(find, [hash]);
    if (row === undefined) return;
    const origin = { ...from, caller: callerIn(row) };
    await this.#ended([{ ...deletion("hash = ?", [hash]), mustReturn: 1 }, this.#entry("auth.logout", origin)]);
  }

  /** Whether the user has a session that was begun in that network. */
  async hasBeenAt(userId: string, network: string): Promise<boolean> {
    const sql = "SELECT id FROM web_sessions WHERE user_id = ? AND address = ? LIMIT 1";
    return (await this.#options.records.rows(sql, [userId, network])).length > 0;
  }

  async #ended(statements: readonly Statement[]): Promise<boolean> {
    const outcome = await this.#options.records.transact(statements);
    this.#options.onRevoked();
    return outcome.done;
  }

  /** What whoever vouches may do now; undefined where nobody does any more. */
  async #vouchedFor(row: RecordRow, from: Omit<Origin, "caller">): Promise<Caller | undefined> {
    const { apiTokens, staticTokens, issuers } = this.#options;
    switch (String(row["voucher"]) as VoucherKind) {
      case "password":
        return userIn(row);
      case "api_token":
        return await apiTokens.callerOf(String(row["token_id"]));
      case "static":
        return staticTokens
          .map((tokens) => tokens.callerOf(String(row["detail"])))
          .find((found) => found !== undefined);
      case "issuer": {
        const issued = await this.#issuedFor(row, from);
        return issued && (await issuers.callerOf(issued, from));
      }
    }
  }

  async #issuedFor(row: RecordRow, from: Omit<Origin, "caller">): Promise<StoredIssued | undefined> {
    const issued = JSON.parse(String(row["detail"])) as StoredIssued;
    if (row["sealed_value"] === null) return issued;
    const session: RenewableSession = {
      id: String(row["id"]),
      caller: callerIn(row),
      issued,
      sealed: envelopeOf(row),
      askedAtMs: Number(row["asked_at_ms"]),
      isDue: Number(row["is_due"]) === 1,
      isOverdue: Number(row["is_overdue"]) === 1,
    };
    return await this.#options.renewals.current(session, from);
  }

  #insertion({ id, cookie, voucher, caller, network, userAgent }: NewSession): Statement {
    const detail = detailOf(voucher);
    const sealed = voucher.kind === "issuer" ? this.#options.renewals.sealed(id, voucher.refreshToken) : undefined;
    const envelope = [sealed?.keyId ?? null, sealed?.sealedKey ?? null, sealed?.sealedValue ?? null];
    const userId = voucher.kind === "password" || voucher.kind === "issuer" ? (caller.userId ?? null) : null;
    const tokenId = voucher.kind === "api_token" ? voucher.tokenId : null;
    const whose = [principalOf(caller), caller.subject, caller.kind, voucher.kind, userId, tokenId, detail];
    const values = [id, hashToken(cookie), ...whose, network, userAgent, NOW, NOW];
    const sql =
      "INSERT INTO web_sessions (id, hash, principal, subject, caller_kind, voucher, user_id, token_id, detail, " +
      "address, user_agent, created_at_ms, last_used_at_ms, ends_at_ms, asked_at_ms, key_id, sealed_key, sealed_value) " +
      `SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? ${whileThereIs(userId, "users")} ` +
      `${whileThereIs(tokenId, "api_tokens")} RETURNING id`;
    const guards = [userId, tokenId].filter((guard) => guard !== null);
    return {
      sql,
      values: [...values, endOf(voucher, sealed !== undefined), NOW, ...envelope, ...guards],
      mustReturn: 1,
    };
  }

  #lasts() {
    return [{ nowPlusMs: -this.#options.idleMs }, NOW];
  }

  #entry(action: AuditAction, origin: Origin, details: Readonly<Record<string, string>> = {}): Statement {
    return this.#options.audit.statement({ origin, action, target: origin.caller.subject, outcome: "ok", details });
  }

  /** Beside the request, which does not wait for it. */
  #noteUse(id: string): void {
    const { records, log } = this.#options;
    const sql = "UPDATE web_sessions SET last_used_at_ms = ? WHERE id = ?";
    records.transact([{ sql, values: [NOW, id] }]).catch((error: unknown) => {
      log.warn({ webSession: id, reason: messageOf(error) }, "the last use of a browser's session was not noted");
    });
  }

  async #sweep(): Promise<void> {
    const over = `SELECT id FROM web_sessions w WHERE NOT (${LASTS}) LIMIT ?`;
    const values = [...this.#lasts(), SWEPT_AT_ONCE];
    await this.#options.records.transact([deletion(`id IN (${over})`, values)]);
  }
}

type NewSession = {
  id: string;
  cookie: string;
  voucher: Voucher;
  caller: Caller;
  network: string;
  userAgent: string;
};

const LASTS = "w.last_used_at_ms > ? AND (w.ends_at_ms IS NULL OR w.ends_at_ms > ?)";

/**
 * Whose sessions a caller has and may end. Not by the subject alone: an API token goes by its owner's, and who has one
 * must not end what its owner does in a browser.
 */
function principalOf({ kind, subject, userId, tokenId }: Caller): string {
  if (kind === "api_token") return `api_token:${tokenId ?? ""}`;
  return userId === undefined ? subject : `user:${userId}`;
}

function detailOf(voucher: Voucher): string {
  switch (voucher.kind) {
    case "password":
      return voucher.version;
    case "static":
      return voucher.hash;
    case "api_token":
      return "";
    case "issuer": {
      const { issuer, subject, claims } = voucher.issued;
      return JSON.stringify({ issuer, subject, claims } satisfies StoredIssued);
    }
  }
}

/** When it ends, however much it is used. */
function endOf(voucher: Voucher, canAsk: boolean) {
  if (voucher.kind !== "issuer" || canAsk) return null;
  return voucher.lasts === "as the token" ? voucher.issued.expiresAtMs : { nowPlusMs: WITHOUT_REFRESH_MS };
}

/** No row where the one that it belongs to was deleted since it was looked at. */
function whileThereIs(id: string | null, table: "users" | "api_tokens"): string {
  return id === null ? "" : `FROM ${table} WHERE ${table}.id = ?`;
}

/** Of a principal those beyond the most that one may have. */
function surplus(principal: string): Statement {
  const found =
    "SELECT id FROM web_sessions WHERE principal = ? ORDER BY last_used_at_ms DESC, id DESC LIMIT ? OFFSET ?";
  return deletion(`id IN (${found})`, [principal, SWEPT_AT_ONCE, MOST]);
}

function deletion(test: string, values: NonNullable<Statement["values"]>): Statement {
  return { sql: `DELETE FROM web_sessions WHERE ${test} RETURNING id`, values };
}

function when(test: string): string {
  return `CASE WHEN ${test} THEN 1 ELSE 0 END`;
}

/** The user, while the password is the one that was shown. */
function userIn(row: RecordRow): Caller | undefined {
  const { password_hash: hash, user_id: userId } = row;
  if (typeof hash !== "string" || passwordVersion(hash) !== row["detail"]) return undefined;
  return {
    subject: String(row["user_name"]),
    kind: "session",
    role: storedRole(row["user_role"]),
    databases: undefined,
    userId: String(userId),
  };
}

function callerIn(row: RecordRow): Origin["caller"] {
  return { subject: String(row["subject"]), kind: String(row["caller_kind"]) as CallerKind };
}

function toWebSession(row: RecordRow): WebSession {
  return {
    id: String(row["id"]),
    voucher: String(row["voucher"]) as VoucherKind,
    address: String(row["address"]),
    userAgent: String(row["user_agent"]),
    createdAtMs: Number(row["created_at_ms"]),
    lastUsedAtMs: Number(row["last_used_at_ms"]),
    endsAtMs: row["ends_at_ms"] === null ? undefined : Number(row["ends_at_ms"]),
  };
}

/** What may stand in lists; a browser says whatever it likes. */
function shown(userAgent: string): string {
  return userAgent.replaceAll(/\p{C}/gu, "").slice(0, USER_AGENT_CHARS);
}
