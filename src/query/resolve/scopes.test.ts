import { array, boolean, constantFrom, letrec, oneof, sample, tuple } from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, runSql, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { bindNames } from "./bound-names.ts";
import { checkQuery } from "./check.ts";
import { printTree } from "../parse/print-tree.ts";
import { parseTree, SqlParser } from "../parse/sql-tree.ts";
import type { JsonObject } from "../parse/tree.ts";

/**
 * Which names of a query are tables is decided by our scopes (`check.ts`). Here they are compared with those of DuckDB's
 * own planner, over generated queries whose few names are CTEs, tables, or both, at every place where there may be one.
 */
let duckdb: DuckDb;
let parser: SqlParser;
/** Knows no table. */
let bare: Connection;
/** Has the tables under their own names and under ours. */
let filled: Connection;

const TABLES = ["a", "b", "c"];

beforeAll(async () => {
  duckdb = await loadDuckDb();
  parser = await SqlParser.open(duckdb, 256 * 1024 * 1024);
  bare = await duckdb.connect(await duckdb.open(":memory:"));
  filled = await duckdb.connect(await duckdb.open(":memory:"));
  // Which of two rows with one key a recursive CTE keeps, and which 50 rows a LIMIT gives, is up to the threads.
  await duckdb.query(filled, "SET threads = 1");
  for (const [i, name] of TABLES.entries()) {
    for (const own of [name, `engine_table_${name}`]) {
      await duckdb.query(filled, `CREATE VIEW ${own} AS SELECT ${10 * (i + 1)} AS x`);
    }
  }
});

afterAll(() => {
  duckdb.disconnect_sync(bare);
  duckdb.disconnect_sync(filled);
});

/** The names that DuckDB's planner does not take for a CTE. */
function namesOfDuckDb(sql: string): string[] {
  const list = duckdb.get_table_names(bare, sql, false);
  const names = Array.from({ length: duckdb.get_list_size(list) }, (_, i) =>
    duckdb.get_varchar(duckdb.get_list_child(list, i)).toLowerCase(),
  );
  return [...new Set(names)].toSorted();
}

async function treeOf(sql: string): Promise<JsonObject> {
  const { tree } = await parseTree(parser, sql);
  if (tree === undefined) throw new Error(`not a query: ${sql}`);
  return tree;
}

function ourNames(tree: JsonObject): string[] {
  return [...new Set(checkQuery(tree).tables.map(({ name }) => name.toLowerCase()))].toSorted();
}

async function boundText(tree: JsonObject): Promise<string> {
  const checked = checkQuery(tree);
  const viewOf = (use: number): string => `engine_table_${checked.tables[use]?.name.toLowerCase()}`;
  return (await printTree(parser, bindNames(tree, { ...checked, viewOf }))).sql;
}

async function rowsOf(sql: string): Promise<string[]> {
  const rows = await runSql(duckdb, filled, `SELECT CAST(q AS VARCHAR) FROM (${sql} LIMIT 50) AS q`);
  return rows.map(([row]) => row ?? "").toSorted();
}

const name = constantFrom(...TABLES, "A", '"B"');
/** Queries of one column `x`. */
const { query } = letrec<{ query: string; source: string; cte: string; body: string }>((tie) => ({
  source: oneof(
    { maxDepth: 3, withCrossShrink: true },
    name,
    name,
    tuple(tie("query"), constantFrom("s1", "s2", "a")).map(([sql, alias]) => `(${sql}) AS ${alias}`),
  ),
  cte: oneof(
    { maxDepth: 3 },
    tuple(name, constantFrom("AS", "AS MATERIALIZED", "AS NOT MATERIALIZED"), tie("query")).map(
      ([cte, as, sql]) => `${cte}(x) ${as} (${sql})`,
    ),
    tuple(name, tie("body"), constantFrom("UNION", "UNION ALL"), name).map(
      ([cte, anchor, union, step]) => `${cte}(x) AS (${anchor} ${union} SELECT x + 1 FROM ${step} WHERE x < 12)`,
    ),
    tuple(name, tie("query")).map(
      ([cte, sql]) =>
        `${cte}(k, x) USING KEY (k) AS (SELECT 1, x FROM (${sql}) UNION SELECT k, x + 1 FROM ${cte} WHERE x < 12)`,
    ),
  ),
  body: oneof(
    { maxDepth: 4, depthIdentifier: "body" },
    tie("source").map((source) => `SELECT x FROM ${source}`),
    tuple(name, tie("query")).map(([from, sql]) => `SELECT x FROM ${from} WHERE x IN (${sql})`),
    tuple(name, tie("query")).map(([from, sql]) => `SELECT (SELECT max(x) FROM (${sql})) AS x FROM ${from}`),
    tuple(name, name).map(([left, right]) => `SELECT l.x FROM ${left} AS l JOIN ${right} AS r ON l.x = r.x`),
    tuple(name, name).map(([left, right]) => `SELECT x FROM ${left} SEMI JOIN ${right} AS r ON true`),
    tuple(tie("body"), tie("body")).map(([left, right]) => `(${left}) UNION ALL (${right})`),
    tie("query").map((sql) => `SELECT length(column_name) AS x FROM (DESCRIBE ${sql})`),
  ),
  query: oneof(
    { maxDepth: 4, depthIdentifier: "query" },
    tie("body"),
    tuple(boolean(), array(tie("cte"), { minLength: 1, maxLength: 3 }), tie("body")).map(
      ([recursive, ctes, body]) => `WITH ${recursive ? "RECURSIVE " : ""}${ctes.join(", ")} ${body}`,
    ),
  ),
}));

