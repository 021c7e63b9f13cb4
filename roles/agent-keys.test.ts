import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ADMIN } from "../src/auth/access.test-kit.ts";
import { AuditLog } from "../src/auth/audit.ts";
import { createAuthenticator } from "../src/auth/authenticator.ts";
import type { Caller } from "../src/auth/caller.ts";
import { FailureLimit } from "../src/auth/failure-limit.ts";
import { keyringOf } from "../src/auth/sealing/keyring.ts";
import { openMemoryCatalog } from "../src/catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../src/core/clock.ts";
import { uuidV7Source } from "../src/core/ids.ts";
import { createLog } from "../src/core/log.ts";
import { createMetrics } from "../src/core/metrics.ts";
import { systemRandom } from "../src/core/random.ts";
import { Credentials } from "../src/credentials/credentials.ts";
import type { CredentialValue } from "../src/credentials/kinds.ts";
import { AgentEngines, type EngineSettings } from "../src/knowledge/agent/engines/engines.ts";
import { AGENT_METRICS } from "../src/knowledge/agent/metrics.ts";
import {
  startScriptedProvider,
  type ScriptedProvider,
} from "../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { ENGINE_ROUTES } from "../src/knowledge/agent/routes/engines.ts";
import { serveApp } from "../src/server/app.test-kit.ts";
import { routesOf } from "../src/server/route.ts";
import { agentKeys } from "./agent-keys.ts";

/** The engines of the agent over HTTP, with credentials as they are stored and a provider that follows a script. */

const OPERATOR_KEY = "sk-operator-PLANTED-0123456789";
const SHARED_KEY = "sk-shared-PLANTED-0123456789";
const PRIVATE_KEY = "sk-private-PLANTED-0123456789";

const { catalog } = openMemoryCatalog(systemClock);
const { records } = catalog;
const newId = uuidV7Source(systemClock, systemRandom);
const audit = new AuditLog(records, newId);
const keyring = keyringOf(randomBytes(32).toString("base64"), []);
const credentials = new Credentials({ records, newId, random: systemRandom, audit, keyring });
const metrics = createMetrics();
/** Everything that the server said. */
const said: string[] = [];
const log = createLog("trace", { write: (line) => void said.push(line) });

let provider: ScriptedProvider;
let elsewhere: ScriptedProvider;
let settings: EngineSettings;
let engines: AgentEngines;
let server: Awaited<ReturnType<typeof serveApp>>;

const CALLERS: Readonly<Record<string, Caller>> = {
  ann: { ...ADMIN, subject: "ann", role: "read" },
  bob: { ...ADMIN, subject: "bob", role: "write" },
  scoped: { ...ADMIN, subject: "scoped", role: "write", databases: ["logs"] },
  root: ADMIN,
};

beforeAll(async () => {
  provider = await startScriptedProvider([], { models: ["a-model", "b-model", "text-embedding-9"] });
  elsewhere = await startScriptedProvider(() => ({ text: ["OK"] }), { tags: ["duck:7b"] });
  settings = {
    agentEngineRole: "read",
    anthropicBaseUrl: provider.url,
    anthropicApiKey: OPERATOR_KEY,
    openaiBaseUrl: provider.url,
    openaiApiKey: undefined,
    localModelHost: provider.url,
    localModelHosts: [elsewhere.url],
  };
  server = await serve(settings);
});

async function serve(own: EngineSettings) {
  const made = new AgentEngines({
    records,
    audit,
    keys: agentKeys(credentials),
    settings: own,
    clock: systemClock,
    log,
    metrics: AGENT_METRICS.of(metrics),
  });
  engines = made;
  const backends = [{ recognizes: () => true, authenticate: (token: string) => Promise.resolve(CALLERS[token]) }];
  const failures = new FailureLimit({ clock: systemClock });
  const authenticator = createAuthenticator({ isOn: true, backends, failures });
  const routes = routesOf(ENGINE_ROUTES, { here: { engines: made } });
  return await serveApp({ clock: systemClock, newId, log, metrics, authenticator, routes });
}

afterAll(async () => {
  await Promise.all([server.close(), provider.close(), elsewhere.close()]);
  await catalog.close();
});

beforeEach(async () => {
  await records.write({ sql: "DELETE FROM agent_settings RETURNING key" });
});

async function call(method: string, path: string, { as = "ann", json }: { as?: string; json?: unknown } = {}) {
  const headers = { Authorization: `Bearer ${as}`, "Content-Type": "application/json" };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  const response = await fetch(`${server.url}/v1/agent/${path}`, { method, headers, ...body });
  const text = await response.text();
  said.push(text, JSON.stringify([...response.headers]));
  const answer = JSON.parse(text) as Record<string, unknown> & { error?: { code: string; message: string } };
  return { status: response.status, json: answer, message: answer.error?.message ?? "" };
}

