import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EngineError } from "../../src/core/errors.ts";
import { NODE, startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

const PATH = "/api/v1/sandboxes";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const NOBODYS = `${PATH}/019a0000-0000-7000-8000-000000000000`;

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi();
});
afterEach(() => api.close());

describe("POST /api/v1/sandboxes", () => {
  test("answers 202 with state pending, and fills in every field", async () => {
    await api.plane.report(NODE);
    const made = await api.call("POST", PATH, { body: { agent_provider: "claude-code" } });
    expect(made.status).toBe(202);
    expect(made.json).toEqual({
      id: expect.stringMatching(UUID),
      state: "pending",
      name: null,
      agent_provider: "claude-code",
    });
    const { json } = await api.call("GET", `${PATH}/${String(made.json["id"])}`);
    expect(json).toEqual({
      ...made.json,
      persistence: "ephemeral",
      created_at: expect.stringMatching(TIME),
      updated_at: expect.stringMatching(TIME),
      spec: {
        agent_provider: "claude-code",
        name: null,
        image: null,
        resource_limits: { cpu_cores: 1, memory_mb: 1_024, disk_mb: 4_096, max_processes: 512 },
        persistence: "ephemeral",
        network: { enabled: false, allowed_hosts: [], dns_servers: [] },
        env_vars: {},
        volumes: [],
        ports: [],
        working_directory: null,
        exclusions: [],
        git_repos: [],
        binaries: [],
        pre_commands: [],
        skills: [],
        subagents: [],
        credentials: [],
        provisioning_scripts: [],
        labels: {},
        timeout_secs: null,
        agent_config: null,
      },
      resource_stats: {
        cpu_usage_percent: 0,
        memory_used_mb: 0,
        memory_limit_mb: 1_024,
        disk_used_mb: 0,
        disk_limit_mb: 4_096,
        network_rx_bytes: 0,
        network_tx_bytes: 0,
      },
      endpoint_url: null,
      reason: null,
      expires_at: null,
    });
  });

  test("keeps what was asked for, in a form that asks for the same again", async () => {
    const asked = {
      agent_provider: "opencode",
      name: "box.1",
      image: "host",
      resource_limits: { cpu_cores: 0.5, memory_mb: 64, disk_mb: 100, max_processes: 20 },
      persistence: "persistent",
      network: { enabled: true, allowed_hosts: ["Example.COM.", "*.bücher.example"], dns_servers: ["9.9.9.9", "::1"] },
      env_vars: { TOKEN: "s3cret value" },
      volumes: [{ name: "data", mount_path: "/data", read_only: true, size_mb: 50 }],
      ports: [{ port: 8_000, name: "web" }],
      working_directory: "/workspace",
      exclusions: ["node_modules", "/docs"],
      git_repos: [],
      binaries: [],
      pre_commands: [{ name: "a", command: "true", args: [], timeout_secs: 5 }],
      skills: [],
      subagents: [{ name: "b", description: "b", prompt: "b", model: null, tools: ["read"] }],
      credentials: [],
      provisioning_scripts: ["echo 1", { name: "two", script: "echo 2", user: "agent", timeout_secs: 5 }],
      labels: { team: "a" },
      timeout_secs: 60,
      agent_config: {
        provider: "opencode",
        model: "m-1",
        system_prompt: "Be brief.",
        max_tokens: 100,
        tools_enabled: false,
        allowed_tools: ["read", "mcp__*"],
        denied_tools: ["execute"],
        mcp_servers: [{ name: "c", type: "stdio", command: "c", args: ["d"], env: { E: "f" } }],
      },
    };
    await api.plane.report(NODE);
    const first = await api.call("POST", PATH, { body: asked });
    expect([first.status, first.json["name"]]).toEqual([202, "box.1"]);
    const { json } = await api.call("GET", `${PATH}/${String(first.json["id"])}`);
    expect(json["spec"]).toEqual({
      ...asked,
      network: { ...asked.network, allowed_hosts: ["example.com", "*.xn--bcher-kva.example"] },
      provisioning_scripts: [
        { name: "script-1", script: "echo 1", user: "root", timeout_secs: 600 },
        { name: "two", script: "echo 2", user: "agent", timeout_secs: 5 },
      ],
    });
    expect(json["endpoint_url"]).toBe(`${PATH}/${String(json["id"])}/ports/`);
    const again = await api.call("POST", PATH, { body: { ...(json["spec"] as object), name: "box.2" } });
    const second = await api.call("GET", `${PATH}/${String(again.json["id"])}`);
    expect(second.json["spec"]).toEqual({ ...(json["spec"] as object), name: "box.2" });
    expect(api.said.join("")).not.toContain("s3cret value");
    expect(JSON.stringify(await api.plane.audit.list({ limit: 10 }))).not.toContain("s3cret value");
  });

  test("config_error: what is no JSON object", async () => {
    for (const body of ["{", "[]", '"text"', "null", ""]) {
      const { status, code } = await api.call("POST", PATH, { body });
      expect([body, status, code]).toEqual([body, 400, "config_error"]);
    }
  });

  test("config_validation_error: names the field, and never shows its value", async () => {
    const refused: [string, unknown][] = [
      ["the body", { unknown_field: 1 }],
      ["agent_provider", { agent_provider: 7 }],
      ["name", { name: "a secret/" }],
      ["name", { name: "x".repeat(64) }],
      ["image", { image: "" }],
      ["resource_limits.memory_mb", { resource_limits: { memory_mb: 63 } }],
      ["resource_limits.disk_mb", { resource_limits: { disk_mb: 1.5 } }],
      ["resource_limits.cpu_cores", { resource_limits: { cpu_cores: 0 } }],
      ["resource_limits.max_processes", { resource_limits: { max_processes: 15 } }],
      ["resource_limits", { resource_limits: { gpus: 1 } }],
      ["persistence", { persistence: "for a secret while" }],
      ["network.enabled", { network: { enabled: "yes" } }],
      ["network.allowed_hosts.0", { network: { allowed_hosts: ["a secret/path"] } }],
      ["network.dns_servers.0", { network: { dns_servers: ["secret.example"] } }],
      ["env_vars.A", { env_vars: { A: "secret\0" } }],
      ["env_vars", { env_vars: { "1A": "secret" } }],
      ["env_vars", { env_vars: { A: "x".repeat(30_000), B: "\n".repeat(30_000), C: "\n".repeat(30_000) } }],
      ["volumes.0.mount_path", { volumes: [{ name: "a", mount_path: "/a/../secret" }] }],
      ["volumes.0.mount_path", { volumes: [{ name: "a", mount_path: "/etc/secret" }] }],
      ["volumes", { volumes: ["/a", "/b"].map((path) => ({ name: "secret", mount_path: path })) }],
      ["ports.0.port", { ports: [{ port: 0 }] }],
      ["ports.0.port", { ports: [{ port: 3_128 }] }],
      ["ports", { ports: [{ port: 1 }, { port: 1 }] }],
      ["provisioning_scripts.0", { provisioning_scripts: [""] }],
      ["provisioning_scripts.0", { provisioning_scripts: [{ script: "secret", user: "bob" }] }],
      ["labels", { labels: { "a b": "secret" } }],
      ["labels", { labels: { a: "secret,b" } }],
      ["timeout_secs", { timeout_secs: 0 }],
      // What comes later.
      ["git_repos.0.url", { git_repos: [{ url: "https://secret.example/" }] }],
      ["credentials.0", { credentials: ["secret"] }],
      ["agent_config.provider", { agent_config: { provider: "secret" } }],
      ["agent_config.max_tokens", { agent_config: { max_tokens: 0 } }],
      // Of what is said here, codex takes no such thing.
      ["agent_config.max_tokens", { agent_config: { max_tokens: 100 } }],
      ["agent_config.system_prompt", { agent_config: { system_prompt: "x".repeat(16_385) } }],
      ["agent_config.denied_tools.0", { agent_config: { denied_tools: [""] } }],
      ["agent_config", { agent_config: { colour: 1 } }],
    ];
    for (const [field, more] of refused) {
      const body = { agent_provider: "codex", ...(more as object) };
      const { status, code, message } = await api.call("POST", PATH, { body });
      expect([field, status, code]).toEqual([field, 400, "config_validation_error"]);
      expect(message.slice(0, field.length + 2)).toBe(`${field}: `);
      expect(message).not.toContain("secret");
    }
    expect((await api.call("POST", PATH, { body: {} })).message).toMatch(/^agent_provider: /);
  });

  test("config_validation_error: an image that no node has", async () => {
    await api.plane.report(NODE);
    const answer = await api.call("POST", PATH, { body: { agent_provider: "codex", image: "arch" } });
    expect(answer).toMatchObject({ status: 400, code: "config_validation_error" });
  });

  test("agent_provider_not_found: a provider that there is not", async () => {
    const answer = await api.call("POST", PATH, { body: { agent_provider: "another" } });
    expect(answer).toMatchObject({ status: 404, code: "agent_provider_not_found" });
  });

  test("sandbox_already_exists: a second one of the same name", async () => {
    const body = { agent_provider: "codex", name: "box" };
    expect((await api.call("POST", PATH, { body })).status).toBe(202);
    expect(await api.call("POST", PATH, { body })).toMatchObject({ status: 409, code: "sandbox_already_exists" });
    expect((await api.call("POST", PATH, { body, by: "bob" })).status).toBe(202);
  });
});

