import { OPEN_TABLE_SAMPLES } from "./samples-open-tables.test-kit.ts";
import { MISSING_ID, newName, type Naming, type OwnedRoute, type Tenant } from "./owned.test-kit.ts";
import { ENGINE, idsIn } from "./samples-agent.test-kit.ts";
import { flightRequest, jsonRequest, type TestRequest } from "./world.test-kit.ts";

const CREDENTIALS = "/v1/credentials";
const PAT = { kind: "pat", token: "a token of a tenant" };
const SCHEDULE = { kind: "x.untouched", database: "a", timing: { every_ms: 86_400_000 } };
const EXPORT = { query: "SELECT 1 AS one", database: "a" };

async function newCredential({ ask }: Tenant, value: Record<string, unknown> = PAT): Promise<string> {
  return String((await ask("POST", CREDENTIALS, { label: newName(), value }))["id"]);
}

async function newJob({ ask }: Tenant, more: Record<string, unknown> = {}): Promise<string> {
  return String((await ask("POST", "/v1/jobs", { kind: "x.untouched", ...more }))["job_id"]);
}

async function cancelledJob(tenant: Tenant): Promise<string> {
  const id = await newJob(tenant);
  await tenant.ask("POST", `/v1/jobs/${id}/cancel`);
  return id;
}

/** A job of the tenant's that the tenant's worker holds, for the first time. */
async function heldJob(tenant: Tenant, more: Record<string, unknown> = {}): Promise<string> {
  const kind = `x.${newName().replace("-", "_")}`;
  const id = await newJob(tenant, { kind, ...more });
  const claim = jsonRequest("POST", "/v1/jobs/claim", { kinds: [kind] });
  const { json } = await tenant.world.send(claim, tenant.worker);
  const [job] = json["jobs"] as { id: string }[];
  if (job?.id !== id) throw new Error("the tenant's worker did not get the tenant's job");
  return id;
}

const FENCE = { "x-job-fence": "1" };

function ofHolder({ headers, ...request }: TestRequest): TestRequest {
  return { ...request, headers: { ...headers, ...FENCE } };
}

/** What the holder writes; an admin holds no more than others. */
function heldBy(verb: string, body: unknown, answer: number): OwnedRoute {
  const request = (id: string) => ofHolder(jsonRequest("POST", `/v1/jobs/${id}/${verb}`, body));
  return { names: { "path id": { make: heldJob, request, answer, adminAnswer: 409, stranger: 409, by: "worker" } } };
}

async function newWorker({ ask }: Tenant): Promise<string> {
  return String((await ask("POST", "/v1/workers", { name: newName() }))["worker_id"]);
}

async function newSchedule({ ask }: Tenant): Promise<string> {
  return String((await ask("POST", "/v1/schedules", { ...SCHEDULE, name: newName() }))["id"]);
}

async function newExport({ ask }: Tenant): Promise<string> {
  return String((await ask("POST", "/v1/exports", EXPORT))["id"]);
}

async function doneExport(tenant: Tenant): Promise<string> {
  const id = await newExport(tenant);
  for (let i = 0; i < 200; i++) {
    const { status, error } = await tenant.ask("GET", `/v1/exports/${id}`);
    if (status === "done") return id;
    if (status === "failed") throw new Error(`the export failed: ${String(error)}`);
    await new Promise((resolve) => void setTimeout(resolve, 50));
  }
  throw new Error("the export is not done");
}

async function newFlow({ ask }: Tenant): Promise<string> {
  const app = { client_id: "an-app", client_secret: "a-secret" };
  return String((await ask("POST", "/v1/oauth/google/start", { data_source_type: "drive", ...app }))["state"]);
}

/** Of routes whose only name is the id in the path. */
function byId(
  method: string,
  path: (id: string) => string,
  { make, answer = 200, body, ...more }: { make: Naming["make"]; body?: unknown } & Partial<Naming>,
): OwnedRoute {
  const request = (id: string) => jsonRequest(method, path(id), body);
  return { names: { "path id": { make, request, answer, ...more } } };
}

