import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ANN, pagesOf } from "./pages.test-kit.ts";
import { startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

/** What holds for all routes of the sandbox service. */

const BASE = "/api/v1/sandboxes";
let api: SandboxApi;
beforeAll(async () => {
  api = await startSandboxApi();
});
afterAll(() => api.close());

describe("without a good key", () => {
  it("nobody is told which routes there are", async () => {
    const paths = ["/api/v1/nothing", "/api/v1", "/api/v1/sandboxes/x/nothing", "/nothing", "/"];
    for (const path of paths) {
      expect(await api.call("GET", path, { by: "" })).toMatchObject({ status: 401, code: "unauthorized" });
      expect(await api.call("GET", path, { by: "wrong" })).toMatchObject({ status: 401, code: "unauthorized" });
      expect(await api.call("GET", path, { by: "reader" })).toMatchObject({ status: 404, code: "not_found" });
    }
    expect(await api.call("PATCH", BASE, { by: "" })).toMatchObject({ status: 401, code: "unauthorized" });
    expect(await api.call("PATCH", BASE)).toMatchObject({ status: 405, code: "method_not_allowed" });
    // Of what is open everything is known.
    expect(await api.call("POST", "/ready", { by: "" })).toMatchObject({ status: 405 });
  });

  it("a wrong one that comes too often is rate_limited, and good ones go on", async () => {
    const own = await startSandboxApi();
    const answers = [];
    for (let i = 0; i < 60; i++) answers.push(await own.call("GET", BASE, { by: "guess" }));
    expect(new Set(answers.map(({ status, code }) => `${status} ${code}`))).toEqual(
      new Set(["401 unauthorized", "429 rate_limited"]),
    );
    const refused = await fetch(own.url + BASE, { headers: { Authorization: "Bearer guess" } });
    expect([refused.status, Number(refused.headers.get("retry-after"))]).toEqual([429, expect.any(Number)]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await own.call("GET", BASE)).status).toBe(200);
    await own.close();
  });
});

describe("the key __proto__", () => {
  const agent = '"agent_provider":"codex"';
  it.each([
    [BASE, `{${agent},"__proto__":{"name":"x"}}`, "__proto__"],
    [BASE, `{${agent},"env_vars":{"__proto__":"x"}}`, "env_vars.__proto__"],
    [BASE, String.raw`{${agent},"labels":{"\u005f_proto__":"x"}}`, "labels.__proto__"],
    [BASE, `{${agent},"git_repos":[{"url":"https://h/a","__proto__":null}]}`, "git_repos.0.__proto__"],
    ["/api/v1/workspaces", `{"name":"w","spec":{"agent":{"provider":"codex","__proto__":{}}}}`, "spec.agent.__proto__"],
    ["/api/v1/images/build", `{"provider":"codex","variables":{"__proto__":"x"}}`, "variables.__proto__"],
  ])("is refused at %s: %s", async (path, body, place) => {
    const answer = await api.call("POST", path, { body });
    expect(answer).toMatchObject({ status: 400, code: "config_validation_error" });
    expect(answer.message).toContain(`${place}: `);
    expect(({} as { name?: string }).name).toBeUndefined();
  });

  it("is refused in metadata of sessions, in TOML and in labels that are searched for", async () => {
    const { path } = await api.make();
    const metadata = '{"metadata":{"a":[{"__proto__":1}]}}';
    expect(await api.call("POST", `${path}/sessions`, { body: metadata })).toMatchObject({
      status: 400,
      message: expect.stringContaining("metadata.a.0.__proto__"),
    });
    for (const toml of [
      '[workspace]\nname = "w"\n[workspace.agent]\nprovider = "codex"\n[workspace.environment]\n__proto__ = "x"\n',
      '[workspace]\nname = "w"\n[workspace.__proto__]\nprovider = "codex"\n',
      '[workspace]\nname = "w"\nagent = { provider = "codex", "\\u005f_proto__" = 1 }\n',
      "[__proto__]\nname = 1\n",
    ]) {
      const response = await fetch(`${api.url}/api/v1/workspaces/import`, {
        method: "POST",
        headers: { Authorization: "Bearer ann", "Content-Type": "text/plain" },
        body: toml,
      });
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { error: { code: "config_validation_error", message: expect.stringContaining("__proto__: ") } },
      ]);
    }
    const template = 'base = "host"\n[environment]\n__proto__ = "x"\n';
    expect(
      await api.call("POST", "/api/v1/images/build", { body: { provider: "codex", template_source: template } }),
    ).toMatchObject({ status: 400, message: expect.stringContaining("environment.__proto__") });
    expect((await api.call("GET", `${BASE}?labels=__proto__=x`)).status).toBe(400);
  });

  it("is no matter as a value", async () => {
    const body = { agent_provider: "codex", env_vars: { A: '"__proto__": 1' }, labels: { a: "__proto__" } };
    const { json } = await api.call("POST", BASE, { body });
    const shown = await api.call("GET", `${BASE}/${String(json["id"])}`);
    expect(shown.json["spec"]).toMatchObject({ env_vars: { A: '"__proto__": 1' }, labels: { a: "__proto__" } });
  });
});

