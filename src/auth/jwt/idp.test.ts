import { SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { silentLog } from "../../core/log.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { seededRandom } from "../../core/random.ts";
import { ADMIN, by, openAccess, type Access } from "../access.test-kit.ts";
import type { TokenBackend } from "../authenticator.ts";
import { TokenCache } from "../token-cache.ts";
import { IdpUsers } from "./idp-users.ts";
import { idpTokens } from "./idp.ts";
import type { IdpRules } from "./idp-rules.ts";
import { startIssuer, type TestIssuer } from "./issuer.test-kit.ts";

const FROM = { address: "10.0.0.1", requestId: "r-1" };
const as = by(ADMIN);

let provider: TestIssuer;
let access: Access;
let backend: TokenBackend;

beforeAll(async () => {
  provider = await startIssuer({ path: "/auth/v1", keysPath: "/.well-known/jwks.json", audience: "authenticated" });
});
afterAll(() => provider.stop());

beforeEach(async () => {
  access = await openAccess();
  backend = tokensOf();
});
afterEach(() => access.close());

type Options = Partial<IdpRules> & { jwtSecret?: string; freshMs?: number };

function tokensOf({ jwtSecret, freshMs = 0, ...rules }: Options = {}): TokenBackend {
  const { clock, records, audit } = access;
  return idpTokens({
    url: provider.issuer.replace("/auth/v1", ""),
    audience: "authenticated",
    jwtSecret,
    rules: { adminEmails: ["boss@x.example"], allowedEmailDomains: undefined, defaultRole: "read", ...rules },
    users: new IdpUsers({ records, audit, newId: uuidV7Source(clock, seededRandom(2)), log: silentLog }),
    cache: new TokenCache({ clock, freshMs }),
    clock,
    log: silentLog,
  });
}

/** What the provider says of a user who confirmed an e-mail address. */
function claimsOf(user: string, more: Record<string, unknown> = {}) {
  const iat = Math.floor(access.clock.nowMs() / 1_000);
  return {
    iss: provider.issuer,
    aud: "authenticated",
    sub: `id of ${user}`,
    email: `${user}@x.example`,
    iat,
    exp: iat + 3_600,
    role: "authenticated",
    user_metadata: { email_verified: true },
    ...more,
  };
}

async function signIn(user: string, more: Record<string, unknown> = {}, from = backend) {
  return await from.authenticate(await provider.sign(claimsOf(user, more)), FROM);
}

async function entries() {
  const all = await access.audit.list({ limit: 100 });
  return all.map(({ action, actor, actorKind, target, details, address, requestId }) => {
    return { action, actor, actorKind, target, details, address, requestId };
  });
}

describe("a user of the identity provider", () => {
  test("is made at the first sign-in, once", async () => {
    const callers = await Promise.all(Array.from({ length: 20 }, () => signIn("ann")));
    const [user] = await access.users.list();
    expect(user).toMatchObject({ name: "ann@x.example", role: "read", source: "idp" });
    const expected = { subject: "ann@x.example", kind: "idp", role: "read", databases: undefined, userId: user?.id };
    for (const caller of callers) expect(caller).toEqual(expected);
    expect(await access.users.list()).toHaveLength(1);
    const who = { actor: "ann@x.example", actorKind: "idp", target: "ann@x.example", details: { role: "read" } };
    expect(await entries()).toEqual([{ action: "user.create", ...who, ...FROM }]);
  });

  test("has no password here, and a role that nobody else decides", async () => {
    await signIn("ann");
    const refusal = { code: "conflict" };
    await expect(access.users.setPassword("ann@x.example", "long enough", as)).rejects.toMatchObject(refusal);
    await expect(access.users.setRole("ann@x.example", "admin", as)).rejects.toMatchObject(refusal);
    await expect(access.signIn.signIn("ann@x.example", "", as)).rejects.toMatchObject({ code: "unauthorized" });
  });

  test("is told apart by subject, and keeps the name", async () => {
    const first = await signIn("ann");
    const later = await signIn("ann", { email: "annette@x.example" });
    expect(later).toEqual(first);
    expect((await signIn("bob"))?.userId).not.toBe(first?.userId);
  });

  test("is never taken for another user of the same name", async () => {
    await access.users.create({ name: "ANN@x.example", password: "correct horse", role: "admin" }, as);
    await expect(signIn("ann")).rejects.toMatchObject({ code: "forbidden" });
    await expect(signIn("ann")).rejects.toThrow("there is another user ann@x.example here");
    await signIn("bob");
    await expect(signIn("eve", { email: "bob@x.example" })).rejects.toMatchObject({ code: "forbidden" });
    expect((await access.users.list()).map(({ name, source }) => [name, source])).toEqual([
      ["ANN@x.example", "local"],
      ["bob@x.example", "idp"],
    ]);
    await access.users.remove("bob@x.example", as);
    expect(await signIn("eve", { email: "bob@x.example" })).toMatchObject({ subject: "bob@x.example" });
  });

  test("who was deleted is made again, as a new one without the tokens of the first", async () => {
    const caller = await signIn("ann");
    if (caller === undefined) throw new Error("the token was refused");
    await access.users.create({ name: "root", password: "correct horse", role: "admin" }, as);
    const { token } = await access.apiTokens.create({ name: "ci", role: "read" }, by(caller));
    expect(await access.apiTokens.authenticate(token)).toMatchObject({ subject: "ann@x.example" });
    await access.users.remove("ann@x.example", as);
    expect((await signIn("ann"))?.userId).not.toBe(caller.userId);
    expect(await access.apiTokens.authenticate(token)).toBeUndefined();
  });

  test("is called by the subject without an address that may name one", async () => {
    const sub = "a1b2-c3";
    expect(await signIn("ann", { sub, email: undefined })).toMatchObject({ subject: sub });
    expect(await signIn("bob", { sub: "b-1", email: "has space@x.example" })).toMatchObject({ subject: "b-1" });
    expect(await signIn("eve", { sub: "e-1", email_verified: false })).toMatchObject({ subject: "e-1" });
    await expect(signIn("dan", { email: "" })).rejects.toThrow("can name a user");
  });
});

describe("the role", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["boss", {}, "admin"],
    ["boss", { email: "BOSS@X.example" }, "admin"],
    ["boss", { app_metadata: { role: "read" } }, "admin"],
    ["boss", { sub: "b", email_verified: false }, "read"],
    ["boss", { sub: "b", email_verified: "false" }, "read"],
    ["boss", { sub: "b", user_metadata: { email_verified: false } }, "read"],
    ["boss", { sub: "b", email_verified: false, user_metadata: { email_verified: true } }, "read"],
    ["boss", { email_verified: "true", user_metadata: {} }, "admin"],
    ["ann", { app_metadata: { role: "write" } }, "write"],
    ["ann", { app_metadata: { role: ["read", "admin"] } }, "admin"],
    ["ann", { app_metadata: { role: "superuser" } }, "read"],
    ["ann", { app_metadata: "admin", user_metadata: { role: "admin" }, role: "admin" }, "read"],
    // U+212A, whose lower case is an ASCII k.
    ["kim", { sub: "k", email: "\u212Aim@x.example" }, "read"],
  ])("of %s with %j is %s", async (user, claims, role) => {
    const from = tokensOf({ adminEmails: ["boss@x.example", "kim@x.example"] });
    expect(await signIn(user, claims, from)).toMatchObject({ role });
    expect(await access.users.list()).toMatchObject([{ role }]);
  });

  test("of everyone else is that of the configuration", async () => {
    expect(await signIn("ann", {}, tokensOf({ defaultRole: "write" }))).toMatchObject({ role: "write" });
  });

  test("is what the provider said last, and stored with an entry of the audit log", async () => {
    await signIn("ann");
    access.clock.advance(10_000);
    const before = await provider.sign(claimsOf("ann", { app_metadata: { role: "admin" } }));
    expect(await backend.authenticate(before, FROM)).toMatchObject({ role: "admin" });
    expect(await access.users.list()).toMatchObject([{ role: "admin" }]);
    access.clock.advance(10_000);
    expect(await signIn("ann")).toMatchObject({ role: "read" });
    // A token from before the provider took the role back does not bring it back.
    expect(await backend.authenticate(before, FROM)).toMatchObject({ role: "read" });
    expect(await access.users.list()).toMatchObject([{ role: "read" }]);
    expect((await entries()).map(({ action, details }) => [action, details])).toEqual([
      ["user.role", { role: "read" }],
      ["user.role", { role: "admin" }],
      ["user.create", { role: "read" }],
    ]);
  });

  test("of the newest token holds against older ones even when it changed nothing", async () => {
    await signIn("ann");
    access.clock.advance(10_000);
    const older = await provider.sign(claimsOf("ann", { app_metadata: { role: "admin" } }));
    access.clock.advance(10_000);
    await signIn("ann");
    const vouchedAtMs = async () =>
      (await access.records.rows("SELECT vouched_at_ms FROM users"))[0]?.["vouched_at_ms"];
    await expect.poll(vouchedAtMs).toBe(access.clock.nowMs());
    expect(await backend.authenticate(older, FROM)).toMatchObject({ role: "read" });
  });

  test("follows the configuration with the same token", async () => {
    const token = await provider.sign(claimsOf("boss"));
    expect(await backend.authenticate(token, FROM)).toMatchObject({ role: "admin" });
    const without = tokensOf({ adminEmails: [] });
    expect(await without.authenticate(token, FROM)).toMatchObject({ role: "read" });
  });

  test("changes once when many requests bring the change", async () => {
    await signIn("ann");
    access.clock.advance(10_000);
    const more = { app_metadata: { role: "write" } };
    const callers = await Promise.all(Array.from({ length: 20 }, () => signIn("ann", more)));
    expect(new Set(callers.map((caller) => caller?.role))).toEqual(new Set(["write"]));
    expect((await entries()).map(({ action }) => action)).toEqual(["user.role", "user.create"]);
  });
});

