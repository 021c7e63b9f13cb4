import { spawn } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { certificateFolder, makeCertificate, trustCertificate } from "../../src/io/http/tls.test-kit.ts";
import type { TlsFiles } from "../../src/io/http/tls.ts";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine, type EngineOptions } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(env: Record<string, string>, options: Partial<EngineOptions> = {}): Promise<Engine> {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const engine = await startEngine({ home, env, ...options });
  closers.push(() => engine.stop());
  return engine;
}

const BIN = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

type Ended = { code: number | null; stdout: string; stderr: string };

/** Runs the program to its end. */
function run(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  const child = spawn(process.execPath, [BIN, ...args], { env: { ...cleanEnv(), ...env } });
  const ended: Ended = { code: null, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (ended.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (ended.stderr += text));
  return new Promise((resolve) => {
    child.once("close", (code) => resolve({ ...ended, code }));
  });
}

let folder: string;
let first: TlsFiles;
let second: TlsFiles;

beforeAll(async () => {
  folder = certificateFolder();
  first = await makeCertificate(folder, "first");
  second = await makeCertificate(folder, "second");
  trustCertificate(readFileSync(first.certPath, "utf8") + readFileSync(second.certPath, "utf8"));
});

const tlsEnv = ({ certPath, keyPath }: TlsFiles) => ({ ENGINE_TLS_CERT: certPath, ENGINE_TLS_KEY: keyPath });

function shownCertificate(url: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1" }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

const DRIVERS = uwsProblem === undefined ? (["uws", "node"] as const) : (["node"] as const);

describe.each(DRIVERS)("a server with a certificate, on %s", (driver) => {
  test("speaks HTTPS to clients, the command line among them, and follows its files", async () => {
    const files = { certPath: join(folder, `${driver}.crt`), keyPath: join(folder, `${driver}.key`) };
    const put = (from: TlsFiles) => {
      for (const which of ["keyPath", "certPath"] as const) {
        writeFileSync(`${files[which]}.new`, readFileSync(from[which]));
        renameSync(`${files[which]}.new`, files[which]);
      }
    };
    put(first);
    const engine = await start({ ENGINE_HTTP_DRIVER: driver, ...tlsEnv(files) });
    expect(engine.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(engine.log()).toContain(`"driver":"${driver}"`);
    expect((await ingest(engine.url, "t", '{"body":"sealed"}\n')).status).toBe(200);
    expect(await rowsOf(engine.url, "SELECT body FROM t")).toEqual([{ body: "sealed" }]);
    const own = await fetch(`${engine.url}/v1/catalog/schema`, { headers: { Origin: engine.url } });
    expect([own.status, own.headers.get("strict-transport-security")]).toEqual([200, "max-age=31536000"]);
    const plainOrigin = engine.url.replace("https", "http");
    expect((await fetch(`${engine.url}/v1/catalog/schema`, { headers: { Origin: plainOrigin } })).status).toBe(403);
    await expect(fetch(plainOrigin)).rejects.toThrow("fetch failed");

    const sql = ["sql", "--server", engine.url, "SELECT body FROM t"];
    const trusting = await run(sql, { NODE_EXTRA_CA_CERTS: files.certPath, ENGINE_HOME: engine.home });
    expect([trusting.code, trusting.stdout, trusting.stderr]).toEqual([0, expect.stringContaining("sealed"), ""]);
    const doubting = await run(sql, { ENGINE_HOME: engine.home });
    expect([doubting.code, doubting.stderr]).toEqual([1, expect.stringMatching(/certificate/)]);

    const expiry = async () => {
      const metrics = await (await fetch(`${engine.url}/metrics`)).text();
      return Number(/^engine_tls_certificate_expiry_timestamp_seconds (.*)$/m.exec(metrics)?.[1]) * 1_000;
    };
    expect(Math.abs((await expiry()) - Date.now() - 2 * 86_400_000)).toBeLessThan(600_000);
    expect(await shownCertificate(engine.url)).toBe("first");
    writeFileSync(files.keyPath, readFileSync(second.keyPath));
    await eventually(() => engine.log().includes("is not the key of"));
    expect(await shownCertificate(engine.url)).toBe("first");
    put(second);
    await eventually(async () => (await shownCertificate(engine.url)) === "second");
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
  });
});

describe("certificates that are of no use stop the start with code 2", () => {
  const startup = async (env: Record<string, string>): Promise<Ended> => {
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    return run(["serve", "--addr", "127.0.0.1:0"], { ENGINE_HOME: home, ...env });
  };

  test.each([
    ["no key", () => ({ ENGINE_TLS_CERT: first.certPath }), /ENGINE_TLS_CERT is set, and ENGINE_TLS_KEY is not/],
    ["no certificate", () => ({ ENGINE_TLS_KEY: first.keyPath }), /ENGINE_TLS_KEY is set, and ENGINE_TLS_CERT is not/],
    [
      "a missing file",
      () => tlsEnv({ ...first, keyPath: "/none" }),
      /cannot read the TLS key \/none: there is no such/,
    ],
    [
      "a key of another",
      () => tlsEnv({ ...first, keyPath: second.keyPath }),
      /second\.key is not the key of .*first\.crt/,
    ],
    ["a key for a certificate", () => tlsEnv({ ...first, certPath: first.keyPath }), /first\.key is not PEM/],
  ])("%s", async (_what, env, expected) => {
    const ended = await startup(env());
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringMatching(expected)]);
    expect(ended.stderr).not.toContain("PRIVATE KEY-----\n");
  });
});

describe("what every answer tells browsers", () => {
  const COMMON = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
  };

  test.each(DRIVERS)("on %s: pages, data, streams, refusals and what is malformed", async (driver) => {
    const engine = await start({ ENGINE_HTTP_DRIVER: driver });
    await ingest(engine.url, "t", '{"body":"x"}\n');
    const query = { method: "POST", body: "SELECT * FROM t" };
    const answers = await Promise.all([
      fetch(`${engine.url}/health`),
      fetch(`${engine.url}/metrics`),
      fetch(`${engine.url}/v1/openapi.json`),
      fetch(`${engine.url}/v1/query`, query),
      fetch(`${engine.url}/v1/query`, { ...query, body: "SELEC" }),
      fetch(`${engine.url}/v1/query`, { method: "OPTIONS" }),
      fetch(`${engine.url}/none`),
      fetch(`${engine.url}/health`, { method: "HEAD" }),
      fetch(`${engine.url}/health`, { headers: { "X-Large": "x".repeat(70_000) } }),
      fetch(`${engine.url}/docs`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 204, 404, 200, 431, 200]);
    for (const { headers } of answers) {
      expect(Object.fromEntries(headers)).toMatchObject(COMMON);
      // Over plain HTTP it would mean nothing.
      expect(headers.get("strict-transport-security")).toBeNull();
    }
  });

  test("the reference page works under a policy that lets in nothing but its own style and script", async () => {
    const engine = await start({});
    const response = await fetch(`${engine.url}/docs`);
    const policy = response.headers.get("content-security-policy") ?? "";
    const page = await response.text();
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; script-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    for (const kind of ["style", "script"]) {
      const own = [...page.matchAll(new RegExp(`<${kind}>([^]*?)</${kind}>`, "g"))].map(([, text = ""]) => text);
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(own[0]));
      expect(own).toHaveLength(1);
      expect(policy).toContain(`${kind}-src 'sha256-${Buffer.from(digest).toString("base64")}'`);
    }
    // What the policy would keep from working.
    expect(page).not.toMatch(/<script[^>]|<link|<img|\sstyle=|<[^>]*\son[a-z]+=/i);
  });
});

