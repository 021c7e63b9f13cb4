import { deflateRawSync } from "node:zlib";
import { createPublicKey } from "node:crypto";
import { CompactEncrypt, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import type { TokenBackend } from "../authenticator.ts";
import { startIssuer, type TestIssuer } from "./issuer.test-kit.ts";
import { oidcTokens, type OidcOptions } from "./oidc.ts";

const FROM = { address: "10.0.0.1", requestId: "r-1" };

let one: TestIssuer;
let two: TestIssuer;
let clock: ManualClock;
let backend: TokenBackend;

beforeAll(async () => {
  [one, two] = await Promise.all([
    startIssuer({ claims: { engine_role: "write" } }),
    startIssuer({ path: "/realms/b" }),
  ]);
});
afterAll(() => Promise.all([one.stop(), two.stop()]));

beforeEach(() => {
  clock = new ManualClock(Date.now());
  backend = tokensOf();
});

function tokensOf(options: Partial<OidcOptions["claims"]> = {}): TokenBackend {
  const claims = { role: "engine_role", subject: "sub", databases: "engine_databases", ...options };
  return oidcTokens({ issuers: [one.issuer, two.issuer], audience: "engine", claims, clock, log: silentLog });
}

const nowSecs = () => Math.floor(clock.nowMs() / 1_000);
const good = (issuer = one) => ({
  iss: issuer.issuer,
  aud: "engine",
  sub: "ann",
  engine_role: "read",
  iat: nowSecs(),
  exp: nowSecs() + 600,
});
/** The caller; undefined where the token is not recognized or not valid. */
async function callerOf(token: string | Promise<string>, from: TokenBackend = backend) {
  return from.recognizes(await token) ? await from.authenticate(await token, FROM) : undefined;
}

describe("a token of an issuer", () => {
  test("is good with members of its header that nobody here knows, each once", async () => {
    const token = one.signUnder(good(), (header) => `{${header}, "x" : {"alg":"none","y":[{"z":1},{"z":"\\"{"}]}}`);
    expect(await callerOf(token)).toMatchObject({ kind: "oidc" });
  });

  test("that the issuer granted to a program is good", async () => {
    expect(await callerOf(one.grant())).toEqual({
      subject: `${one.issuer}#robot`,
      kind: "oidc",
      role: "write",
      databases: undefined,
    });
  });

  test.each(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "EdDSA", "Ed25519"])(
    "may be signed with %s",
    async (alg) => {
      expect(await callerOf(one.sign(good(), { alg }))).toMatchObject({ subject: `${one.issuer}#ann`, role: "read" });
    },
  );

  test.each(["JWT", "at+jwt", "application/at+JWT"])("may be of the type %s", async (typ) => {
    expect(await callerOf(one.sign(good(), { typ }))).toBeDefined();
  });

  test("need not name its key when there is one of that kind", async () => {
    expect(await callerOf(two.sign(good(two), { kid: undefined }))).toBeDefined();
  });

  test("names callers apart by their issuer", async () => {
    const callers = await Promise.all([one, two].map((issuer) => callerOf(issuer.sign(good(issuer)))));
    expect(callers.map((caller) => caller?.subject)).toEqual([`${one.issuer}#ann`, `${two.issuer}#ann`]);
  });

  test("is good for clocks that are a minute apart, and no more", async () => {
    const judged = (claims: Record<string, unknown>) => callerOf(one.sign({ ...good(), ...claims }));
    expect(await judged({ exp: nowSecs() - 59 })).toBeDefined();
    expect(await judged({ exp: nowSecs() - 61 })).toBeUndefined();
    expect(await judged({ nbf: nowSecs() + 59 })).toBeDefined();
    expect(await judged({ nbf: nowSecs() + 61 })).toBeUndefined();
    expect(await judged({ iat: nowSecs() + 59 })).toBeDefined();
    expect(await judged({ iat: nowSecs() + 62 })).toBeUndefined();
  });

  test("is judged anew each time", async () => {
    const token = await one.sign({ ...good(), exp: nowSecs() + 1 });
    expect(await callerOf(token)).toBeDefined();
    clock.advance(62_000);
    expect(await callerOf(token)).toBeUndefined();
  });
});