describe("who may come in", () => {
  test.each<[Record<string, unknown>, boolean]>([
    [{}, true],
    [{ email: "ann@X.EXAMPLE" }, true],
    [{ email: "ann@y.example" }, false],
    [{ email: "ann@sub.x.example" }, false],
    [{ email: "ann@x.example@y.example" }, false],
    [{ email: "x.example" }, false],
    [{ email: undefined }, false],
    [{ email: ["ann@x.example"] }, false],
    [{ email_verified: false }, false],
    [{ email: "boss@y.example" }, false],
  ])("with addresses of one domain only: %j is %s", async (claims, isAllowed) => {
    const from = tokensOf({ allowedEmailDomains: ["x.example"], adminEmails: ["boss@y.example"] });
    const outcome = await signIn("ann", claims, from).catch((error: unknown) => error);
    expect(outcome).toMatchObject(isAllowed ? { kind: "idp" } : { code: "forbidden" });
    expect(await access.users.list()).toHaveLength(isAllowed ? 1 : 0);
  });

  test("is nobody who signed in as nobody", async () => {
    await expect(signIn("ann", { is_anonymous: true })).rejects.toMatchObject({ code: "forbidden" });
  });

  test.each<[string, Record<string, unknown>]>([
    ["of another project", { iss: "https://other.example/auth/v1" }],
    ["for others", { aud: "anon" }],
    ["of no user", { sub: undefined }],
    ["that is over", { exp: 1 }],
    ["of more than 16 KiB", { padding: "x".repeat(13_000) }],
  ])("is nobody with a token %s", async (_what, claims) => {
    expect(await signIn("ann", claims)).toBeUndefined();
    expect(await access.users.list()).toEqual([]);
  });
});

