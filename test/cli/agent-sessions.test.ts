import { afterEach, beforeEach, expect, test } from "vitest";
import { runHere, startServer, type TestServer } from "../../src/cli/cli.test-kit.ts";

const ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";
const SESSION = {
  session_id: ID,
  title: "how\u001b many?",
  database: "logs",
  source: null,
  turn_count: 2,
  created_at: "2026-01-01T00:00:00.000Z",
  last_active: "2026-01-02T00:00:00.000Z",
};
const turn = (index: number, role: string, content: string) => {
  return { turn_index: index, role, content, run_id: null, created_at: "2026-01-01T00:00:00.000Z" };
};
const ANSWERS: Readonly<Record<string, unknown>> = {
  "GET /v1/agent/sessions": { sessions: [SESSION] },
  [`GET /v1/agent/sessions/${ID}`]: { ...SESSION, rolling_summary: "they\ncount" },
  [`GET /v1/agent/sessions/${ID}/turns`]: { turns: [turn(0, "user", "how\u001b[2J many?")], truncated: true },
  [`GET /v1/agent/sessions/${ID}/turns?after=0`]: { turns: [turn(1, "assistant", "a\nb")], truncated: false },
  [`DELETE /v1/agent/sessions/${ID}`]: { deleted: true },
};

let server: TestServer;
let asked: string[];
beforeEach(async () => {
  asked = [];
  server = await startServer((request, _body, response) => {
    const key = `${request.method} ${request.url}`;
    asked.push(key);
    const answer = ANSWERS[key];
    const error = { error: { code: "session_not_found", message: "there is no session", request_id: "r" } };
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? error));
  });
});
afterEach(() => server.close());

const run = async (...args: string[]) =>
  await runHere(["sessions", ...args], { env: { ENGINE_SERVER_URL: server.url } });

test("lists, shows and deletes sessions", async () => {
  expect(await run("list")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^ID .*TITLE\n.*\n01977f3e.*2  +logs  +how\\u001b many\?\n$/),
  });
  expect((await run("show", ID)).stdout.split("\n").slice(1)).toEqual([
    "title         how\\u001b many?",
    "database      logs",
    "source        -",
    "turn_count    2",
    "created_at    2026-01-01T00:00:00.000Z",
    "last_active   2026-01-02T00:00:00.000Z",
    "summary",
    "  they",
    "  count",
    "",
  ]);
  expect((await run("turns", ID)).stdout).toBe(
    "user  2026-01-01T00:00:00.000Z\n  how\\u001b[2J many?\nassistant  2026-01-01T00:00:00.000Z\n  a\n  b\n",
  );
  expect(await run("delete", ID)).toEqual({ code: 0, stdout: `session ${ID} deleted, with 2 turns\n`, stderr: "" });
  expect(asked.at(-1)).toBe(`DELETE /v1/agent/sessions/${ID}`);
});

test("prints what the server answers with --json", async () => {
  expect(JSON.parse((await run("list", "--json")).stdout)).toEqual([SESSION]);
  expect(JSON.parse((await run("show", ID, "--json")).stdout)).toEqual({ ...SESSION, rolling_summary: "they\ncount" });
  const turns = JSON.parse((await run("turns", ID, "--json")).stdout) as unknown[];
  expect(turns).toHaveLength(2);
  expect(JSON.parse((await run("delete", ID, "--json")).stdout)).toEqual({ deleted: true });
});

test("says what it cannot find", async () => {
  for (const verb of ["show", "turns", "delete"]) {
    expect(await run(verb, "../users")).toEqual({ code: 1, stdout: "", stderr: "error: there is no session\n" });
  }
  expect(asked.every((key) => key.includes("/v1/agent/sessions/..%2Fusers"))).toBe(true);
  expect((await run()).code).toBe(2);
});