/** The same of one that is called otherwise. */
function byPath(
  name: string,
  method: string,
  path: (id: string) => string,
  make: (tenant: Tenant) => Promise<string>,
): OwnedRoute {
  return {
    names: { [`path ${name}`]: { make, request: (id) => jsonRequest(method, path(id)), answer: 200 } },
    plain: { "query after": "the number of an event or a turn" },
  };
}

const credentialPath = (id: string) => `${CREDENTIALS}/${id}`;
const jobPath =
  (rest = "") =>
  (id: string) =>
    `/v1/jobs/${id}${rest}`;
const schedulePath =
  (rest = "") =>
  (id: string) =>
    `/v1/schedules/${id}${rest}`;
const exportPath =
  (rest = "") =>
  (id: string) =>
    `/v1/exports/${id}${rest}`;
const workerPath =
  (rest = "") =>
  (id: string) =>
    `/v1/workers/${id}${rest}`;

/** An answer of 200 that tells nothing: the asker's own, whatever others have. */
const TOLD_NOTHING = { stranger: 200, answer: 200 } as const;
const CURSOR = "a place in the order of ids, whatever has that id";
const OWN_NAME = "a name that may be taken any number of times";
const OF_THE_VALUE = "a part of the secret that is stored";

async function asked(tenant: Tenant): Promise<{ run: string; session: string }> {
  const reply = await tenant.world.send(jsonRequest("POST", "/v1/agent/ask", { question: newName() }), tenant);
  return idsIn(reply.text);
}
const newSession = async (tenant: Tenant) => (await asked(tenant)).session;
const newRun = async (tenant: Tenant) => (await asked(tenant)).run;
const sessionPath =
  (rest = "") =>
  (id: string) =>
    `/v1/agent/sessions/${id}${rest}`;
/** One that its owner does not share is no engine's key, whoever asks. */
const NO_KEY_OF_ENGINES = { make: newCredential, answer: 400, stranger: 400 } as const;
const asEngine = (credentialId: string) => ({ ...ENGINE, kind: "anthropic", credential_id: credentialId });

function ofCandidate(method: string, path: string): OwnedRoute {
  const request = (id: string) => jsonRequest(method, path, asEngine(id));
  return {
    names: { "body credential_id": { ...NO_KEY_OF_ENGINES, request } },
    plain: { "body host": "an address that the operator has listed" },
  };
}

/** A query that is over, by its id. */
async function newQuery(tenant: Tenant): Promise<string> {
  const request = { method: "POST", path: "/v1/query", headers: { "x-database": "a" }, body: "SELECT 1" };
  const { headers } = await tenant.world.send(request, tenant);
  return headers["x-engine-query-id"] ?? "";
}

