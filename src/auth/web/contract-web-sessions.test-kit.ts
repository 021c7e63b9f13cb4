import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { EngineError } from "../../core/errors.ts";
import { seededRandom } from "../../core/random.ts";
import { ADMIN, by, openAccess, REFRESH_TTL_MS, type Access } from "../access.test-kit.ts";
import type { Caller } from "../caller.ts";
import type { Issued, IssuedTokens } from "../jwt/issued.ts";
import { keyringOf } from "../sealing/keyring.ts";
import { staticTokens } from "../static-tokens.ts";
import { hashToken } from "../tokens.ts";
import { WebIssuers } from "./issuers.ts";
import { ASKED_EVERY_MS, BELIEVED_MS, resealRefreshTokens } from "./renewal.ts";
import type { GrantOutcome, SignInClient } from "./sign-in-client.ts";
import { passwordVersion, WITHOUT_REFRESH_MS, type Voucher } from "./voucher.ts";
import type { BrowserRequest } from "./web-sessions.ts";

const FROM = { address: "10.0.0.9", requestId: "r-2" };
const BROWSER: BrowserRequest = { ...FROM, userAgent: "a browser", formerHash: undefined };
const ISSUER = "https://issuer.example";
const KEY = "a key of the operator";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** An issuer that says what the test has it say, and takes each refresh token once. */
class ScriptedIssuer implements SignInClient {
  readonly issuer = ISSUER;
  readonly asked: string[] = [];
  role = "read";
  subject = "ann";
  /** What it answers instead; undefined: with tokens. */
  answer: GrantOutcome | undefined;
  knowsKeys = true;
  givesTokens = true;
  #refreshToken = "refresh-0";

  authorizationUrl(): Promise<string> {
    return Promise.resolve(ISSUER);
  }

