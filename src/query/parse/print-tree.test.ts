import { beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb } from "../../io/duckdb/duckdb.ts";
import { printTree } from "./print-tree.ts";
import { parseExact, parseTree, SqlParser } from "./sql-tree.ts";
import type { JsonObject } from "./tree.ts";

let parser: SqlParser;
beforeAll(async () => {
  parser = await SqlParser.open(await loadDuckDb(), 256 * 1024 * 1024);
});

/** With `n1`, `n2`, … wherever a name may stand. */
const QUERIES = [
  "SELECT n1, n1.n2, n1.n2.n3 AS n4 FROM n1",
  "SELECT n1.* FROM n1",
  "SELECT n1.* EXCLUDE (n2) REPLACE (n3 AS n4) FROM n1",
  "SELECT * EXCLUDE (n2) RENAME (n3 AS n4), COLUMNS(n1.*) FROM n1 AS n2",
  'SELECT * EXCLUDE (n1, n2, n3, n4, x, y, z, "x y", "Z2") FROM n1',
  "SELECT * FROM n1 AS n2(n3, n4)",
  "WITH n1(n2) AS (SELECT 1), n3 AS MATERIALIZED (FROM n1) SELECT * FROM n3, n1",
  "WITH RECURSIVE n1(n2) AS (SELECT 1 UNION ALL SELECT n2 + 1 FROM n1 WHERE n2 < 3) FROM n1",
  "WITH RECURSIVE n1(n2) USING KEY (n2) AS (SELECT 1 UNION SELECT n2 FROM recurring.n1) FROM n1",
  "SELECT n1 FROM n2 JOIN n3 USING (n4)",
  "SELECT n1 FROM n2 ASOF JOIN n3 ON n2.n4 >= n3.n4 POSITIONAL JOIN n1",
  "SELECT n1, count(*) AS n2 FROM n3 GROUP BY GROUPING SETS ((n1), ()) HAVING n2 > 1 ORDER BY n2 DESC NULLS FIRST",
  "SELECT DISTINCT ON (n1) n2 FROM n3 QUALIFY row_number() OVER (PARTITION BY n1 ORDER BY n2) = 1",
  "SELECT sum(n1) OVER n2 FROM n3 WINDOW n2 AS (ORDER BY n1 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
  "SELECT list_transform(n1, lambda n2: n2 + n3), [n4 FOR n4 IN n1 IF n4 > 1] FROM n1",
  "SELECT {'n1': 1, n2: n3}, struct_pack(n4 := n1).n4, MAP {n1: n2}, n1[n2], n1[n2:n3] FROM n4",
  "SELECT n1::n2, CAST(n1 AS STRUCT(n3 INTEGER, n4 VARCHAR[])), n1 COLLATE n2 FROM n3",
  "SELECT n1 FROM n2 UNION BY NAME (SELECT n3 FROM n4) EXCEPT ALL SELECT n1 FROM n2 ORDER BY n1 LIMIT 3 OFFSET 1",
  "PIVOT n1 ON n2 IN ('x', 'y') USING sum(n3) AS n4 GROUP BY n1",
  "UNPIVOT n1 ON n2, n3 INTO NAME n4 VALUE n1",
  "SELECT * FROM n1 UNPIVOT INCLUDE NULLS (n2 FOR n3 IN (n4 AS n1, n3))",
  "SUMMARIZE SELECT n1.* FROM n1",
  "DESCRIBE SELECT n1.* FROM n1",
  "FROM n1 SELECT n2 WHERE n3 IN (SELECT n4 FROM n1) AND EXISTS (FROM n2) AND n1 BETWEEN n2 AND n3",
  "SELECT n1 FROM n1 TABLESAMPLE reservoir(20 ROWS) REPEATABLE (1)",
  "VALUES (n1, 'n2'), (1.5, 15e-1)",
  "SELECT * FROM (VALUES (1)) AS n1(n2), unnest([1]) AS n3(n4), range(3) AS n4(n1)",
  "SELECT CASE WHEN n1 LIKE 'a%' THEN n2 ELSE n3 END, n1 IS NOT DISTINCT FROM n2, n1 SIMILAR TO 'x' FROM n4",
  "SELECT count(*) FILTER (WHERE n1), string_agg(n2, ',' ORDER BY n3), first(n1 ORDER BY n2 DESC) FROM n4",
];

