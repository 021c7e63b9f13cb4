import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ANONYMOUS, type Caller } from "../../auth/caller.ts";
import { ManualClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { createMetrics } from "../../core/metrics.ts";
import { createLog } from "../../core/log.ts";
import { QUERY_LOG_RECORDS, QueryLog } from "./query-log.ts";

type Line = Record<string, unknown>;

function harness(slowMs = 0) {
  const clock = new ManualClock();
  const lines: Line[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
  const queries = new QueryLog({ clock, log, slowMs, metrics: createMetrics(), newId: randomUUID });
  const run = (
    options: Partial<{ database: string; text: string; error: unknown; exists: boolean; caller: Caller }> = {},
  ) => {
    const { database = "default", text = "SELECT 1", error, exists = true, caller = ANONYMOUS } = options;
    const trace = queries.start({ requestId: "r1", database, text, caller });
    if (exists) trace.databaseExists();
    clock.advance(5);
    trace.enter("parse");
    clock.advance(3);
    trace.end(error);
    return trace;
  };
  return { clock, lines, queries, run };
}

describe("the query log", () => {
  test("times each stage, and the answer by itself", () => {
    const { clock, queries } = harness();
    const trace = queries.start({ requestId: "r1", database: "default", text: "SELECT 1", caller: ANONYMOUS });
    trace.databaseExists();
    clock.advance(1);
    trace.enter("parse");
    clock.advance(2);
    trace.enter("plan");
    expect(queries.of("DEFAULT", ANONYMOUS)).toMatchObject([{ outcome: "running", stagesMs: { queue: 1, parse: 2 } }]);
    clock.advance(3);
    trace.enter("fetch");
    clock.advance(4);
    trace.enter("scan");
    clock.advance(5);
    trace.add({ rows: 7, cpuMs: 1.5 });
    trace.end();
    clock.advance(100);
    trace.streamed();
    trace.streamed();
    const stagesMs = { queue: 1, parse: 2, plan: 3, fetch: 4, scan: 5, stream: 100 };
    expect(queries.of("default", ANONYMOUS)).toMatchObject([
      { outcome: "ok", totalMs: 15, stagesMs, rows: 7, cpuMs: 1.5 },
    ]);
  });

  test("keeps the code of an error, and none of its text", () => {
    const { queries, run } = harness();
    run({ error: new EngineError("budget_exceeded", "secret") });
    run({ error: new Error("secret") });
    expect(queries.of("default", ANONYMOUS).map(({ outcome }) => outcome)).toEqual(["budget_exceeded", "internal"]);
    expect(JSON.stringify(queries.of("default", ANONYMOUS))).not.toContain("secret");
  });

  test("shows a query to whoever asked it, and to admins of its database", () => {
    const { queries, run } = harness();
    const ann: Caller = { ...ANONYMOUS, kind: "session", subject: "ann", role: "write" };
    const bob: Caller = { ...ann, subject: "bob" };
    run({ text: "SELECT 'ann'", caller: ann });
    run({ text: "SELECT 'bob'", caller: { ...bob, kind: "api_token" } });
    const seen = (by: Caller) => queries.of("default", by).map(({ text }) => text);
    expect(seen(ann)).toEqual(["SELECT 'ann'"]);
    expect(seen(bob)).toEqual(["SELECT 'bob'"]);
    const limited: Caller = { ...bob, subject: "root", role: "admin", databases: ["default"] };
    expect(seen(limited)).toEqual(["SELECT 'ann'", "SELECT 'bob'"]);
  });

  test("keeps nothing of databases that do not exist, nor of queries turned away", () => {
    const { queries, run } = harness();
    run({ exists: false });
    const refused = queries.start({ requestId: "r", database: "default", text: "SELECT 1", caller: ANONYMOUS });
    refused.databaseExists();
    refused.end(new EngineError("too_many_requests", "busy"));
    const late = queries.start({ requestId: "r", database: "default", text: "SELECT 1", caller: ANONYMOUS });
    late.databaseExists();
    late.end(new EngineError("budget_exceeded", "waited too long for a process"));
    expect(queries.of("default", ANONYMOUS).map(({ outcome }) => outcome)).toEqual(["budget_exceeded"]);
  });

  test("is bounded by records, databases and bytes; a busy database does not push out a quiet one", () => {
    const { queries, run } = harness();
    run({ database: "quiet" });
    for (let i = 0; i < QUERY_LOG_RECORDS + 10; i++) run({ text: `${i} ${"x".repeat(3_000)}` });
    expect(queries.of("default", ANONYMOUS)).toHaveLength(QUERY_LOG_RECORDS);
    expect(queries.of("default", ANONYMOUS)[0]?.text).toMatch(/^10 /);
    for (let i = 0; i < 4_000; i++) run({ database: `big${i % 4}`, text: "é".repeat(100_000) });
    const held = ["default", "big0", "big1", "big2", "big3", "quiet"].flatMap((name) => queries.of(name, ANONYMOUS));
    expect(held.reduce((sum, { text }) => sum + text.length * 2, 0)).toBeLessThan(17 * 1024 * 1024);
    expect(Math.max(...held.map(({ text }) => Buffer.byteLength(text)))).toBeLessThanOrEqual(4_096);
    expect(queries.of("quiet", ANONYMOUS)).toHaveLength(1);
    for (let i = 0; i < 300; i++) run({ database: `d${i}` });
    expect(queries.of("quiet", ANONYMOUS)).toEqual([]);
    expect(queries.of("d299", ANONYMOUS)).toHaveLength(1);
  });

  test("cuts a text between characters", () => {
    const { queries, run } = harness();
    run({ text: `x${"😀".repeat(5_000)}` });
    const text = queries.of("default", ANONYMOUS)[0]?.text ?? "";
    expect(text.isWellFormed()).toBe(true);
    expect(Buffer.byteLength(text)).toBe(1 + 4 * 1_023);
  });
});

describe("the slow-query log", () => {
  test("has a line for a query over the limit, by request id and stages, with the start of its text", () => {
    const { lines, run } = harness(8);
    run({ text: "x".repeat(10_000), error: new EngineError("query_failed", "secret") });
    expect(lines).toMatchObject([
      { level: 40, msg: "slow query", requestId: "r1", outcome: "query_failed", totalMs: 8, stagesMs: { queue: 5 } },
    ]);
    expect(lines[0]?.["text"]).toBe("x".repeat(1_024));
    expect(JSON.stringify(lines)).not.toContain("secret");
  });

  test("has none for a quick one, nor when it is off", () => {
    const quick = harness(9);
    quick.run();
    const off = harness(0);
    off.run();
    expect([...quick.lines, ...off.lines]).toEqual([]);
  });

  test("does not count the time a client takes to read", () => {
    const { clock, lines, run } = harness(100);
    const trace = run();
    clock.advance(1_000);
    trace.streamed();
    expect(lines).toEqual([]);
  });
});
