import { afterAll, beforeAll, expect, test } from "vitest";
import { Sessions } from "../sessions/sessions.ts";
import { agentRoutes, ANN } from "./routes.test-kit.ts";
import { SESSION_ROUTES } from "./sessions.ts";

const routes = agentRoutes();
const { clock, newId, records } = routes;
const sessions = new Sessions(routes);

beforeAll(() => routes.serve(SESSION_ROUTES, { sessions }));
afterAll(() => routes.close());

const call = async (who: string, method: string, path: string) =>
  await routes.call(who, method, `/v1/agent/sessions${path}`);

async function conversation(): Promise<string> {
  const run = { caller: ANN, database: "default", runId: newId(), along: () => [] };
  const { sessionId } = await sessions.begin({ ...run, question: "how many?", source: "cli" });
  await records.transact(sessions.endStatements({ sessionId, runId: run.runId, answer: "Twelve." }));
  return sessionId;
}

test("a session is listed, shown with its turns, and deleted", async () => {
  const id = await conversation();
  const item = {
    session_id: id,
    title: "how many?",
    database: "default",
    source: "cli",
    turn_count: 2,
    created_at: new Date(clock.nowMs()).toISOString(),
    last_active: new Date(clock.nowMs()).toISOString(),
  };
  expect(await call("ann", "GET", "")).toMatchObject({ status: 200, body: { sessions: [item] } });
  expect((await call("bob", "GET", "")).body).toEqual({ sessions: [] });
  expect((await call("root", "GET", "")).body).toEqual({ sessions: [item] });
  expect((await call("ann", "GET", `/${id.toUpperCase()}`)).body).toEqual({ ...item, rolling_summary: null });
  const { body } = await call("ann", "GET", `/${id}/turns`);
  expect(body).toMatchObject({
    turns: [
      { turn_index: 0, role: "user", content: "how many?" },
      { turn_index: 1, role: "assistant", content: "Twelve." },
    ],
    truncated: false,
  });
  expect((await call("ann", "GET", `/${id}/turns?after=0`)).body["turns"]).toHaveLength(1);
  expect(await call("ann", "DELETE", `/${id}`)).toMatchObject({ status: 200, body: { deleted: true } });
  expect(await call("ann", "DELETE", `/${id}`)).toMatchObject({ status: 404, code: "session_not_found" });
  expect((await call("ann", "GET", "")).body).toEqual({ sessions: [] });
});

test("another's session is not there, and an id that is no UUID is refused", async () => {
  const id = await conversation();
  const all = (session: string) =>
    [
      ["GET", `/${session}`],
      ["GET", `/${session}/turns`],
      ["DELETE", `/${session}`],
    ] as const;
  for (const [method, path] of [...all(id), ...all("00000000-0000-0000-0000-000000000001")]) {
    expect(await call("bob", method, path)).toMatchObject({ status: 404, code: "session_not_found" });
  }
  for (const [method, path] of [...all("x"), ...all("%00"), ...all(`${id}0`)]) {
    expect(await call("ann", method, path)).toMatchObject({ status: 400, code: "invalid_parameter" });
  }
  for (const after of ["-1", "x", "1.5"]) {
    expect(await call("ann", "GET", `/${id}/turns?after=${after}`)).toMatchObject({ status: 400 });
  }
  expect(await call("root", "GET", `/${id}`)).toMatchObject({ status: 200 });
});
