import { describe, expect, test } from "vitest";
import { openPivot, peel } from "./statement.ts";

describe("peel", () => {
  test("takes EXPLAIN and trailing semicolons off without moving anything", () => {
    expect(peel("SELECT 1 ; ;")).toEqual({ text: "SELECT 1    " });
    expect(peel("explain\n select 1")).toEqual({ text: "       \n select 1", explain: "EXPLAIN" });
    expect(peel("EXPLAIN ANALYZE SELECT 1").explain).toBe("EXPLAIN ANALYZE");
    expect(peel("EXPLAIN (FORMAT json) SELECT 1").explain).toBe("EXPLAIN (FORMAT JSON)");
    expect(peel("EXPLAIN (ANALYZE, FORMAT json) SELECT 1").explain).toBe("EXPLAIN (ANALYZE, FORMAT JSON)");
    expect(peel("EXPLAIN (SELECT 1)")).toEqual({ text: "        (SELECT 1)", explain: "EXPLAIN" });
    expect(peel("SELECT ';' -- ;").explain).toBeUndefined();
  });

  test.each([
    "EXPLAIN (FORMAT json, ANALYZE, x) SELECT 1",
    "EXPLAIN (FORMAT 'a') SELECT 1",
    "EXPLAIN (FORMAT) SELECT 1",
  ])("refuses other options: %s", (text) => {
    expect(() => peel(text)).toThrow("EXPLAIN takes ANALYZE and a FORMAT");
  });

  test("refuses a second statement, naming where it starts in bytes", () => {
    expect(() => peel("SELECT 'ü'; SELECT 2")).toThrow(expect.objectContaining({ position: 13 }) as Error);
  });
});

describe("openPivot", () => {
  test("fills in values for the expressions that have none", () => {
    const pivot = openPivot("WITH w AS (SELECT 1) PIVOT (FROM t) ON a, b IN (1), lower(c) USING sum(x) GROUP BY d");
    expect(pivot?.withValues([["x", "it's"], ["y"]])).toBe(
      "WITH w AS (SELECT 1) PIVOT (FROM t) ON a IN ('x', 'it''s'), b IN (1), lower(c) IN ('y') USING sum(x) GROUP BY d",
    );
    const queries = pivot?.valueQueries(3).map((sql) => sql.replace(/\s+/g, " "));
    expect(queries).toEqual([
      "WITH w AS (SELECT 1) FROM (FROM t) SELECT DISTINCT CAST((a) AS VARCHAR) AS value WHERE (a) IS NOT NULL ORDER BY 1 LIMIT 3",
      "WITH w AS (SELECT 1) FROM (FROM t) SELECT DISTINCT CAST((lower(c)) AS VARCHAR) AS value WHERE (lower(c)) IS NOT NULL ORDER BY 1 LIMIT 3",
    ]);
  });

  test("is nothing for other statements and for pivots with all values", () => {
    expect(openPivot("SELECT 1")).toBeUndefined();
    expect(openPivot("PIVOT t ON a IN ('x') USING sum(b)")).toBeUndefined();
    expect(openPivot("DROP TABLE t")).toBeUndefined();
  });
});