describe("the tables of a query", () => {
  test("are those that DuckDB's planner finds, and the query means the same with our names for them", async () => {
    const seen = { compared: 0, same: 0, withCte: 0, answered: 0 };
    for (const sql of sample(query, { numRuns: 1_500, seed: 21 })) {
      let theirs: string[];
      let tree: JsonObject;
      try {
        tree = await treeOf(sql);
        theirs = namesOfDuckDb(sql);
      } catch {
        // A name twice in one WITH, a key that is none: DuckDB takes no such query.
        continue;
      }
      const ours = ourNames(tree);
      // DuckDB does not look into a CTE that nobody reads.
      expect({ sql, missed: theirs.filter((each) => !ours.includes(each)) }).toEqual({ sql, missed: [] });
      if (ours.length === theirs.length) seen.same++;
      seen.compared++;
      if (sql.startsWith("WITH")) seen.withCte++;
      const expected = await rowsOf(sql).catch(() => undefined);
      if (expected === undefined) continue;
      expect({ sql, rows: await rowsOf(await boundText(tree)) }).toEqual({ sql, rows: expected });
      seen.answered++;
    }
    expect(seen.compared).toBeGreaterThan(700);
    expect(seen.same).toBeGreaterThan(0.8 * seen.compared);
    expect(seen.withCte).toBeGreaterThan(200);
    expect(seen.answered).toBeGreaterThan(400);
  });

  test.each([
    [
      "the anchor of a recursive CTE",
      "WITH RECURSIVE p AS (FROM p UNION ALL SELECT * FROM p WHERE false) FROM p",
      ["p"],
    ],
    ["an anchor within brackets", "WITH RECURSIVE p AS ((SELECT * FROM p) UNION ALL FROM p) FROM p", ["p"]],
    ["an anchor's own WITH", "WITH RECURSIVE p AS (WITH q AS (FROM p) FROM q UNION ALL FROM p) FROM p", ["p"]],
    ["a sub-query of the anchor", "WITH RECURSIVE p AS (SELECT (SELECT 1 FROM p) UNION ALL FROM p) FROM p", ["p"]],
    ["a CTE that only says that it is recursive", "WITH RECURSIVE p AS (FROM p) FROM p", ["p"]],
    ["a CTE without RECURSIVE", "WITH p AS (SELECT 1 UNION ALL FROM p) FROM p", ["p"]],
    ["a CTE that comes later", "WITH p AS (FROM q), q AS (SELECT 1) FROM p", ["q"]],
    [
      "rows so far outside of the step",
      "WITH RECURSIVE p(k) USING KEY (k) AS (SELECT 1 UNION FROM p) FROM recurring.p",
      ["p"],
    ],
    ["the step of a CTE", "WITH RECURSIVE p AS (SELECT 1 UNION ALL FROM p) FROM p", []],
    ["the rows so far", "WITH RECURSIVE p(k) USING KEY (k) AS (SELECT 1 UNION SELECT k FROM recurring.p) FROM p", []],
  ])("%s", async (_case, sql, tables) => {
    expect(ourNames(await treeOf(sql))).toEqual(tables);
  });
});
