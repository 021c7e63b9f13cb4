import { request as rawRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_CORS_ALLOWED_ORIGINS: "http://app.example" } });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

describe("service routes", () => {
  test("GET /health", async () => {
    const response = await fetch(`${engine.url}/health`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      status: "ok",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      query_confinement: expect.stringMatching(/^(landlock \(ABI \d+\) \+ seccomp|none \([^/]+\))$/),
    });
  });

  test("GET /metrics names what operators watch", async () => {
    await ingest(engine.url, "metrics", '{"body":"x"}');
    await query(engine.url, "SELECT 1 AS one");
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    for (const line of [
      /^engine_http_request_duration_seconds_count\{method="POST",route="\/v1\/ingest",status="200"\} [1-9]/m,
      /^engine_ingest_rows_total\{database="default"\} [1-9]/m,
      /^engine_ingest_bytes_total/m,
      /^engine_ingest_queued_bytes 0$/m,
      /^engine_seal_queue_depth 0$/m,
      /^engine_catalog_commit_duration_seconds_count [1-9]/m,
      /^engine_extents_committed_total [1-9]/m,
      /^engine_query_duration_seconds_count\{outcome="ok"\} [1-9]/m,
      /^engine_nodejs_eventloop_lag_p99_seconds/m,
      /^engine_process_cpu_user_seconds_total/m,
    ]) {
      expect(text).toMatch(line);
    }
  });

  test("/metrics does not grow with methods that clients make up", async () => {
    for (const method of ["LOCK", "MKCOL", "PROPFIND", "REPORT", "SUBSCRIBE"]) {
      expect((await fetch(`${engine.url}/nowhere`, { method })).status).toBe(404);
    }
    expect((await fetch(`${engine.url}/nowhere`, { method: "MADEUP" })).status).toBe(400);
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    expect(text).not.toMatch(/MADEUP|PROPFIND/);
    expect(text).toMatch(
      /^engine_http_request_duration_seconds_count\{method="any",route="unmatched",status="404"\} [5-9]/m,
    );
    expect(text).toMatch(/^engine_build_info\{version="[^"]+",roles="all_in_one"\} 1$/m);
    expect(text).toMatch(/^engine_disk_free_bytes\{folder="data"\} [1-9]/m);
    expect(text).toMatch(/^engine_http_requests_in_flight 0$/m);
  });

  test("OpenAPI 3.1 covers every route and the page needs nothing from elsewhere", async () => {
    const document = (await (await fetch(`${engine.url}/v1/openapi.json`)).json()) as Record<string, never>;
    expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "engine" } });
    expect(Object.keys(document.paths ?? {})).toEqual([
      "/health",
      "/metrics",
      "/v1/query",
      "/v1/query/check",
      "/v1/queries",
      "/v1/queries/{id}",
      "/v1/tail",
      "/v1/catalog/schema",
      "/v1/explore",
      "/v1/catalog/tables/{table}",
      "/v1/catalog/databases/{database}",
      "/v1/catalog/tables/{table}/delete",
      "/v1/catalog/deletions",
      "/v1/catalog/deletions/{id}",
      "/v1/exports",
      "/v1/exports/{id}",
      "/v1/exports/{id}/download",
      "/v1/admin/query-engines",
      "/v1/admin/query-engines/{name}/test",
      "/v1/admin/query-engines/{name}",
      "/v1/ingest",
      "/v1/logs",
      "/v1/admin/databases/{database}/tables/{table}",
      "/v1/database/{db}/table/{table}/cleanup",
      "/v1/auth/login",
      "/v1/auth/refresh",
      "/v1/auth/logout",
      "/v1/auth/config",
      "/v1/auth/me",
      "/v1/auth/web/login",
      "/v1/auth/web/token",
      "/v1/auth/web/logout",
      "/v1/auth/web/start",
      "/v1/auth/web/callback",
      "/v1/auth/sessions",
      "/v1/auth/sessions/{id}",
      "/v1/auth/password",
      "/v1/auth/tokens",
      "/v1/auth/tokens/{id}",
      "/v1/admin/users",
      "/v1/admin/users/{username}",
      "/v1/admin/users/{username}/password",
      "/v1/admin/audit",
      "/v1/admin/ownership/transfer",
      "/v1/credentials",
      "/v1/credentials/{id}",
      "/v1/oauth/{provider}/start",
      "/v1/oauth/{provider}/callback",
      "/v1/oauth/flows/{state}",
      "/api/v1/oauth/{provider}/authorize",
      "/api/v1/oauth/{provider}/callback",
      "/api/v1/oauth/{provider}/device-code",
      "/api/v1/oauth/{provider}/device-poll",
      "/api/v1/oauth/{provider}/refresh",
      "/v1/workers/register",
      "/v1/workers/heartbeat",
      "/v1/jobs/claim",
      "/v1/jobs/self",
      "/v1/jobs/{id}/progress",
      "/v1/jobs/{id}/complete",
      "/v1/jobs/{id}/fail",
      "/v1/jobs/{id}/lease",
      "/v1/jobs/{id}/release",
      "/v1/jobs/{id}/logs",
      "/v1/jobs/{id}/credentials/{credential_id}",
      "/v1/workers",
      "/v1/workers/{id}",
      "/v1/workers/{id}/drain",
      "/v1/workers/{id}/admit",
      "/v1/jobs",
      "/v1/jobs/{id}",
      "/v1/jobs/{id}/cancel",
      "/v1/jobs/{id}/retry",
      "/v1/jobs/{id}/events",
      "/v1/schedules",
      "/v1/schedules/{id}",
      "/v1/schedules/{id}/run",
      "/ready",
      "/api/v1/sandboxes",
      "/api/v1/sandboxes/{id}",
      "/api/v1/sandboxes/{id}/start",
      "/api/v1/sandboxes/{id}/stop",
      "/api/v1/sandboxes/{id}/pause",
      "/api/v1/sandboxes/{id}/resume",
      "/api/v1/sandboxes/{id}/stats",
      "/api/v1/sandboxes/{id}/logs",
      "/api/v1/sandboxes/{id}/stream",
      "/api/v1/sandboxes/{id}/exec/stream",
      "/api/v1/sandboxes/{id}/exec/{exec_id}/stream",
      "/api/v1/sandboxes/{id}/exec/{exec_id}",
      "/api/v1/sandboxes/{id}/shell",
      "/api/v1/sandboxes/{id}/sessions",
      "/api/v1/sessions/{sid}",
      "/api/v1/sessions/{sid}/messages",
      "/api/v1/sessions/{sid}/interrupt",
      "/api/v1/sessions/{sid}/stream",
      "/api/v1/sandboxes/{id}/files",
      "/api/v1/sandboxes/{id}/files/{path}",
      "/api/v1/sandboxes/{id}/ports/{port}/",
      "/api/v1/sandboxes/{id}/ports/{port}/{path}",
      "/api/v1/volumes",
      "/api/v1/volumes/{id}",
      "/api/v1/workspaces",
      "/api/v1/workspaces/{id}",
      "/api/v1/workspaces/{id}/launch",
      "/api/v1/workspaces/{id}/sandboxes",
      "/api/v1/workspaces/{id}/export",
      "/api/v1/workspaces/import",
      "/v1/sandbox-nodes/report",
      "/v1/sandbox-nodes/jobs/{job_id}/order",
      "/v1/sandbox-nodes/jobs/{job_id}/sessions/{sid}/history",
      "/v1/sandbox-nodes/jobs/{job_id}/batches",
      "/v1/sandbox-nodes/link",
      "/v1/sandbox-nodes",
      "/v1/sandbox-nodes/{id}/cap",
      "/api/v1/images/build",
      "/api/v1/images",
      "/api/v1/images/builds/{build_id}",
      "/api/v1/images/{image_id}",
      "/v1/sandbox-nodes/layers/{build_id}/{fence}/{part}",
      "/v1/sandbox-nodes/jobs/{job_id}/layer/{part}",
      "/v1/admin/databases/{database}/tables/{table}/publish",
      "/flight/{method}",
      "/v1/agent/memory/query",
      "/v1/agent/memory/overview",
      "/v1/agent/memory/settings",
      "/v1/agent/memory/export",
      "/v1/agent/memory/import",
      "/v1/agent/memory/changes",
      "/v1/agent/memory/nodes/{id}",
      "/v1/agent/memory/nodes/{id}/invalidate",
      "/v1/agent/memory/nodes/{id}/restore",
      "/v1/graph",
      "/v1/graph/{graph}/overview",
      "/v1/graph/{graph}/stats",
      "/v1/graph/{graph}/schema",
      "/v1/graph/{graph}/nodes/{id}",
      "/v1/graph/{graph}/nodes/{id}/subgraph",
      "/v1/graph/{graph}/neighbors",
      "/v1/graph/{graph}/search",
      "/v1/dashboards",
      "/v1/dashboards/{id}",
      "/v1/dashboards/{id}/versions",
      "/v1/dashboards/{id}/versions/{version}",
      "/v1/dashboards/{id}/versions/{version}/restore",
      "/mcp/v1",
      "/v1/agent/ask",
      "/v1/agent/runs/{run_id}",
      "/v1/agent/sessions",
      "/v1/agent/sessions/{session_id}",
      "/v1/agent/sessions/{session_id}/turns",
      "/v1/agent/engines",
      "/v1/agent/engine",
      "/v1/agent/engine/test",
      "/v1/agent/skills",
      "/v1/agent/skills/enabled",
      "/v1/agent/memory/dreaming/run",
      "/v1/agent/memory/dreaming/runs",
      "/v1/agent/memory/dreaming/runs/{id}",
      "/v1/agent/memory/dreaming/runs/{id}/revert",
      "/v1/jobs/{id}/dreaming/next",
      "/v1/jobs/{id}/dreaming/apply",
      "/v1/saved-queries",
      "/v1/saved-queries/{id}",
      "/v1/query-history",
      "/v1/query-history/{id}",
      "/v1/auth/settings",
      "/iceberg/v1/config",
      "/iceberg/v1/namespaces",
      "/iceberg/v1/namespaces/{namespace}",
      "/iceberg/v1/namespaces/{namespace}/tables",
      "/iceberg/v1/namespaces/{namespace}/tables/{table}",
      "/iceberg/v1/namespaces/{namespace}/tables/{table}/metrics",
      "/iceberg/v1/namespaces/{namespace}/properties",
      "/iceberg/v1/namespaces/{namespace}/register",
      "/iceberg/v1/tables/rename",
      "/iceberg/v1/transactions/commit",
      "/iceberg/v1/namespaces/{namespace}/views",
      "/iceberg/v1/oauth/tokens",
      "/v1/capabilities",
      "/",
      "/ui",
      "/ui/",
      "/ui/{path}",
      "/v1/icons",
      "/v1/openapi.json",
      "/docs",
    ]);
    const page = await (await fetch(`${engine.url}/docs`)).text();
    expect(page).toContain("/v1/ingest");
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
  });
});