const RULE = "*".repeat(80);

const warnings = (engine: Engine) => engine.log().match(/"level":40[^\n]*/g) ?? [];

describe("a server that lets everybody in", () => {
  test("says so in one line where only this machine reaches it", async () => {
    const engine = await start({});
    await eventually(() => warnings(engine).length > 0);
    expect(warnings(engine)).toHaveLength(1);
    expect(warnings(engine)[0]).toMatch(
      /"authentication is off: whoever connects to 127\.0\.0\.1:\d+ on this machine may do everything"/,
    );
    expect(engine.log()).not.toContain(RULE);
  });

  test("says so in a way that nobody misses where others reach it, even when nothing is logged", async () => {
    const engine = await start({ ENGINE_LOCAL_PASSWORD: "battery staple" }, { host: "0.0.0.0" });
    await eventually(() => engine.log().split(RULE).length === 3);
    const { port } = new URL(engine.url);
    expect(engine.log().split(RULE)[1]).toBe(
      `\nWARNING: authentication is off, and other machines can reach 0.0.0.0:${port}.\n` +
        "Whoever reaches it may read, change and delete everything.\n" +
        "Set ENGINE_AUTH_TOKENS or ENGINE_AUTH_BACKEND, or listen on 127.0.0.1.\n",
    );
    expect(engine.log()).not.toContain("\u001b");
    expect(warnings(engine)[0]).toContain(`authentication is off, and other machines can reach 0.0.0.0:${port}.`);
  });

  test("has nothing to say where tokens are asked for", async () => {
    const token = "a-long-sesame-token";
    const engine = await start({ ENGINE_AUTH_TOKENS: `${token}:admin`, ENGINE_LOCAL_PASSWORD: "battery staple" });
    await fetch(`${engine.url}/health`);
    expect(warnings(engine)).toEqual([]);
  });
});

