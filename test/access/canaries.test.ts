import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * Secrets are planted wherever the server takes one, every route is driven with them, rightly and wrongly. Then all that
 * the server said, logged, counted, stored and left behind is searched for each, as it is and in base64.
 */
const secrets = new Map<string, string>();

/** A new secret, known to the search by that name. */
function plant(name: string): string {
  const secret = `canary${randomBytes(12).toString("hex")}`;
  return keep(name, secret);
}

function keep(name: string, secret: string): string {
  secrets.set(`${name} (${secrets.size})`, secret);
  return secret;
}

/** What each secret may look like: itself, and in base64 at each place that it can have in a longer text. */
function spellingsOf(secret: string): string[] {
  const inner = [0, 1, 2].map((shift) => {
    const text = Buffer.from(" ".repeat(shift) + secret).toString("base64");
    return text.slice(4, -4);
  });
  return [secret, ...inner];
}

const SECRET_KEY = keep("secret key", randomBytes(32).toString("base64"));
const [PASSWORD, STATIC] = [plant("admin password"), plant("static token")];
const ENV = {
  ENGINE_AUTH_TOKENS: `${STATIC}:admin`,
  ENGINE_SECURITY_API_KEYS: `ci:read:${plant("API key")},${plant("API key without a name")}`,
  ENGINE_ADMIN_USER: "root",
  ENGINE_ADMIN_PASSWORD: PASSWORD,
  ENGINE_SECRET_KEY: SECRET_KEY,
  ENGINE_OAUTH_GOOGLE_CLIENT_ID: "an-app",
  ENGINE_OAUTH_GOOGLE_CLIENT_SECRET: plant("client secret of the operator"),
  ENGINE_OAUTH_PROVIDERS: JSON.stringify({
    github: { client_id: "an-app", client_secret: plant("client secret of a provider's table") },
  }),
  // Of a client on the same machine: the server neither needs it nor passes it on.
  ENGINE_WORKER_TOKEN: plant("worker token of a daemon"),
  ENGINE_SANDBOX_UPSTREAM_PROXY: `http://ann:${plant("password of the proxy of sandboxes")}@127.0.0.1:9`,
  // Who shows too many wrong tokens from one address must wait.
  ENGINE_TRUSTED_PROXIES: "127.0.0.1",
  ENGINE_LOG_LEVEL: "debug",
};