const save = (json: unknown, as = "ann") => call("PUT", "engine", { as, json });
const probe = (json: unknown, as = "ann") => call("POST", "engine/test", { as, json });

async function stored(value: CredentialValue, as = "bob", shared = true): Promise<string> {
  const caller = CALLERS[as] ?? ADMIN;
  const origin = { caller, address: "", requestId: "" };
  return (await credentials.create({ label: "a key", value, shared }, origin)).id;
}

const sharedKey = () => stored({ kind: "api_key", key: SHARED_KEY });
const candidate = { kind: "anthropic", model: "a-model" };

test("echoes what is saved, shows it, and writes down who chose it", async () => {
  expect(await call("GET", "engine")).toMatchObject({ status: 404, json: { error: { code: "not_found" } } });
  const credential_id = await sharedKey();
  const whole = {
    kind: "openai",
    model: "b-model",
    credential_id,
    host: null,
    extras: { max_output_tokens: 2_000, temperature: 1.5, reasoning_effort: "low" },
  };
  for (const [body, echo] of [
    [candidate, { ...candidate, credential_id: null, host: null, extras: {} }],
    [whole, whole],
    [
      { kind: "localmodel", model: "duck:7b", host: `${elsewhere.url}/` },
      { kind: "localmodel", model: "duck:7b", credential_id: null, host: elsewhere.url, extras: {} },
    ],
  ]) {
    expect(await save(body)).toMatchObject({ status: 200, json: echo });
    expect((await call("GET", "engine")).json).toEqual(echo);
  }
  const [last] = await audit.list({ limit: 1, action: "agent.engine" });
  expect(last).toMatchObject({ actor: "ann", target: "localmodel", outcome: "ok", details: { model: "duck:7b" } });
  expect(provider.requests).toEqual([]);
});

test.each([
  ["kind", { model: "m" }],
  ["kind", { kind: "duck", model: "m" }],
  ["model", { kind: "openai" }],
  ["model", { kind: "openai", model: "" }],
  ["model", { kind: "openai", model: " m" }],
  ["model", { kind: "openai", model: "a\u0000b" }],
  ["model", { kind: "openai", model: "m".repeat(201) }],
  ["model", { kind: "openai", model: 7 }],
  ["credential_id", { ...candidate, credential_id: "not-a-uuid" }],
  ["credential_id", { ...candidate, credential_id: "01890000-0000-7000-8000-000000000000" }],
  ["host", { ...candidate, host: "http://localhost:11434" }],
  ["host", { kind: "localmodel", model: "m", host: "http://169.254.169.254" }],
  ["host", { kind: "localmodel", model: "m", host: "file:///etc/passwd" }],
  ["host", { kind: "localmodel", model: "m", host: "HTTP://USER:PASS@localhost" }],
  ["extras.max_output_tokens", { ...candidate, extras: { max_output_tokens: 0 } }],
  ["extras.temperature", { ...candidate, extras: { temperature: 1.5 } }],
  ["extras.temperature", { ...candidate, extras: { temperature: 1, thinking_budget_tokens: 2_000 } }],
  ["extras.thinking_budget_tokens", { kind: "openai", model: "m", extras: { thinking_budget_tokens: 2_000 } }],
  ["extras.reasoning_effort", { ...candidate, extras: { reasoning_effort: "low" } }],
  ["extras", { ...candidate, extras: { baseURL: "http://evil.test" } }],
  ["the body", { ...candidate, api_key: "k" }],
  ["the body", []],
])("names the field that is not accepted: %s of %j", async (field, body) => {
  for (const answer of [await save(body), await probe(body)]) {
    expect(answer).toMatchObject({ status: 400, json: { error: { code: "bad_request_body" } } });
    expect(answer.message.startsWith(`${field}: `)).toBe(true);
  }
  expect((await call("GET", "engine")).status).toBe(404);
});

test("takes credentials that everybody may use, and no others", async () => {
  const key = { kind: "api_key", key: PRIVATE_KEY } as const;
  const cases: [string, string, string][] = [
    [await stored(key, "bob", false), "ann", "there is no such credential"],
    [await stored(key, "bob", false), "bob", "its owner must share it first"],
    [await stored(key, "bob", false), "root", "its owner must share it first"],
    [await stored(key, "scoped"), "root", "limited to databases"],
    [await stored({ kind: "pat", token: PRIVATE_KEY }), "ann", "of the kind `api_key`"],
    [await sharedKey(), "scoped", "there is no such credential"],
  ];
  for (const [credential_id, as, reason] of cases) {
    for (const answer of [
      await save({ ...candidate, credential_id }, as),
      await probe({ ...candidate, credential_id }, as),
    ]) {
      expect(answer).toMatchObject({ status: 400, json: { error: { code: "bad_request_body" } } });
      expect(answer.message).toMatch(/^credential_id: /);
      expect(answer.message).toContain(reason);
    }
  }
  const credential_id = await sharedKey();
  const local = { kind: "localmodel", model: "m", credential_id };
  expect((await save(local)).message).toBe("credential_id: `localmodel` is sent no key");
  expect(provider.requests).toEqual([]);
});