test("rate_limited: a tenant that is too fast, or has too many; others go on", async () => {
  const slow = await startSandboxApi({ createsPerMinute: 1, createBurst: 2, maxPerTenant: 10 });
  const body = { agent_provider: "codex" };
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await slow.call("POST", PATH, { body })).status);
  expect(statuses).toEqual([202, 202, 429]);
  const refused = await fetch(slow.url + PATH, {
    method: "POST",
    headers: { Authorization: "Bearer ann", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(30);
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limited" } });
  expect((await slow.call("POST", PATH, { body, by: "bob" })).status).toBe(202);
  await slow.close();
});

describe("who may", () => {
  test("unauthorized without a token, forbidden to write with the role read", async () => {
    const { path } = await api.make();
    expect(await api.call("GET", PATH, { by: "" })).toMatchObject({ status: 401, code: "unauthorized" });
    expect(await api.call("GET", PATH, { by: "wrong" })).toMatchObject({ status: 401, code: "unauthorized" });
    const writes = [
      ["POST", PATH],
      ["DELETE", path],
      ["POST", `${path}/start`],
      ["POST", `${path}/stop`],
    ] as const;
    for (const [method, where] of writes) {
      expect(await api.call(method, where, { by: "reader" })).toMatchObject({ status: 403, code: "forbidden" });
    }
    for (const where of [PATH, path, `${path}/stats`]) {
      expect([where, (await api.call("GET", where, { by: "reader" })).status]).toEqual([where, 200]);
    }
  });

  test("sandbox_not_found: one that is not there, or another tenant's; admins see all", async () => {
    const { path } = await api.make();
    for (const [method, verb] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/stats"],
      ["POST", "/start"],
      ["POST", "/stop"],
      ["POST", "/pause"],
      ["POST", "/resume"],
    ] as const) {
      const missing = { status: 404, code: "sandbox_not_found" };
      expect(await api.call(method, `${NOBODYS}${verb}`, { by: "root" })).toMatchObject(missing);
      expect(await api.call(method, `${path}${verb}`, { by: "bob" })).toMatchObject(missing);
    }
    expect((await api.call("GET", PATH, { by: "bob" })).text).toBe("[]");
    expect((await api.call("GET", path, { by: "root" })).status).toBe(200);
  });
});

