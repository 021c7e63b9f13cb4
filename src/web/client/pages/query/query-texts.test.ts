import { expect, test } from "vitest";
import { chartOf, inOrder, isRendered } from "./chart-choice.ts";
import { quotedIfNeeded } from "./quoted.ts";
import { statementAt, statementsOf } from "./statements.ts";

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
