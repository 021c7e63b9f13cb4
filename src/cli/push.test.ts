import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { runChild, runHere, runOnTerminal } from "./cli.test-kit.ts";
import { FakeEngine, refuse } from "./push.test-kit.ts";

/** Rows of about 1 kB. */
function rowsOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => JSON.stringify({ i, pad: "x".repeat(1_000) }));
}

const PUSH = ["ingest", "push", "--table", "events"];

describe("a push", () => {
  test("is cut at newlines into requests of at most 8 MiB, each with its own key", async () => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const rows = rowsOf(20_000);
    const { code, stdout, stderr } = await runChild([...PUSH, "--db", "logs", "--json"], {
      env,
      input: rows.join("\n"),
    });
    expect([code, stderr]).toEqual([0, ""]);
    expect(engine.stored).toEqual(rows);
    expect(engine.attempts).toHaveLength(3);
    for (const [i, { key, table, database, body }] of engine.attempts.entries()) {
      expect(body.length).toBeLessThanOrEqual(8 * 2 ** 20);
      expect(key).toMatch(new RegExp(`^[0-9a-f-]{36}-${i}$`));
      expect([table, database]).toEqual(["events", "logs"]);
    }
    const summary = JSON.parse(stdout) as Record<string, unknown>;
    expect(summary).toMatchObject({ rows: 20_000, replayed_rows: 0, requests: 3, snapshot_id: "3" });
    expect(summary["idempotency_key"]).toBe(engine.attempts[0]?.key.slice(0, 36));
  });

  test("says in words what it did", async () => {
    const env = await new FakeEngine().start();
    const { code, stdout } = await runHere(PUSH, { env, input: '{"a":1}\n{"a":2}' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^2 rows, 15 B in \d+\.\d s \([\d,]+ rows\/s, [\d.]+ k?B\/s\), 1 request, snapshot 1\n$/);
  });

  test("runs under another key each time, or under the one that is given", async () => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const input = '{"a":1}\n';
    await runHere(PUSH, { env, input });
    await runHere(PUSH, { env, input });
    expect(engine.stored).toHaveLength(2);
    await runHere([...PUSH, "--idempotency-key", "load-1"], { env, input });
    const again = await runHere([...PUSH, "--idempotency-key", "load-1"], { env, input });
    expect(engine.stored).toHaveLength(3);
    expect(engine.attempts.at(-1)?.key).toBe("load-1-0");
    expect(again.stdout).toContain("; 1 of the rows were stored before\n");
  });

  test("sends a line longer than 8 MiB alone", async () => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const long = JSON.stringify({ pad: "y".repeat(9 * 2 ** 20) });
    const { code } = await runHere(PUSH, { env, input: `{"a":1}\n${long}\n{"a":2}\n` });
    expect(code).toBe(0);
    expect(engine.attempts.map(({ body }) => body.length)).toEqual([8, long.length, 8]);
  });

  test("refuses a line longer than 64 MiB by its number", async () => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const { code, stderr } = await runHere(PUSH, {
      env,
      input: Buffer.concat([Buffer.from('{"a":1}\n'), Buffer.alloc(2 ** 26 + 1, "x")]),
    });
    expect(code).toBe(1);
    expect(stderr).toContain("error: line 2 of the input has more than 67108864 bytes");
  });

  test("leaves blank stretches out", async () => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const { code } = await runHere(PUSH, { env, input: `{"a":1}\n${"\n".repeat(9 * 2 ** 20)}{"a":2}\r\n` });
    expect([code, engine.attempts.length, engine.stored.length]).toEqual([0, 2, 2]);
  });

  test.for(["", "\n \n\r\n"])("of nothing (%j) is said clearly", async (input) => {
    const engine = new FakeEngine();
    const env = await engine.start();
    const { code, stdout, stderr } = await runHere(PUSH, { env, input });
    expect([code, stdout, engine.attempts.length]).toEqual([1, "", 0]);
    expect(stderr).toContain("error: standard input has no rows, nothing was sent; pipe NDJSON into it");
  });

  test("from a slow producer does not wait for a full request", async () => {
    const engine = new FakeEngine();
    const input = new PassThrough();
    const env = await engine.start({
      after: (attempt) => {
        if (attempt === 1) input.end('{"a":3}\n');
        return false;
      },
    });
    input.write('{"a":1}\n{"a":2}\n{"a"');
    const { code, stdout } = await runHere(PUSH, { env, input });
    expect([code, engine.attempts.length]).toEqual([0, 2]);
    expect(engine.attempts[0]?.body).toBe('{"a":1}\n{"a":2}\n');
    expect(stdout).toContain("2 requests");
  });

  test("shows its progress on a terminal only", async () => {
    const env = await new FakeEngine().start();
    const input = rowsOf(9_000).join("\n");
    const shown = await runOnTerminal(PUSH, { env, input });
    expect(shown.code).toBe(0);
    // oxlint-disable-next-line no-control-regex -- the line is drawn over itself
    expect(shown.stderr).toMatch(/\r\u001b\[K[\d,]+ rows, [\d.]+ MB in [\d.]+ s \([\d,]+ rows\/s, [\d.]+ MB\/s\)/);
    expect(shown.stderr.endsWith("\r\u001b[K")).toBe(true);
    expect((await runHere(PUSH, { env, input })).stderr).toBe("");
  });
});