test("GET /api/v1/sandboxes filters, newest first, and refuses filters that it does not know", async () => {
  const a = await api.make({ labels: { team: "a" }, name: "first" }, "creating", "running");
  const b = await api.make({ labels: { team: "a", env: "x=y" }, agent_provider: "gemini-cli" });
  const idsOf = async (query: string, by = "ann") => {
    const { status, text } = await api.call("GET", `${PATH}?${query}`, { by });
    return status === 200 ? (JSON.parse(text) as { id: string }[]).map(({ id }) => id) : status;
  };
  const { text } = await api.call("GET", `${PATH}?state=running`);
  expect(JSON.parse(text)).toEqual([
    {
      id: a.id,
      name: "first",
      state: "running",
      persistence: "ephemeral",
      agent_provider: "codex",
      created_at: expect.stringMatching(TIME),
      updated_at: expect.stringMatching(TIME),
    },
  ]);
  expect(await idsOf("")).toEqual([b.id, a.id]);
  expect(await idsOf("provider=gemini-cli")).toEqual([b.id]);
  expect(await idsOf("labels=team=a")).toEqual([b.id, a.id]);
  expect(await idsOf("labels=team%3Da,env%3Dx%3Dy")).toEqual([b.id]);
  expect(await idsOf("limit=1")).toEqual([b.id]);
  expect(await idsOf(`before=${b.id}`)).toEqual([a.id]);
  expect(await idsOf("", "root")).toEqual([b.id, a.id]);
  for (const query of ["state=sleeping", "labels=team", "labels=a%20b=c", "limit=0", "before=x"]) {
    expect([query, await idsOf(query)]).toEqual([query, 400]);
  }
});