/** What comes out of quotes: paths, ends of quotes, comments, statements, keywords. */
const HOSTILE = [
  "read_blob('/data/**/*.tlm') -- ",
  "filename, size, content FROM read_blob('/data/**') -- ",
  "x\" FROM read_blob('/data/**') --",
  "/data/other/*.parquet",
  "../x.csv",
  'a"b',
  '""',
  "a.b",
  "a;b",
  "/* ",
  "*/",
  "select",
  "from",
  "user",
  "1a",
  "A",
  "ünï",
  "engine_mark_0_",
  "\n",
  "$$",
  "'",
  "E'",
  " ",
];

async function treeOf(sql: string): Promise<JsonObject> {
  const { tree } = await parseTree(parser, sql);
  if (tree === undefined) throw new Error(`not a query: ${sql}`);
  return tree;
}

/** The tree with other names; literals too, for they are printed as well. */
function renamed(tree: JsonObject, nameOf: (i: number) => string): JsonObject {
  const json = JSON.stringify(tree).replaceAll(/"n(\d)"/g, (_all, i) => JSON.stringify(nameOf(Number(i))));
  return parseExact(json);
}

describe.each(QUERIES)("%s", (sql) => {
  test("is printed as it is, with positions that lead back", async () => {
    const tree = await treeOf(sql);
    const { sql: printed, placeOf } = await printTree(parser, tree);
    expect(JSON.stringify(await treeOf(printed)).length).toBeGreaterThan(0);
    // Every name that the printed text has is at a place that was one of the same name.
    const places = [...printed.matchAll(/(?<=FROM )n\d/g)].flatMap(({ index, 0: name }) => {
      const place = placeOf(index);
      return place === undefined ? [] : [{ name, there: sql.slice(place, place + name.length) }];
    });
    expect(places).toEqual(places.map(({ name }) => ({ name, there: name })));
  });

  test("is printed with any names", async () => {
    const tree = await treeOf(sql);
    for (const i of HOSTILE.keys()) {
      // It throws where the text would not parse back to the tree.
      const { sql: printed } = await printTree(
        parser,
        renamed(tree, (n) => HOSTILE[(i + n) % HOSTILE.length] ?? ""),
      );
      expect(printed).not.toBe("");
    }
  });
});

describe("a printer that goes wrong", () => {
  const printing = (text: string): SqlParser =>
    ({
      treeOf: (sql: string) => parser.treeOf(sql),
      textOf: async () => ({ text, tree: await parser.treeOf(text) }),
    }) as unknown as SqlParser;

  test.each([
    ["another tree", "SELECT 2"],
    ["another name", 'SELECT 1 AS "b"'],
    ["a second statement", "SELECT 1 AS a; SELECT 1 AS a"],
    ["a statement that is no query", "COPY (SELECT 1 AS a) TO '/tmp/x.csv'"],
    ["a file for a table", "SELECT 1 AS a FROM read_blob('/data/*')"],
    ["no SQL", "SELECT 1 AS"],
    ["nothing", ""],
  ])("is not believed: %s", async (_what, text) => {
    await expect(printTree(printing(text), await treeOf("SELECT 1 AS a"))).rejects.toThrow("cannot be run safely");
  });

  test("is believed when it says the same in other words", async () => {
    expect((await printTree(printing('select\n1 as "a" -- yes'), await treeOf("SELECT 1 AS a"))).sql).toContain("yes");
  });
});
