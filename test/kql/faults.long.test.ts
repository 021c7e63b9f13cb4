import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { chainedLets } from "../../src/query/translator/translator.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ingest, query, type ErrorBody } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** What hostile texts and faults do to a server that answers KQL: they end in an answer, and the next query is served. */
let engine: Engine;
let removeHome: () => Promise<void>;
const ODD = [
  'a"b',
  "c'd",
  "e\\f",
  "g]h",
  "日本",
  "x y",
  "$$",
  "/* */",
  "where",
  "🦆",
  "ß",
  "; DROP TABLE events",
  "kql_x",
];

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_KQL_WARM: "true" } });
  await ingest(engine.url, "events", '{"at":"2024-05-01T12:00:00Z","label":"a"}');
  const odd = Object.fromEntries(ODD.map((name, i) => [name, `v${i}`]));
  await ingest(engine.url, "odd-table", JSON.stringify({ at: "2024-05-01T12:00:00Z", ...odd }));
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

type Answer = { status: number; text: string; error: ErrorBody["error"] | undefined };

async function kql(text: string, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(`${engine.url}/v1/query`, {
    method: "POST",
    headers: { "Content-Type": "application/x-kql", ...headers },
    body: text,
    ...(signal !== undefined && { signal }),
  });
  const body = await response.text();
  return {
    status: response.status,
    text: body,
    error: response.ok ? undefined : (JSON.parse(body) as ErrorBody).error,
  };
}

/** A query like any other is answered. */
async function expectService(): Promise<void> {
  expect(await kql("print x = 1")).toMatchObject({ status: 200, text: '{"x":1}\n' });
  expect((await query(engine.url, "SELECT 1 AS x")).rows).toEqual([{ x: 1 }]);
}

/** The translators of a server. */
function translators({ pid: server } = engine): number[] {
  const all = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return all
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [])
    .filter(
      ([, , parent, state, args]) =>
        parent === String(server) && state?.startsWith("Z") === false && args?.endsWith("--isolate kql"),
    )
    .map(([, pid]) => Number(pid));
}

async function translatorPid(): Promise<number | undefined> {
  await eventually(() => translators().length === 1);
  return translators()[0];
}

/** Takes seconds to run, and no time to translate. */
const LONG = "range i from 1 to 40000000 step 1 | where i % 7 == 3 | summarize n = count(), s = sum(i)";
/** Takes a second and more to translate. */
const SLOW = chainedLets(1_000);

