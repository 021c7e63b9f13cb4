import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runHere, runOnTerminal, startServer, type Outcome, type TestServer } from "../../src/cli/cli.test-kit.ts";
import { PtyCommand, KEYS } from "../../src/cli/pty.test-kit.ts";
import type { RunEvent } from "../../src/knowledge/agent/run/events.ts";

const SESSION = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";
const RUN = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a12";

type Send = (response: ServerResponse) => void;

let home: string;
let server: TestServer;
/** How the next question is answered. */
let script: Send;
let asked: Record<string, unknown>[];
let left: boolean;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "query-"));
  [asked, left] = [[], false];
  server = await startServer((request, body, response) => {
    if (request.method === "GET") {
      const found = request.url === `/v1/agent/sessions/${SESSION}`;
      const error = { error: { code: "session_not_found", message: "there is no such session", request_id: "r" } };
      response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(found ? { session_id: SESSION, database: "logs" } : error));
      return;
    }
    asked.push(JSON.parse(body.toString()) as Record<string, unknown>);
    response.on("close", () => (left ||= !response.writableEnded));
    script(response);
  });
});
afterEach(async () => {
  await server.close();
  await rm(home, { recursive: true, force: true });
});

const env = () => ({ ENGINE_HOME: home, ENGINE_SERVER_URL: server.url });
const ask = async (...args: string[]): Promise<Outcome> => await runHere(["query", ...args], { env: env() });
const onTerminal = async (...args: string[]) => await runOnTerminal(["query", ...args], { env: env() });

/** Events as the server writes them: one line of each field, the data last. */
const wire = (events: readonly RunEvent[]) =>
  events.map(({ event, data }, i) => `event: ${event}\nid: ${i + 1}\ndata: ${JSON.stringify(data)}\n\n`).join("");
const HEAD = { "content-type": "text/event-stream; charset=utf-8" };

function sends(text: string | Buffer, end: "end" | "cut" | "stay" = "end", pieceBytes = Infinity): Send {
  return (response) => {
    response.writeHead(200, HEAD);
    response.write(": begins\n\n");
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += pieceBytes) response.write(bytes.subarray(at, at + pieceBytes));
    if (end === "end") response.end();
    else if (end === "cut") setTimeout(() => response.destroy(), 50);
  };
}

const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
const begun: RunEvent[] = [
  { event: "session", data: { sessionId: SESSION } },
  {
    event: "run_started",
    data: {
      run_id: RUN,
      session_id: SESSION,
      database: "default",
      engine: { kind: "openai", model: "m" },
      limits: { wall_clock_ms: 60_000, tool_calls: 12 },
    },
  },
];
const finished = (status: "done" | "failed" | "cancelled"): RunEvent => ({
  event: "run_finished",
  data: { run_id: RUN, status, duration_ms: 5, tool_calls: 1, usage },
});
const delta = (text: string): RunEvent => ({ event: "answer_delta", data: { text } });
const final = (text: string, memories: string[] = []): RunEvent => ({
  event: "answer_final",
  data: { text, citations: { queries: [], memories } },
});
const call = (id: string, query: string): RunEvent => ({
  event: "tool_call",
  data: { id, name: "query_sql", input: { query }, index: 0 },
});
const result = (id: string, more: object): RunEvent => ({
  event: "tool_result",
  data: { id, name: "query_sql", ok: true, output: {}, truncated: false, duration_ms: 7, ...more },
});

const ANSWERED: RunEvent[] = [
  ...begun,
  { event: "thinking_delta", data: { text: "hm" } },
  delta("Let me look."),
  call("a", "\nSELECT count(*)\nFROM orders"),
  call("b", "SELECT nope"),
  result("b", { ok: false, output: { error: { code: "invalid_query", message: "no column nope" } } }),
  result("a", { rows: 1, total_rows: 300 }),
  delta("There are "),
  delta("twelve €."),
  final("There are twelve €.", ["m-1"]),
  finished("done"),
];

