import { sleep, systemClock } from "../../src/core/clock.ts";
import { inA, inDatabaseA, isFullAdmin, newName, type Sample } from "./sample.test-kit.ts";
import { jsonRequest, type World } from "./world.test-kit.ts";

async function newMemory(world: World): Promise<string> {
  const id = newName();
  const memory = { id, content: id };
  const admin = world.callers.find(isFullAdmin);
  const reply = await world.send(inA("POST", "/v1/agent/memory/import", { memory_nodes: [memory] }), admin);
  if (reply.status !== 200) throw new Error(`the import was answered ${reply.status}`);
  return id;
}

const DREAM = "/v1/agent/memory/dreaming/run";

/**
 * Waits until no dream of `a` is under way, and gives the id of the newest: until its job has ended, which it does after
 * the run, for until then the next one is the same. The world has no events, so none lasts.
 */
async function restfulDream(world: World): Promise<string | undefined> {
  const admin = world.callers.find(isFullAdmin);
  for (; ; await sleep(systemClock, 20)) {
    const { json } = await world.send(inA("GET", `${DREAM}s?limit=1`), admin);
    const [newest] = json["runs"] as { id: string; job_id: string }[];
    if (newest === undefined) return undefined;
    const job = await world.send({ method: "GET", path: `/v1/jobs/${newest.job_id}` }, admin);
    if (["done", "failed", "cancelled"].includes(String(job.json["status"]))) return newest.id;
  }
}

async function pastDream(world: World): Promise<string> {
  const past = await restfulDream(world);
  if (past !== undefined) return past;
  const reply = await world.send(inA("POST", DREAM, {}), world.callers.find(isFullAdmin));
  if (reply.status !== 202) throw new Error(`a dream was answered ${reply.status}`);
  return (await restfulDream(world)) ?? "";
}

/** Of the catalog's graph, as the database `a` has it. */
const GRAPH_SAMPLES: Record<string, Sample> = Object.fromEntries(
  (
    [
      ["GET", "/v1/graph"],
      ["GET", "/v1/graph/{graph}/overview"],
      ["GET", "/v1/graph/{graph}/stats"],
      ["GET", "/v1/graph/{graph}/schema"],
      ["GET", "/v1/graph/{graph}/nodes/{id}"],
      ["GET", "/v1/graph/{graph}/nodes/{id}/subgraph"],
      ["POST", "/v1/graph/{graph}/neighbors", { node_ids: ["database:a"] }],
      ["POST", "/v1/graph/{graph}/search", { text: "a" }],
    ] as const
  ).map(([method, path, body]): [string, Sample] => {
    const filled = path.replace("{graph}", "schema").replace("{id}", "database:a");
    return [`${method} ${path}`, { request: () => inA(method, filled, body), answer: inDatabaseA(403) }];
  }),
);

const DASHBOARDS = "/v1/dashboards";
const QUERY_IN_A = { language: "sql", text: "SELECT 1", database: "a" };
const PANEL_IN_A = { type: "table", grid: { x: 0, y: 0, w: 24, h: 8 }, queries: [QUERY_IN_A] };

async function newDashboard(world: World): Promise<string> {
  const body = { name: newName(), panels: [PANEL_IN_A] };
  const reply = await world.send(jsonRequest("POST", DASHBOARDS, body), world.callers.find(isFullAdmin));
  if (reply.status !== 201) throw new Error(`a dashboard was answered ${reply.status}`);
  return String(reply.json["id"]);
}

