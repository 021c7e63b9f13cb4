import { expect, test } from "vitest";
import { chartOf, inOrder, isRendered } from "./chart-choice.ts";
import { quotedIfNeeded } from "./quoted.ts";
import { estimateText } from "./check-result.tsx";
import { progressOf, stageTimes, type QueryRecord } from "./query-record.ts";
import { statementAt, statementsOf, textToRun } from "./statements.ts";

test("statements end at semicolons that are in no quotes and no comment", () => {
  const text = `SELECT ';' AS "a;b"; -- one; two
SELECT /* ; */ $$;$$, $x$ ; $$ $x$ ;;
SELECT 'it''s;'`;
  expect(statementsOf(text, "sql").map(({ text: one }) => one)).toEqual([
    `SELECT ';' AS "a;b"`,
    "-- one; two\nSELECT /* ; */ $$;$$, $x$ ; $$ $x$",
    "SELECT 'it''s;'",
  ]);
  expect(statementsOf("SELECT 'open; quote", "sql")).toHaveLength(1);
  expect(statementsOf("  \n;; ", "sql")).toEqual([]);
});

test("the statement of the cursor is the one it is in or behind", () => {
  const text = "SELECT 1; SELECT 2;\n";
  const at = (cursor: number) => statementAt(text, cursor, "sql")?.text;
  expect([at(0), at(8), at(10), at(18), at(20)]).toEqual(["SELECT 1", "SELECT 1", "SELECT 2", "SELECT 2", "SELECT 2"]);
  expect(statementAt("", 0, "sql")).toBeUndefined();
});

test("Run takes what is selected, else the statement of the cursor, at its place", () => {
  const text = "SELECT 1;\n  SELECT 1 ;";
  const at = (head: number) => textToRun(text, { from: head, to: head, head }, "sql");
  expect(at(0)).toEqual({ from: 0, to: 8, text: "SELECT 1" });
  expect(at(14)).toEqual({ from: 12, to: 20, text: "SELECT 1" });
  expect(textToRun(text, { from: 8, to: 14, head: 8 }, "sql")).toEqual({ from: 8, to: 14, text: ";\n  SE" });
  expect(textToRun(text, { from: 10, to: 12, head: 12 }, "sql")).toBeUndefined();
  expect(textToRun(" \n", { from: 0, to: 0, head: 0 }, "sql")).toBeUndefined();
});

test("a query in KQL ends at a blank line", () => {
  expect(statementsOf("t\n| take 1\n\nt | count", "kql").map(({ text }) => text)).toEqual(["t\n| take 1", "t | count"]);
});

test("names are quoted where SQL needs it", () => {
  expect(["events", "a b", 'x"y', "select", "1a", "ä"].map(quotedIfNeeded)).toEqual([
    "events",
    '"a b"',
    '"x""y"',
    '"select"',
    '"1a"',
    '"ä"',
  ]);
});

const column = (name: string, kind: "text" | "number" | "time") => ({ name, type: kind, kind });

test("a chart is over the first time, else over the first number, or as `render` says", () => {
  const columns = [column("level", "text"), column("at", "time"), column("n", "number"), column("m", "number")];
  expect(chartOf(columns, undefined)).toEqual({ kind: "lines", x: 1, ys: [2, 3] });
  expect(chartOf(columns.slice(2), undefined)).toEqual({ kind: "lines", x: 0, ys: [1] });
  expect(chartOf(columns.slice(0, 2), undefined)).toBeUndefined();
  const render = encodeURIComponent(
    JSON.stringify({ kind: "columnchart", properties: { xcolumn: "n", ycolumns: ["m"] } }),
  );
  expect(chartOf(columns, render)).toEqual({ kind: "bars", x: 2, ys: [3] });
  expect([isRendered(render), isRendered("%"), isRendered(undefined)]).toEqual([true, false, false]);
});

test("points are drawn in the order of x, and those without one not at all", () => {
  expect(
    inOrder([
      [3, null, 1],
      [30, 20, null],
    ]),
  ).toEqual([
    [1, 3],
    [null, 30],
  ]);
});

test("what a query would read, of all its tables", () => {
  const table = (extents: number, total: number, bytes: number) => {
    return { database: "d", table: "t", extents, extents_total: total, bytes };
  };
  expect(estimateText([table(12, 340, 1_200_000_000)])).toBe("Would read 12 of 340 extents, up to 1.20 GB");
  expect(estimateText([table(1, 2, 5), table(1, 1_000, 5)])).toBe(
    "Would read 2 of 1,002 extents of 2 tables, up to 10 B",
  );
  expect(estimateText([table(1, 1, 0)])).toBe("Would read the metadata of 1 of 1 extent only");
  expect(estimateText([table(0, 7, 0)])).toBe("Would read 0 of 7 extents");
  expect([estimateText([]), estimateText([table(0, 0, 0)])]).toEqual([
    "Would read no extents",
    "Would read no extents",
  ]);
});

const record = (part: Partial<QueryRecord>): QueryRecord => ({
  id: "1",
  node: { id: "2", name: "n" },
  database: "d",
  subject: "s",
  is_own: true,
  text: "",
  state: "running",
  stage: "scan",
  outcome: "running",
  ended_by: null,
  elapsed_ms: 1,
  stages_ms: {},
  percent: null,
  bytes_planned: null,
  bytes_ready: null,
  bytes_read: null,
  memory_bytes: null,
  spill_bytes: null,
  ...part,
});

test("progress has a share only where the server knows one", () => {
  expect(progressOf(record({ percent: 42.9 }))).toEqual({ text: "Scanning, 42 %", value: 0.429 });
  expect(progressOf(record({ percent: 0 }))).toEqual({ text: "Scanning, 0 %", value: 0 });
  const fetching = record({ stage: "fetch", bytes_planned: 4_000, bytes_ready: 1_000 });
  expect(progressOf(fetching)).toEqual({ text: "Fetching data, 1.00 kB of 4.00 kB", value: 0.25 });
  // What has been fetched says nothing of the scan.
  expect(progressOf({ ...fetching, stage: "scan" })).toEqual({ text: "Scanning" });
  expect(progressOf({ ...fetching, bytes_planned: 0 })).toEqual({ text: "Fetching data" });
  expect([progressOf(record({ stage: null })), progressOf(record({ stage: "later" }))]).toEqual([
    { text: "Running" },
    { text: "later" },
  ]);
});

test("stages are in the order in which they come, those that are not known at the end", () => {
  expect(stageTimes({ stream: 3, later: 4, parse: 2, queue: 1 }).map(({ name, ms }) => [name, ms])).toEqual([
    ["Queue", 1],
    ["Parse", 2],
    ["Send", 3],
    ["later", 4],
  ]);
});