describe("a server that other machines reach", () => {
  test("does not start with a password that everybody knows, and says what to set", async () => {
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    const serve = (env: Record<string, string>, ...args: string[]) =>
      run(["serve", "--addr", "0.0.0.0:0", ...args], { ENGINE_HOME: home, ...env });
    for (const env of [{}, { ENGINE_AUTH_BACKEND: "session" }, { ENGINE_LOCAL_PASSWORD: "Admin" }]) {
      const ended = await serve({ ...env });
      expect([ended.code, ended.stderr]).toEqual([
        2,
        expect.stringMatching(
          /other machines can reach 0\.0\.0\.0:0, and the first user, admin, .* set ENGINE_LOCAL_PASSWORD/,
        ),
      ]);
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
    // Made where only this machine could use it, it is none for others either, until it is changed.
    const session = { ENGINE_AUTH_BACKEND: "session" };
    const here = await startEngine({ home, env: session });
    expect(here.log()).toContain("the first user was made");
    const signIn = await fetch(`${here.url}/v1/auth/login`, login("admin"));
    const { access_token: token } = (await signIn.json()) as { access_token: string };
    await here.stop();
    for (const env of [session, { ENGINE_AUTH_TOKENS: "a-long-sesame-token:read" }]) {
      const ended = await serve({ ...env, ENGINE_LOCAL_PASSWORD: "battery staple" });
      expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("`engine user passwd admin`")]);
    }
    const again = await startEngine({ home, env: session });
    const changed = await fetch(`${again.url}/v1/admin/users/admin/password`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: '{"password":"battery staple"}',
    });
    expect(changed.status).toBe(200);
    await again.stop();
    const open = await startEngine({ home, env: session, host: "0.0.0.0" });
    closers.push(() => open.stop());
    expect((await fetch(`${open.url}/v1/auth/login`, login("battery staple"))).status).toBe(200);
    expect(open.log().includes(RULE)).toBe(false);
  });

  test("starts with a password of one's own, and with tokens without one", async () => {
    const own = await start(
      { ENGINE_LOCAL_PASSWORD: "battery staple", ENGINE_AUTH_BACKEND: "session" },
      { host: "0.0.0.0" },
    );
    expect((await fetch(`${own.url}/v1/auth/login`, login("battery staple"))).status).toBe(200);
    const tokens = await start({ ENGINE_AUTH_TOKENS: "a-long-sesame-token:admin" }, { host: "0.0.0.0" });
    expect((await fetch(`${tokens.url}/v1/auth/login`, login("admin"))).status).toBe(401);
    expect(tokens.log()).toContain("the first user was not made");
  });

  const SHORT_TOKENS = [
    ["ENGINE_AUTH_TOKENS", "short-token-15c:read,a-long-sesame-token:admin"],
    ["ENGINE_SECURITY_API_KEYS", "ci:read:short-token-15d"],
    ["ENGINE_INTERNAL_BEARER", "short-token-15e"],
  ] as const;

  test.each(SHORT_TOKENS)("does not start with a short token in %s", async (name, value) => {
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    const env = { ENGINE_LOCAL_PASSWORD: "battery staple", [name]: value };
    for (const command of ["serve", "server"]) {
      const ended = await run([command, "--addr", "0.0.0.0:0"], { ENGINE_HOME: home, ...env });
      expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(`a token in ${name} is shorter than 16`)]);
      expect(ended.stdout + ended.stderr).not.toContain("short-token");
    }
  });

  test("warns of short tokens where only this machine reaches it", async () => {
    const here = await start({ ENGINE_LOCAL_PASSWORD: "battery staple", ...Object.fromEntries(SHORT_TOKENS) });
    await fetch(`${here.url}/health`);
    const warned = warnings(here).flatMap((line) => /a token in (.*) is shorter than 16/.exec(line)?.[1] ?? []);
    expect(warned.map((names) => names.split(" and ").toSorted())).toEqual([
      SHORT_TOKENS.map(([name]) => name).toSorted(),
    ]);
    expect(here.log()).not.toContain("short-token");
  });
});