  exchange(): Promise<GrantOutcome> {
    return Promise.resolve({ kind: "granted", token: "token", refreshToken: this.#refreshToken });
  }

  async refresh(refreshToken: string): Promise<GrantOutcome> {
    this.asked.push(refreshToken);
    await new Promise((resolve) => void setImmediate(resolve));
    if (this.answer !== undefined) return this.answer;
    if (refreshToken !== this.#refreshToken) return { kind: "refused", error: "invalid_grant" };
    this.#refreshToken = `refresh-${this.asked.length}`;
    return { kind: "granted", token: this.givesTokens ? "token" : undefined, refreshToken: this.#refreshToken };
  }

  issued(): Promise<Issued | undefined> {
    if (!this.knowsKeys) return Promise.reject(new EngineError("unavailable", "no keys"));
    return Promise.resolve(this.said());
  }

  said(endsMs = 0): Issued {
    return { issuer: ISSUER, subject: this.subject, claims: { role: this.role }, expiresAtMs: endsMs };
  }
}

/** Judges by the claim `role`. */
const tokens: IssuedTokens = {
  recognizes: () => false,
  authenticate: () => Promise.resolve(undefined),
  issued: () => Promise.resolve(undefined),
  callerOf: ({ issuer, claims }) => {
    if (issuer !== ISSUER) return Promise.resolve(undefined);
    if (claims["role"] === "none") return Promise.reject(new EngineError("forbidden", "no role"));
    const role = claims["role"] === "write" ? "write" : "read";
    return Promise.resolve({ subject: `${ISSUER}#ann`, kind: "oidc", role, databases: undefined });
  },
};

/** What browsers' sessions must do on every catalog. */
export function webSessionsContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`the sessions of browsers on ${name}`, () => {
    let opened: OpenedCatalog;
    let access: Access;
    let issuer: ScriptedIssuer;

    const accessOn = (more: Partial<Parameters<typeof openAccess>[0]> = {}) =>
      openAccess({
        clock: opened.clock,
        records: opened.catalog.records,
        keyring: keyringOf(KEY, []),
        issuers: new WebIssuers([{ provider: ISSUER, title: ISSUER, client: issuer }], tokens),
        staticTokens: [staticTokens([{ token: "a token of the configuration", role: "write", name: "ci" }])],
        ...more,
      });

    beforeEach(async () => {
      opened = await open();
      issuer = new ScriptedIssuer();
      access = await accessOn();
      await access.users.create({ name: "ann", password: "correct horse", role: "write" }, by(ADMIN));
    });
    afterEach(() => opened.close());

    const verified = () => access.signIn.verified("ann", "correct horse", FROM);
    const callerOf = (user: { id: string; name: string }): Caller => ({
      subject: user.name,
      kind: "session",
      role: "read",
      databases: undefined,
      userId: user.id,
    });
    /** A session of Ann's, by her password. */
    const signIn = async (request = BROWSER) => {
      const { user, passwordHash } = await verified();
      const voucher: Voucher = { kind: "password", userId: user.id, version: passwordVersion(passwordHash) };
      return await access.webSessions.open(voucher, callerOf(user), request);
    };
    const OIDC: Caller = { subject: `${ISSUER}#ann`, kind: "oidc", role: "read", databases: undefined };
    const signInThere = (more: Partial<Extract<Voucher, { kind: "issuer" }>> = {}) => {
      const voucher = {
        kind: "issuer",
        issued: issuer.said(),
        refreshToken: "refresh-0",
        lasts: "as the account",
      } as const;
      return access.webSessions.open({ ...voucher, ...more }, OIDC, BROWSER);
    };
    const who = (cookie: string, sessions = access.webSessions) => sessions.authenticate(cookie, FROM);
    const roleOf = async (cookie: string) => (await who(cookie))?.role;
    const rows = () => access.records.rows("SELECT * FROM web_sessions ORDER BY id");

    it("say who signed in with a password, with the role of that moment", async () => {
      const cookie = await signIn();
      const caller = await who(cookie);
      expect(caller).toMatchObject({ subject: "ann", kind: "session", role: "write", databases: undefined });
      await access.users.setRole("ann", "read", by(ADMIN)).catch(() => undefined);
      await access.users.create({ name: "root", password: "correct horse", role: "admin" }, by(ADMIN));
      await access.users.setRole("ann", "admin", by(ADMIN));
      expect(await roleOf(cookie)).toBe("admin");
      expect(await who(cookie.toUpperCase())).toBeUndefined();
      const kept = JSON.stringify([await rows(), await access.audit.list({ limit: 10 })]);
      expect(kept).not.toContain(cookie);
    });

    it("end when they are not used, and go on while they are", async () => {
      const [used, idle] = [await signIn(), await signIn()];
      for (let i = 0; i < 5; i++) {
        opened.clock.advance(REFRESH_TTL_MS - MINUTE_MS);
        const isThere = (await who(used)) !== undefined;
        expect(isThere).toBe(true);
        // Written beside the request.
        await expect
          .poll(async () => (await rows()).map((row) => Number(row["last_used_at_ms"])))
          .toContain(opened.clock.nowMs());
      }
      expect(await who(idle)).toBeUndefined();
      opened.clock.advance(REFRESH_TTL_MS + 1);
      expect(await who(used)).toBeUndefined();
    });

    it("have their use written once a minute at most", async () => {
      const cookie = await signIn();
      const began = opened.clock.nowMs();
      for (let i = 0; i < 6; i++) {
        opened.clock.advance(MINUTE_MS / 6);
        await who(cookie);
      }
      expect((await rows()).map((row) => Number(row["last_used_at_ms"]))).toEqual([began]);
    });

    it("end with another password, also where they were begun with the former one in between", async () => {
      const [first, { user, passwordHash }] = [await signIn(), await verified()];
      await access.users.setPassword("ann", "another horse", by(ADMIN));
      const late: Voucher = { kind: "password", userId: user.id, version: passwordVersion(passwordHash) };
      const second = await access.webSessions.open(late, callerOf(user), BROWSER);
      expect([await who(first), await who(second)]).toEqual([undefined, undefined]);
    });

    it("go on for the one who changes their own, and end elsewhere", async () => {
      const [here, elsewhere] = [await signIn(), await signIn()];
      const { tokens: others } = await access.signIn.signIn("ann", "correct horse", FROM);
      const { webSessionId } = (await who(here)) ?? {};
      const { user, passwordHash } = await verified();
      const kept = { sessionId: undefined, webSessionId };
      const change = (hash: string) =>
        access.users.changePassword({ ...user, passwordHash: hash }, "another horse", kept, by(callerOf(user)));
      expect(await change("of a password that is not the one any more")).toBe(false);
      expect(await roleOf(elsewhere)).toBe("write");
      expect(await change(passwordHash)).toBe(true);
      expect([await roleOf(here), await who(elsewhere)]).toEqual(["write", undefined]);
      expect(await access.sessions.authenticate(others.accessToken)).toBeUndefined();
      await expect(access.sessions.refresh(others.refreshToken, FROM)).rejects.toMatchObject({ code: "unauthorized" });
    });

    it("end with the user, and none begins then", async () => {
      await access.users.create({ name: "root", password: "correct horse", role: "admin" }, by(ADMIN));
      const [cookie, { user, passwordHash }] = [await signIn(), await verified()];
      await access.users.remove("ann", by(ADMIN));
      expect([await who(cookie), await rows()]).toEqual([undefined, []]);
      const voucher: Voucher = { kind: "password", userId: user.id, version: passwordVersion(passwordHash) };
      await expect(access.webSessions.open(voucher, callerOf(user), BROWSER)).rejects.toMatchObject({
        code: "unauthorized",
      });
      expect(await rows()).toEqual([]);
    });

    it("end with the API token that began them, and have no more than it", async () => {
      const { user } = await verified();
      const maker = by({ ...callerOf(user), role: "write" });
      const expiresAtMs = opened.clock.nowMs() + 5 * MINUTE_MS;
      const made = [
        await access.apiTokens.create({ name: "revoked", role: "read", databases: ["logs"] }, maker),
        await access.apiTokens.create({ name: "ends", role: "write", expiresAtMs }, maker),
      ];
      const cookies: string[] = [];
      for (const { token } of made) {
        const caller = await access.apiTokens.authenticate(token);
        const voucher: Voucher = { kind: "api_token", tokenId: caller?.tokenId ?? "" };
        cookies.push(await access.webSessions.open(voucher, caller ?? OIDC, BROWSER));
      }
      const [revoked = "", ends = ""] = cookies;
      expect(await who(revoked)).toMatchObject({ kind: "api_token", role: "read", databases: ["logs"] });
      await access.apiTokens.revoke(made[0]?.record.id ?? "", maker);
      expect(await who(revoked)).toBeUndefined();
      expect(await roleOf(ends)).toBe("write");
      opened.clock.advance(5 * MINUTE_MS);
      expect(await who(ends)).toBeUndefined();
    });

    it("end when their token leaves the configuration", async () => {
      const voucher: Voucher = { kind: "static", hash: hashToken("a token of the configuration") };
      const ci: Caller = { subject: "token:ci", kind: "static", role: "write", databases: undefined };
      const cookie = await access.webSessions.open(voucher, ci, BROWSER);
      expect(await who(cookie)).toMatchObject(ci);
      const without = await accessOn({
        staticTokens: [staticTokens([{ token: "another", role: "admin", name: "ci" }])],
      });
      expect(await who(cookie, without.webSessions)).toBeUndefined();
    });

    it("end with a token of an issuer that began them", async () => {
      const issued = issuer.said(opened.clock.nowMs() + MINUTE_MS);
      const cookie = await signInThere({ issued, refreshToken: undefined, lasts: "as the token" });
      opened.clock.advance(MINUTE_MS - 1);
      expect(await roleOf(cookie)).toBe("read");
      opened.clock.advance(1);
      expect(await who(cookie)).toBeUndefined();
    });

    it("end after eight hours where the issuer cannot be asked: for want of a key, or of a refresh token", async () => {
      const keyless = await accessOn({ keyring: undefined });
      const voucher = {
        kind: "issuer",
        issued: issuer.said(),
        refreshToken: "refresh-0",
        lasts: "as the account",
      } as const;
      const cookies = [
        await keyless.webSessions.open(voucher, OIDC, BROWSER),
        await signInThere({ refreshToken: undefined }),
      ];
      expect((await rows()).map((row) => row["sealed_value"])).toEqual([null, null]);
      for (let passedMs = 0; passedMs + REFRESH_TTL_MS / 2 < WITHOUT_REFRESH_MS; passedMs += REFRESH_TTL_MS / 2) {
        opened.clock.advance(REFRESH_TTL_MS / 2);
        await Promise.all(cookies.map((cookie) => who(cookie)));
        await expect
          .poll(async () => (await rows()).every((row) => Number(row["last_used_at_ms"]) === opened.clock.nowMs()))
          .toBe(true);
      }
      expect(await Promise.all(cookies.map(roleOf))).toEqual(["read", "read"]);
      opened.clock.advance(REFRESH_TTL_MS / 2);
      expect(await Promise.all(cookies.map(roleOf))).toEqual([undefined, undefined]);
      expect(issuer.asked).toEqual([]);
    });

    /** So much later, and used all the time. */
    const later = async (ms: number) => {
      opened.clock.advance(ms);
      const sql = "UPDATE web_sessions SET last_used_at_ms = ?";
      await access.records.transact([{ sql, values: [{ nowPlusMs: 0 }] }]);
    };

    it("ask the issuer once an hour, one request of all nodes at a time", async () => {
      const cookie = await signInThere();
      const nodes = [access, await accessOn()];
      await later(ASKED_EVERY_MS - 1);
      await who(cookie);
      expect(issuer.asked).toEqual([]);
      issuer.role = "write";
      for (const expected of [["refresh-0"], ["refresh-0", "refresh-1"]]) {
        await later(ASKED_EVERY_MS + 1);
        const asking = nodes.flatMap(({ webSessions }) => Array.from({ length: 5 }, () => who(cookie, webSessions)));
        const callers = await Promise.all(asking);
        expect(callers.every((caller) => caller !== undefined)).toBe(true);
        expect(issuer.asked).toEqual(expected);
      }
      expect(await roleOf(cookie)).toBe("write");
    });

    it("go by the claims of before where a renewed grant has no token", async () => {
      const cookie = await signInThere();
      issuer.givesTokens = false;
      issuer.role = "write";
      await later(2 * HOUR_MS);
      expect([await roleOf(cookie), issuer.asked]).toEqual(["read", ["refresh-0"]]);
      await who(cookie);
      expect(issuer.asked).toEqual(["refresh-0"]);
    });

    it.each([
      ["the issuer says no", () => (issuer.answer = { kind: "refused", error: "invalid_grant" })],
      ["its token is of somebody else", () => (issuer.subject = "mallory")],
    ])("end where %s, and the audit log says so", async (_why, change) => {
      const cookie = await signInThere();
      change();
      await later(2 * HOUR_MS);
      expect([await who(cookie), await rows()]).toEqual([undefined, []]);
      const [entry] = await access.audit.list({ limit: 1 });
      expect(entry).toMatchObject({ action: "auth.session_end", target: OIDC.subject, outcome: "refused" });
      expect(await who(cookie)).toBeUndefined();
      expect(issuer.asked).toEqual(["refresh-0"]);
    });

    it("end where what was sealed does not open, and where the issuer is not configured any more", async () => {
      for (const change of [{ keyring: keyringOf("another key", []) }, { issuers: new WebIssuers([], tokens) }]) {
        const cookie = await signInThere();
        await later(2 * HOUR_MS);
        const { webSessions } = await accessOn(change);
        expect([await who(cookie, webSessions), await rows()]).toEqual([undefined, []]);
      }
      expect(issuer.asked).toEqual([]);
    });

    it("outlive the operator's former key once their refresh tokens are sealed for the new one", async () => {
      const cookie = await signInThere();
      await signInThere({ refreshToken: undefined });
      const { records } = access;
      const random = seededRandom(1);
      const both = keyringOf("the next key", [KEY]);
      expect(await resealRefreshTokens(records, { keyring: keyringOf("the next key", []), random })).toBe(0);
      expect(await resealRefreshTokens(records, { keyring: both, random })).toBe(1);
      expect(await resealRefreshTokens(records, { keyring: both, random })).toBe(0);
      await later(2 * HOUR_MS);
      const { webSessions } = await accessOn({ keyring: keyringOf("the next key", []) });
      expect([await who(cookie, webSessions), issuer.asked]).toMatchObject([{ role: "read" }, ["refresh-0"]]);
    });

    it("go on for a day while the issuer does not answer, which is asked once a minute", async () => {
      const cookie = await signInThere();
      issuer.answer = { kind: "unreachable", reason: "a test" };
      await later(2 * HOUR_MS);
      for (let i = 0; i < 3; i++) expect(await roleOf(cookie)).toBe("read");
      expect(issuer.asked).toHaveLength(1);
      await later(MINUTE_MS);
      expect([await roleOf(cookie), issuer.asked.length]).toEqual(["read", 2]);
      await later(BELIEVED_MS);
      const unavailable = { code: "unavailable" };
      await expect(who(cookie)).rejects.toMatchObject(unavailable);
      await expect(who(cookie)).rejects.toMatchObject(unavailable);
      issuer.answer = undefined;
      await later(MINUTE_MS);
      expect(await roleOf(cookie)).toBe("read");
    });

    it("keep the new refresh token where nobody can tell what came with it", async () => {
      const cookie = await signInThere();
      issuer.knowsKeys = false;
      issuer.role = "write";
      await later(2 * HOUR_MS);
      expect(await roleOf(cookie)).toBe("read");
      issuer.knowsKeys = true;
      await later(MINUTE_MS);
      expect([await roleOf(cookie), issuer.asked]).toEqual(["write", ["refresh-0", "refresh-1"]]);
    });

    it("are refused to who has no right here any more, and come back with it", async () => {
      const cookie = await signInThere();
      issuer.role = "none";
      await later(2 * HOUR_MS);
      await expect(who(cookie)).rejects.toMatchObject({ code: "forbidden" });
      issuer.role = "read";
      await later(2 * HOUR_MS);
      expect(await roleOf(cookie)).toBe("read");
    });

    it("are a hundred of a caller at most: the one that was not used for longest ends", async () => {
      const ci: Caller = { subject: "token:ci", kind: "static", role: "write", databases: undefined };
      const voucher: Voucher = { kind: "static", hash: hashToken("a token of the configuration") };
      const cookies: string[] = [];
      const others = await signIn();
      for (let i = 0; i < 102; i++) {
        opened.clock.advance(1);
        cookies.push(await access.webSessions.open(voucher, ci, BROWSER));
      }
      const [first = "", second = "", third = ""] = cookies;
      expect([await who(first), await who(second)]).toEqual([undefined, undefined]);
      expect(await who(third)).toMatchObject(ci);
      expect(await access.webSessions.list(ci)).toHaveLength(100);
      expect(await who(others)).toMatchObject({ subject: "ann" });
    });

    it("are swept once they have ended, when somebody signs in", async () => {
      await signIn();
      opened.clock.advance(REFRESH_TTL_MS);
      await signIn();
      expect(await rows()).toHaveLength(1);
    });

    it("remember the network that they were begun in, and no more of a browser than fits", async () => {
      const userAgent = `a\u0000b\u202e${"x".repeat(1_000)}`;
      const cookie = await signIn({ ...BROWSER, address: "2001:db8::1", userAgent });
      const caller = (await who(cookie)) ?? OIDC;
      const [session] = await access.webSessions.list(caller);
      expect(session).toMatchObject({
        address: "2001:db8:0:0::/64",
        userAgent: `ab${"x".repeat(298)}`,
        voucher: "password",
      });
      const { userId = "" } = caller;
      expect(await access.webSessions.hasBeenAt(userId, "2001:db8:0:0::/64")).toBe(true);
      expect(await access.webSessions.hasBeenAt(userId, "10.0.0.9")).toBe(false);
    });
  });
}
