import type { IncomingMessage, ServerResponse } from "node:http";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { runChild, runHere, runOnTerminal, startServer, type TestServer } from "./cli.test-kit.ts";

let server: TestServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

type Seen = { headers: IncomingMessage["headers"]; path: string; body: string };

async function answering(answer: (response: ServerResponse, seen: Seen) => void) {
  const seen: Seen[] = [];
  server = await startServer((request, body, response) => {
    const entry = { headers: request.headers, path: request.url ?? "", body: body.toString() };
    seen.push(entry);
    answer(response, entry);
  });
  return { seen, env: { ENGINE_SERVER_URL: server.url } };
}

/** Big integers, number-like names out of order, NULL and the empty string, wide and hostile text. */
const ROWS = [
  '{"2":9223372036854775807,"1":"a,\\"b\\"","text":"","nested":{"k":[1,"}"]},"none":null}',
  '{"2":-1,"1":"x\\u001b[31m\\ny","text":"日本","nested":[],"none":"NULL"}',
];

/** As the server writes the rows. */
const CSV = '2,1\n9223372036854775807,"a,""b"""\n-1,x\u001b[31m\n';

function rows(response: ServerResponse, { headers }: Pick<Seen, "headers"> = { headers: {} }): void {
  if (headers.accept === "text/csv") {
    response.writeHead(200, { "Content-Type": "text/csv", "X-Engine-Rows": "2" }).end(CSV);
    return;
  }
  response.writeHead(200, { "Content-Type": "application/x-ndjson", "X-Engine-Rows": String(ROWS.length) });
  response.end(ROWS.map((row) => `${row}\n`).join(""));
}

function error(status: number, fields: Record<string, unknown>) {
  return (response: ServerResponse) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ error: { request_id: "r-1", ...fields } }));
  };
}

describe("formats", () => {
  const tsv =
    '2\t1\ttext\tnested\tnone\n9223372036854775807\ta,"b"\t\t{"k":[1,"}"]}\t\\N\n-1\tx\u001b[31m\\ny\t日本\t[]\tNULL\n';
  const markdown = [
    "| 2 | 1 | text | nested | none |",
    "| --: | --- | --- | --- | --- |",
    '| 9223372036854775807 | a,"b" |  | \\{"k":\\[1,"\\}"\\]\\} | NULL |',
    "| -1 | x\\u001b\\[31m<br>y | 日本 | \\[\\] | NULL |",
    "",
  ].join("\n");
  const table = [
    "                  2  1               text  nested         none",
    "───────────────────  ──────────────  ────  ─────────────  ────",
    '9223372036854775807  a,"b"                 {"k":[1,"}"]}  NULL',
    "                 -1  x\\u001b[31m\\ny  日本  []             NULL",
    "(2 rows)",
    "",
  ].join("\n");

  test.for([
    [["--format", "ndjson"], ROWS.map((row) => `${row}\n`).join("")],
    [[], ROWS.map((row) => `${row}\n`).join("")],
    [["--format", "json"], `[\n  ${ROWS[0]},\n  ${ROWS[1]}\n]\n`],
    [["--json"], `[\n  ${ROWS[0]},\n  ${ROWS[1]}\n]\n`],
    [["--format", "csv"], CSV],
    [["-o", "csv"], CSV],
    [["--output", "tsv"], tsv],
    [["-o", "markdown"], markdown],
    [["--format", "table"], table],
  ] as const)("%j", async ([flags, expected]) => {
    const { env } = await answering(rows);
    expect(await runChild(["sql", "SELECT 1", ...flags], { env })).toEqual({ code: 0, stdout: expected, stderr: "" });
  });

  test.for([
    ["table", "(0 rows)\n"],
    ["json", "[]\n"],
    ["ndjson", ""],
    ["tsv", ""],
    ["markdown", ""],
  ] as const)("no rows as %s", async ([format, expected]) => {
    const { env } = await answering((response) => response.writeHead(200, { "X-Engine-Rows": "0" }).end());
    const { code, stdout } = await runChild(["sql", "SELECT 1", "--format", format], { env });
    expect([code, stdout]).toEqual([0, expected]);
  });

  test("a terminal gets a table, no line wider than it is", async () => {
    const { env } = await answering(rows);
    const { code, stdout } = await runOnTerminal(["sql", "x"], { env: { ...env, NO_COLOR: "1" }, columns: 40 });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe("       2  1         text  nested    none");
    expect(lines[2]).toBe('9223372…  a,"b"           {"k":[1…  NULL');
    expect(lines[3]).toBe("      -1  x\\u001b…  日本  []        NULL");
  });

  test("columns that do not fit a terminal are counted", async () => {
    const wide = JSON.stringify(
      Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`column_${i}`, "value value"])),
    );
    const { env } = await answering((response) => response.end(`${wide}\n`));
    const { stdout } = await runOnTerminal(["sql", "x"], { env: { ...env, NO_COLOR: "1" }, columns: 40 });
    expect(stdout).toContain("(25 more columns do not fit; --format json shows all)\n");
    for (const line of stdout.split("\n").slice(0, 3)) expect(line.length).toBeLessThanOrEqual(40);
  });

  test("more rows than decide the layout are all printed", async () => {
    const count = 2_500;
    const { env } = await answering((response) => {
      for (let i = 0; i < count; i++) response.write(`{"n":${i},"s":"${"x".repeat(i === 2_000 ? 50 : 3)}"}\n`);
      response.end();
    });
    const { stdout } = await runHere(["sql", "x", "--format", "table"], { env });
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(count + 3);
    expect(lines[2_002]).toBe(`2000  ${"x".repeat(50)}`);
    expect(lines.at(-1)).toBe("(2500 rows)");
  });
});

