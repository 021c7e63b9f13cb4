import { inDatabaseA, isFullAdmin, newName, type Sample } from "./sample.test-kit.ts";
import { AGENT_SAMPLES } from "./samples-agent.test-kit.ts";
import { BROWSER_SAMPLES } from "./samples-browsers.test-kit.ts";
import { KNOWLEDGE_SAMPLES } from "./samples-knowledge.test-kit.ts";
import { OPEN_TABLE_SAMPLES } from "./samples-open-tables.test-kit.ts";
import {
  CALLER_PASSWORD,
  flightRequest,
  jsonRequest,
  ROOT,
  type TestCaller,
  type TestRequest,
  type World,
} from "./world.test-kit.ts";
import { WORKBENCH_SAMPLES } from "./samples-workbench.test-kit.ts";

const ok = () => 200;
/** Of things that an admin made for all databases. */
const forFullAdmins = (caller: TestCaller | undefined) => (isFullAdmin(caller) ? 200 : 404);

const TABLE = "/v1/admin/databases/a/tables/events";
const CREDENTIAL = { label: "it", value: { kind: "pat", token: "a token of the test" } };
const NO_PROPOSALS = { position: "p", usage: { input_tokens: 0, output_tokens: 0 }, proposals: [] };
const OWN_APP = { client_id: "an-app", client_secret: "a-secret" };

function get(path: string): () => TestRequest {
  return () => ({ method: "GET", path });
}

async function newUser(world: World): Promise<string> {
  const username = newName();
  await world.admin("POST", "/v1/admin/users", { username, password: "a password", role: "read" });
  return username;
}

async function newId(world: World, path: string, body: unknown): Promise<string> {
  return String((await world.admin("POST", path, body))["id"]);
}

/** A job of the database `a` that nobody claims but who asks for it. */
async function newJob(world: World, more: Record<string, unknown> = {}): Promise<string> {
  const job = { kind: "x.untouched", database: "a", ...more };
  return String((await world.admin("POST", "/v1/jobs", job))["job_id"]);
}

/** One that is finished: what waits for its end need not. */
async function cancelledJob(world: World): Promise<string> {
  const id = await newJob(world);
  await world.admin("POST", `/v1/jobs/${id}/cancel`);
  return id;
}

type LeasedJob = { path: string; headers: Record<string, string> };

/** A job that the worker holds. */
async function heldJob(world: World, more: Record<string, unknown> = {}): Promise<LeasedJob> {
  const kind = `x.${newName().replace("-", "_")}`;
  await newJob(world, { kind, ...more });
  const { json } = await world.send(jsonRequest("POST", "/v1/jobs/claim", { kinds: [kind] }), world.worker);
  const [job] = json["jobs"] as { id: string; fence: number }[];
  if (job === undefined) throw new Error("the worker got no job");
  return { path: `/v1/jobs/${job.id}`, headers: { "x-job-fence": String(job.fence) } };
}

/** What the worker that holds a job writes of it. */
function writeOfHolder(verb: string, body: unknown, status: number): Sample {
  return {
    request: async (world) => {
      const { path, headers } = await heldJob(world);
      const request = jsonRequest("POST", `${path}/${verb}`, body);
      return { ...request, headers: { ...request.headers, ...headers } };
    },
    answer: () => status,
  };
}

async function newWorker(world: World): Promise<string> {
  return `/v1/workers/${String((await world.admin("POST", "/v1/workers", { name: newName() }))["worker_id"])}`;
}

const SCHEDULE = { kind: "x.untouched", database: "a", timing: { every_ms: 86_400_000 } };

async function newSchedule(world: World): Promise<string> {
  return `/v1/schedules/${await newId(world, "/v1/schedules", { ...SCHEDULE, name: newName() })}`;
}

const EXEC_ID = "019a0000-0000-7000-8000-000000000000";
const EXPORT = { query: "SELECT 1 AS one", database: "a" };

/** One of the admin's that is done. */
async function doneExport(world: World): Promise<string> {
  const path = `/v1/exports/${await newId(world, "/v1/exports", EXPORT)}`;
  for (let i = 0; i < 200; i++) {
    const { status, error } = await world.admin("GET", path);
    if (status === "done") return path;
    if (status === "failed") throw new Error(`the export failed: ${String(error)}`);
    await new Promise((resolve) => void setTimeout(resolve, 50));
  }
  throw new Error("the export is not done");
}