describe.skipIf(lacks("ps"))("the translator is killed", () => {
  test("between parse and run: the query goes on, and the next one has a fresh translator", async () => {
    await expectService();
    const pid = await translatorPid();
    const answer = kql(LONG);
    const running = async () =>
      (
        await query(
          engine.url,
          "SELECT scan_ms, parse_ms FROM system.queries WHERE outcome = 'running' AND text LIKE 'range i%'",
        )
      ).rows;
    await expect.poll(running, { interval: 20 }).toEqual([{ scan_ms: null, parse_ms: expect.any(Number) as number }]);
    signalProcess(pid, "SIGKILL");
    expect(await answer).toMatchObject({ status: 200, text: /^\{"n":5714286,/ });
    await expectService();
    expect(await translatorPid()).not.toBe(pid);
  });

  test("while it translates: the text is translated again", async () => {
    await expectService();
    const pid = await translatorPid();
    const slow = kql(SLOW);
    signalProcess(pid, "SIGKILL");
    const { status, error } = await slow;
    expect(error?.code ?? status).toBeOneOf([200, "invalid_query", "budget_exceeded"]);
    await expectService();
    expect(await translatorPid()).not.toBe(pid);
  });

  test("again and again, under queries in both languages: SQL never notices", async () => {
    const stop = new AbortController();
    const killer = (async () => {
      while (!stop.signal.aborted) {
        for (const pid of translators()) signalProcess(pid, "SIGKILL");
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    })();
    const asked = Array.from({ length: 20 }, () => [kql("print x = 1"), query(engine.url, "SELECT 1 AS x")] as const);
    for (const [inKql, inSql] of asked) {
      expect((await inSql).rows).toEqual([{ x: 1 }]);
      const { status, error } = await inKql;
      expect(error?.code ?? status).toBeOneOf([200, "query_failed", "unavailable", "too_many_requests"]);
    }
    stop.abort();
    await killer;
    await expectService();
  });
});

test.skipIf(lacks("ps"))(
  "the translator starts with the server where that is asked for, and ends with it",
  async () => {
    const { home, remove } = await temporaryHome();
    const other = await startEngine({ home, env: { ENGINE_KQL_WARM: "true" } });
    await eventually(() => translators(other).length === 1);
    const [pid] = translators(other);
    await other.stop("SIGKILL");
    const isGone = () =>
      !execFileSync("ps", ["-A", "-o", "pid=,stat="], { encoding: "utf8" }).match(new RegExp(`^ *${pid} [^Z]`, "m"));
    await eventually(isGone);
    await remove();
  },
);

describe("a text that takes too much", () => {
  test("time, of what its query may take", async () => {
    const { error } = await kql(SLOW, { "X-Engine-Max-Wall-Clock-Ms": "150" });
    expect(error).toMatchObject({ code: "budget_exceeded", message: /wall-clock budget of 150 ms/ });
    await expectService();
  });

  test("memory, of what its query may take", async () => {
    const text = `print x = 1 ${"| where x == 1 ".repeat(300_000)}`;
    const { error } = await kql(text, { "X-Engine-Max-Memory-Bytes": String(2 ** 20) });
    expect(error).toMatchObject({ code: "budget_exceeded", message: /memory budget of 1048576 bytes/ });
    await expectService();
  });

  test("time for its client, who leaves", async () => {
    const stop = new AbortController();
    const left = kql(SLOW, {}, stop.signal).catch((error: unknown) => (error as Error).name);
    setTimeout(() => stop.abort(), 100);
    expect(await left).toBe("AbortError");
    await expectService();
  });
});

describe("hostile texts", () => {
  test.each([
    ["parentheses", `print x = ${"(".repeat(5_000)}1${")".repeat(5_000)}`],
    ["brackets", `print x = dynamic(${"[".repeat(5_000)}${"]".repeat(5_000)})`],
    ["pipes", `print x = 1${" | where x == 1".repeat(5_000)}`],
    ["ands", `print x = 1 | where ${"x == 1 and ".repeat(5_000)} x == 1`],
    ["minus signs", `print x = ${"- ".repeat(20_000)}1`],
    ["calls", `print x = ${"tostring(".repeat(4_000)}1${")".repeat(4_000)}`],
    ["functions within functions", chainedFunctions(25)],
  ])("nested %s", async (_what, text) => {
    const { status, error } = await kql(text);
    expect(error?.code ?? status).toBeOneOf(["invalid_query", "budget_exceeded", 200]);
    expect(error?.message ?? "").not.toMatch(/SELECT|bug of ours|Maximum call stack/);
    await expectService();
  });

  test("a list of 100,000 values", async () => {
    const { status, error } = await kql(
      `print x = 1 | where x in (${Array.from({ length: 100_000 }, (_, i) => i).join()})`,
    );
    expect(error?.code ?? status).toBeOneOf([200, "invalid_query", "budget_exceeded"]);
    await expectService();
  });

  test("16 MiB, and a byte more", async () => {
    const whole = `print x = strlen('${"a".repeat(16 * 2 ** 20 - 20)}')`.padEnd(16 * 2 ** 20, " ");
    const { status, error } = await kql(whole);
    expect(error?.code ?? status).toBeOneOf([200, "budget_exceeded"]);
    expect((await kql(`${whole} `)).error).toMatchObject({ code: "body_too_large" });
    const comment = `print x = 1 //${"a".repeat(16 * 2 ** 20 - 20)}`;
    expect((await kql(comment)).error?.code ?? 200).toBeOneOf([200, "budget_exceeded"]);
    await expectService();
  });

  test.each([
    "\0",
    "print\0 x = 1",
    "print x = '\0'",
    "\ufeffprint x = 1",
    "print x = '\ud800'",
    "\u2028",
    "\\",
    "'",
    '"',
    "`",
    "```",
    "//",
    "/*",
    "|",
    ";",
    ";;",
    "let",
    ".show tables",
    "#",
    "@",
    "$left",
    "print x = h'a",
  ])("%j", async (text) => {
    const { status, error } = await kql(text);
    expect(error?.code ?? status).toBeOneOf([200, "parse_error", "invalid_query"]);
    await expectService();
  });

  test("names of columns and of tables", async () => {
    for (const [i, name] of ODD.entries()) {
      const quoted = `['${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}']`;
      const texts = [
        `['odd-table'] | project ${quoted}`,
        `['odd-table'] | where ${quoted} == 'v${i}' | summarize n = count() by ${quoted} | project ${quoted}`,
        `['odd-table'] | extend t = ${quoted} | project ${quoted} = t`,
      ];
      for (const text of texts) {
        const { status, text: rows } = await kql(text);
        expect([text, status, rows]).toEqual([text, 200, `${JSON.stringify({ [name]: `v${i}` })}\n`]);
      }
    }
    expect((await kql(`['odd"table'] | take 1`)).error).toMatchObject({ code: "invalid_query" });
    expect((await kql(`['/etc/passwd'] | take 1`)).error).toMatchObject({ code: "invalid_query" });
  });

  test("texts and names of SQL stay texts and names", async () => {
    const answers = await Promise.all([
      kql(`print x = "'; SELECT 1; --"`),
      kql(`print x = 'a\\'b"c'`),
      kql(`print ['x"; SELECT 1 --'] = 1`),
      kql("print x = @'C:\\a'"),
    ]);
    expect(answers.map(({ text }) => JSON.parse(text) as unknown)).toEqual([
      { x: "'; SELECT 1; --" },
      { x: `a'b"c` },
      { 'x"; SELECT 1 --': 1 },
      { x: "C:\\a" },
    ]);
  });

  test.each([
    "system.queries | take 1",
    "['system.queries'] | take 1",
    "queries | take 1",
    "print x = read_text('/etc/passwd')",
    "print x = getenv('HOME')",
    "print x = current_setting('threads')",
    "print x = kql_bin(1, 2)",
    "database('logs').events | take 1",
    "cluster('x').database('y').events",
    "externaldata(x: string)['file:///etc/passwd']",
    "engine_table_0 | take 1",
    "print x = error('x')",
  ])("what is not KQL's is not reached: %s", async (text) => {
    const { error } = await kql(text);
    expect(error?.code).toBeOneOf(["invalid_query", "parse_error"]);
    expect(error?.message).not.toMatch(/DuckDB|bug of ours|Catalog Error|Binder Error/);
  });
});

describe("many queries", () => {
  test("in KQL at the same time are all answered", { timeout: 120_000 }, async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => kql(`print x = ${i} + 1`)));
    expect(answers.map(({ text }) => text)).toEqual(answers.map((_, i) => `{"x":${i + 1}}\n`));
  });

  test("in SQL do not wait for texts that are translated", async () => {
    const order: string[] = [];
    const slow = [SLOW, SLOW, SLOW].map((text) => kql(text).then(() => order.push("kql")));
    await new Promise((resolve) => setTimeout(resolve, 200));
    await Promise.all(
      Array.from({ length: 10 }, () => query(engine.url, "SELECT 1 AS x").then(() => order.push("sql"))),
    );
    await Promise.all(slow);
    expect(order.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => "sql"));
    await expectService();
  });
});

/** Of so many functions each calls the one before it twice. */
function chainedFunctions(count: number): string {
  const lets = Array.from({ length: count }, (_, i) => `let f${i + 1} = (x: long) { f${i}(x) + f${i}(x + 1) };`);
  return `let f0 = (x: long) { x + 1 };\n${lets.join("\n")}\nprint x = f${count}(1)`;
}
