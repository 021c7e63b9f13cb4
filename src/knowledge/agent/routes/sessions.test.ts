import { afterAll, beforeAll, expect, test } from "vitest";
import { ADMIN } from "../../../auth/access.test-kit.ts";
import { AuditLog } from "../../../auth/audit.ts";
import { createAuthenticator } from "../../../auth/authenticator.ts";
import type { Caller } from "../../../auth/caller.ts";
import { FailureLimit } from "../../../auth/failure-limit.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { serveApp } from "../../../server/app.test-kit.ts";
import { routesOf } from "../../../server/route.ts";
import { Sessions } from "../sessions/sessions.ts";
import { SESSION_ROUTES } from "./sessions.ts";

const CALLERS: Readonly<Record<string, Caller>> = {
  ann: { ...ADMIN, kind: "session", subject: "ann", role: "read" },
  bob: { ...ADMIN, kind: "session", subject: "bob", role: "write" },
  root: ADMIN,
};
const clock = new ManualClock();
const { catalog } = openMemoryCatalog(clock);
const newId = uuidV7Source(clock, systemRandom);
const audit = new AuditLog(catalog.records, newId);
const sessions = new Sessions({ records: catalog.records, newId, audit });
let server: Awaited<ReturnType<typeof serveApp>>;

beforeAll(async () => {
  const backend = { recognizes: () => true, authenticate: async (token: string) => CALLERS[token] };
  const failures = new FailureLimit({ clock });
  server = await serveApp({
    routes: routesOf(SESSION_ROUTES, { here: { sessions } }),
    authenticator: createAuthenticator({ isOn: true, backends: [backend], failures }),
    clock,
    newId,
    log: silentLog,
    metrics: createMetrics(),
  });
});
afterAll(async () => {
  await server.close();
  await catalog.close();
});

async function call(who: string, method: string, path: string) {
  const headers = { authorization: `Bearer ${who}` };
  const response = await fetch(`${server.url}/v1/agent/sessions${path}`, { method, headers });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, body, code: (body["error"] as { code?: string } | undefined)?.code };
}

async function conversation(): Promise<string> {
  const caller = CALLERS["ann"] ?? ADMIN;
  const run = { caller, database: "default", runId: newId(), along: () => [] };
  const { sessionId } = await sessions.begin({ ...run, question: "how many?", source: "cli" });
  await catalog.records.transact(sessions.endStatements({ sessionId, runId: run.runId, answer: "Twelve." }));
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