describe("engine query", () => {
  test.each([1, 7, Infinity])(
    "prints the answer, and what it rests on beside it, from pieces of %d bytes",
    async (n) => {
      script = sends(wire(ANSWERED), "end", n);
      const { code, stdout, stderr } = await ask("how many?", "--thinking");
      expect(code).toBe(0);
      expect(stdout).toBe("Let me look.\nThere are twelve €.\n");
      expect(stderr.split("\n")).toEqual([
        "hm",
        "[1] query_sql SELECT count(*)",
        "[2] query_sql SELECT nope",
        "[2] failed: no column nope, 7 ms",
        "[1] 1 of 300 rows, 7 ms",
        "memories: m-1",
        "",
      ]);
      expect(asked).toEqual([{ question: "how many?", source: "engine query", include_thinking: true }]);
    },
  );

  test("prints each event as it was sent with --json", async () => {
    const odd = 'event: tool_result\nid: 3\ndata: {"n":12345678901234567890, "s":"\\u001b"}\n\n';
    script = sends(wire(begun) + odd + wire([finished("done")]));
    const { code, stdout, stderr } = await ask("q", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe(`{"event":"session","id":"1","data":{"sessionId":"${SESSION}"}}`);
    expect(lines[2]).toBe('{"event":"tool_result","id":"3","data":{"n":12345678901234567890, "s":"\\u001b"}}');
    expect(lines).toHaveLength(4);
  });

  test("prints an answer that did not come in pieces", async () => {
    script = sends(wire([...begun, final("Twelve."), finished("done")]));
    expect(await ask("q")).toEqual({ code: 0, stdout: "Twelve.\n", stderr: "" });
  });

  test("lets nothing of a model or of data steer the terminal", async () => {
    script = sends(
      wire([
        ...begun,
        delta("a\u001b"),
        delta("[31mb\r\n\tc\u009b2Jd\ud83d"),
        delta("\ude00\u202e"),
        call("a", "SELECT '\u001b]0;x\u0007'"),
        result("a", { ok: false, output: "\u001b[2J" }),
        { event: "run_error", data: { code: "internal", message: "\u001b[A", retryable: true } },
        finished("failed"),
      ]),
    );
    const shown = await Promise.all([onTerminal("q"), onTerminal("q", "--json")]);
    expect(shown[0].stdout).toContain("[31mb\n\tc\\u009b2Jd😀");
    for (const { stdout, stderr } of shown) {
      // oxlint-disable-next-line no-control-regex -- control characters are what it is about
      const ours = /\u001b\[(?:2|22|31|39)m/g;
      // oxlint-disable-next-line no-control-regex -- control characters are what it is about
      expect((stdout + stderr).replaceAll(ours, "")).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    }
  });

  test("fails with the error of the run", async () => {
    const error = { code: "engine_failed", message: "the provider says no", retryable: true } as const;
    script = sends(wire([...begun, delta("half"), { event: "run_error", data: error }, finished("failed")]));
    expect(await ask("q")).toEqual({
      code: 1,
      stdout: "half\n",
      stderr: "error: engine_failed: the provider says no; asking again may help\n",
    });
    script = sends(wire([...begun, finished("cancelled")]));
    expect((await ask("q")).code).toBe(1);
  });

  test("says that the run may go on where the stream is cut", async () => {
    const whole = wire([...begun, delta("half an ans"), delta("wer")]);
    const cuts: [Send, RegExp][] = [
      [sends(whole, "cut"), /the connection to .* broke: /],
      [sends(whole), /ended the connection before the end of the run/],
      [sends(whole.slice(0, -6)), /broke off in the middle of an event/],
    ];
    for (const [cut, message] of cuts) {
      script = cut;
      const { code, stdout, stderr } = await ask("q");
      expect([code, stdout.startsWith("half an ans")]).toEqual([1, true]);
      expect(stderr).toMatch(message);
      expect(stderr).toContain(`the run may have ended or go on: \`engine sessions turns ${SESSION}\``);
    }
  });

  test("passes a refusal on", async () => {
    script = (response) => {
      response.writeHead(429, { "content-type": "application/json", "retry-after": "1" });
      response.end(JSON.stringify({ error: { code: "too_many_requests", message: "too many runs", request_id: "r" } }));
    };
    expect(await ask("q")).toEqual({ code: 1, stdout: "", stderr: "error: too many runs\n" });
    script = (response) => response.end("<html>");
    expect((await ask("q")).stderr).toMatch(/is no engine\n$/);
    for (const [args, problem] of [
      [[" "], "the question is empty"],
      [["x".repeat(40_000)], "at most 32768 bytes"],
      [["q", "--session", SESSION, "--continue"], "give one of them"],
      [["q", "--continue"], "no session with"],
    ] as const) {
      const { code, stderr } = await ask(...args);
      expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
    }
  });

  test("goes on with a session, in its database", async () => {
    script = sends(wire([...begun, final("Twelve."), finished("done")]));
    await ask("first");
    const files = (await readdir(join(home, "last-sessions"))).map((name) => join(home, "last-sessions", name));
    expect(files).toHaveLength(1);
    const [file = ""] = files;
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ url: server.url, session_id: SESSION });
    await ask("second", "--continue");
    await ask("third", "--session", SESSION, "--database", "other");
    expect(asked.slice(1)).toEqual([
      { question: "second", source: "engine query", database: "logs", session_id: SESSION },
      { question: "third", source: "engine query", database: "other", session_id: SESSION },
    ]);
    expect(await ask("q", "--session", RUN)).toMatchObject({ code: 1, stderr: "error: there is no such session\n" });
    await writeFile(file, "{");
    expect(await ask("q", "--continue")).toMatchObject({ code: 2, stderr: expect.stringContaining("is damaged") });
  });

  test("answers although the session cannot be remembered", async () => {
    script = sends(wire([...begun, final("Twelve."), finished("done")]));
    await writeFile(join(home, "last-sessions"), "in the way");
    const { code, stdout, stderr } = await ask("q");
    expect([code, stdout]).toEqual([0, "Twelve.\n"]);
    expect(stderr).toMatch(/^warning: --continue will not know this session/);
  });

  test("leaves when nobody reads the answer", async () => {
    script = sends(wire([...begun, delta("x".repeat(100))]), "stay");
    const stdout = new PassThrough();
    stdout.destroy(Object.assign(new Error("closed"), { code: "EPIPE" }));
    const { code } = await runHere(["query", "q"], { env: env(), stdout });
    expect(code).toBe(0);
    await expect.poll(() => left).toBe(true);
  });

  test("is cancelled by Ctrl-C", async () => {
    script = sends(wire([...begun, delta("half an")]), "stay");
    const command = new PtyCommand(["query", "q"], env());
    try {
      await command.until("half an");
      command.type(KEYS.ctrlC);
      expect(await command.ended).toBe(130);
      await expect.poll(() => left).toBe(true);
    } finally {
      command.close();
    }
  });
});