function login(password: string): RequestInit {
  const body = JSON.stringify({ username: "admin", password });
  return { method: "POST", headers: { "Content-Type": "application/json" }, body };
}

describe("where a request comes from", () => {
  /** Wrong tokens: more than an address has at once, and than are forgiven while a test runs. */
  const MANY = 120;
  const wrong = { Authorization: "Bearer wrong" };
  const statusFor = async (engine: Engine, forwarded: string, token = "wrong") => {
    const headers = { Authorization: `Bearer ${token}`, "X-Forwarded-For": forwarded };
    return (await fetch(`${engine.url}/v1/catalog/schema`, { headers })).status;
  };

  test("is what a trusted proxy says: one client's wrong tokens are not another's", async () => {
    const engine = await start({ ENGINE_AUTH_TOKENS: "sesame:admin", ENGINE_TRUSTED_PROXIES: "127.0.0.0/8" });
    await Promise.all(Array.from({ length: MANY }, (_, i) => statusFor(engine, `9.9.9.${i}, 203.0.113.9`)));
    expect(await statusFor(engine, "203.0.113.9")).toBe(429);
    expect(await statusFor(engine, "203.0.113.9", "other")).toBe(401);
    expect(await statusFor(engine, "203.0.113.9", "sesame")).toBe(200);
    expect(await statusFor(engine, "203.0.113.9, 203.0.113.10")).toBe(401);
  });

  test("is the connection's other side where no proxy is trusted", async () => {
    const engine = await start({ ENGINE_AUTH_TOKENS: "sesame:admin" });
    await Promise.all(Array.from({ length: MANY }, (_, i) => statusFor(engine, `203.0.113.${i}`)));
    expect(await statusFor(engine, "198.51.100.1")).toBe(429);
    expect(await statusFor(engine, "198.51.100.1", "sesame")).toBe(200);
    expect((await fetch(`${engine.url}/health`, { headers: wrong })).status).toBe(200);
  });

  test("has ten wrong passwords at once, however many come together, and its tokens go on", async () => {
    const env = { ENGINE_AUTH_BACKEND: "session", ENGINE_SECURITY_API_KEYS: "ci:admin:a-long-sesame-token" };
    const engine = await start({ ...env, ENGINE_LOCAL_PASSWORD: "battery staple" });
    const startedMs = Date.now();
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => fetch(`${engine.url}/v1/auth/login`, login(`guess ${i}`))),
    );
    // One more is granted every 6 seconds.
    const most = 10 + Math.ceil((Date.now() - startedMs) / 6_000);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(10);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(most);
    expect(statuses.every((status) => status === 401 || status === 429)).toBe(true);
    expect(answers.find(({ status }) => status === 429)?.headers.get("retry-after")).toMatch(/^[1-6]$/);
    const headers = { Authorization: "Bearer a-long-sesame-token" };
    const refused = `${engine.url}/v1/admin/audit?action=auth.login&limit=200`;
    const { entries } = (await (await fetch(refused, { headers })).json()) as { entries: unknown[] };
    expect(entries.length).toBeLessThanOrEqual(most);
  });

  test("is what the audit log says", async () => {
    const env = { ENGINE_AUTH_BACKEND: "session", ENGINE_ADMIN_USER: "root", ENGINE_ADMIN_PASSWORD: "correct horse" };
    const engine = await start({ ...env, ENGINE_TRUSTED_PROXIES: "127.0.0.1" });
    const signIn = await fetch(`${engine.url}/v1/auth/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Forwarded-For": "127.0.0.1, 203.0.113.77" },
      body: '{"username":"root","password":"correct horse"}',
    });
    const { access_token: token } = (await signIn.json()) as { access_token: string };
    const audit = await fetch(`${engine.url}/v1/admin/audit`, { headers: { Authorization: `Bearer ${token}` } });
    expect(await audit.text()).toContain('"address":"203.0.113.77"');
  });
});