let engine: Engine;
let home: string;
let removeHome: () => Promise<void>;
const said: { where: string; text: string }[] = [];
beforeAll(async () => {
  ({ home, remove: removeHome } = await temporaryHome());
  const reports = `--report-on-signal --report-on-fatalerror --report-directory=${home}`;
  engine = await startEngine({ home, env: { ...ENV, NODE_OPTIONS: reports } });
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

type Call = { token?: string; body?: unknown; headers?: Record<string, string> };

/** Sends a request; all of the answer but what it is meant to hand out is searched later. */
async function call(method: string, path: string, { token = STATIC, body, headers = {} }: Call = {}) {
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await fetch(engine.url + path, {
    method,
    redirect: "manual",
    headers: { Authorization: `Bearer ${token}`, ...type, ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const isEndless = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isEndless) await response.body?.cancel();
  const text = isEndless ? "" : await response.text();
  const json = text.startsWith("{") && !text.includes("\n{") ? (JSON.parse(text) as Record<string, unknown>) : {};
  let rest = text;
  for (const field of ["access_token", "refresh_token", "token"]) {
    const handedOut = json[field];
    if (response.status !== 200 || typeof handedOut !== "string") continue;
    keep(`${field} of ${method} ${path}`, handedOut);
    rest = rest.replaceAll(handedOut, "");
  }
  said.push({ where: `${method} ${path}: ${response.status}`, text: JSON.stringify([...response.headers]) + rest });
  return { status: response.status, json };
}

function values() {
  const pem = `-----BEGIN PRIVATE KEY-----\n${plant("private key")}\n-----END PRIVATE KEY-----\n`;
  return [
    { kind: "pat", token: plant("pat"), username: "ann" },
    { kind: "basic", username: "ann", password: plant("basic") },
    {
      kind: "oauth2",
      access_token: plant("access token"),
      refresh_token: plant("refresh token"),
      client_secret: plant("client secret"),
    },
    { kind: "url", url: `https://ann:${plant("url user")}@db.example/${plant("url path")}?t=${plant("url query")}` },
    {
      kind: "aws_creds",
      access_key_id: "AKIA",
      secret_access_key: plant("aws key"),
      session_token: plant("aws session"),
    },
    { kind: "api_key", key: plant("api key") },
    { kind: "github_app", app_id: "1", installation_id: "2", private_key: pem },
  ];
}

async function useRightly(): Promise<void> {
  const { json } = await call("POST", "/v1/auth/login", { body: { username: "root", password: PASSWORD } });
  const session = String(json["access_token"]);
  await call("POST", "/v1/auth/refresh", { body: { refresh_token: json["refresh_token"] } });
  const made = await call("POST", "/v1/auth/tokens", { token: session, body: { name: "ci", role: "admin" } });
  const body = { username: "ann", password: plant("password of a user"), role: "write" };
  expect((await call("POST", "/v1/admin/users", { token: String(made.json["token"]), body })).status).toBe(200);
  await call("POST", "/v1/admin/users/ann/password", { body: { password: plant("new password") } });
  for (const value of values()) {
    const stored = await call("POST", "/v1/credentials", { body: { label: value.kind, value } });
    expect([value.kind, stored.status]).toEqual([value.kind, 200]);
    await call("GET", `/v1/credentials/${String(stored.json["id"])}`);
  }
  await workRightly();
  const app = { client_id: "own", client_secret: plant("client secret of a tenant") };
  const flow = await call("POST", "/v1/oauth/google/start", { body: { data_source_type: "drive", ...app } });
  expect(flow.status).toBe(200);
  const state = encodeURIComponent(String(flow.json["state"]));
  // The page asks whoever came without the mark of the browser, and brings the code back: this answer is not searched.
  await fetch(`${engine.url}/v1/oauth/google/callback?code=${plant("code")}&state=${state}`);
  expect((await call("GET", "/api/v1/oauth/github/authorize")).status).toBe(302);
  await call("GET", "/api/v1/oauth/github/callback?code=a&state=b");
  await call("POST", "/v1/ingest", { headers: { "X-Table": "t" }, body: '{"body":"x"}' });
  await call("POST", "/v1/query", { headers: { "Content-Type": "application/sql" }, body: "SELECT * FROM t" });
}

let workerToken = "";

/** A worker that runs a job with a credential, and shows its token where it does not belong. */
async function workRightly(): Promise<void> {
  const body = { label: "of a job", value: { kind: "pat", token: plant("credential of a job") } };
  const credentialId = String((await call("POST", "/v1/credentials", { body })).json["id"]);
  workerToken = String((await call("POST", "/v1/workers", { body: { name: "w" } })).json["token"]);
  const asWorker = (method: string, path: string, more: Call = {}) =>
    call(method, path, { token: workerToken, ...more });
  await call("POST", "/v1/jobs", { body: { kind: "x.task", credentials: [credentialId] } });
  const { json } = await asWorker("POST", "/v1/jobs/claim", { body: { kinds: ["x.task"] } });
  const [job] = json["jobs"] as { id: string; fence: number }[];
  const headers = { "X-Job-Fence": String(job?.fence) };
  const path = `/v1/jobs/${job?.id}`;
  expect((await asWorker("GET", `${path}/credentials/${credentialId}`, { headers })).status).toBe(200);
  expect((await asWorker("POST", `${path}/complete`, { headers, body: "null" })).status).toBe(204);
  expect((await asWorker("POST", `${path}/complete`, { headers: { "X-Job-Fence": "9" } })).status).toBe(409);
  expect((await asWorker("GET", "/v1/workers")).status).toBe(401);
  expect((await call("GET", "/v1/workers")).status).toBe(200);
}

/** Every route, with secrets where they do not belong. */
async function useWrongly(): Promise<void> {
  const document = (await call("GET", "/v1/openapi.json")).json;
  const paths = document["paths"] as Record<string, Record<string, unknown>>;
  for (const [i, [template, operations]] of Object.entries(paths).entries()) {
    const from = { "X-Forwarded-For": `192.0.2.${i + 1}` };
    for (const method of Object.keys(operations)) {
      const path = template.replace(/\{[^}]*\}/g, "google");
      const hasBody = method !== "get" && method !== "delete";
      const cookies = { ...from, Cookie: `session=${plant("cookie")}` };
      const query = `?access_token=${plant("query parameter")}`;
      const broken = hasBody ? { body: `{"password":"${plant("broken body")}",` } : {};
      await call(method.toUpperCase(), path + query, { headers: cookies, ...broken });
      const secret = plant("misplaced value");
      const misplaced = { username: [secret], password: { secret }, value: { kind: secret } };
      const wrong = hasBody ? { headers: from, body: misplaced } : { headers: from };
      await call(method.toUpperCase(), path, wrong);
      await call(method.toUpperCase(), path, { token: plant("wrong token"), headers: from });
      await call(method.toUpperCase(), path, { token: workerToken, ...wrong });
      const basic = `Basic ${Buffer.from(`root:${plant("basic password")}`).toString("base64")}`;
      await call(method.toUpperCase(), path, { headers: { ...from, Authorization: basic } });
    }
  }
  const attempt = { username: plant("name that is a password"), password: plant("wrong password") };
  await call("POST", "/v1/auth/login", { body: { ...attempt, username: "root" } });
  await call("POST", "/v1/auth/refresh", { body: { refresh_token: plant("wrong refresh token") } });
}

/** Takes tables away beside the server, so that what writes a secret there fails unexpectedly. */
async function breakOften(): Promise<void> {
  const database = new DatabaseSync(join(home, "catalog.db"), { timeout: 10_000 });
  const statuses: number[] = [];
  for (const table of ["credentials", "users", "api_tokens", "refresh_tokens", "workers"]) {
    database.exec(`ALTER TABLE ${table} RENAME TO away`);
    for (const value of values()) {
      statuses.push((await call("POST", "/v1/credentials", { body: { label: "x", value } })).status);
    }
    const login = { username: "root", password: plant("password at a failure") };
    statuses.push((await call("POST", "/v1/auth/login", { body: login })).status);
    const refresh = { refresh_token: plant("refresh token at a failure") };
    statuses.push((await call("POST", "/v1/auth/refresh", { body: refresh })).status);
    statuses.push((await call("POST", "/v1/workers/heartbeat", { token: workerToken })).status);
    statuses.push((await call("POST", "/v1/workers", { body: { name: "at a failure" } })).status);
    database.exec(`ALTER TABLE away RENAME TO ${table}`);
  }
  database.close();
  expect(statuses.filter((status) => status >= 500).length).toBeGreaterThan(8);
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function parentOf(name: string): number | undefined {
  if (!/^[0-9]+$/.test(name)) return undefined;
  try {
    return Number(/^PPid:\t([0-9]+)$/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]);
  } catch {
    // It ended in this moment.
    return undefined;
  }
}

/** Names of the secrets that are in a text. */
function secretsIn(text: string): string[] {
  return [...secrets]
    .filter(([, secret]) => spellingsOf(secret).some((one) => text.includes(one)))
    .map(([name]) => name);
}

describe("what the server says and keeps", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    await useRightly();
    await useWrongly();
    await breakOften();
    signalProcess(engine.pid, "SIGUSR2");
    await vi.waitFor(() => expect(reportsOf()).toHaveLength(1), 60_000);
  }, 120_000);

  const reportsOf = () => filesUnder(home).filter((file) => /report\..*\.json$/.test(file));

  test("answers hold no secret but those that they hand out", () => {
    expect(said.length).toBeGreaterThan(100);
    const found = said
      .map(({ where, text }) => [where, secretsIn(text)] as const)
      .filter(([, names]) => names.length > 0);
    expect(found).toEqual([]);
  });

  test("neither does the log, at the level of debugging", () => {
    expect(engine.log()).toContain('"msg":"answered"');
    expect(engine.log()).toContain("request failed");
    expect(secretsIn(engine.log())).toEqual([]);
  });

  test("nor the metrics", async () => {
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    expect(text).toContain("engine_http");
    expect(secretsIn(text)).toEqual([]);
  });

  test("nor any file, the catalog's log among them", () => {
    const files = filesUnder(home).filter((file) => !reportsOf().includes(file));
    expect(files.map((file) => file.slice(home.length + 1))).toEqual(
      expect.arrayContaining(["catalog.db", "catalog.db-wal"]),
    );
    const found = files.map((file) => [file, secretsIn(readFileSync(file, "latin1"))] as const);
    expect(found.filter(([, names]) => names.length > 0)).toEqual([]);
    const key = Buffer.from(SECRET_KEY, "base64").toString("latin1");
    expect(files.filter((file) => readFileSync(file, "latin1").includes(key))).toEqual([]);
  });

  test("nor the report that Node writes when it crashes or is asked to", () => {
    const reports = reportsOf().map((file) => readFileSync(file, "utf8"));
    expect(reports.join("")).toContain('"javascriptHeap"');
    expect(reports.flatMap(secretsIn)).toEqual([]);
  });

  test.runIf(process.platform === "linux")("nor the environment of the processes that it starts", () => {
    const children = readdirSync("/proc").filter((name) => parentOf(name) === engine.pid);
    expect(children).not.toEqual([]);
    const environments = children.map((pid) => readFileSync(`/proc/${pid}/environ`, "latin1"));
    expect(environments.flatMap(secretsIn)).toEqual([]);
  });

  test("the search finds what is there", () => {
    const text = `x${Buffer.from(`{"a":"${PASSWORD}"}`).toString("base64")}`;
    expect(secretsIn(text)).toEqual([expect.stringContaining("admin password")]);
    expect(secretsIn(`..${STATIC}..`)).toEqual([expect.stringContaining("static token")]);
  });
});