describe("what a token says", () => {
  test.each<[unknown, string]>([
    ["admin", "admin"],
    [["read", "write"], "write"],
    [["nonsense", "read", 7], "read"],
    [["write", "admin", "read"], "admin"],
  ])("the role of %j is %s", async (engine_role, role) => {
    expect(await callerOf(one.sign({ ...good(), engine_role }))).toMatchObject({ role });
  });

  test.each([undefined, null, "", "root", "Admin", "read write", [], ["root"], [["admin"]], { admin: true }, 1, true])(
    "a role claim of %j lets nobody in",
    async (engine_role) => {
      const caller = callerOf(one.sign({ ...good(), engine_role }));
      await expect(caller).rejects.toMatchObject({ code: "forbidden" });
      await expect(caller).rejects.toThrow("its claim engine_role names no role");
    },
  );

  test.each<[unknown, unknown]>([
    [undefined, undefined],
    [
      ["Logs", "logs", " traces "],
      ["logs", "traces"],
    ],
    ["logs, Traces,", ["logs", "traces"]],
    ["", []],
    [[], []],
    ["*", ["*"]],
  ])("databases of %j are %j", async (engine_databases, databases) => {
    expect((await callerOf(one.sign({ ...good(), engine_databases })))?.databases).toEqual(databases);
  });

  test.each([null, 7, true, { logs: true }, ["logs", 7], [["logs"]]])(
    "a limit that is %j is not taken for none",
    async (engine_databases) => {
      const caller = callerOf(one.sign({ ...good(), engine_databases }));
      await expect(caller).rejects.toMatchObject({ code: "forbidden" });
    },
  );

  test("is read from the claims of the configuration", async () => {
    const other = tokensOf({ role: "https://x.example/roles", subject: "email", databases: "tenant" });
    const claims = { ...good(), "https://x.example/roles": ["admin"], email: "ann@x.example", tenant: "a" };
    const expected = { subject: `${one.issuer}#ann@x.example`, role: "admin", databases: ["a"] };
    expect(await callerOf(one.sign(claims), other)).toMatchObject(expected);
    expect(await callerOf(one.sign({ ...claims, email: undefined }), other)).toBeUndefined();
    const unverified = callerOf(one.sign({ ...claims, email_verified: false }), other);
    await expect(unverified).rejects.toMatchObject({ code: "forbidden" });
  });
});