/** Routes of the engine itself that name or list records with owners. */
export const ENGINE_ROUTES: Readonly<Record<string, OwnedRoute>> = {
  "POST /v1/query": {
    lists: {
      make: async (tenant) => {
        const marker = newName();
        const headers = { "x-database": "a" };
        await tenant.world.send({ method: "POST", path: "/v1/query", headers, body: `SELECT '${marker}'` }, tenant);
        return marker;
      },
      request: () => ({
        method: "POST",
        path: "/v1/query",
        headers: { "x-database": "a" },
        body: "SELECT text FROM system.queries",
      }),
    },
  },

  "POST /v1/agent/ask": {
    names: {
      "body session_id": {
        make: newSession,
        request: (id) => jsonRequest("POST", "/v1/agent/ask", { question: "And?", session_id: id }),
        answer: 200,
      },
    },
  },
  "GET /v1/agent/runs/{run_id}": byPath("run_id", "GET", (id) => `/v1/agent/runs/${id}`, newRun),
  "GET /v1/agent/sessions": {
    lists: { make: newSession, request: () => jsonRequest("GET", "/v1/agent/sessions") },
  },
  "GET /v1/agent/sessions/{session_id}": byPath("session_id", "GET", sessionPath(), newSession),
  "GET /v1/agent/sessions/{session_id}/turns": byPath("session_id", "GET", sessionPath("/turns"), newSession),
  "DELETE /v1/agent/sessions/{session_id}": byPath("session_id", "DELETE", sessionPath(), newSession),
  "PUT /v1/agent/engine": ofCandidate("PUT", "/v1/agent/engine"),
  "POST /v1/agent/engine/test": ofCandidate("POST", "/v1/agent/engine/test"),

  "GET /v1/query": {
    lists: {
      make: async (tenant) => {
        const marker = newName();
        const path = `/v1/query?database=a&q=SELECT+'${marker}'`;
        await tenant.world.send({ method: "GET", path }, tenant);
        return marker;
      },
      request: () => ({ method: "GET", path: "/v1/query?database=a&q=SELECT+text+FROM+system.queries" }),
    },
  },

  "GET /v1/queries": {
    lists: { make: newQuery, request: () => jsonRequest("GET", "/v1/queries") },
    plain: { "query state": "whether it runs" },
  },
  "GET /v1/queries/{id}": byId("GET", (id) => `/v1/queries/${id}`, { make: newQuery }),
  // It is over, and stays so.
  "DELETE /v1/queries/{id}": byId("DELETE", (id) => `/v1/queries/${id}`, { make: newQuery, answer: 204 }),

  "POST /flight/{*method}": {
    lists: {
      make: async (tenant) => {
        const marker = newName();
        await tenant.world.send(flightRequest(`SELECT '${marker}'`, "a"), tenant);
        return marker;
      },
      request: () => flightRequest("SELECT text FROM system.queries", "a"),
    },
  },

  "POST /v1/auth/tokens": { plain: { "body name": OWN_NAME } },
  "GET /v1/auth/tokens": {
    lists: {
      make: async ({ ask }) => String((await ask("POST", "/v1/auth/tokens", { name: newName() }))["id"]),
      request: () => ({ method: "GET", path: "/v1/auth/tokens" }),
    },
  },
  "DELETE /v1/auth/tokens/{id}": byId("DELETE", (id) => `/v1/auth/tokens/${id}`, {
    make: async ({ ask }) => String((await ask("POST", "/v1/auth/tokens", { name: newName() }))["id"]),
  }),

  "POST /v1/credentials": {
    plain: {
      "body label": OWN_NAME,
      "body value.client_id": OF_THE_VALUE,
      "body value.access_key_id": OF_THE_VALUE,
      "body value.secret_access_key": OF_THE_VALUE,
      "body value.key": OF_THE_VALUE,
      "body value.app_id": OF_THE_VALUE,
      "body value.installation_id": OF_THE_VALUE,
      "body value.private_key": OF_THE_VALUE,
    },
  },
  "GET /v1/credentials": {
    lists: { make: newCredential, request: () => ({ method: "GET", path: CREDENTIALS }) },
  },
  "GET /v1/credentials/{id}": byId("GET", credentialPath, { make: newCredential }),
  "PATCH /v1/credentials/{id}": byId("PATCH", credentialPath, { make: newCredential, body: { shared: false } }),
  "DELETE /v1/credentials/{id}": byId("DELETE", credentialPath, { make: newCredential }),

  "POST /v1/oauth/{provider}/start": {
    plain: { "body label": OWN_NAME, "body client_id": "of an app at the provider" },
  },
  "GET /v1/oauth/flows/{state}": {
    names: {
      "path state": {
        make: newFlow,
        request: (state) => ({ method: "GET", path: `/v1/oauth/flows/${state}` }),
        answer: 200,
        missing: "A".repeat(43),
      },
    },
  },
  "POST /api/v1/oauth/{provider}/device-poll": {
    names: {
      "body device_code": {
        make: async ({ ask }) => {
          return String((await ask("GET", "/api/v1/oauth/an-issuer/device-code"))["device_code"]);
        },
        request: (device_code) => jsonRequest("POST", "/api/v1/oauth/an-issuer/device-poll", { device_code }),
        answer: 202,
        missing: "A".repeat(43),
      },
    },
  },
  "POST /api/v1/oauth/{provider}/refresh": {
    names: {
      "body credential_id": {
        make: (tenant) => {
          const tokens = { access_token: "a-1", refresh_token: "r-1", provider: "an-issuer" };
          return newCredential(tenant, { kind: "oauth2", ...tokens });
        },
        request: (credential_id) => jsonRequest("POST", "/api/v1/oauth/an-issuer/refresh", { credential_id }),
        answer: 200,
      },
    },
  },

  "POST /v1/workers": {
    plain: { "body name": OWN_NAME, "body labels": "of the new worker" },
  },
  "GET /v1/workers": { lists: { make: newWorker, request: () => ({ method: "GET", path: "/v1/workers" }) } },
  "DELETE /v1/workers/{id}": byId("DELETE", workerPath(), { make: newWorker }),
  "POST /v1/workers/{id}/drain": byId("POST", workerPath("/drain"), { make: newWorker, body: { drain: true } }),
  // For admins alone, whosever the worker is.
  "POST /v1/workers/{id}/admit": byId("POST", workerPath("/admit"), {
    make: newWorker,
    body: { admitted: ["x.k"] },
    answer: 403,
    stranger: 403,
    adminAnswer: 200,
  }),
  "POST /v1/workers/register": {
    plain: { "body name": "of the machine", "body host": "of the machine" },
  },
  "POST /v1/workers/heartbeat": {
    lists: {
      make: async (tenant) => {
        const id = await heldJob(tenant);
        await tenant.ask("POST", `/v1/jobs/${id}/cancel`);
        return id;
      },
      request: () => jsonRequest("POST", "/v1/workers/heartbeat", {}),
      by: "worker",
      // Whoever owns the worker: what it holds is told to it alone.
      admin: "nothing",
    },
  },
  "POST /v1/jobs/claim": {
    lists: {
      make: (tenant) => newJob(tenant, { kind: "x.listed" }),
      request: () => jsonRequest("POST", "/v1/jobs/claim", { kinds: ["x.listed"] }),
      by: "worker",
    },
  },
  "POST /v1/jobs/self": {
    names: {
      "body dedup_key": {
        make: async (tenant) => {
          const dedup_key = newName();
          await tenant.world.send(
            jsonRequest("POST", "/v1/jobs/self", { kind: "x.untouched", dedup_key }),
            tenant.worker,
          );
          return dedup_key;
        },
        request: (dedup_key) => jsonRequest("POST", "/v1/jobs/self", { kind: "x.untouched", dedup_key }),
        by: "worker",
        missing: "a key that nothing has",
        answer: 200,
        adminAnswer: 202,
        stranger: 202,
      },
    },
    plain: { "body run_after": "a time" },
  },
  "POST /v1/jobs/{id}/progress": heldBy("progress", { done: 1 }, 200),
  "POST /v1/jobs/{id}/complete": heldBy("complete", null, 204),
  "POST /v1/jobs/{id}/fail": heldBy("fail", "it failed", 204),
  "POST /v1/jobs/{id}/lease": heldBy("lease", { lease_secs: 60 }, 200),
  "POST /v1/jobs/{id}/release": heldBy("release", undefined, 204),
  "POST /v1/jobs/{id}/logs": heldBy("logs", { lines: [{ level: "info", message: "hello" }] }, 204),
  // To its holder it is a job that is no dream: test/agent/dreaming-worker.test.ts.
  "POST /v1/jobs/{id}/dreaming/next": heldBy("dreaming/next", undefined, 404),
  "POST /v1/jobs/{id}/dreaming/apply": {
    ...heldBy("dreaming/apply", { position: "p", usage: { input_tokens: 0, output_tokens: 0 }, proposals: [] }, 404),
    plain: { "body failure.code": "a word of a list" },
  },
  "GET /v1/jobs/{id}/credentials/{credential_id}": {
    names: {
      "path id": {
        make: async (tenant) => await heldJob(tenant, { credentials: [await newCredential(tenant)] }),
        request: async (id, asker) => {
          // What the job names, where the asker may know; it is no matter where not.
          const credential = asker.name === "ann" ? await credentialOf(asker) : MISSING_ID;
          return ofHolder({ method: "GET", path: `/v1/jobs/${id}/credentials/${credential}` });
        },
        by: "worker",
        answer: 200,
        adminAnswer: 409,
        stranger: 409,
      },
      "path credential_id": {
        make: (tenant) => newCredential(tenant),
        request: async (id, asker) => {
          const { status } = await asker.world.send(jsonRequest("GET", credentialPath(id)), asker);
          const named = status === 200 ? { credentials: [id] } : {};
          return ofHolder({ method: "GET", path: `/v1/jobs/${await heldJob(asker, named)}/credentials/${id}` });
        },
        by: "worker",
        answer: 200,
      },
    },
  },

  "POST /v1/jobs": {
    names: {
      "body dedup_key": {
        make: async (tenant) => {
          const dedup_key = newName();
          await newJob(tenant, { dedup_key });
          return dedup_key;
        },
        request: (dedup_key) => jsonRequest("POST", "/v1/jobs", { kind: "x.untouched", dedup_key }),
        missing: "a key that nothing has",
        answer: 200,
        adminAnswer: 202,
        stranger: 202,
      },
      "body worker_id": {
        make: newWorker,
        request: (worker_id) => jsonRequest("POST", "/v1/jobs", { kind: "x.untouched", worker_id }),
        answer: 202,
        // It would not have an admin's job before an admin has admitted it.
        adminAnswer: 409,
      },
      "body credentials[]": {
        make: newCredential,
        request: (id) => jsonRequest("POST", "/v1/jobs", { kind: "x.untouched", credentials: [id] }),
        answer: 202,
      },
    },
    plain: {
      "body run_after": "a time",
      "body selector": "compared with labels of the workers that may have the job in any case",
    },
  },
  "GET /v1/jobs": {
    lists: { make: newJob, request: () => ({ method: "GET", path: "/v1/jobs?limit=500" }) },
    plain: { "query before": CURSOR },
  },
  "GET /v1/jobs/{id}": byId("GET", jobPath(), { make: newJob }),
  "POST /v1/jobs/{id}/cancel": byId("POST", jobPath("/cancel"), { make: newJob }),
  "POST /v1/jobs/{id}/retry": byId("POST", jobPath("/retry"), { make: cancelledJob }),
  "GET /v1/jobs/{id}/events": {
    ...byId("GET", jobPath("/events"), { make: cancelledJob }),
    plain: { "query after": "the number of a line" },
  },

  "POST /v1/schedules": {
    names: {
      "body name": {
        make: async ({ ask }) => {
          const name = newName();
          await ask("POST", "/v1/schedules", { ...SCHEDULE, name });
          return name;
        },
        request: (name) => jsonRequest("POST", "/v1/schedules", { ...SCHEDULE, name }),
        missing: "a name that nothing has",
        stranger: 200,
        answer: 409,
        adminAnswer: 200,
      },
    },
  },
  "GET /v1/schedules": {
    names: {
      "query after": {
        make: newSchedule,
        request: (after) => ({ method: "GET", path: `/v1/schedules?limit=1&after=${after}` }),
        ...TOLD_NOTHING,
      },
    },
    lists: { make: newSchedule, request: () => ({ method: "GET", path: "/v1/schedules?limit=500" }) },
  },
  "GET /v1/schedules/{id}": byId("GET", schedulePath(), { make: newSchedule }),
  "PATCH /v1/schedules/{id}": byId("PATCH", schedulePath(), { make: newSchedule, body: { enabled: false } }),
  "DELETE /v1/schedules/{id}": byId("DELETE", schedulePath(), { make: newSchedule }),
  "POST /v1/schedules/{id}/run": byId("POST", schedulePath("/run"), { make: newSchedule, answer: 202 }),

  "GET /v1/exports/{id}": byId("GET", exportPath(), { make: newExport }),
  "DELETE /v1/exports/{id}": byId("DELETE", exportPath(), { make: newExport }),
  "GET /v1/exports/{id}/download": byId("GET", exportPath("/download"), { make: doneExport }),
};