/** Of an admin's thing of the database `a`: to those who may not see it, it is not there. */
const aboutDatabaseA = (status: number) => (caller: TestCaller | undefined) =>
  caller?.role !== "admin" || caller.limit === "b" ? 404 : status;
const ofExport = aboutDatabaseA(200);
/** Of whom may not ask about the database `a`. */
const inDatabaseAOnly = (status: number) => (caller: TestCaller | undefined) => (caller?.limit === "b" ? 404 : status);

/** A table of the database `a` that nothing else needs. */
async function newTable(world: World): Promise<string> {
  const table = newName();
  await world.admin("POST", `/v1/admin/databases/a/tables/${table}`);
  return table;
}

/** One of the admin's, of the database `a`, that took place. */
async function newDeletion(world: World): Promise<string> {
  const request = jsonRequest("POST", "/v1/catalog/tables/events/delete", { where: "body = 'nothing'" });
  const headers = { ...request.headers, "x-database": "a" };
  const { json } = await world.send({ ...request, headers }, world.caller("api_token admin"));
  const id = String(json["id"]);
  for (let i = 0; i < 200; i++) {
    const { status } = await world.admin("GET", `/v1/catalog/deletions/${id}`);
    if (status === "done") return id;
    await new Promise((resolve) => void setTimeout(resolve, 50));
  }
  throw new Error("the deletion is not done");
}

const SANDBOXES = "/api/v1/sandboxes";

/** Of the admin, and waiting for a node, of which there is none. */
async function newSandbox(world: World): Promise<string> {
  return `${SANDBOXES}/${await newId(world, SANDBOXES, { agent_provider: "codex" })}`;
}

/** What is asked of one: others are told that there is none. */
function ofSandbox(status: number, method: string, rest = "", body?: unknown): Sample {
  return {
    request: async (world) => jsonRequest(method, `${await newSandbox(world)}${rest}`, body),
    answer: (caller) => (isFullAdmin(caller) ? status : 404),
  };
}

/** What is asked of a session of such a sandbox. */
function ofSession(status: number, method: string, rest = "", body?: unknown): Sample {
  return {
    request: async (world) => {
      const id = await newId(world, `${await newSandbox(world)}/sessions`, {});
      return jsonRequest(method, `/api/v1/sessions/${id}${rest}`, body);
    },
    answer: (caller) => (isFullAdmin(caller) ? status : 404),
  };
}

const WORKSPACES = "/api/v1/workspaces";
const WORKSPACE = { name: "it", spec: { agent: { provider: "codex" } } };

/** What is asked of a workspace of the admin: others are told that there is none. */
function ofWorkspace(status: number, method: string, rest = "", body?: unknown): Sample {
  return {
    request: async (world) => {
      const id = await newId(world, WORKSPACES, WORKSPACE);
      return jsonRequest(method, `${WORKSPACES}/${id}${rest}`, body);
    },
    answer: (caller) => (isFullAdmin(caller) ? status : 404),
  };
}

/** A node that has room for nothing. */
const FULL_NODE = {
  name: "node",
  runtime: "none",
  labels: {},
  images: [],
  capacity: { cpu_millis: 0, memory_mb: 0, disk_mb: 0, sandboxes: 0 },
  boot_id: "b",
};

/** What the holder of a job says of its sandbox; the job that is held here is none of a sandbox. */
function ofNoSandbox(method: string, what: string, body?: unknown): Sample {
  return {
    request: async (world) => {
      const { path, headers } = await heldJob(world);
      const jobId = path.replace("/v1/jobs/", "");
      const request = jsonRequest(method, `/v1/sandbox-nodes/jobs/${jobId}/${what}`, body);
      return { ...request, headers: { ...request.headers, ...headers } };
    },
    answer: () => 404,
  };
}

/** What is asked of its ports, of which it declares none. */
function ofPort(method: string, rest: string): Sample {
  return {
    request: async (world) => ({ method, path: `${await newSandbox(world)}/ports/80/${rest}` }),
    answer: () => 404,
  };
}

const PORT_SAMPLES = ["GET", "POST", "PUT", "PATCH", "DELETE"].flatMap((method) => [
  [`${method} ${SANDBOXES}/{id}/ports/{port}/`, ofPort(method, "")] as const,
  [`${method} ${SANDBOXES}/{id}/ports/{port}/{*path}`, ofPort(method, "a")] as const,
]);