test.for([
  [[], "true"],
  [["--no-infer-types"], "false"],
] as const)("new columns get types by their values unless that is not wanted: %j", async ([args, header]) => {
  const engine = new FakeEngine();
  const env = await engine.start();
  expect((await runHere([...PUSH, ...args], { env, input: '{"n":1}' })).code).toBe(0);
  expect(engine.attempts.map(({ inferTypes }) => inferTypes)).toEqual([header]);
});

describe("what does not fit", () => {
  const acknowledge = (response: ServerResponse, rows: number, warnings: unknown): true => {
    const ack = { snapshot_id: "1", extent_count: 1, rows_ingested: rows, bytes_written: 1, replayed: false, warnings };
    response.end(JSON.stringify(ack));
    return true;
  };

  test("is said once at the end, with the line in the whole input", async () => {
    const env = await new FakeEngine().start({
      before: (attempt, response) =>
        acknowledge(response, 1, [
          ...(attempt > 1 ? [{ code: "at_unreadable", count: 1_000, first_line: 2 }] : []),
          { code: "kept_in_props", field: "ms", type: "long", count: 1, first_line: attempt },
          ...(attempt === 2 ? [{ code: "kept_in_props", count: 36, first_line: 1 }] : []),
          ...(attempt === 3 ? [{ code: "news", count: 1, first_line: 1 }, { code: "kept_in_props" }, null, 7] : []),
        ]),
    });
    const pad = "x".repeat(7 * 2 ** 20);
    const input = Array.from({ length: 3 }, (_, i) => `${JSON.stringify({ i, pad })}\n\n{"i":${i}}`).join("\n");
    const { code, stderr } = await runHere(PUSH, { env, input });
    expect([code, stderr.trimEnd().split("\n")]).toEqual([
      0,
      [
        'warning: 3 values of "ms" did not fit long and are in props; the first is in line 1 of standard input',
        "warning: 2,000 rows have the time of arrival, for want of a time that can be read; the first is in line 5 of standard input",
        "warning: 36 values of further fields did not fit and are in props; the first is in line 4 of standard input",
        "warning: news: 1; the first is in line 7 of standard input",
      ],
    ]);
    const { stdout } = await runHere([...PUSH, "--json"], { env, input: '{"a":1}' });
    const { files } = JSON.parse(stdout) as { files: { warnings: unknown[] }[] };
    expect(files[0]?.warnings[0]).toEqual({ code: "at_unreadable", count: 1_000, first_line: 2 });
  });

  test.for([undefined, [], "x", {}, 3])("is nothing where the server says %j", async (warnings) => {
    const env = await new FakeEngine().start({ before: (_n, response) => acknowledge(response, 1, warnings) });
    const { code, stdout, stderr } = await runHere([...PUSH, "--json"], { env, input: '{"a":1}' });
    const { files } = JSON.parse(stdout) as { files: { warnings: unknown[] }[] };
    expect([code, stderr, files.map((file) => file.warnings)]).toEqual([0, "", [[]]]);
  });
});

test("ENGINE_INGEST_VERBOSE says what became of each request", async () => {
  const engine = new FakeEngine();
  const env = await engine.start();
  const input = rowsOf(9_000).join("\n");
  const quiet = await runHere(PUSH, { env: { ...env, ENGINE_INGEST_VERBOSE: "0" }, input });
  expect(quiet.stderr).toBe("");
  const { stderr } = await runHere(PUSH, { env: { ...env, ENGINE_INGEST_VERBOSE: "1" }, input });
  const said = stderr.trimEnd().split("\n");
  expect(said).toHaveLength(engine.attempts.length / 2);
  for (const [i, line] of said.entries()) {
    expect(line).toMatch(
      new RegExp(`^request ${i + 1}: lines \\d+ to \\d+, \\d+ bytes, \\d+ rows, snapshot \\d+, \\d+ ms$`),
    );
  }
});