/** The newest of the tenant's. */
async function credentialOf({ ask }: Tenant): Promise<string> {
  const [newest] = (await ask("GET", CREDENTIALS))["credentials"] as { id: string }[];
  if (newest === undefined) throw new Error("the tenant has no credential");
  return newest.id;
}

const OF_THE_PROCESS = "about the process itself";
const OF_DATABASES = "about data, which follows the databases of a caller";
const OF_ADMINS = "for admins, who may see everything";
const OF_REALMS =
  "of a database, and of the user in the name of its realm: src/knowledge/memory/contract.test-kit.ts, " +
  "test/api/recall.test.ts";
const OF_DREAMS = "of a database: a dream reads and writes no realm of one user: test/agent/dreaming.test.ts";
const OF_WORKBENCH =
  "of the caller, or shared by its owner: src/workbench/contract.test-kit.ts, test/api/workbench.test.ts";
const OF_GRAPHS = "of a database, of its tables and of the realms of its memory: test/api/graph.test.ts";
const OF_DASHBOARDS =
  "of the databases that its queries run in, whoever made it: src/knowledge/dashboards/contract.test-kit.ts, " +
  "test/api/dashboards.test.ts";
const OF_THE_INSTALLATION = "of the installation, which everybody's questions use";
const OF_PAGES = "the files of the pages, which are everybody's";
const OF_SELF = "about the caller's own sign-in";
const OF_BROWSERS = "for browsers that a provider sends back: the unguessable state is the right";

