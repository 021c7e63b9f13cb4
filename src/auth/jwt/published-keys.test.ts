import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ManualClock, systemClock } from "../../core/clock.ts";
import { discoveredKeys, keysUnder, type LoadKeys } from "./published-keys.ts";

type Answer = unknown;

const server = createServer((request, response) => {
  const answer = pages[request.url ?? ""];
  if (typeof answer === "function") (answer as (response: ServerResponse) => void)(response);
  else if (answer === undefined) response.writeHead(404).end();
  else response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
});
let pages: Record<string, Answer> = {};
let base: string;
let logged: Record<string, unknown>[] = [];
let key: JWK;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  key = await newKey("ES256");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  logged = [];
  pages = { "/.well-known/openid-configuration": configuration(), "/jwks": { keys: [key] } };
});

const log = pino({ base: null }, { write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>) });
const configuration = (changes = {}) => ({ issuer: base, jwks_uri: `${base}/jwks`, ...changes });

async function newKey(alg: string, options: { modulusLength?: number } = {}): Promise<JWK> {
  const { publicKey } = await generateKeyPair(alg, { extractable: true, ...options });
  return { ...(await exportJWK(publicKey)), kid: alg };
}

function discovered(issuer = base): LoadKeys {
  return discoveredKeys({ issuer, clock: systemClock, log });
}

describe("discovery", () => {
  test("finds the keys of an issuer", async () => {
    expect(await discovered()()).toEqual([key]);
  });

  test("is under the issuer's path, and a slash at its end makes another issuer", async () => {
    pages["/realms/x/.well-known/openid-configuration"] = configuration({ issuer: `${base}/realms/x/` });
    expect(await discovered(`${base}/realms/x/`)()).toEqual([key]);
    await expect(discovered(`${base}/realms/x`)()).rejects.toThrow("is of the issuer");
  });

  test("goes by where the keys are now", async () => {
    const load = discovered();
    await load();
    pages["/.well-known/openid-configuration"] = configuration({ jwks_uri: `${base}/moved` });
    pages["/moved"] = { keys: [{ ...key, kid: "moved" }] };
    expect(await load()).toMatchObject([{ kid: "moved" }]);
  });

  test.each<[string, Answer, string]>([
    [
      "of another issuer",
      { issuer: "https://other.example", jwks_uri: "https://other.example/jwks" },
      "is of the issuer",
    ],
    ["without keys", { issuer: "x" }, "is no configuration"],
    ["that is no object", [], "is no configuration"],
    ["that is no JSON", "<html>", "JSON"],
    ["that is missing", undefined, "the status is 404"],
    [
      "that leads elsewhere",
      (response: ServerResponse) => response.writeHead(302, { Location: `${base}/jwks` }).end(),
      "the status is 302",
    ],
    [
      "without an end",
      (response: ServerResponse) => {
        const write = () => void (response.destroyed || response.write("x".repeat(65_536), write));
        write();
      },
      "has more than 524288 bytes",
    ],
    ["that breaks off", (response: ServerResponse) => response.socket?.destroy(), "fetch failed: "],
  ])("refuses a document %s", async (_what, page, message) => {
    pages["/.well-known/openid-configuration"] = page;
    await expect(discovered()()).rejects.toThrow(message);
  });

  test.each(["http://keys.example/jwks", "file:///etc/passwd", "/jwks", ""])(
    "refuses keys that are at %j",
    async (jwks_uri) => {
      pages["/.well-known/openid-configuration"] = configuration({ jwks_uri });
      await expect(discovered()()).rejects.toThrow("not https");
    },
  );

  test("gives up on an issuer that does not answer in time", async () => {
    const clock = new ManualClock();
    const { promise, resolve } = Promise.withResolvers<ServerResponse>();
    pages["/.well-known/openid-configuration"] = resolve;
    const outcome = discoveredKeys({ issuer: base, clock, log })().catch(String);
    const response = await promise;
    clock.advance(5_000);
    expect(await outcome).toContain("no answer within 5000 ms");
    response.end();
  });
});

describe("published keys", () => {
  const load = () => keysUnder(new URL(`${base}/jwks`), { issuer: base, clock: systemClock, log })();

  test("are taken without what is not their public half, and no others than those for signatures", async () => {
    const [rsa, ed] = await Promise.all([newKey("RS256"), newKey("Ed25519")]);
    const forEncryption = { ...rsa, kid: "enc", use: "enc" };
    const forWrapping = { ...rsa, kid: "wrap", key_ops: ["wrapKey"] };
    const odd = { ...ed, use: "sig", key_ops: ["verify", "sign"], ext: "yes", x5u: "https://evil.example" };
    pages["/jwks"] = { keys: [rsa, forEncryption, forWrapping, odd, key] };
    expect(await load()).toEqual([rsa, ed, key]);
    expect(logged).toEqual([]);
  });

  test("that are unsafe are left out, and the log says which and why", async () => {
    const short = await newKey("RS256", { modulusLength: 2048 });
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    pages["/jwks"] = {
      keys: [
        { ...short, kid: "short", n: String(short.n).slice(0, 171) },
        { ...(await exportJWK(privateKey)), kid: "private" },
        { kty: "oct", k: "c2VjcmV0", kid: "secret" },
        { ...key, kid: "off", x: key.y, y: key.x },
        { ...key, kid: "good" },
      ],
    };
    expect(await load()).toMatchObject([{ kid: "good" }]);
    expect(logged).toMatchObject([
      { kid: "short", problem: "it has 1024 bits" },
      { kid: "private", problem: "its private half is published" },
      { kid: "secret", problem: "a secret is published" },
      { kid: "off" },
    ]);
    expect(JSON.stringify(logged)).not.toContain("c2VjcmV0");
  });

  test("may be none, which the log says", async () => {
    pages["/jwks"] = { keys: [] };
    expect(await load()).toEqual([]);
    expect(logged).toMatchObject([{ issuer: base, msg: "the issuer has no key that tokens can be checked with" }]);
  });

  test.each<[string, Answer]>([
    ["no object", []],
    ["no list", { keys: {} }],
    ["a list of other things", { keys: ["x"] }],
    ["too long a list", { keys: Array.from({ length: 101 }, () => ({ kty: "RSA" })) }],
  ])("are refused as %s", async (_what, page) => {
    pages["/jwks"] = page;
    await expect(load()).rejects.toThrow("is no set of at most 100 keys");
  });
});