describe("a retry", () => {
  test("after a connection that was lost once the rows were stored does not double them", async () => {
    const engine = new FakeEngine();
    const env = await engine.start({
      after: (attempt, response) => {
        if (attempt !== 2 && attempt !== 4) return false;
        response.destroy();
        return true;
      },
    });
    const rows = rowsOf(20_000);
    const { code, stdout, stderr } = await runChild([...PUSH, "--json"], { env, input: rows.join("\n") });
    expect(code).toBe(0);
    expect(engine.attempts).toHaveLength(5);
    expect(engine.attempts[1]).toEqual(engine.attempts[2]);
    expect(engine.stored).toEqual(rows);
    expect(JSON.parse(stdout)).toMatchObject({ rows: 20_000, replayed_requests: 2 });
    expect(stderr).toMatch(/^warning: the connection to .+ broke: .+; trying again in \d\.\d s$/m);
  });

  test("follows an acknowledgement that was cut off", async () => {
    const engine = new FakeEngine();
    const env = await engine.start({
      after: (attempt, response) => {
        if (attempt > 1) return false;
        response.writeHead(200, { "Content-Length": "100" }).write('{"snapshot', () => response.destroy());
        return true;
      },
    });
    const { code } = await runChild(PUSH, { env, input: '{"a":1}' });
    expect([code, engine.attempts.length, engine.stored.length]).toEqual([0, 2, 1]);
  });

  test.for([429, 503])("follows %i, after as long as it asks for", async (status) => {
    const engine = new FakeEngine();
    const env = await engine.start({
      before: (attempt, response) =>
        attempt === 1 && refuse(response, status, { code: "c", message: "busy" }, { "Retry-After": "1" }),
    });
    const { code, stderr } = await runHere(PUSH, { env, input: '{"a":1}' });
    expect([code, engine.stored.length]).toEqual([0, 1]);
    expect(stderr).toBe("warning: busy; trying again in 1.0 s\n");
  });

  test("does not follow a refusal of the rows; the place is that in the whole input", async () => {
    const engine = new FakeEngine();
    const env = await engine.start({
      before: (attempt, response) =>
        attempt === 2 && refuse(response, 400, { code: "bad_request_body", message: "no object", line: 5 }),
    });
    const rows = rowsOf(9_000);
    const { code, stdout, stderr } = await runHere(PUSH, { env, input: rows.join("\n") });
    expect([code, stdout, engine.attempts.length]).toEqual([1, "", 2]);
    const first = engine.stored.length;
    expect(stderr).toBe(
      `error: line ${first + 5} of the input: no object (${first} rows before it are stored; the same input with ` +
        `--idempotency-key ${engine.attempts[0]?.key.slice(0, -2)} goes on without storing them twice)\n`,
    );
    // And so it does.
    const key = engine.attempts[0]?.key.slice(0, -2) ?? "";
    const again = await runHere([...PUSH, "--idempotency-key", key, "--json"], { env, input: rows.join("\n") });
    expect(JSON.parse(again.stdout)).toMatchObject({ rows: 9_000, replayed_rows: first });
    expect(engine.stored).toEqual(rows);
  });

  test("without a place in the answer names the lines of the request", async () => {
    const env = await new FakeEngine().start({
      before: (_, response) => refuse(response, 413, { code: "body_too_large", message: "too large" }),
    });
    const { stderr } = await runHere(PUSH, { env, input: "{}\n{}\n" });
    expect(stderr).toBe("error: lines 1 to 2 of the input: too large (nothing is stored)\n");
  });

  test("a wrong token exits with 4", async () => {
    const engine = new FakeEngine();
    const env = await engine.start({ before: (_, response) => refuse(response, 401, { message: "no such token" }) });
    const { code, stderr } = await runHere([...PUSH, "--token", "t-1"], { env, input: "{}" });
    expect([code, engine.attempts[0]?.token]).toEqual([4, "Bearer t-1"]);
    expect(stderr).toContain("the server refuses this token");
  });

  test("an engine that is not there is not waited for", async () => {
    const { code, stderr } = await runChild(PUSH, { env: { ENGINE_SERVER_URL: "http://127.0.0.1:1" }, input: "{}" });
    expect(code).toBe(1);
    expect(stderr).toContain("error: no engine answers at http://127.0.0.1:1: start one with `engine serve`");
  });

  test("an engine that restarts is waited for", async () => {
    const engine = new FakeEngine();
    const env = await engine.start({
      after: (attempt, response) => {
        const http = engine.server?.server;
        if (attempt !== 1 || http === undefined) return false;
        const address = http.address();
        response.destroy();
        http.close(() =>
          setTimeout(() => http.listen(typeof address === "object" ? (address?.port ?? 0) : 0, "127.0.0.1"), 300),
        );
        http.closeAllConnections();
        return true;
      },
    });
    const { code, stderr } = await runChild(PUSH, { env, input: '{"a":1}' });
    expect([code, engine.stored.length]).toEqual([0, 1]);
    expect(stderr).toContain("no engine answers at");
  });

  test("what answers with anything else is no engine", async () => {
    const env = await new FakeEngine().start({
      before: (_, response) => {
        response.end("<html>");
        return true;
      },
    });
    const { code, stderr } = await runHere(PUSH, { env, input: "{}" });
    expect(code).toBe(1);
    expect(stderr).toContain("is no engine: its answer is no acknowledgement");
  });
});

test.for(["two words", "k".repeat(241), "é", ""])("the key %j is not accepted", async (key) => {
  const { code, stderr } = await runOnTerminal([...PUSH, "--idempotency-key", key], { env: { NO_COLOR: "1" } });
  expect(code).toBe(2);
  expect(stderr).toBe("error: --idempotency-key is not accepted; expected 1 to 240 visible ASCII characters\n");
});