/** Those that do neither: why. */
export const ENGINE_ROUTES_WITHOUT: Readonly<Record<string, string>> = {
  "POST /v1/query/check": "a query that does not run: it reads no rows, of nothing",
  "GET /health": OF_THE_PROCESS,
  "GET /metrics": OF_THE_PROCESS,
  "GET /docs": OF_THE_PROCESS,
  "GET /v1/openapi.json": OF_THE_PROCESS,
  ...Object.fromEntries(Object.keys(OPEN_TABLE_SAMPLES).map((name) => [name, OF_DATABASES])),
  "GET /v1/capabilities": OF_THE_INSTALLATION,
  "GET /v1/icons": OF_THE_INSTALLATION,
  "GET /v1/tail": OF_DATABASES,
  "GET /v1/catalog/schema": OF_DATABASES,
  "POST /v1/explore": OF_DATABASES,
  "POST /v1/ingest": OF_DATABASES,
  "POST /v1/logs": OF_DATABASES,
  "POST /v1/admin/databases/{database}/tables/{table}": OF_DATABASES,
  "GET /v1/admin/databases/{database}/tables/{table}": OF_DATABASES,
  "POST /v1/database/{db}/table/{table}/cleanup": OF_DATABASES,
  "POST /v1/admin/databases/{database}/tables/{table}/publish": OF_DATABASES,
  "DELETE /v1/catalog/tables/{table}": OF_DATABASES,
  "DELETE /v1/catalog/databases/{database}": OF_DATABASES,
  "POST /v1/catalog/tables/{table}/delete": OF_DATABASES,
  "GET /v1/catalog/deletions": OF_DATABASES,
  "GET /v1/catalog/deletions/{id}": OF_DATABASES,
  "POST /v1/agent/memory/query": OF_REALMS,
  "GET /v1/agent/memory/overview": OF_REALMS,
  "GET /v1/agent/memory/settings": OF_REALMS,
  "PUT /v1/agent/memory/settings": OF_REALMS,
  "GET /v1/agent/memory/export": OF_REALMS,
  "GET /v1/agent/memory/changes": OF_REALMS,
  "POST /v1/agent/memory/import": OF_REALMS,
  "GET /v1/agent/memory/nodes/{id}": OF_REALMS,
  "POST /v1/agent/memory/nodes/{id}/invalidate": OF_REALMS,
  "POST /v1/agent/memory/nodes/{id}/restore": OF_REALMS,
  "DELETE /v1/agent/memory/nodes/{id}": OF_REALMS,
  "POST /v1/agent/memory/dreaming/run": OF_DREAMS,
  "GET /v1/agent/memory/dreaming/runs": OF_DREAMS,
  "GET /v1/agent/memory/dreaming/runs/{id}": OF_DREAMS,
  "POST /v1/agent/memory/dreaming/runs/{id}/revert": OF_DREAMS,
  "GET /v1/agent/engines": OF_THE_INSTALLATION,
  "GET /v1/agent/engine": OF_THE_INSTALLATION,
  "GET /v1/agent/skills": OF_THE_INSTALLATION,
  "GET /v1/agent/skills/enabled": OF_THE_INSTALLATION,
  "PUT /v1/agent/skills/enabled": OF_THE_INSTALLATION,
  "GET /v1/graph": OF_GRAPHS,
  "GET /v1/graph/{graph}/overview": OF_GRAPHS,
  "GET /v1/graph/{graph}/stats": OF_GRAPHS,
  "GET /v1/graph/{graph}/schema": OF_GRAPHS,
  "GET /v1/graph/{graph}/nodes/{id}": OF_GRAPHS,
  "GET /v1/graph/{graph}/nodes/{id}/subgraph": OF_GRAPHS,
  "POST /v1/graph/{graph}/neighbors": OF_GRAPHS,
  "POST /v1/graph/{graph}/search": OF_GRAPHS,
  "GET /v1/saved-queries": OF_WORKBENCH,
  "POST /v1/saved-queries": OF_WORKBENCH,
  "GET /v1/saved-queries/{id}": OF_WORKBENCH,
  "PATCH /v1/saved-queries/{id}": OF_WORKBENCH,
  "DELETE /v1/saved-queries/{id}": OF_WORKBENCH,
  "GET /v1/query-history": OF_WORKBENCH,
  "POST /v1/query-history": OF_WORKBENCH,
  "DELETE /v1/query-history": OF_WORKBENCH,
  "DELETE /v1/query-history/{id}": OF_WORKBENCH,
  "GET /v1/auth/settings": OF_WORKBENCH,
  "PUT /v1/auth/settings": OF_WORKBENCH,
  "GET /v1/dashboards": OF_DASHBOARDS,
  "POST /v1/dashboards": OF_DASHBOARDS,
  "GET /v1/dashboards/{id}": OF_DASHBOARDS,
  "PATCH /v1/dashboards/{id}": OF_DASHBOARDS,
  "DELETE /v1/dashboards/{id}": OF_DASHBOARDS,
  "GET /v1/dashboards/{id}/versions": OF_DASHBOARDS,
  "GET /v1/dashboards/{id}/versions/{version}": OF_DASHBOARDS,
  "POST /v1/dashboards/{id}/versions/{version}/restore": OF_DASHBOARDS,
  "POST /mcp/v1": OF_REALMS,
  "GET /mcp/v1": OF_THE_PROCESS,
  "POST /v1/auth/login": OF_SELF,
  "POST /v1/auth/refresh": OF_SELF,
  "POST /v1/auth/logout": OF_SELF,
  "GET /v1/auth/config": OF_SELF,
  "GET /v1/auth/me": OF_SELF,
  "GET /": OF_PAGES,
  "GET /ui": OF_PAGES,
  "GET /ui/": OF_PAGES,
  "GET /ui/{*path}": OF_PAGES,
  "POST /v1/auth/web/login": OF_BROWSERS,
  "POST /v1/auth/web/token": OF_BROWSERS,
  "POST /v1/auth/web/logout": OF_BROWSERS,
  "GET /v1/auth/web/start": OF_BROWSERS,
  "GET /v1/auth/web/callback": OF_BROWSERS,
  "GET /v1/auth/sessions": OF_SELF,
  "DELETE /v1/auth/sessions": OF_SELF,
  "DELETE /v1/auth/sessions/{id}": OF_SELF,
  "PUT /v1/auth/password": OF_SELF,
  "GET /v1/admin/users": OF_ADMINS,
  "POST /v1/admin/users": OF_ADMINS,
  "PATCH /v1/admin/users/{username}": OF_ADMINS,
  "POST /v1/admin/users/{username}/password": OF_ADMINS,
  "DELETE /v1/admin/users/{username}": OF_ADMINS,
  "GET /v1/admin/audit": OF_ADMINS,
  "POST /v1/admin/ownership/transfer": OF_ADMINS,
  "GET /v1/admin/query-engines": OF_ADMINS,
  "POST /v1/admin/query-engines": OF_ADMINS,
  "POST /v1/admin/query-engines/{name}/test": OF_ADMINS,
  "DELETE /v1/admin/query-engines/{name}": OF_ADMINS,
  "GET /v1/oauth/{provider}/callback": OF_BROWSERS,
  "POST /v1/oauth/{provider}/callback": OF_BROWSERS,
  "GET /api/v1/oauth/{provider}/authorize": "makes a flow of the caller's, and names none",
  "GET /api/v1/oauth/{provider}/callback": OF_BROWSERS,
  "POST /api/v1/oauth/{provider}/callback": OF_BROWSERS,
  "GET /api/v1/oauth/{provider}/device-code": "makes a flow of the caller's, and names none",
  "POST /v1/exports": "makes an export of the caller's, and names none",
};
