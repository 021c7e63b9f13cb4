import { inDatabaseA, isFullAdmin, type Sample } from "./sample.test-kit.ts";
import { jsonRequest, type TestCaller, type World } from "./world.test-kit.ts";

const ASK = "/v1/agent/ask";
const QUESTION = { question: "What is it?", database: "a" };
export const ENGINE = { kind: "localmodel", model: "none", credential_id: null, host: null, extras: {} };

/** What the admin's question was told of its run; there is no engine, so that it has failed. */
async function asked(world: World): Promise<{ run: string; session: string }> {
  const reply = await world.send(jsonRequest("POST", ASK, QUESTION), world.callers.find(isFullAdmin));
  return idsIn(reply.text);
}

export function idsIn(events: string): { run: string; session: string } {
  const [, run, session] = /"run_id":"([^"]+)","session_id":"([^"]+)"/u.exec(events) ?? [];
  if (run === undefined || session === undefined) throw new Error(`no run began: ${events}`);
  return { run, session };
}

/** Of the admin's, about the database `a`; the API tokens are the admin's, too. */
const forAdminsOfA = (caller: TestCaller | undefined) => {
  const isTheirs = caller?.role === "admin" || caller?.kind === "api_token";
  return isTheirs && caller.limit !== "b" ? 200 : 404;
};
const ok = () => 200;

function ofSession(method: string, rest = ""): Sample {
  return {
    request: async (world) => jsonRequest(method, `/v1/agent/sessions/${(await asked(world)).session}${rest}`),
    answer: forAdminsOfA,
  };
}

const get = (path: string) => () => jsonRequest("GET", path);

/** Of the routes of the agent. */
export const AGENT_SAMPLES: Readonly<Record<string, Sample>> = {
  "POST /v1/agent/ask": { request: () => jsonRequest("POST", ASK, QUESTION), answer: inDatabaseA(403) },
  "GET /v1/agent/runs/{run_id}": {
    request: async (world) => jsonRequest("GET", `/v1/agent/runs/${(await asked(world)).run}`),
    answer: forAdminsOfA,
  },
  "GET /v1/agent/sessions": { request: get("/v1/agent/sessions"), answer: ok },
  "GET /v1/agent/sessions/{session_id}": ofSession("GET"),
  "GET /v1/agent/sessions/{session_id}/turns": ofSession("GET", "/turns"),
  "DELETE /v1/agent/sessions/{session_id}": ofSession("DELETE"),
  "GET /v1/agent/engines": { request: get("/v1/agent/engines"), answer: ok },
  "GET /v1/agent/engine": {
    request: async (world) => {
      await world.admin("PUT", "/v1/agent/engine", ENGINE);
      return jsonRequest("GET", "/v1/agent/engine");
    },
    answer: ok,
  },
  "PUT /v1/agent/engine": { request: () => jsonRequest("PUT", "/v1/agent/engine", ENGINE), answer: ok },
  // Nothing listens at its host.
  "POST /v1/agent/engine/test": {
    request: () => jsonRequest("POST", "/v1/agent/engine/test", ENGINE),
    answer: () => 502,
  },
  "GET /v1/agent/skills": { request: get("/v1/agent/skills"), answer: ok },
  "GET /v1/agent/skills/enabled": { request: get("/v1/agent/skills/enabled"), answer: ok },
  "PUT /v1/agent/skills/enabled": {
    request: () => jsonRequest("PUT", "/v1/agent/skills/enabled", { skills: ["engine-sql"] }),
    answer: ok,
  },
};