test("asks for the role that the operator asks for", async () => {
  await server.close();
  server = await serve({ ...settings, agentEngineRole: "write" });
  try {
    for (const answer of [await save(candidate), await probe(candidate)]) {
      expect(answer).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
    }
    expect((await save(candidate, "bob")).status).toBe(200);
    expect((await call("GET", "engine")).status).toBe(200);
    expect((await call("GET", "engines")).status).toBe(200);
  } finally {
    await server.close();
    server = await serve(settings);
  }
});

test("a test has the candidate say something, with the key it names, and saves nothing", async () => {
  provider.play(() => ({ text: ["OK"] }));
  const credential_id = await sharedKey();
  const before = provider.requests.length;
  expect(await probe(candidate)).toMatchObject({
    status: 200,
    json: { ok: true, kind: "anthropic", model: "a-model" },
  });
  expect(await probe({ kind: "openai", model: "b-model", credential_id })).toMatchObject({ status: 200 });
  expect(await probe({ kind: "localmodel", model: "c" })).toMatchObject({ status: 200 });
  expect(await probe({ kind: "localmodel", model: "d", host: elsewhere.url })).toMatchObject({ status: 200 });
  const [anthropic, openai, local] = provider.requests.slice(before);
  expect(anthropic).toMatchObject({ headers: { "x-api-key": OPERATOR_KEY }, body: { max_tokens: 1 } });
  expect(openai).toMatchObject({
    headers: { authorization: `Bearer ${SHARED_KEY}` },
    body: { max_output_tokens: 16, store: false },
  });
  expect(local?.headers).not.toHaveProperty("authorization");
  expect(elsewhere.requests.at(-1)?.body).toMatchObject({ model: "d" });
  const uses = await audit.list({ limit: 2, action: "credential.use" });
  expect(uses.map(({ actor, target, details }) => [actor, target, details])).toEqual([
    ["ann", credential_id, { engine: "openai", purpose: "test" }],
    ["ann", "ANTHROPIC_API_KEY", { engine: "anthropic", purpose: "test" }],
  ]);
  expect((await call("GET", "engine")).status).toBe(404);
});

test("a test that fails says why, in the provider's words", async () => {
  provider.play([
    { status: 401, errorBody: { type: "error", error: { type: "x", message: `invalid key ${OPERATOR_KEY}` } } },
    { status: 429, headers: { "Retry-After": "5" } },
    { status: 504 },
    { rawBody: "<html>no</html>" },
  ]);
  const outcome = async (json: unknown) => {
    const { status, json: answer } = await probe(json);
    return [status, answer.error?.code, answer.error?.message];
  };
  expect(await outcome(candidate)).toEqual([502, "engine_failed", "the provider answered 401: invalid key ••••"]);
  expect(await outcome(candidate)).toEqual([502, "engine_failed", "the provider answered 429: scripted status 429"]);
  expect(await outcome(candidate)).toEqual([504, "engine_timeout", "the provider answered 504: scripted status 504"]);
  expect(await outcome(candidate)).toEqual([502, "engine_failed", "the provider sent something that cannot be read"]);
  const [status, code, message] = await outcome({ kind: "openai", model: "m" });
  expect([status, code]).toEqual([502, "engine_failed"]);
  expect(message).toContain("set OPENAI_API_KEY");
  const odd = await stored({ kind: "api_key", key: "sk-PLANTED\u0000\n-0123456789" });
  expect((await outcome({ ...candidate, credential_id: odd }))[2]).toContain("characters that no key has");
});

test("a client that leaves ends its test at the provider", async () => {
  provider.play(() => ({ hang: true }));
  const before = provider.requests.length;
  const abort = new AbortController();
  const asked = fetch(`${server.url}/v1/agent/engine/test`, {
    method: "POST",
    headers: { Authorization: "Bearer ann", "Content-Type": "application/json" },
    body: JSON.stringify(candidate),
    signal: abort.signal,
  });
  await provider.reached(before + 1);
  const leftAtMs = systemClock.monotonicMs();
  abort.abort();
  await expect(asked).rejects.toThrow("aborted");
  const seenAtMs = await provider.requests[before]?.clientLeft;
  expect((seenAtMs ?? Number.POSITIVE_INFINITY) - leftAtMs).toBeLessThan(1_000);
});