/** Of a dashboard whose query runs in the database `a`: to callers of others there is none. */
const DASHBOARD_SAMPLES: Record<string, Sample> = {
  [`GET ${DASHBOARDS}`]: { request: () => ({ method: "GET", path: DASHBOARDS }), answer: () => 200 },
  [`POST ${DASHBOARDS}`]: {
    request: () => jsonRequest("POST", DASHBOARDS, { name: newName(), panels: [PANEL_IN_A] }),
    answer: (caller) => (caller?.limit === "b" ? 404 : 201),
  },
  ...Object.fromEntries(
    (
      [
        ["GET", ""],
        ["PATCH", "", { name: "another" }],
        ["DELETE", ""],
        ["GET", "/versions"],
        ["GET", "/versions/{version}"],
        ["POST", "/versions/{version}/restore"],
      ] as const
    ).map(([method, rest, body]): [string, Sample] => [
      `${method} ${DASHBOARDS}/{id}${rest}`,
      {
        request: async (world) =>
          jsonRequest(method, `${DASHBOARDS}/${await newDashboard(world)}${rest.replace("{version}", "1")}`, body),
        answer: inDatabaseA(404),
      },
    ]),
  ),
};

/** Of the routes of memories, graphs and dashboards. */
export const KNOWLEDGE_SAMPLES: Readonly<Record<string, Sample>> = {
  "POST /v1/agent/memory/query": {
    request: () => inA("POST", "/v1/agent/memory/query", { query: "what is it?" }),
    answer: inDatabaseA(403),
  },
  "GET /v1/agent/memory/overview": { request: () => inA("GET", "/v1/agent/memory/overview"), answer: inDatabaseA(403) },
  "GET /v1/agent/memory/settings": { request: () => inA("GET", "/v1/agent/memory/settings"), answer: inDatabaseA(403) },
  "PUT /v1/agent/memory/settings": {
    request: () => inA("PUT", "/v1/agent/memory/settings", { recall: { limit: 5 } }),
    answer: inDatabaseA(403),
  },
  "GET /v1/agent/memory/export": { request: () => inA("GET", "/v1/agent/memory/export"), answer: inDatabaseA(403) },
  "GET /v1/agent/memory/changes": { request: () => inA("GET", "/v1/agent/memory/changes"), answer: inDatabaseA(403) },
  "POST /v1/agent/memory/import": {
    request: () => inA("POST", "/v1/agent/memory/import", { memory_nodes: [{ content: newName() }] }),
    answer: inDatabaseA(403),
  },
  "GET /v1/agent/memory/nodes/{id}": {
    request: async (world) => inA("GET", `/v1/agent/memory/nodes/${await newMemory(world)}`),
    answer: inDatabaseA(403),
  },
  "DELETE /v1/agent/memory/nodes/{id}": {
    request: async (world) => inA("DELETE", `/v1/agent/memory/nodes/${await newMemory(world)}`),
    answer: inDatabaseA(403),
  },
  "POST /v1/agent/memory/nodes/{id}/invalidate": {
    request: async (world) => inA("POST", `/v1/agent/memory/nodes/${await newMemory(world)}/invalidate`, {}),
    answer: inDatabaseA(403),
  },
  "POST /v1/agent/memory/nodes/{id}/restore": {
    request: async (world) => inA("POST", `/v1/agent/memory/nodes/${await newMemory(world)}/restore`),
    answer: inDatabaseA(403),
  },
  "POST /v1/agent/memory/dreaming/run": {
    request: async (world) => {
      await restfulDream(world);
      return inA("POST", DREAM, {});
    },
    answer: (caller) => (caller?.limit === "b" ? 403 : 202),
  },
  "GET /v1/agent/memory/dreaming/runs": { request: () => inA("GET", `${DREAM}s`), answer: inDatabaseA(403) },
  "GET /v1/agent/memory/dreaming/runs/{id}": {
    request: async (world) => inA("GET", `${DREAM}s/${await pastDream(world)}`),
    answer: inDatabaseA(403),
  },
  "POST /v1/agent/memory/dreaming/runs/{id}/revert": {
    request: async (world) => inA("POST", `${DREAM}s/${await pastDream(world)}/revert`),
    answer: inDatabaseA(403),
  },
  ...GRAPH_SAMPLES,
  ...DASHBOARD_SAMPLES,
};