/** By method and path of the row. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
  "GET /health": { request: get("/health"), answer: ok },
  "GET /metrics": { request: get("/metrics"), answer: ok },
  "GET /docs": { request: get("/docs"), answer: ok },
  "GET /": { request: get("/"), answer: () => 302 },
  "GET /ui": { request: get("/ui"), answer: () => 302 },
  "GET /ui/": { request: get("/ui/"), answer: ok },
  "GET /ui/{*path}": { request: get("/ui/sign-in"), answer: ok },
  "GET /v1/openapi.json": { request: get("/v1/openapi.json"), answer: ok },

  "POST /v1/query": {
    request: () => ({
      method: "POST",
      path: "/v1/query",
      headers: { "x-database": "a" },
      body: "SELECT * FROM events",
    }),
    answer: inDatabaseA(404),
  },
  "GET /v1/query": {
    request: () => ({ method: "GET", path: "/v1/query?q=SELECT+*+FROM+events&database=a" }),
    answer: inDatabaseA(404),
  },
  "POST /v1/query/check": {
    request: () => jsonRequest("POST", "/v1/query/check", { query: "SELECT * FROM events", database: "a" }),
    answer: inDatabaseA(404),
  },
  "GET /v1/capabilities": { request: get("/v1/capabilities"), answer: ok },
  "GET /v1/icons": { request: get("/v1/icons"), answer: ok },
  "GET /v1/queries": { request: get("/v1/queries"), answer: ok },
  "GET /v1/queries/{id}": { request: get("/v1/queries/01890a5d-ac96-774b-bcce-b302099a8057"), answer: () => 404 },
  "DELETE /v1/queries/{id}": {
    request: () => ({ method: "DELETE", path: "/v1/queries/01890a5d-ac96-774b-bcce-b302099a8057" }),
    answer: () => 404,
  },
  // What becomes of the call is in the trailers.
  "POST /flight/{*method}": { request: () => flightRequest("SELECT * FROM events", "a"), answer: ok },
  // A tail that begins does not end: who may have one is told that it is too early for this.
  "GET /v1/tail": {
    request: () => ({
      method: "GET",
      path: "/v1/tail?table=events&from=999999999",
      headers: { "x-database": "a" },
    }),
    answer: inDatabaseAOnly(400),
  },
  "POST /v1/explore": {
    request: () => {
      const range = { from: "2020-01-01T00:00:00Z", to: "2120-01-01T00:00:00Z" };
      return jsonRequest("POST", "/v1/explore", { database: "a", table: "events", ...range });
    },
    answer: inDatabaseAOnly(200),
  },
  "GET /v1/catalog/schema": { request: get("/v1/catalog/schema"), answer: ok },
  "POST /v1/ingest": {
    request: () => {
      const headers = { "x-database": "a", "x-table": "events" };
      return { method: "POST", path: "/v1/ingest", headers, body: '{"body":"x"}\n' };
    },
    answer: inDatabaseA(403),
  },
  "POST /v1/logs": {
    request: () => {
      const headers = { "content-type": "application/json" };
      const body = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}';
      return { method: "POST", path: "/v1/logs", headers, body };
    },
    answer: inDatabaseA(403),
  },
  "POST /v1/admin/databases/{database}/tables/{table}": {
    request: () => ({ method: "POST", path: TABLE }),
    answer: inDatabaseA(403),
  },
  "GET /v1/admin/databases/{database}/tables/{table}": { request: get(TABLE), answer: inDatabaseA(403) },
  "POST /v1/admin/databases/{database}/tables/{table}/publish": {
    request: () => jsonRequest("POST", `${TABLE}/publish`, {}),
    answer: inDatabaseA(403),
  },
  "POST /v1/database/{db}/table/{table}/cleanup": {
    request: () => ({ method: "POST", path: "/v1/database/a/table/events/cleanup?before=2020-01-01T00:00:00Z" }),
    answer: inDatabaseA(403),
  },

  "POST /v1/auth/login": { request: () => jsonRequest("POST", "/v1/auth/login", ROOT), answer: ok },
  "POST /v1/auth/refresh": {
    request: async (world) => {
      const { refresh_token } = await world.admin("POST", "/v1/auth/login", ROOT);
      return jsonRequest("POST", "/v1/auth/refresh", { refresh_token });
    },
    answer: ok,
  },
  "POST /v1/auth/logout": {
    request: () => ({ method: "POST", path: "/v1/auth/logout" }),
    // The others have no session that could end.
    answer: (caller) => (caller?.kind === "session" ? 200 : 409),
    endsSession: true,
  },
  "GET /v1/auth/config": { request: get("/v1/auth/config"), answer: ok },
  "GET /v1/auth/me": { request: get("/v1/auth/me"), answer: ok },
  "POST /v1/auth/tokens": {
    request: () => {
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      return jsonRequest("POST", "/v1/auth/tokens", { name: newName(), expires_at });
    },
    // A token that leaked must not make others.
    answer: (caller) => (caller?.kind === "api_token" ? 403 : 200),
  },
  "GET /v1/auth/tokens": { request: get("/v1/auth/tokens"), answer: ok },
  "DELETE /v1/auth/tokens/{id}": {
    request: async (world) => {
      const id = await newId(world, "/v1/auth/tokens", { name: newName() });
      return { method: "DELETE", path: `/v1/auth/tokens/${id}` };
    },
    answer: (caller) => (isFullAdmin(caller) ? 200 : 404),
  },

  ...BROWSER_SAMPLES,
  "GET /v1/auth/sessions": { request: get("/v1/auth/sessions"), answer: ok },
  "DELETE /v1/auth/sessions": { request: () => ({ method: "DELETE", path: "/v1/auth/sessions" }), answer: ok },
  "DELETE /v1/auth/sessions/{id}": {
    // Nobody has a browser here: see web-sessions.test.ts.
    request: () => ({ method: "DELETE", path: `/v1/auth/sessions/${EXEC_ID}` }),
    answer: () => 404,
  },
  "PUT /v1/auth/password": {
    request: () =>
      jsonRequest("PUT", "/v1/auth/password", { current_password: CALLER_PASSWORD, new_password: CALLER_PASSWORD }),
    answer: (caller) => ({ session: 200, api_token: 403, oidc: 409 })[caller?.kind ?? "session"],
  },

  "GET /v1/admin/users": { request: get("/v1/admin/users"), answer: ok },
  "POST /v1/admin/users": {
    request: () => jsonRequest("POST", "/v1/admin/users", { username: newName(), password: "a password" }),
    answer: ok,
  },
  "PATCH /v1/admin/users/{username}": {
    request: async (world) => jsonRequest("PATCH", `/v1/admin/users/${await newUser(world)}`, { role: "write" }),
    answer: ok,
  },
  "POST /v1/admin/users/{username}/password": {
    request: async (world) => {
      return jsonRequest("POST", `/v1/admin/users/${await newUser(world)}/password`, { password: "another password" });
    },
    answer: ok,
  },
  "DELETE /v1/admin/users/{username}": {
    request: async (world) => ({ method: "DELETE", path: `/v1/admin/users/${await newUser(world)}` }),
    answer: ok,
  },
  "POST /v1/admin/ownership/transfer": {
    request: () => jsonRequest("POST", "/v1/admin/ownership/transfer", { from: newName(), to: "somebody" }),
    answer: ok,
  },
  "GET /v1/admin/audit": { request: get("/v1/admin/audit"), answer: ok },

  "POST /v1/credentials": { request: () => jsonRequest("POST", "/v1/credentials", CREDENTIAL), answer: ok },
  "GET /v1/credentials": { request: get("/v1/credentials"), answer: ok },
  ...KNOWLEDGE_SAMPLES,
  ...AGENT_SAMPLES,
  ...OPEN_TABLE_SAMPLES,
  ...WORKBENCH_SAMPLES,
  "POST /mcp/v1": {
    request: () => jsonRequest("POST", "/mcp/v1", { jsonrpc: "2.0", id: 1, method: "tools/list" }),
    answer: ok,
  },
  "GET /mcp/v1": {
    // A stream would last: who is let in is told that it is no JSON.
    request: () => ({ method: "GET", path: "/mcp/v1", headers: { accept: "application/json" } }),
    answer: () => 406,
  },
  "GET /v1/credentials/{id}": {
    request: async (world) => {
      return { method: "GET", path: `/v1/credentials/${await newId(world, "/v1/credentials", CREDENTIAL)}` };
    },
    answer: forFullAdmins,
  },
  "PATCH /v1/credentials/{id}": {
    request: async (world) => {
      const id = await newId(world, "/v1/credentials", CREDENTIAL);
      return jsonRequest("PATCH", `/v1/credentials/${id}`, { shared: true });
    },
    answer: forFullAdmins,
  },
  "DELETE /v1/credentials/{id}": {
    request: async (world) => {
      return { method: "DELETE", path: `/v1/credentials/${await newId(world, "/v1/credentials", CREDENTIAL)}` };
    },
    answer: forFullAdmins,
  },

  "POST /v1/oauth/{provider}/start": {
    request: () => jsonRequest("POST", "/v1/oauth/google/start", { data_source_type: "drive", ...OWN_APP }),
    answer: ok,
  },
  // Whoever comes without the state of a flow has no part in one.
  "GET /v1/oauth/{provider}/callback": { request: get("/v1/oauth/google/callback"), answer: () => 400 },
  "POST /v1/oauth/{provider}/callback": {
    request: () => ({
      method: "POST",
      path: "/v1/oauth/google/callback",
      body: "decision=connect",
      headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
    }),
    answer: () => 400,
  },
  "GET /v1/oauth/flows/{state}": {
    request: async (world) => {
      const body = { data_source_type: "drive", ...OWN_APP };
      const { state } = await world.admin("POST", "/v1/oauth/google/start", body);
      return { method: "GET", path: `/v1/oauth/flows/${String(state)}` };
    },
    answer: forFullAdmins,
  },
  "GET /api/v1/oauth/{provider}/authorize": {
    request: get("/api/v1/oauth/an-issuer/authorize"),
    answer: () => 302,
  },
  "GET /api/v1/oauth/{provider}/callback": {
    request: get("/api/v1/oauth/an-issuer/callback"),
    answer: () => 400,
  },
  "POST /api/v1/oauth/{provider}/callback": {
    request: () => ({
      method: "POST",
      path: "/api/v1/oauth/an-issuer/callback",
      body: "decision=connect",
      headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
    }),
    answer: () => 400,
  },
  // The operator has not said where such a flow would begin.
  "GET /api/v1/oauth/{provider}/device-code": {
    request: get("/api/v1/oauth/an-issuer/device-code"),
    answer: () => 501,
  },
  "POST /api/v1/oauth/{provider}/device-poll": {
    request: () => jsonRequest("POST", "/api/v1/oauth/an-issuer/device-poll", { device_code: "of nobody" }),
    answer: () => 404,
  },
  "POST /api/v1/oauth/{provider}/refresh": {
    request: async (world) => {
      const credential_id = await newId(world, "/v1/credentials", CREDENTIAL);
      return jsonRequest("POST", "/api/v1/oauth/an-issuer/refresh", { credential_id });
    },
    answer: () => 404,
  },

  "POST /v1/workers/register": {
    request: () => jsonRequest("POST", "/v1/workers/register", { host: "box" }),
    answer: ok,
  },
  "POST /v1/workers/heartbeat": { request: () => jsonRequest("POST", "/v1/workers/heartbeat"), answer: ok },
  "POST /v1/jobs/claim": {
    request: () => jsonRequest("POST", "/v1/jobs/claim", { kinds: ["x.nothing"] }),
    answer: ok,
  },
  "POST /v1/jobs/self": {
    request: () => jsonRequest("POST", "/v1/jobs/self", { kind: "x.untouched" }),
    answer: () => 202,
  },
  "POST /v1/jobs/{id}/progress": writeOfHolder("progress", { done: 1 }, 200),
  "POST /v1/jobs/{id}/complete": writeOfHolder("complete", null, 204),
  "POST /v1/jobs/{id}/fail": writeOfHolder("fail", "it failed", 204),
  "POST /v1/jobs/{id}/lease": writeOfHolder("lease", { lease_secs: 60 }, 200),
  "POST /v1/jobs/{id}/release": writeOfHolder("release", undefined, 204),
  "POST /v1/jobs/{id}/logs": writeOfHolder("logs", { lines: [{ level: "info", message: "hello" }] }, 204),
  // The job is no dream: test/agent/dreaming-worker.test.ts.
  "POST /v1/jobs/{id}/dreaming/next": writeOfHolder("dreaming/next", undefined, 404),
  "POST /v1/jobs/{id}/dreaming/apply": writeOfHolder("dreaming/apply", NO_PROPOSALS, 404),
  "GET /v1/jobs/{id}/credentials/{credential_id}": {
    request: async (world) => {
      const id = await newId(world, "/v1/credentials", CREDENTIAL);
      const { path, headers } = await heldJob(world, { credentials: [id] });
      return { method: "GET", path: `${path}/credentials/${id}`, headers };
    },
    answer: ok,
  },
  "POST /v1/workers": { request: () => jsonRequest("POST", "/v1/workers", { name: newName() }), answer: ok },
  "GET /v1/workers": { request: get("/v1/workers"), answer: ok },
  "DELETE /v1/workers/{id}": {
    request: async (world) => ({ method: "DELETE", path: await newWorker(world) }),
    answer: forFullAdmins,
  },
  "POST /v1/workers/{id}/drain": {
    request: async (world) => jsonRequest("POST", `${await newWorker(world)}/drain`, { drain: true }),
    answer: forFullAdmins,
  },
  "POST /v1/workers/{id}/admit": {
    request: async (world) => jsonRequest("POST", `${await newWorker(world)}/admit`, { admitted: null }),
    answer: ok,
  },
  "POST /v1/jobs": {
    request: () => jsonRequest("POST", "/v1/jobs", { kind: "x.untouched", database: "a" }),
    answer: (caller) => (caller?.limit === "b" ? 403 : 202),
  },
  "GET /v1/jobs": { request: get("/v1/jobs"), answer: ok },
  "GET /v1/jobs/{id}": {
    request: async (world) => ({ method: "GET", path: `/v1/jobs/${await newJob(world)}` }),
    answer: aboutDatabaseA(200),
  },
  "POST /v1/jobs/{id}/cancel": {
    request: async (world) => ({ method: "POST", path: `/v1/jobs/${await newJob(world)}/cancel` }),
    answer: aboutDatabaseA(200),
  },
  "POST /v1/jobs/{id}/retry": {
    request: async (world) => ({ method: "POST", path: `/v1/jobs/${await cancelledJob(world)}/retry` }),
    answer: aboutDatabaseA(200),
  },
  "GET /v1/jobs/{id}/events": {
    request: async (world) => ({ method: "GET", path: `/v1/jobs/${await cancelledJob(world)}/events` }),
    answer: aboutDatabaseA(200),
  },

  "POST /v1/schedules": {
    request: () => jsonRequest("POST", "/v1/schedules", { ...SCHEDULE, name: newName() }),
    answer: (caller) => (caller?.limit === "b" ? 403 : 200),
  },
  "GET /v1/schedules": { request: get("/v1/schedules"), answer: ok },
  "GET /v1/schedules/{id}": {
    request: async (world) => ({ method: "GET", path: await newSchedule(world) }),
    answer: aboutDatabaseA(200),
  },
  "PATCH /v1/schedules/{id}": {
    request: async (world) => jsonRequest("PATCH", await newSchedule(world), { enabled: false }),
    answer: aboutDatabaseA(200),
  },
  "DELETE /v1/schedules/{id}": {
    request: async (world) => ({ method: "DELETE", path: await newSchedule(world) }),
    answer: aboutDatabaseA(200),
  },
  "POST /v1/schedules/{id}/run": {
    request: async (world) => ({ method: "POST", path: `${await newSchedule(world)}/run` }),
    answer: aboutDatabaseA(202),
  },

  "DELETE /v1/catalog/tables/{table}": {
    request: async (world) => {
      const table = await newTable(world);
      return { method: "DELETE", path: `/v1/catalog/tables/${table}`, headers: { "x-database": "a" } };
    },
    answer: inDatabaseA(403),
  },
  "DELETE /v1/catalog/databases/{database}": {
    // Nothing is dropped that the other samples need.
    request: () => ({ method: "DELETE", path: "/v1/catalog/databases/absent" }),
    answer: (caller) => (caller?.limit === "none" ? 404 : 403),
  },
  "POST /v1/catalog/tables/{table}/delete": {
    request: () => {
      const request = jsonRequest("POST", "/v1/catalog/tables/events/delete", { where: "body = 'nothing'" });
      return { ...request, headers: { ...request.headers, "x-database": "a" } };
    },
    answer: (caller) => (caller?.limit === "b" ? 403 : 202),
  },
  "GET /v1/catalog/deletions": { request: get("/v1/catalog/deletions"), answer: ok },
  "GET /v1/catalog/deletions/{id}": {
    request: async (world) => ({ method: "GET", path: `/v1/catalog/deletions/${await newDeletion(world)}` }),
    answer: inDatabaseA(404),
  },

  "POST /v1/exports": {
    request: () => jsonRequest("POST", "/v1/exports", EXPORT),
    answer: inDatabaseAOnly(202),
  },
  "GET /v1/exports/{id}": {
    request: async (world) => ({ method: "GET", path: `/v1/exports/${await newId(world, "/v1/exports", EXPORT)}` }),
    answer: ofExport,
  },
  "DELETE /v1/exports/{id}": {
    request: async (world) => ({ method: "DELETE", path: `/v1/exports/${await newId(world, "/v1/exports", EXPORT)}` }),
    answer: ofExport,
  },
  "GET /v1/exports/{id}/download": {
    request: async (world) => ({ method: "GET", path: `${await doneExport(world)}/download` }),
    answer: ofExport,
  },

  "GET /ready": { request: get("/ready"), answer: ok },
  "POST /api/v1/sandboxes": {
    request: () => jsonRequest("POST", SANDBOXES, { agent_provider: "codex" }),
    answer: () => 202,
  },
  "GET /api/v1/sandboxes": { request: get(SANDBOXES), answer: ok },
  "GET /api/v1/sandboxes/{id}": ofSandbox(200, "GET"),
  "DELETE /api/v1/sandboxes/{id}": ofSandbox(204, "DELETE"),
  // One that waits for its node can do nothing yet.
  "POST /api/v1/sandboxes/{id}/start": ofSandbox(409, "POST", "/start"),
  "POST /api/v1/sandboxes/{id}/stop": ofSandbox(409, "POST", "/stop"),
  "POST /api/v1/sandboxes/{id}/pause": ofSandbox(409, "POST", "/pause"),
  "POST /api/v1/sandboxes/{id}/resume": ofSandbox(409, "POST", "/resume"),
  "GET /api/v1/sandboxes/{id}/stats": ofSandbox(200, "GET", "/stats"),
  "GET /api/v1/sandboxes/{id}/logs": ofSandbox(200, "GET", "/logs"),
  "GET /api/v1/sandboxes/{id}/stream": {
    request: async (world) => {
      const path = await newSandbox(world);
      await world.admin("DELETE", path);
      // That of one that is there does not end.
      return { method: "GET", path: `${path}/stream` };
    },
    answer: () => 404,
  },
  "POST /api/v1/sandboxes/{id}/exec/stream": ofSandbox(409, "POST", "/exec/stream", { command: "true" }),
  "GET /api/v1/sandboxes/{id}/exec/{exec_id}/stream": ofSandbox(409, "GET", `/exec/${EXEC_ID}/stream`),
  "DELETE /api/v1/sandboxes/{id}/exec/{exec_id}": ofSandbox(409, "DELETE", `/exec/${EXEC_ID}`),
  "GET /v1/sandbox-nodes/layers/{build_id}/{fence}/{part}": {
    request: get("/v1/sandbox-nodes/layers/01890a5d-ac96-774b-bcce-b302099a8057/1/0"),
    answer: () => 404,
  },
  "POST /v1/sandbox-nodes/jobs/{job_id}/layer/{part}": {
    ...ofNoSandbox("POST", "layer/0", { bytes: "AA==" }),
    answer: () => 409,
  },
  // Whoever does not ask for a WebSocket is told so.
  "GET /api/v1/sandboxes/{id}/shell": { request: get(`${SANDBOXES}/x/shell`), answer: () => 426 },
  "POST /api/v1/sandboxes/{id}/sessions": ofSandbox(201, "POST", "/sessions", {}),
  "GET /api/v1/sandboxes/{id}/sessions": ofSandbox(200, "GET", "/sessions"),
  "GET /api/v1/sessions/{sid}": ofSession(200, "GET"),
  "POST /api/v1/sessions/{sid}/messages": ofSession(409, "POST", "/messages", {
    role: "user",
    content: [{ type: "text", text: "x" }],
  }),
  "POST /api/v1/sessions/{sid}/interrupt": ofSession(409, "POST", "/interrupt"),
  // That of one that is there does not end.
  "GET /api/v1/sessions/{sid}/stream": { request: get("/api/v1/sessions/x/stream"), answer: () => 404 },
  "GET /api/v1/sandboxes/{id}/files": ofSandbox(409, "GET", "/files"),
  "GET /api/v1/sandboxes/{id}/files/{*path}": ofSandbox(409, "GET", "/files/a"),
  "PUT /api/v1/sandboxes/{id}/files/{*path}": {
    request: async (world) => ({ method: "PUT", path: `${await newSandbox(world)}/files/a`, body: "x" }),
    answer: (caller) => (isFullAdmin(caller) ? 409 : 404),
  },
  "DELETE /api/v1/sandboxes/{id}/files/{*path}": ofSandbox(409, "DELETE", "/files/a"),
  ...Object.fromEntries(PORT_SAMPLES),
  "POST /api/v1/workspaces": { request: () => jsonRequest("POST", WORKSPACES, WORKSPACE), answer: () => 201 },
  "GET /api/v1/workspaces": { request: get(WORKSPACES), answer: ok },
  "GET /api/v1/workspaces/{id}": ofWorkspace(200, "GET"),
  "PUT /api/v1/workspaces/{id}": ofWorkspace(200, "PUT", "", { name: "other" }),
  "DELETE /api/v1/workspaces/{id}": ofWorkspace(204, "DELETE"),
  "POST /api/v1/workspaces/{id}/launch": ofWorkspace(202, "POST", "/launch"),
  "GET /api/v1/workspaces/{id}/sandboxes": ofWorkspace(200, "GET", "/sandboxes"),
  "GET /api/v1/workspaces/{id}/export": ofWorkspace(200, "GET", "/export"),
  "POST /api/v1/workspaces/import": {
    request: () => ({
      method: "POST",
      path: `${WORKSPACES}/import`,
      body: '[workspace]\nname = "it"\n[workspace.agent]\nprovider = "codex"\n',
      headers: { "content-type": "text/plain" },
    }),
    answer: () => 201,
  },
  // No node has what it would be built on.
  "POST /api/v1/images/build": {
    request: () => jsonRequest("POST", "/api/v1/images/build", { provider: "codex" }),
    answer: () => 400,
  },
  "GET /api/v1/images": { request: get("/api/v1/images"), answer: ok },
  "GET /api/v1/images/builds/{build_id}": { request: get("/api/v1/images/builds/none"), answer: () => 404 },
  "PATCH /api/v1/images/{image_id}": {
    request: () => jsonRequest("PATCH", "/api/v1/images/none", { shared: true }),
    answer: () => 404,
  },
  "DELETE /api/v1/images/{image_id}": {
    request: () => ({ method: "DELETE", path: "/api/v1/images/none" }),
    answer: () => 404,
  },
  "GET /api/v1/volumes": { request: get("/api/v1/volumes"), answer: ok },
  "DELETE /api/v1/volumes/{id}": {
    request: () => ({ method: "DELETE", path: "/api/v1/volumes/none" }),
    answer: () => 404,
  },
  "POST /v1/sandbox-nodes/report": {
    request: () => jsonRequest("POST", "/v1/sandbox-nodes/report", FULL_NODE),
    answer: ok,
  },
  "GET /v1/sandbox-nodes/jobs/{job_id}/order": ofNoSandbox("GET", "order"),
  "GET /v1/sandbox-nodes/jobs/{job_id}/sessions/{sid}/history": ofNoSandbox("GET", "sessions/none/history"),
  "POST /v1/sandbox-nodes/jobs/{job_id}/batches": ofNoSandbox("POST", "batches", { number: 1, events: [] }),
  // Whoever does not ask for a WebSocket is told so.
  "GET /v1/sandbox-nodes/link": { request: get("/v1/sandbox-nodes/link"), answer: () => 426 },
  "GET /v1/sandbox-nodes": { request: get("/v1/sandbox-nodes"), answer: ok },
  "PUT /v1/sandbox-nodes/{id}/cap": {
    request: () => jsonRequest("PUT", "/v1/sandbox-nodes/none/cap", { sandboxes: 1 }),
    answer: () => 404,
  },
};