describe("every answer", () => {
  test("X-Request-ID is taken when sane, made when not, echoed, and in error bodies", async () => {
    const taken = await fetch(`${engine.url}/nope`, { headers: { "X-Request-ID": "my-id" } });
    expect(taken.headers.get("x-request-id")).toBe("my-id");
    expect(await taken.json()).toMatchObject({ error: { code: "not_found", request_id: "my-id" } });
    const made = await fetch(`${engine.url}/health`, { headers: { "X-Request-ID": "x".repeat(129) } });
    expect(made.headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test("404, 405 with Allow, 406 and 415 have the standard error shape", async () => {
    const answers = await Promise.all([
      fetch(`${engine.url}/nope`),
      fetch(`${engine.url}/v1/query`, { method: "DELETE" }),
      fetch(`${engine.url}/v1/query`, { method: "POST", body: "SELECT 1", headers: { Accept: "text/html" } }),
      fetch(`${engine.url}/v1/query`, { method: "POST", body: "x", headers: { "Content-Type": "application/xml" } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 405, 406, 415]);
    expect(answers[1]?.headers.get("allow")).toBe("POST, GET, HEAD, OPTIONS");
    for (const answer of answers) {
      const body = { error: { code: expect.any(String), message: expect.any(String), request_id: expect.any(String) } };
      expect(await answer.json()).toEqual(body);
    }
  });

  test("HEAD has the headers and no body", async () => {
    const response = await fetch(`${engine.url}/health`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  });

  test("CORS: a listed origin is allowed, another is not, preflights are answered", async () => {
    const allowed = await fetch(`${engine.url}/health`, { headers: { Origin: "http://app.example" } });
    expect(allowed.headers.get("access-control-allow-origin")).toBe("http://app.example");
    const other = await fetch(`${engine.url}/health`, { headers: { Origin: "http://evil.example" } });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
    const preflight = await fetch(`${engine.url}/v1/ingest`, {
      method: "OPTIONS",
      headers: { Origin: "http://app.example", "Access-Control-Request-Method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
    expect(preflight.headers.get("access-control-allow-headers")).toContain("X-Table");
  });
});

describe("tables", () => {
  const path = (table: string) => `${engine.url}/v1/admin/databases/default/tables/${table}`;

  test("provisioning is idempotent, description counts rows", async () => {
    const first = await (await fetch(path("provisioned"), { method: "POST" })).json();
    expect(first).toMatchObject({
      created: true,
      columns: [{ name: "at", type: "timestamp" }, {}, {}, { type: "dynamic" }],
    });
    expect(await (await fetch(path("provisioned"), { method: "POST" })).json()).toMatchObject({ created: false });
    await ingest(engine.url, "provisioned", '{"body":"x"}\n{"body":"y"}');
    expect(await (await fetch(path("provisioned"))).json()).toMatchObject({ table: "provisioned", row_count: 2 });
    expect((await fetch(path("missing"))).status).toBe(404);
    expect((await fetch(path("a%2Fb"), { method: "POST" })).status).toBe(400);
  });

  test("cluster columns are declared with the table, and shown wherever it is described", async () => {
    const provision = (body: string) =>
      fetch(path("clustered"), { method: "POST", body, headers: { "Content-Type": "application/json" } });
    const refused = await provision('{"cluster_by":["label","props"]}');
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: "bad_request_body", message: expect.stringContaining('cluster_by: cluster column "props"') } },
    ]);
    expect((await provision('{"clusterBy":[]}')).status).toBe(400);
    const created = await (await provision('{"cluster_by":["LABEL","body"]}')).json();
    expect(created).toMatchObject({ created: true, cluster_by: ["label", "body"] });
    const again = await provision('{"cluster_by":["label","body"]}');
    expect(await again.json()).toMatchObject({ created: false, cluster_by: ["label", "body"] });
    const bare = await fetch(path("clustered"), { method: "POST" });
    expect(await bare.json()).toMatchObject({ created: false, cluster_by: ["label", "body"] });
    const other = await provision('{"cluster_by":[]}');
    expect([other.status, await other.json()]).toMatchObject([409, { error: { code: "conflict" } }]);
    expect(await (await fetch(path("clustered"))).json()).toMatchObject({ cluster_by: ["label", "body"] });
    const tree = JSON.stringify(await (await fetch(`${engine.url}/v1/catalog/schema`)).json());
    expect(tree).toContain('"cluster_by":["label","body"]');
    const tables = "SELECT name, cluster_by FROM system.tables WHERE name IN ('clustered', 'plain') ORDER BY name";
    await fetch(path("plain"), { method: "POST" });
    expect(await rowsOf(engine.url, tables)).toEqual([
      { name: "clustered", cluster_by: '["label","body"]' },
      { name: "plain", cluster_by: null },
    ]);
  });

  test("how soon a table is published is said with it, and shown wherever it is described", async () => {
    const provision = (body: string) =>
      fetch(path("open"), { method: "POST", body, headers: { "Content-Type": "application/json" } });
    for (const bad of ["-1", "1.5", "86401", '"60"', "null"]) {
      expect([bad, (await provision(`{"open_lag_secs":${bad}}`)).status]).toEqual([bad, 400]);
    }
    expect(await (await provision('{"open_lag_secs":60}')).json()).toMatchObject({ created: true, open_lag_secs: 60 });
    expect(await (await provision('{"open_lag_secs":60}')).json()).toMatchObject({ created: false });
    const other = await provision('{"open_lag_secs":0}');
    expect([other.status, await other.json()]).toMatchObject([
      409,
      { error: { code: "conflict", message: expect.stringContaining("has an open lag of 60 s") as string } },
    ]);
    expect(await (await fetch(path("open"))).json()).toMatchObject({ open_lag_secs: 60 });
    expect(await (await fetch(path("provisioned"))).json()).toMatchObject({ open_lag_secs: null });
    expect(await rowsOf(engine.url, "SELECT open_lag_secs FROM system.tables WHERE name = 'open'")).toEqual([
      { open_lag_secs: 60 },
    ]);
  });

  test("the schema tree shows a client its own write at once", async () => {
    const tree = async () => JSON.stringify(await (await fetch(`${engine.url}/v1/catalog/schema`)).json());
    for (const column of ["first_new", "second_new"]) {
      expect(await tree()).not.toContain(column);
      await ingest(engine.url, "schema_tree", JSON.stringify({ [column]: 1 }));
      expect(await tree()).toContain(column);
    }
  });

  test("cleanup needs an RFC 3339 time and an existing table, and frees nothing that is alive", async () => {
    await ingest(engine.url, "cleaned", '{"body":"x"}');
    const clean = (table: string, query: string) =>
      fetch(`${engine.url}/v1/database/default/table/${table}/cleanup${query}`, { method: "POST" });
    expect((await clean("cleaned", "")).status).toBe(400);
    expect((await clean("cleaned", "?before=yesterday")).status).toBe(400);
    expect((await clean("missing", "?before=2030-01-01T00:00:00Z")).status).toBe(404);
    const freed = await (await clean("cleaned", "?before=2130-01-01T00:00:00Z")).json();
    expect(freed).toEqual({ extents_deleted: 0, rows_freed: 0, bytes_freed: 0 });
    expect(await rowsOf(engine.url, "SELECT body FROM cleaned")).toEqual([{ body: "x" }]);
  });
});

describe("query", () => {
  test("X-Engine-Rows, NDJSON, and the errors of the specification", async () => {
    const answer = await query(engine.url, "SELECT range AS n FROM range(3)");
    expect(answer.headers.get("x-engine-rows")).toBe("3");
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    expect(answer.rows).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
    const failures = await Promise.all([
      query(engine.url, " \n"),
      query(engine.url, "SELECT 1\nFROM WHERE"),
      query(engine.url, "SELECT 1", { "X-Database": "nowhere" }),
      query(engine.url, "SELECT * FROM metrix"),
      query(engine.url, `SELECT '${"x".repeat(16 * 1024 * 1024)}'`),
    ]);
    expect(failures.map(({ status, json }) => [status, json.error.code])).toEqual([
      [400, "parse_error"],
      [400, "parse_error"],
      [404, "database_not_found"],
      [404, "table_not_found"],
      [413, "body_too_large"],
    ]);
    expect(failures[1]?.json.error).toMatchObject({ line: 2, column: 6 });
  });

  test.each([
    "SELECT * FROM read_csv('/etc/passwd')",
    "COPY (SELECT 1) TO '/tmp/x'",
    "SELECT * FROM '/etc/passwd'",
    "ATTACH 'x.db'",
  ])("%s is refused", async (text) => {
    expect((await query(engine.url, text)).status).toBeGreaterThanOrEqual(400);
  });

  test("plain curl works: no content type is SQL", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const call = rawRequest(`${engine.url}/v1/query`, { method: "POST" }, (response) => {
        let text = "";
        response
          .setEncoding("utf8")
          .on("data", (part: string) => (text += part))
          .on("end", () => resolve(text));
      });
      call.on("error", reject).end("SELECT 42 AS answer");
    });
    expect(answer).toBe('{"answer":42}\n');
  });
});