test("opens what is chosen, and says what to do where it cannot", async () => {
  const origin = { caller: ADMIN, address: "", requestId: "r" };
  await expect(engines.open(origin)).rejects.toMatchObject({ code: "not_configured" });
  const credential_id = await sharedKey();
  await save({ ...candidate, credential_id });
  expect(await engines.open(origin)).toMatchObject({ kind: "anthropic", modelName: "a-model", maxOutputTokens: 8_192 });
  const [use] = await audit.list({ limit: 1, action: "credential.use" });
  expect(use).toMatchObject({
    target: credential_id,
    requestId: "r",
    details: { engine: "anthropic", purpose: "run" },
  });

  const bob = { ...origin, caller: CALLERS["bob"] ?? ADMIN };
  await credentials.share(credential_id, false, bob);
  await expect(engines.open(origin)).rejects.toThrow("not shared with everybody any more");
  await credentials.remove(credential_id, bob);
  await expect(engines.open(origin)).rejects.toThrow("is gone");
  await save({ kind: "openai", model: "m" });
  await expect(engines.open(origin)).rejects.toThrow("set OPENAI_API_KEY");
  await save({ kind: "localmodel", model: "m", host: elsewhere.url });
  await engines.open(origin);
  await server.close();
  server = await serve({ ...settings, localModelHosts: undefined });
  await expect(engines.open(origin)).rejects.toThrow("does not list the host");
  await server.close();
  server = await serve(settings);
});

test("has menus, the providers' own where they can be had", async () => {
  const { json } = await call("GET", "engines");
  const choices = json["engines"] as { kind: string; models: string[] }[];
  expect(choices).toMatchObject([
    {
      kind: "anthropic",
      source: "provider",
      models: ["a-model", "b-model", "text-embedding-9"],
      has_operator_key: true,
    },
    { kind: "openai", source: "built_in", has_operator_key: false },
    { kind: "localmodel", source: "provider", hosts: [provider.url, elsewhere.url] },
    { kind: "cli", source: "built_in", models: ["default"], has_operator_key: false, hosts: [] },
  ]);
  expect(choices[1]?.models.length).toBeGreaterThan(3);
  expect(json["active"]).toBeNull();

  const credential_id = await sharedKey();
  const openai = { kind: "openai", model: "b-model", credential_id, host: null, extras: {} };
  await save(openai);
  const after = (await call("GET", "engines")).json;
  expect(after["active"]).toEqual(openai);
  expect((after["engines"] as unknown[])[1]).toMatchObject({ source: "provider", models: ["a-model", "b-model"] });
  await save({ kind: "localmodel", model: "m", host: elsewhere.url });
  const local = (await call("GET", "engines")).json;
  expect((local["engines"] as unknown[])[2]).toMatchObject({ source: "provider", models: ["duck:7b"] });
});

test("a program is no engine until the operator names it", async () => {
  const cli = { kind: "cli", model: "default" };
  for (const { status, message } of [await save(cli), await call("POST", "engine/test", { json: cli })]) {
    expect([status, message]).toEqual([
      400,
      "kind: the engine `cli` needs ENGINE_AGENT_COMMAND, which the operator of the server sets",
    ]);
  }
  // It was named when the engine was chosen, and is not any more.
  const sql =
    "INSERT INTO agent_settings (key, value, updated_by, updated_at_ms) VALUES ('engine', ?, 'ann', 0) RETURNING key";
  await records.write({ sql, values: [JSON.stringify({ ...cli, credential_id: null, host: null, extras: {} })] });
  const opened = engines.open({ caller: CALLERS["ann"] ?? ADMIN, address: "", requestId: "" });
  await expect(opened).rejects.toMatchObject({
    code: "not_configured",
    message: expect.stringContaining("ENGINE_AGENT_COMMAND"),
  });
});

test("an engine of another version is as good as none", async () => {
  const sql =
    "INSERT INTO agent_settings (key, value, updated_by, updated_at_ms) VALUES ('engine', ?, 'x', 0) RETURNING key";
  await records.write({ sql, values: [JSON.stringify({ kind: "quantum", model: "m" })] });
  expect(await call("GET", "engine")).toMatchObject({ status: 501, json: { error: { code: "not_configured" } } });
  expect(await call("GET", "engines")).toMatchObject({ status: 200, json: { active: null } });
  expect((await save(candidate)).status).toBe(200);
});

test("no key is in anything that was said, logged, counted or stored", async () => {
  const entries = await audit.list({ limit: 1_000 });
  const stores = await Promise.all(
    ["agent_settings", "credentials", "audit_log"].map((table) => records.rows(`SELECT * FROM ${table} LIMIT 1000`)),
  );
  const everything = JSON.stringify([said, entries, stores, await metrics.registry.metrics()]);
  expect(said.length).toBeGreaterThan(50);
  for (const key of [OPERATOR_KEY, SHARED_KEY, PRIVATE_KEY, "PLANTED"]) expect(everything).not.toContain(key);
});