describe("bytes that the server makes", () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i));

  test.for([
    ["arrow", "application/vnd.apache.arrow.stream"],
    ["parquet", "application/vnd.apache.parquet"],
  ] as const)("of %s go out as they come", async ([format, type]) => {
    const folder = mkdtempSync(join(tmpdir(), "sql-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { seen, env } = await answering((response) => response.end(bytes));
    const file = join(folder, "out");
    const stdout = createWriteStream(file);
    const { code } = await runHere(["sql", "SELECT 1", "-o", format], { env, stdout });
    await new Promise((resolve) => stdout.end(resolve));
    expect([code, seen[0]?.headers.accept]).toEqual([0, type]);
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test("do not go to a terminal, and are of one query", async () => {
    const { seen, env } = await answering(rows);
    const shown = await runOnTerminal(["sql", "SELECT 1", "-o", "parquet"], { env: { ...env, NO_COLOR: "1" } });
    expect([shown.code, shown.stdout]).toEqual([2, ""]);
    expect(shown.stderr).toContain("error: parquet is not for a terminal; send it to a file");
    const two = await runHere(["sql", "SELECT 1; SELECT 2", "-o", "arrow"], { env });
    expect([two.code, two.stderr]).toEqual([2, "error: arrow takes the rows of one query, and these are 2\n"]);
    expect(seen).toEqual([]);
  });
});

describe("on a terminal", () => {
  const hostile = `${JSON.stringify({ s: "\u001b]0;x\u0007\u009b31m\u202e", t: "a\tb" })}\n`;

  test.for(["table", "json", "ndjson", "csv", "tsv", "markdown"])("%s moves no cursor", async (format) => {
    const { env } = await answering((response, { headers }) =>
      response.end(headers.accept === "text/csv" ? "s,t\n\u001b]0;x\u0007\u009b31m\u202e,a\tb\n" : hostile),
    );
    const { code, stdout } = await runOnTerminal(["sql", "x", "-o", format], { env: { ...env, NO_COLOR: "1" } });
    expect(code).toBe(0);
    // oxlint-disable-next-line no-control-regex -- it is what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(stdout).toContain("u001b");
  });

  test("without a width nothing is cut", async () => {
    const { env } = await answering(rows);
    const { stdout } = await runOnTerminal(["sql", "x"], { env: { ...env, NO_COLOR: "1" }, columns: 0 });
    expect(stdout.split("\n")[2]).toBe('9223372036854775807  a,"b"                 {"k":[1,"}"]}  NULL');
  });
});

describe("several queries", () => {
  test("are run one after the other, up to the first that fails; places are those of the whole text", async () => {
    const { seen, env } = await answering((response, { body }) => {
      if (body.includes("FORM")) error(400, { message: "syntax error", line: 3, column: 12 })(response);
      else response.end('{"a":1}\n');
    });
    const folder = mkdtempSync(join(tmpdir(), "sql-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "q.sql");
    writeFileSync(file, "-- one;\nSELECT ';' AS a; /* ; */\n  SELECT 2 FORM t; SELECT 3;\n");
    const { code, stdout, stderr } = await runHere(["sql", "-f", file], { env });
    expect([code, stdout]).toEqual([1, '{"a":1}\n']);
    expect(stderr).toBe("error: syntax error (line 3, column 12)\n    SELECT 2 FORM t\n             ^\n");
    expect(seen.map(({ body }) => body)).toEqual(["\nSELECT ';' AS a", "\n\n  SELECT 2 FORM t"]);
  });

  test.for([
    [["-f", "-"], 0],
    [["-"], 0],
    [[], 0],
    [["SELECT 1", "-f", "-"], 2],
    [["-f", "/nonexistent/q.sql"], 1],
    [["-f", "/"], 1],
  ] as const)("from %j", async ([args, expected]) => {
    const { seen, env } = await answering(rows);
    const { code, stderr } = await runHere(["sql", ...args], { env, input: "SELECT 1;" });
    expect([code, seen.map(({ body }) => body)]).toEqual([expected, expected === 0 ? ["SELECT 1"] : []]);
    expect(stderr).toMatch(expected === 0 ? /^$/ : /^error: (cannot read \/|a text and --file)/);
  });

  test("of nothing but a comment is for the server to refuse", async () => {
    const { seen, env } = await answering(error(400, { message: "the query text is empty" }));
    const { code } = await runHere(["sql", "/* nothing; */"], { env });
    expect([code, seen[0]?.body]).toEqual([1, "/* nothing; */"]);
  });
});

test("the time that a query may take is told to the server", async () => {
  const { seen, env } = await answering(rows);
  await runHere(["sql", "x", "--timeout", "1.5"], { env });
  expect(seen[0]?.headers["x-engine-max-wall-clock-ms"]).toBe("1500");
  for (const timeout of ["0", "-1", "1s", "1e3", "100000", ""]) {
    const { code, stderr } = await runHere(["sql", "x", "--timeout", timeout], { env });
    expect([timeout, code]).toEqual([timeout, 2]);
    expect(stderr).toContain("--timeout is a number of seconds");
  }
  expect(seen).toHaveLength(1);
});

describe("the request", () => {
  test("carries text, database and token", async () => {
    const { seen, env } = await answering(rows);
    await runHere(["sql", "SELECT 'ä'", "--db", "logs", "--token", "t-1"], { env });
    expect(seen[0]).toMatchObject({
      path: "/v1/query",
      body: "SELECT 'ä'",
      headers: { "x-database": "logs", authorization: "Bearer t-1", "content-type": "application/sql" },
    });
    await runHere(["sql", "SELECT 1"], { env: { ...env, ENGINE_TOKEN: "t-2" } });
    expect(seen[1]?.headers["authorization"]).toBe("Bearer t-2");
    expect(seen[1]?.headers["x-database"]).toBe("default");
  });

  test("takes its text from standard input", async () => {
    const { seen, env } = await answering(rows);
    const { code } = await runHere(["sql", "-"], { env, input: "SELECT\n  1\n" });
    expect([code, seen[0]?.body]).toEqual([0, "SELECT\n  1"]);
  });

  test("of more than 16 MiB is refused before it is sent", async () => {
    const { seen, env } = await answering(rows);
    const { code, stderr } = await runHere(["sql", "-"], { env, input: " ".repeat(2 ** 24 + 1) });
    expect([code, seen.length]).toEqual([2, 0]);
    expect(stderr).toContain("error: the query has more than 16777216 bytes");
  });
});

describe("errors", () => {
  test("show the place in the query", async () => {
    const { env } = await answering(
      error(400, { code: "parse_error", message: 'syntax error at "FORM"', line: 2, column: 6 }),
    );
    const { code, stdout, stderr } = await runHere(["sql", "SELECT 1,\n\t'世' FORM t"], { env });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(`error: syntax error at "FORM" (line 2, column 6)\n   '世' FORM t\n        ^\n`);
  });

  test("in a very long line show its surroundings", async () => {
    const { env } = await answering(
      error(400, { code: "parse_error", message: "wrong, line 1", line: 1, column: 501 }),
    );
    const { stderr } = await runHere(["sql", `${"a".repeat(500)}!${"b".repeat(500)}`], { env });
    const [, shown = "", caret = ""] = stderr.split("\n");
    expect(shown).toBe(`  …${"a".repeat(60)}!${"b".repeat(59)}…`);
    expect(caret.indexOf("^")).toBe(shown.indexOf("!"));
  });

  test("with a place outside of the query show none", async () => {
    const { env } = await answering(error(400, { message: "m", line: 9, column: 1 }));
    expect((await runHere(["sql", "SELECT 1"], { env })).stderr).toBe("error: m\n");
  });

  test("pass on suggestions, and the request's id where it helps", async () => {
    const { env } = await answering(error(404, { message: "no table evnts", suggestion: "events" }));
    expect((await runHere(["sql", "x"], { env })).stderr).toBe("error: no table evnts; did you mean events?\n");
    await server?.close();
    const failing = await answering(error(500, { message: "it broke\nbadly\u001b[2J" }));
    expect((await runHere(["sql", "x"], { env: failing.env })).stderr).toBe(
      "error: it broke\\nbadly\\u001b[2J (request r-1)\n",
    );
  });

  test.for([401, 403])("%i exits with 4 and says what to do", async (status) => {
    const { env } = await answering(error(status, { message: "no such token" }));
    const { code, stderr } = await runHere(["sql", "x"], { env });
    expect(code).toBe(4);
    expect(stderr).toContain("the server wants a token (no such token); set ENGINE_TOKEN");
    expect((await runHere(["sql", "x", "--token", "t"], { env })).stderr).toContain("the server refuses this token");
  });

  test("that are no engine's are cut down to a line", async () => {
    const { env } = await answering((response) =>
      response.writeHead(502).end(`<html>\n  bad\u001b gateway ${"x".repeat(5_000)}`),
    );
    const { code, stderr } = await runHere(["sql", "x"], { env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the server answered 502: <html> bad\\u001b gateway x+\n$/);
    expect(stderr.length).toBeLessThan(300);
  });

  test("no server: says how to get one", async () => {
    const { code, stderr } = await runHere(["sql", "x", "--server", "http://127.0.0.1:1"]);
    expect(code).toBe(1);
    expect(stderr).toBe(
      "error: no engine answers at http://127.0.0.1:1: start one with `engine serve`, or name another with `engine connect URL`\n",
    );
  });

  test("a connection that breaks midway is no end of the rows", async () => {
    const { env } = await answering((response) => {
      response.writeHead(200, { "X-Engine-Rows": "2" });
      response.write(`${ROWS[0]}\n`, () => response.destroy());
    });
    const { code, stderr } = await runChild(["sql", "x"], { env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the connection to http:\/\/127\.0\.0\.1:\d+ broke: /);
  });

  test("fewer rows than announced are told", async () => {
    const { env } = await answering((response) =>
      response.writeHead(200, { "X-Engine-Rows": "3" }).end(`${ROWS[0]}\n`),
    );
    const { code, stderr } = await runHere(["sql", "x"], { env });
    expect([code, stderr]).toEqual([1, "error: the result is incomplete: 1 of 3 rows arrived\n"]);
  });

  test.for(['{"a":1', "[1]", '{"a" 1}', '{"a":}', "nonsense"])("a row that is no object is told: %s", async (row) => {
    const { env } = await answering((response) => response.end(`${row}\n`));
    const { code, stderr } = await runHere(["sql", "x", "--format", "tsv"], { env });
    expect(code).toBe(1);
    expect(stderr).toContain("error: the server sent a row that is no JSON object");
  });
});

test("a reader that has seen enough ends the query quietly", async () => {
  const { env } = await answering((response) => {
    const line = `{"text":"${"x".repeat(1_000)}"}\n`;
    for (let i = 0; i < 20_000; i++) response.write(line);
    response.end();
  });
  const { code, stderr } = await runChild(["sql", "x"], { env, closeStdoutAfterBytes: 100 });
  expect([code, stderr]).toEqual([0, ""]);
});