/** Signed by the issuer, and yet not good. */
const REFUSED: Record<string, () => Promise<string>> = {
  "another audience": () => one.sign({ ...good(), aud: "other" }),
  "other audiences": () => one.sign({ ...good(), aud: ["other", "engines"] }),
  "no audience": () => one.sign({ ...good(), aud: undefined }),
  "another issuer": () => one.sign({ ...good(), iss: two.issuer }),
  "an issuer that nobody knows": () => one.sign({ ...good(), iss: "https://evil.example" }),
  "an issuer with a slash more": () => one.sign({ ...good(), iss: `${one.issuer}/` }),
  "no issuer": () => one.sign({ ...good(), iss: undefined }),
  "several issuers": () => one.sign({ ...good(), iss: [one.issuer, two.issuer] }),
  "another issuer, said last": () =>
    one.sign(JSON.stringify(good()).replace(/}$/, `,"iss":${JSON.stringify(two.issuer)}}`)),
  "no end": () => one.sign({ ...good(), exp: undefined }),
  "an end that is text": () => one.sign({ ...good(), exp: String(nowSecs() + 600) }),
  "a start that is text": () => one.sign({ ...good(), nbf: "0" }),
  "no subject": () => one.sign({ ...good(), sub: undefined }),
  "an empty subject": () => one.sign({ ...good(), sub: "" }),
  "a subject of two lines": () => one.sign({ ...good(), sub: "ann\nbob" }),
  "a subject that is a number": () => one.sign({ ...good(), sub: 7 }),
  "a subject that is too long": () => one.sign({ ...good(), sub: "x".repeat(256) }),
  "the type of a logout token": () => one.sign(good(), { typ: "logout+jwt" }),
  "the type of a proof": () => one.sign(good(), { typ: "dpop+jwt" }),
  "an extension that must be understood": () => one.sign(good(), { crit: ["x-ext"], "x-ext": true }),
  "an extension that the library understands": () => one.sign(good(), { crit: ["b64"], b64: true }),
  "a payload that is not encoded": () => one.signUnder(good(), (header) => `{"crit":["b64"],"b64":false,${header}}`),
  "a payload that is not encoded, not said to matter": () => one.sign(good(), { b64: false }),
  "no extensions that must be understood": () => one.signUnder(good(), (header) => `{"crit":[],${header}}`),
  "extensions that are null": () => one.signUnder(good(), (header) => `{"crit":null,${header}}`),
  "an extension, its name in escapes": () => one.signUnder(good(), (header) => `{"\\u0063rit":["x"],"x":1,${header}}`),
  "an algorithm twice": () => one.signUnder(good(), (header) => `{"alg":"none",${header}}`),
  "a type twice": () => one.signUnder(good(), (header) => `{"typ":"logout+jwt","t\\u0079p":"JWT",${header}}`),
  "a name twice, deep inside": () => one.signUnder(good(), (header) => `{"x":[{"y":1,"y":2}],${header}}`),
  "claims that are no object": () => one.sign("[]"),
  "claims that are no JSON": () => one.sign("{"),
  "claims that are no UTF-8": () => one.sign(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])),
  "claims that are deflated": () => one.sign(deflateRawSync(JSON.stringify(good())), { zip: "DEF" }),
  "more than 16 KiB": () => one.sign({ ...good(), padding: "x".repeat(13_000) }),
};

/** Not signed by the issuer. */
const FORGED: Record<string, () => Promise<string>> = {
  "no signature": () => Promise.resolve(new UnsecuredJWT(good()).encode()),
  "the algorithm none and a signature": async () =>
    withHeader(await one.sign(good()), { alg: "none", kid: kidOf("RSA") }),
  "the public key as a secret": () => hmac(pem()),
  "the public key as a secret, without its last line end": () => hmac(pem().trimEnd()),
  "the published key as a secret": () => hmac(JSON.stringify(publicKey("RSA"))),
  "the modulus as a secret": () => hmac(Buffer.from(String(publicKey("RSA").n), "base64url")),
  "an empty secret": () => hmac("", "HS512"),
  "another issuer's key": async () => withHeader(await two.sign(good()), { alg: "RS256", kid: kidOf("RSA") }),
  "the signature of another token": async () => {
    const [header, , signature] = (await one.sign(good())).split(".");
    return [header, partOf({ ...good(), engine_role: "admin" }), signature].join(".");
  },
  "a key of its own": () => ownKey(({ jwk }) => ({ alg: "ES256", jwk })),
  "a key of its own by the name of the issuer's": () => ownKey(({ jwk }) => ({ alg: "ES256", jwk, kid: kidOf("EC") })),
  "the address of its key": () =>
    ownKey(() => ({ alg: "ES256", jku: `${two.issuer}/jwks`, x5u: `${two.issuer}/x`, x5c: ["AAAA"], kid: "own" })),
  "a name that no key has": () => one.sign(good(), { kid: "../../dev/null" }),
  "no name of a key, of which there are more": async () => {
    await one.rotate({ keepOld: true });
    clock.advance(61_000);
    return one.sign(good(), { kid: undefined });
  },
  "RSA with the name of the key for EC": () => one.sign(good(), { alg: "RS256", kid: kidOf("EC") }),
  "EC with another curve": async () => withHeader(await one.sign(good(), { alg: "ES256" }), { alg: "ES384" }),
  "a signature that ends early": async () => (await one.sign(good())).slice(0, -10),
  "half of it": async () => {
    const token = await one.sign(good());
    return token.slice(0, token.length / 2);
  },
  "one more part": async () => `${await one.sign(good())}.x`,
  "a header that is no JSON": async () => ["e30x", ...(await one.sign(good())).split(".").slice(1)].join("."),
  "no letter of base64url": async () => `${await one.sign(good())}=`,
  encryption: async () => {
    const { publicKey } = await generateKeyPair("RSA-OAEP-256");
    const header = { alg: "RSA-OAEP-256", enc: "A256GCM" };
    return await new CompactEncrypt(Buffer.from(JSON.stringify(good()))).setProtectedHeader(header).encrypt(publicKey);
  },
};