describe("pages", () => {
  it("of sandboxes have each once, whatever is made and deleted meanwhile", async () => {
    const own = await startSandboxApi();
    const made: string[] = [];
    const make = async (labels: Record<string, string>) => {
      const { json } = await own.call("POST", BASE, { body: { agent_provider: "codex", labels } });
      made.push(String(json["id"]));
    };
    for (let i = 0; i < 7; i++) await make({ of: "page", "a/b": "c d&e=f" });
    await make({ of: "none" });
    const pages = await pagesOf(
      own,
      `${BASE}?limit=3&labels=${encodeURIComponent("of=page,a/b=c d&e=f")}`,
      async () => {
        await make({ of: "page", "a/b": "c d&e=f" });
        await own.call("DELETE", `${BASE}/${made[0]}`);
      },
    );
    expect(pages.map((page) => page.length)).toEqual([3, 3]);
    expect(pages.flat()).toEqual(made.slice(1, 7).toReversed());
    await own.close();
  });

  it("of workspaces, of their sandboxes, of sessions and of images lead to the next one, and the last to none", async () => {
    const spec = { agent: { provider: "codex" } };
    const named = async (name: string) =>
      String((await api.call("POST", "/api/v1/workspaces", { body: { name, spec } })).json["id"]);
    const workspaces = [await named("page-a"), await named("page-b"), await named("page-c")];
    expect(await pagesOf(api, "/api/v1/workspaces?name=page-&limit=2")).toEqual([
      [workspaces[2], workspaces[1]],
      [workspaces[0]],
    ]);
    expect(await pagesOf(api, "/api/v1/workspaces?name=page-&limit=3")).toHaveLength(1);
    const launch = `/api/v1/workspaces/${workspaces[0]}`;
    const launched = [];
    for (let i = 0; i < 3; i++) launched.push(String((await api.call("POST", `${launch}/launch`)).json["sandbox_id"]));
    expect((await pagesOf(api, `${launch}/sandboxes?limit=1`)).flat()).toEqual(launched.toReversed());

    const { path } = await api.make();
    const sessions = [];
    for (let i = 0; i < 3; i++) sessions.push(String((await api.call("POST", `${path}/sessions`)).json["id"]));
    expect(await pagesOf(api, `${path}/sessions?limit=2`)).toEqual([[sessions[2], sessions[1]], [sessions[0]]]);

    const images = Array.from({ length: 3 }, () => api.deps.newId());
    for (const id of images) await addImage(id);
    expect(await pagesOf(api, "/api/v1/images?limit=2&provider=codex")).toEqual([[images[2], images[1]], [images[0]]]);
  });

  it("are refused where they cannot be", async () => {
    const { path } = await api.make();
    for (const list of [BASE, "/api/v1/workspaces", "/api/v1/images", `${path}/sessions`]) {
      for (const query of ["limit=0", "limit=-1", "limit=1.5", "limit=99999", "limit=", "before=x", "before='--"]) {
        expect(await api.call("GET", `${list}?${query}`)).toMatchObject({ status: 400, code: "invalid_parameter" });
      }
      expect((await api.call("GET", `${list}?before=00000000-0000-7000-8000-000000000000`)).status).toBe(200);
    }
  });
});

async function addImage(id: string): Promise<void> {
  const manifest = JSON.stringify({ base: "host", layers: [], environment: {} });
  await api.plane.records.write({
    sql:
      "INSERT INTO machine_images (id, tenant, provider, region, status, build_id, content_hash, size_bytes, manifest, " +
      "created_at_ms) VALUES (?, ?, 'codex', 'local', 'available', ?, 'x', 1, ?, 1)",
    values: [id, ANN, id, manifest],
  });
}
