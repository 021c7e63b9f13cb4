import { afterAll, beforeAll, expect, it } from "vitest";
import { startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

const BASE = "/api/v1/workspaces";
const SPEC = {
  agent: { provider: "codex" },
  repositories: [{ url: "https://git.example/org/app.git", branch: "main" }],
};

let api: SandboxApi;
beforeAll(async () => void (api = await startSandboxApi()));
afterAll(() => api.close());

const create = (body: Record<string, unknown> = {}) =>
  api.call("POST", BASE, { body: { name: "app", spec: SPEC, ...body } });

it("makes, shows, changes and deletes a workspace", async () => {
  const made = await create({ labels: { team: "a" } });
  expect(made.status).toBe(201);
  const { id } = made.json;
  expect(made.json).toMatchObject({
    name: "app",
    description: null,
    labels: { team: "a" },
    spec: { agent: { provider: "codex" }, environment: {}, persistence: "ephemeral" },
  });
  expect(made.json["created_at"]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const path = `${BASE}/${String(id)}`;
  expect((await api.call("GET", path)).json).toEqual(made.json);
  const changed = await api.call("PUT", path, { body: { description: "ours" } });
  expect(changed).toMatchObject({ status: 200, json: { name: "app", description: "ours", labels: { team: "a" } } });
  // What was shown is accepted again, as it is.
  expect((await api.call("PUT", path, { body: { spec: made.json["spec"] } })).json["spec"]).toEqual(made.json["spec"]);
  expect((await api.call("GET", path, { by: "bob" })).code).toBe("workspace_not_found");
  expect((await api.call("GET", path, { by: "root" })).status).toBe(200);
  expect(JSON.parse((await api.call("GET", `${BASE}?name=ap&labels=team%3Da`)).text)).toMatchObject([{ id }]);
  expect((await api.call("GET", `${BASE}?labels=team`)).code).toBe("invalid_parameter");
  expect((await api.call("DELETE", path, { by: "reader" })).code).toBe("forbidden");
  expect((await api.call("DELETE", path)).status).toBe(204);
  expect((await api.call("DELETE", path)).code).toBe("workspace_not_found");
});

it("launches it into sandboxes, which it lists", async () => {
  const { json } = await create({ labels: { team: "a" } });
  const path = `${BASE}/${String(json["id"])}`;
  const launched = await api.call("POST", `${path}/launch`);
  expect(launched).toMatchObject({ status: 202, json: { workspace_id: json["id"], status: "provisioning" } });
  const id = String(launched.json["sandbox_id"]);
  const sandbox = await api.call("GET", `/api/v1/sandboxes/${id}`);
  expect(sandbox.json).toMatchObject({
    state: "pending",
    agent_provider: "codex",
    spec: {
      labels: { team: "a" },
      network: { enabled: true },
      git_repos: [
        {
          url: "https://git.example/org/app.git",
          branch: "main",
          tag: null,
          commit: null,
          dest_path: "/home/agent/app",
          depth: null,
          credential_id: null,
        },
      ],
    },
  });
  const named = await api.call("POST", `${path}/launch`, { body: { name: "box", labels: { team: "b" } } });
  const second = String(named.json["sandbox_id"]);
  expect((await api.call("GET", `/api/v1/sandboxes/${second}`)).json).toMatchObject({
    name: "box",
    spec: { labels: { team: "b" } },
  });
  expect(JSON.parse((await api.call("GET", `${path}/sandboxes`)).text)).toEqual([second, id]);
  expect((await api.call("POST", `${path}/launch`, { body: { name: "box" } })).code).toBe("sandbox_already_exists");
  expect((await api.call("POST", `${path}/launch`, { body: { nam: "box" } })).code).toBe("config_validation_error");
  expect((await api.call("POST", `${path}/launch`, { body: { name: "a b" } })).code).toBe("config_validation_error");
});

it("exports TOML that can be imported again", async () => {
  const made = await create({ description: "a\nb", labels: { "team/x": "ü" } });
  const exported = await fetch(`${api.url}${BASE}/${String(made.json["id"])}/export`, {
    headers: { authorization: "Bearer ann" },
  });
  expect(exported.headers.get("content-type")).toBe("application/toml; charset=utf-8");
  const text = await exported.text();
  const send = (body: string, type = "text/plain") =>
    fetch(`${api.url}${BASE}/import`, {
      method: "POST",
      headers: { authorization: "Bearer ann", "content-type": type },
      body,
    });
  for (const type of ["text/plain", "text/plain; charset=utf-8", "application/toml"]) {
    const imported = await send(text, type);
    expect(imported.status).toBe(201);
    const { id: _, created_at: __, updated_at: ___, ...rest } = made.json;
    expect(await imported.json()).toMatchObject(rest);
  }
  expect((await send(text, "application/json")).status).toBe(415);
  const wrong = await send('[workspace]\nname = "a\n');
  expect(wrong.status).toBe(400);
  expect(await wrong.json()).toMatchObject({ error: { code: "config_validation_error", line: 2 } });
});

it("refuses fields that it does not know, or that would have no effect", async () => {
  const { agent } = SPEC;
  const cases: [Record<string, unknown>, string][] = [
    [{ spec: {} }, "spec.agent: "],
    [{ spec: { agent, colour: "red" } }, "spec: "],
    [{ spec: { agent, repositories: [{ url: "file:///etc" }] } }, "spec.repositories.0.url: "],
    [{ spec: { agent, skills: [{ source: "x" }] } }, "spec.skills.0.source: "],
    [{ spec: { agent, skills: [{ source: "https://far.example/a" }] } }, "spec.skills.0.source: its host"],
    [{ spec: { agent, subagents: [{}] } }, "spec.subagents.0"],
    [{ spec: { agent, filesystem: { working_directory: "/etc" } } }, "spec.filesystem.working_directory: "],
    [{ spec: { agent, filesystem: { copy_on_write: true } } }, "spec.filesystem: "],
    [{ spec: { agent, filesystem: { isolation: "none" } } }, "spec.filesystem.isolation: "],
    [{ spec: { agent, filesystem: { exclusions: ["!kept"] } } }, "spec.filesystem.exclusions.0: "],
    [{ spec: { agent: { provider: "codex", mcp_servers: [{}] } } }, "spec.agent"],
    [{ spec: { ...SPEC, network: { enabled: false } } }, "spec.network.enabled: "],
    [{ name: "" }, "name: "],
    [{ labels: { a: 1 } }, "labels.a: "],
  ];
  for (const [body, message] of cases) {
    const answer = await create(body);
    expect([body, answer.status, answer.code]).toEqual([body, 400, "config_validation_error"]);
    expect(answer.message.slice(0, message.length)).toBe(message);
  }
  expect((await create({ spec: { agent: { provider: "x" } } })).code).toBe("agent_provider_not_found");
  expect((await api.call("POST", BASE, { body: "[]" })).code).toBe("config_error");
});