describe("a project that signs with a secret", () => {
  const jwtSecret = "a secret of the test, of 32 bytes and more";
  const sign = (secret: string, claims: Record<string, unknown>, alg = "HS256") =>
    new SignJWT(claims).setProtectedHeader({ alg, typ: "JWT" }).sign(Buffer.from(secret));

  test("has tokens of HS256 with that secret, and no others", async () => {
    const from = tokensOf({ jwtSecret });
    const judged = async (token: string) => (await from.authenticate(token, FROM))?.subject;
    expect(await judged(await sign(jwtSecret, claimsOf("ann")))).toBe("ann@x.example");
    expect(await judged(await sign(`${jwtSecret}.`, claimsOf("ann")))).toBeUndefined();
    expect(await judged(await sign(jwtSecret, claimsOf("ann"), "HS512"))).toBeUndefined();
    expect(await judged(await provider.sign(claimsOf("ann")))).toBeUndefined();
    // The keys of the project itself: of no user, and for its gateway.
    const key = { iss: "supabase", role: "service_role", exp: claimsOf("x").exp };
    expect(await judged(await sign(jwtSecret, key))).toBeUndefined();
  });

  test("has no tokens of HS256 when the secret is not configured", async () => {
    expect(await backend.authenticate(await sign(jwtSecret, claimsOf("ann")), FROM)).toBeUndefined();
  });
});

test("users are remembered for a while, and their tokens judged each time", async () => {
  const from = tokensOf({ freshMs: 10_000 });
  const token = await provider.sign(claimsOf("ann", { exp: Math.floor(access.clock.nowMs() / 1_000) - 55 }));
  const first = await from.authenticate(token, FROM);
  await access.records.transact([{ sql: "DELETE FROM users" }]);
  expect(await from.authenticate(token, FROM)).toEqual(first);
  expect(await access.users.list()).toEqual([]);
  access.clock.advance(6_000);
  expect(await from.authenticate(token, FROM)).toBeUndefined();
});
