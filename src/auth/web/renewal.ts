import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../db/records.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import type { AuditLog, Origin } from "../audit.ts";
import type { Issued } from "../jwt/issued.ts";
import { CannotOpen, open, seal, sealAnew, type Envelope } from "../sealing/envelope.ts";
import type { Keyring } from "../sealing/keyring.ts";
import type { WebIssuers } from "./issuers.ts";
import type { SignInClient } from "./sign-in-client.ts";

/**
 * Asks issuers about those who signed in with them: once an hour, when a request comes, which waits for the answer. An
 * account that was closed there ends here that way, and rights that changed there change.
 *
 * Issuers replace a refresh token when it is used and take its second use for a theft. So one request asks, in all
 * processes: whoever claims the session's row. Others go on meanwhile by what the issuer said last. A process that dies
 * between the answer and its storing takes the new refresh token along: the next question is refused, and the user signs
 * in again.
 *
 * An issuer that does not answer ends nobody's session at once: it is asked again a minute later, and what it said last
 * counts for a day, as its keys do (`jwt/issuer-keys.ts`).
 */
export const ASKED_EVERY_MS = 3_600_000;
export const BELIEVED_MS = 24 * 3_600_000;
/** More than a question takes, which has 10 s, and storing its answer. */
const ASKING_MS = 45_000;
const ASKED_AGAIN_MS = 60_000;

export type RenewalsOptions = {
  records: RecordStore;
  random: Random;
  audit: AuditLog;
  /** Undefined where the operator set no key: then no session has a refresh token. */
  keyring: Keyring | undefined;
  issuers: WebIssuers;
  log: Log;
};

/** A session with a refresh token, as its row has it. */
export type RenewableSession = {
  id: string;
  caller: Origin["caller"];
  issued: StoredIssued;
  sealed: Envelope;
  askedAtMs: number;
  /** Whether the last answer is older than `ASKED_EVERY_MS`, and whether it is older than `BELIEVED_MS`. */
  isDue: boolean;
  isOverdue: boolean;
};

/** As the column `detail` has it. */
export type StoredIssued = Pick<Issued, "issuer" | "subject" | "claims">;

type From = Omit<Origin, "caller">;

export class Renewals {
  readonly #options: RenewalsOptions;

  constructor(options: RenewalsOptions) {
    this.#options = options;
  }

  /** A refresh token for the row; undefined where it cannot be kept. */
  sealed(sessionId: string, refreshToken: string | undefined): Envelope | undefined {
    const { keyring, random } = this.#options;
    if (keyring === undefined || refreshToken === undefined) return undefined;
    return seal(keyring, random, subjectOf(sessionId), refreshToken);
  }

  /**
   * What the issuer says of the bearer by now; undefined for a session that it has ended. Rejects with `unavailable` when
   * nobody has been able to ask it for a day.
   */
  async current(session: RenewableSession, from: From): Promise<StoredIssued | undefined> {
    if (!session.isDue) return session.issued;
    const claim =
      "UPDATE web_sessions SET asking_until_ms = ? WHERE id = ? AND asked_at_ms = ? " +
      "AND (asking_until_ms IS NULL OR asking_until_ms <= ?) RETURNING id";
    const values = [{ nowPlusMs: ASKING_MS }, session.id, session.askedAtMs, NOW];
    const claimed = await this.#options.records.transact([{ sql: claim, values, mustReturn: 1 }]);
    return claimed.done ? await this.#ask(session, from) : believed(session);
  }