const publicKey = (kty: string) => {
  const key = one.publicKeys.find((each) => each.kty === kty);
  if (key === undefined) throw new Error(`the issuer has no key of type ${kty}`);
  return key;
};
const kidOf = (kty: string) => String(publicKey(kty).kid);
const pem = () =>
  createPublicKey({ key: { ...publicKey("RSA") }, format: "jwk" })
    .export({ type: "spki", format: "pem" })
    .toString();
const partOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

function hmac(secret: string | Uint8Array, alg = "HS256"): Promise<string> {
  const key = typeof secret === "string" ? Buffer.from(secret) : secret;
  if (key.length === 0) return Promise.resolve(`${partOf({ alg, kid: kidOf("RSA") })}.${partOf(good())}.`);
  return new SignJWT(good()).setProtectedHeader({ alg, kid: kidOf("RSA") }).sign(key);
}

function withHeader(token: string, header: Record<string, unknown>): string {
  return [partOf(header), ...token.split(".").slice(1)].join(".");
}

type OwnHeader = { alg: string } & Record<string, unknown>;

async function ownKey(headerOf: (own: { jwk: object }) => OwnHeader): Promise<string> {
  const pair = await generateKeyPair("ES256", { extractable: true });
  const jwk = await crypto.subtle.exportKey("jwk", pair.publicKey);
  return await new SignJWT(good()).setProtectedHeader(headerOf({ jwk })).sign(pair.privateKey);
}

describe("a token is refused", () => {
  test.each(Object.entries(REFUSED))("with %s", async (_what, make) => {
    expect(await callerOf(make())).toBeUndefined();
    expect(await callerOf(one.sign(good()))).toBeDefined();
  });

  test.each(Object.entries(FORGED))("with %s", async (_what, make) => {
    expect(await callerOf(one.sign(good()))).toBeDefined();
    expect(await callerOf(make())).toBeUndefined();
  });

  test("with nothing asked of any address that it names", async () => {
    await callerOf(two.sign(good(two)));
    const before = two.asked.length;
    await callerOf(FORGED["the address of its key"]?.() ?? "");
    expect(two.asked.length).toBe(before);
  });

  test.each(["", "a", "a.b", "engine_at_abc", "a..b.c", "{}.{}.{}", "eyJ hbGciOi.x.y"])(
    "as %j, which has not the form of one",
    (text) => {
      expect(backend.recognizes(text)).toBe(false);
    },
  );
});

describe("an issuer that changes its keys", () => {
  test("is asked at once, once for each key, and tokens of the keys it had before are no longer good", async () => {
    const issuer = await startIssuer();
    const claims = { role: "engine_role", subject: "sub", databases: "engine_databases" };
    const own = oidcTokens({ issuers: [issuer.issuer], audience: "engine", claims, clock, log: silentLog });
    const former = await issuer.sign(good(issuer));
    expect(await callerOf(former, own)).toBeDefined();
    await issuer.rotate();
    const token = await issuer.sign(good(issuer));
    const callers = await Promise.all(Array.from({ length: 50 }, () => callerOf(token, own)));
    expect(callers.filter((caller) => caller === undefined)).toEqual([]);
    expect(issuer.asked.filter((path) => path === "/jwks")).toHaveLength(2);
    for (let i = 0; i < 10; i++) expect(await callerOf(former, own)).toBeUndefined();
    expect(issuer.asked.filter((path) => path === "/jwks")).toHaveLength(3);
    await issuer.stop();
  });
});