describe("actions", () => {
  test("answer with the state that was asked for, when the node has seen it", async () => {
    const { path, box } = await api.make({}, "creating", "running");
    for (const [verb, ...states] of [
      ["pause", "paused"],
      ["resume", "running"],
      ["stop", "stopped"],
      ["start", "running"],
    ] as const) {
      const stop = api.plane.sandboxes.signals.onDesiredState(
        () =>
          void (async () => {
            for (const state of states) await box.say(state);
          })(),
      );
      const answer = await api.call("POST", `${path}/${verb}`);
      stop();
      expect([verb, answer.status, answer.json["state"]]).toEqual([verb, 200, states.at(-1)]);
      expect(Object.keys(answer.json)).toEqual([
        "id",
        "name",
        "state",
        "persistence",
        "agent_provider",
        "created_at",
        "updated_at",
      ]);
    }
  });

  test("answer with the state on the way when it takes too long, and at once when it cannot be any more", async () => {
    const hasty = await startSandboxApi({ actionWaitMs: 50 });
    const { path } = await hasty.make({}, "creating", "running");
    expect((await hasty.call("POST", `${path}/stop`)).json).toMatchObject({ state: "stopping" });
    await hasty.close();
    const { path: other, box } = await api.make({}, "creating", "running");
    const stop = api.plane.sandboxes.signals.onDesiredState(() => void box.say("failed", "it broke"));
    expect((await api.call("POST", `${other}/pause`)).json).toMatchObject({ state: "failed" });
    stop();
    expect((await api.call("GET", other)).json).toMatchObject({ state: "failed", reason: "it broke" });
  });

  test("sandbox_invalid_state: in a state that does not allow it", async () => {
    const { path } = await api.make({}, "creating", "running");
    const answer = await api.call("POST", `${path}/start`);
    expect(answer).toMatchObject({ status: 409, code: "sandbox_invalid_state" });
    expect(answer.message).toBe("the sandbox is running: start needs stopped");
  });
});

test("DELETE answers 204 in every state, and then nothing is found", async () => {
  const made = [
    await api.make(),
    await api.make({}, "creating"),
    await api.make({}, "creating", "running"),
    await api.make({}, "creating", "failed"),
  ];
  await api.plane.records.write({ sql: "DELETE FROM sandbox_nodes" });
  const { json } = await api.call("POST", PATH, { body: { agent_provider: "codex" } });
  const paths = [...made.map(({ path }) => path), `${PATH}/${String(json["id"])}`];
  for (const path of paths) {
    const { status, text } = await api.call("DELETE", path);
    expect([status, text]).toEqual([204, ""]);
    expect((await api.call("GET", path)).status).toBe(404);
    expect((await api.call("DELETE", path)).status).toBe(404);
  }
  expect((await api.call("GET", PATH)).text).toBe("[]");
  for (const { box } of made) await box.record({ removed: true });
  expect(await api.plane.records.rows("SELECT id FROM sandboxes")).toEqual([]);
});

describe("GET /api/v1/sandboxes/{id}/stats", () => {
  const LIVE = {
    cpu_usage_percent: 12.5,
    memory_used_mb: 100,
    memory_limit_mb: 1_024,
    disk_used_mb: 7,
    disk_limit_mb: 4_096,
    network_rx_bytes: 1,
    network_tx_bytes: 2,
  };

  test("are the node's, of this moment", async () => {
    const { id, path } = await api.make({}, "creating", "running");
    const asked: unknown[] = [];
    api.onCall.handle = ({ method, sandboxId, params }) => {
      asked.push([method, sandboxId, params]);
      return Promise.resolve({ result: LIVE });
    };
    expect((await api.call("GET", `${path}/stats`)).json).toEqual(LIVE);
    expect(asked).toEqual([["stats", id, {}]]);
  });

  test("are the last ones that were reported where the node is away, and nothing of what does not run", async () => {
    const { path, box } = await api.make({ persistence: "persistent" }, "creating", "running");
    api.onCall.handle = () => Promise.reject(new EngineError("unavailable", "away"));
    expect(await api.call("GET", `${path}/stats`)).toMatchObject({ status: 503, code: "unavailable" });
    await box.record({ stats: LIVE });
    expect((await api.call("GET", `${path}/stats`)).json).toEqual(LIVE);
    expect((await api.call("GET", path)).json["resource_stats"]).toEqual(LIVE);
    await box.say("stopping");
    await box.say("stopped");
    const still = { ...LIVE, cpu_usage_percent: 0, memory_used_mb: 0 };
    expect((await api.call("GET", `${path}/stats`)).json).toEqual(still);
  });

  test("sandbox_timeout: a node that does not answer in time", async () => {
    const hasty = await startSandboxApi({ callTimeoutMs: 50 });
    const { path } = await hasty.make({}, "creating", "running");
    const given: AbortSignal[] = [];
    hasty.onCall.handle = ({ signal }) => {
      given.push(signal);
      return new Promise(() => undefined);
    };
    expect(await hasty.call("GET", `${path}/stats`)).toMatchObject({ status: 504, code: "sandbox_timeout" });
    expect(given[0]?.aborted).toBe(true);
    await hasty.close();
  });
});

test("GET /ready says whether the database answers and a node is there", async () => {
  const none = { status: "not_ready", database: "ok", runtime: "no node is connected" };
  expect(await api.call("GET", "/ready", { by: "" })).toMatchObject({ status: 503, json: none });
  await api.plane.report(NODE);
  const ready = { status: "ready", database: "ok", runtime: "ok" };
  expect(await api.call("GET", "/ready", { by: "" })).toMatchObject({ status: 200, json: ready });
});