  async #ask(session: RenewableSession, from: From): Promise<StoredIssued | undefined> {
    const client = this.#options.issuers.clientOf(session.issued.issuer);
    if (client === undefined) return await this.#end(session, "the issuer is not configured any more", from);
    const refreshToken = this.#opened(session);
    if (refreshToken === undefined) return await this.#end(session, "its refresh token does not open", from);
    const outcome = await client.refresh(refreshToken);
    if (outcome.kind === "refused") return await this.#end(session, outcome.error, from);
    if (outcome.kind !== "granted") return await this.#wait(session, outcome.reason);
    const replaced = this.sealed(session.id, outcome.refreshToken);
    const said = await this.#said(client, session, outcome.token);
    if (said === "unknown") return await this.#wait(session, "its token cannot be checked", replaced);
    if (said === undefined || said.subject !== session.issued.subject) {
      return await this.#end(session, "its token is not good, or of somebody else", from);
    }
    const detail = { issuer: said.issuer, subject: said.subject, claims: said.claims };
    const renewed = { asked_at_ms: NOW, asking_until_ms: null, detail: JSON.stringify(detail), ...columnsOf(replaced) };
    const stored = await this.#options.records.transact([{ ...change(session.id, renewed), mustReturn: 1 }]);
    // It was ended meanwhile.
    return stored.done ? detail : undefined;
  }

  /** `unknown`: nobody can tell at this moment. */
  async #said(
    client: SignInClient,
    { issued }: RenewableSession,
    token: string | undefined,
  ): Promise<StoredIssued | "unknown" | undefined> {
    // OpenID Connect Core 1.0 §12.2: a renewed grant may come without an ID token, and then nothing has changed.
    if (token === undefined) return issued;
    try {
      return await client.issued(token);
    } catch (error) {
      if (error instanceof EngineError && error.code === "unavailable") return "unknown";
      throw error;
    }
  }

  #opened({ id, sealed }: RenewableSession): string | undefined {
    const { keyring, log } = this.#options;
    try {
      return keyring && open(keyring, subjectOf(id), sealed);
    } catch (error) {
      if (!(error instanceof CannotOpen)) throw error;
      log.warn({ webSession: id, reason: error.message }, "cannot decrypt the refresh token of a browser session");
      return undefined;
    }
  }

  /** Leaves the issuer alone for a moment; a refresh token that it has given all the same is kept. */
  async #wait(session: RenewableSession, reason: string, replaced?: Envelope): Promise<StoredIssued> {
    const { records, log } = this.#options;
    const { issuer } = session.issued;
    log.warn({ issuer, reason, webSession: session.id }, "could not renew a browser session with its issuer");
    const next = { asking_until_ms: { nowPlusMs: ASKED_AGAIN_MS }, ...columnsOf(replaced) };
    await records.transact([change(session.id, next)]);
    return believed(session);
  }

  async #end({ id, caller, issued: { issuer } }: RenewableSession, why: string, from: From): Promise<undefined> {
    const { records, audit, log } = this.#options;
    log.info({ issuer, reason: why, user: caller.subject }, "browser session ended");
    const origin = { ...from, caller };
    const details = { issuer, why };
    await records.transact([
      { sql: "DELETE FROM web_sessions WHERE id = ?", values: [id] },
      audit.statement({ origin, action: "auth.session_end", target: caller.subject, outcome: "refused", details }),
    ]);
  }
}

function believed({ issued, isOverdue }: RenewableSession): StoredIssued {
  if (!isOverdue) return issued;
  throw new EngineError("unavailable", `${issued.issuer}, which vouches for this session, does not answer`, {
    headers: { "Retry-After": String(ASKED_AGAIN_MS / 1_000) },
  });
}

const RESEALED_AT_ONCE = 100;

/**
 * Seals the refresh tokens of all sessions for the current key; returns how many it was. One that opens with no key stays as
 * it is: its session ends at the next question, as without a rotation.
 */
export async function resealRefreshTokens(
  records: Pick<RecordStore, "rows" | "transact">,
  { keyring, random }: { keyring: Keyring; random: Random },
): Promise<number> {
  const sql =
    "SELECT id, key_id, sealed_key, sealed_value FROM web_sessions WHERE key_id <> ? AND id > ? ORDER BY id LIMIT ?";
  for (let rotated = 0, after = ""; ;) {
    const rows = await records.rows(sql, [keyring.current.id, after, RESEALED_AT_ONCE]);
    if (rows.length === 0) return rotated;
    for (const row of rows) {
      after = String(row["id"]);
      const before = envelopeOf(row);
      try {
        const { keyId, sealedKey } = sealAnew(keyring, random, subjectOf(after), before);
        // Whoever renewed the session meanwhile sealed it with the current key.
        const update =
          "UPDATE web_sessions SET key_id = ?, sealed_key = ? WHERE id = ? AND sealed_key = ? RETURNING id";
        const values = [keyId, sealedKey, after, before.sealedKey];
        if ((await records.transact([{ sql: update, values, mustReturn: 1 }])).done) rotated++;
      } catch (error) {
        if (!(error instanceof CannotOpen)) throw error;
      }
    }
  }
}

/** What is sealed in a row of `web_sessions`. */
export function envelopeOf(row: RecordRow): Envelope {
  return {
    keyId: String(row["key_id"]),
    sealedKey: String(row["sealed_key"]),
    sealedValue: String(row["sealed_value"]),
  };
}

function change(id: string, columns: Readonly<Record<string, RecordValue>>): Statement {
  const set = Object.keys(columns).map((name) => `${name} = ?`);
  const sql = `UPDATE web_sessions SET ${set.join(", ")} WHERE id = ? RETURNING id`;
  return { sql, values: [...Object.values(columns), id] };
}

function columnsOf(sealed: Envelope | undefined): Record<string, RecordValue> {
  if (sealed === undefined) return {};
  return { key_id: sealed.keyId, sealed_key: sealed.sealedKey, sealed_value: sealed.sealedValue };
}

function subjectOf(sessionId: string): string {
  return `web session ${sessionId}`;
}
