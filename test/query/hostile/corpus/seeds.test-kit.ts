/**
 * Valid statements over the tables `logs` and `users`, one or more for every form of the grammar (`template.test-kit.ts`
 * says how slots are written). Queries can stand in the place of a sub-query; commands cannot.
 */
export type Seed = {
  name: string;
  template: string;
  isCommand?: true;
  /** A hole was once found in this form: every hostile text of these is tried in it. */
  thorough?: "breaks" | "names" | "scopes";
};

const QUERIES: Readonly<Record<string, string>> = {
  "columns and literals":
    "SELECT ‹column:label›, ‹text:plain› AS ‹alias:t›, ‹expression:1› AS one FROM ‹table:logs› WHERE ‹column:label› <> ‹text:plain›",
  "a table in its database": "SELECT ‹table:logs›.‹column:label› FROM ‹schema:mine›.‹table:logs›",
  "FROM first": "FROM ‹table:logs› AS ‹alias:l› SELECT ‹alias:l›.‹column:label›",
  "FROM alone": "FROM ‹table:logs›",
  TABLE: "TABLE ‹table:logs›",
  "an alias as a prefix": "SELECT ‹alias:a›: 1, ‹alias:b›: ‹text:x› FROM ‹alias:t›: ‹table:logs›",
  "aliases of columns": "SELECT ‹column:a› FROM ‹table:logs› AS ‹alias:l›(‹column:a›, ‹column:b›)",
  "an alias that is used again": "SELECT ‹column:label› AS ‹alias:x›, ‹column:x› || ‹text:y› AS ‹alias:z› FROM logs",
  "a star with EXCLUDE": "SELECT * EXCLUDE (‹column:label›) FROM logs",
  "a star with REPLACE": "SELECT * REPLACE (‹text:x› AS ‹column:label›) FROM logs",
  "a star with RENAME": "SELECT * RENAME (‹column:label› AS ‹alias:renamed›) FROM logs",
  "a star with LIKE": "SELECT * LIKE ‹text:lab%› FROM logs",
  "a qualified star with EXCLUDE": "SELECT ‹star:l›.* EXCLUDE (‹column:at›) FROM ‹table:logs› AS ‹alias:l›",
  "a column with table and schema": "SELECT ‹schema:mine›.‹table:logs›.‹column:label› FROM ‹schema:mine›.‹table:logs›",
  COLUMNS: "SELECT COLUMNS(‹text:lab.*›) FROM logs",
  "COLUMNS with a lambda": "SELECT COLUMNS(lambda ‹lambda:c›: ‹lambda:c› LIKE ‹text:lab%›) FROM logs",
  "COLUMNS of a qualified star": "SELECT min(COLUMNS(‹star:l›.*)) FROM ‹table:logs› AS ‹alias:l›",
  "an unpacked star": "SELECT coalesce(*COLUMNS(‹star:q›.*)) AS ‹alias:c› FROM (SELECT 1 AS a, 2 AS b) AS ‹alias:q›",
  "a struct": "SELECT {‹text:k›: 1, ‹field:f›: 2}.‹field:f› AS ‹alias:v›",
  "a struct's fields": "SELECT ‹column:s›.‹field:f› FROM (SELECT {‹field:f›: ‹text:x›} AS ‹alias:s›) AS ‹alias:q›",
  "all of a struct": "SELECT ‹star:s›.* FROM (SELECT struct_pack(‹field:f› := 1) AS ‹alias:s›) AS q",
  "a row as a value": "SELECT ‹column:q› FROM (SELECT 1 AS ‹alias:a›) AS ‹alias:q›",
  "a list comprehension":
    "SELECT [‹lambda:x› || ‹text:y› FOR ‹lambda:x› IN [‹text:a›, ‹text:b›] IF ‹lambda:x› <> ‹text:a›]",
  "a lambda": "SELECT list_transform([1, 2], lambda ‹lambda:x›: ‹lambda:x› + ‹expression:1›) AS ‹alias:v›",
  "dots for functions": "SELECT ‹column:label›.upper().replace(‹text:a›, ‹text:b›) AS ‹alias:v› FROM logs",
  "an inner join":
    "SELECT ‹star:l›.*, ‹alias:u›.‹column:name› FROM ‹table:logs› ‹alias:l› JOIN ‹table:users› ‹alias:u› ON ‹alias:l›.‹column:label› = ‹alias:u›.‹column:label›",
  "a join with USING": "SELECT ‹star:u›.* FROM logs ‹alias:l› FULL OUTER JOIN users ‹alias:u› USING (‹column:label›)",
  "semi and anti joins":
    "SELECT ‹star:l›.* FROM logs ‹alias:l› SEMI JOIN users ‹alias:u› ON ‹alias:l›.label = ‹alias:u›.label ANTI JOIN users ‹alias:v› ON ‹alias:l›.label = ‹text:z›",
  "a positional join": "SELECT ‹star:l›.* FROM logs ‹alias:l› POSITIONAL JOIN ‹table:users› ‹alias:u›",
  "an ASOF join":
    "SELECT ‹star:u›.* FROM logs ‹alias:l› ASOF LEFT JOIN users ‹alias:u› ON ‹alias:l›.label = ‹alias:u›.label AND ‹alias:l›.at >= ‹alias:u›.at",
  "a lateral join":
    "SELECT ‹star:q›.* FROM logs ‹alias:l›, LATERAL (SELECT ‹alias:l›.‹column:label› || ‹text:x› AS ‹alias:y›) AS ‹alias:q›",
  "natural and cross joins":
    "SELECT count(*) AS ‹alias:n› FROM ‹table:logs› NATURAL JOIN ‹table:users› CROSS JOIN range(2) ‹alias:r›",
  "a CTE": "WITH ‹cte:w› AS (SELECT 1 AS ‹alias:a›) SELECT ‹star:w›.* FROM ‹cte:w›",
  "a CTE with names of columns":
    "WITH ‹cte:w›(‹column:a›, ‹column:b›) AS (SELECT 1, ‹text:x›) SELECT ‹column:a› FROM ‹cte:w› AS ‹alias:v›",
  "a CTE that is materialized":
    "WITH ‹cte:w› AS MATERIALIZED (FROM ‹table:logs›) SELECT count(*) FROM ‹cte:w› a, ‹cte:w› b",
  "a CTE that is not materialized":
    "WITH ‹cte:w› AS NOT MATERIALIZED (FROM ‹table:logs›) SELECT ‹column:label› FROM ‹cte:w›",
  "CTEs of CTEs":
    "WITH ‹cte:a› AS (SELECT 1 AS x), ‹cte:b› AS (FROM ‹cte:a›), ‹cte:c› AS (FROM ‹cte:b›, ‹cte:a›) SELECT * FROM ‹cte:c›",
  "a nested WITH": "WITH ‹cte:a› AS (WITH ‹cte:b› AS (SELECT 1 AS x) FROM ‹cte:b›) SELECT ‹star:a›.* FROM ‹cte:a›",
  "a CTE in a sub-query":
    "SELECT (WITH ‹cte:w› AS (SELECT 1 AS x) SELECT x FROM ‹cte:w›) AS ‹alias:v›, label FROM logs",
  "a CTE in the name of its table":
    "WITH ‹cte:logs› AS (SELECT * FROM ‹table:logs›) SELECT ‹star:logs›.* FROM ‹cte:logs›",
  "a recursive CTE":
    "WITH RECURSIVE ‹cte:w›(‹column:n›) AS (SELECT 1 UNION ALL SELECT ‹column:n› + 1 FROM ‹cte:w› WHERE ‹column:n› < 3) SELECT ‹star:w›.* FROM ‹cte:w›",
  "a recursive CTE with USING KEY":
    "WITH RECURSIVE ‹cte:w›(‹column:k›, ‹column:n›) USING KEY (‹column:k›) AS (SELECT 1, 1 UNION SELECT ‹column:k›, ‹column:n› + 1 FROM ‹cte:w› WHERE ‹column:n› < 3) FROM ‹cte:w›",
  "a recursive CTE that does not recur": "WITH RECURSIVE ‹cte:w› AS (SELECT ‹text:x› AS ‹alias:a›) FROM ‹cte:w›",
  "a union": "SELECT ‹text:x› AS ‹alias:a› UNION ALL SELECT ‹column:label› FROM ‹table:logs› ORDER BY ‹column:a›",
  "a union by name": "SELECT 1 AS ‹alias:a› UNION BY NAME SELECT ‹text:x› AS ‹alias:b›",
  "intersections and differences":
    "(SELECT label FROM ‹table:logs› INTERSECT SELECT ‹text:x›) EXCEPT ALL SELECT label FROM ‹table:users›",
  VALUES: "SELECT ‹star:v›.* FROM (VALUES (1, ‹text:x›), (2, ‹text:y›)) AS ‹alias:v›(‹column:a›, ‹column:b›)",
  "VALUES alone": "VALUES (1, ‹text:x›), (‹expression:2›, ‹text:y›)",
  "a window":
    "SELECT label, row_number() OVER ‹window:w› AS ‹alias:r› FROM logs WINDOW ‹window:w› AS (PARTITION BY ‹column:label› ORDER BY at)",
  QUALIFY:
    "SELECT ‹star:l›.* FROM logs AS ‹alias:l› QUALIFY row_number() OVER (PARTITION BY ‹alias:l›.‹column:label› ORDER BY at DESC) = ‹expression:1›",
  "DISTINCT ON": "SELECT DISTINCT ON (‹column:label›) ‹star:l›.* FROM logs ‹alias:l› ORDER BY ‹column:label›, at DESC",
  "a sample": "SELECT ‹star:l›.* FROM logs AS ‹alias:l› USING SAMPLE 50 PERCENT (bernoulli, 7)",
  "a sample of a table": "SELECT ‹column:label› FROM logs AS ‹alias:l› TABLESAMPLE reservoir(2 ROWS)",
  "grouping sets":
    "SELECT ‹column:label›, count(*) AS ‹alias:n› FROM logs GROUP BY GROUPING SETS ((‹column:label›), ()) HAVING count(*) > ‹expression:0›",
  "a rollup": "SELECT label, ‹column:body›, count(*) FROM logs GROUP BY ROLLUP (label, ‹column:body›) ORDER BY ALL",
  "an aggregate":
    "SELECT string_agg(‹column:label›, ‹text:,› ORDER BY at) FILTER (WHERE label <> ‹text:x›) AS ‹alias:a› FROM logs",
  LIMIT: "SELECT ‹star:l›.* FROM logs ‹alias:l› ORDER BY at LIMIT ‹expression:2› OFFSET ‹expression:1›",
  "LIMIT in per cent": "SELECT label FROM logs LIMIT ‹expression:10› PERCENT",
  "a collation":
    "SELECT label COLLATE ‹collation:nocase› AS ‹alias:a› FROM logs ORDER BY ‹column:label› COLLATE ‹collation:noaccent›",
  "a cast":
    "SELECT ‹text:1›::‹type:INTEGER› AS ‹alias:v›, TRY_CAST(‹text:x› AS STRUCT(‹field:f› ‹type:INTEGER›)), CAST(‹text:a› AS ENUM(‹text:a›))",
  "a cast of a prefix": "SELECT ‹type:DATE› '2026-01-01' AS ‹alias:v›, ‹text:2026-01-01›::‹type:DATE›",
  "a function": "SELECT ‹function:upper›(‹text:x›) AS ‹alias:v›, ‹schema:main›.‹function:lower›(‹text:X›)",
  "a table function": "SELECT ‹star:r›.* FROM ‹function:range›(‹expression:3›) AS ‹alias:r›(‹column:i›)",
  "more table functions":
    "SELECT ‹alias:g›.‹column:i›, ‹column:u› FROM ‹function:generate_series›(1, 2) ‹alias:g›(‹column:i›), unnest([‹text:x›]) ‹alias:t›(‹column:u›)",
  "JSON as a table": 'SELECT ‹star:j›.* FROM ‹function:json_each›(‹text:{"a": 1}›, ‹text:$›) AS ‹alias:j›',
  "JSON paths":
    "SELECT ‹column:props›->>‹text:$.a› AS ‹alias:v› FROM logs WHERE json_extract_string(props, ‹text:a›) IS NULL",
  PIVOT:
    "SELECT ‹star:p›.* FROM (PIVOT (SELECT label, 1 AS ‹column:n› FROM logs) ON ‹column:label› IN (‹text:x›, ‹text:y›) USING sum(‹column:n›)) AS ‹alias:p›",
  "a standard PIVOT":
    "FROM (SELECT label, 1 AS n FROM ‹table:logs›) PIVOT (sum(n) AS ‹alias:s› FOR ‹column:label› IN (‹text:x› AS ‹alias:y›)) AS ‹alias:p›",
  UNPIVOT:
    "SELECT ‹star:u›.* FROM (UNPIVOT (SELECT label AS ‹column:a›, label AS ‹column:b› FROM logs) ON ‹column:a›, ‹column:b› INTO NAME ‹column:n› VALUE ‹column:v›) AS ‹alias:u›",
  "DESCRIBE in a query": "SELECT ‹star:d›.* FROM (DESCRIBE ‹table:logs›) AS ‹alias:d›",
  "SUMMARIZE in a query": "SELECT ‹star:s›.* FROM (SUMMARIZE SELECT label FROM ‹table:logs›) AS ‹alias:s›",
  "SHOW TABLES in a query": "SELECT ‹star:s›.* FROM (SHOW TABLES) AS ‹alias:s›",
  "a system table": "SELECT ‹star:t›.* FROM ‹schema:system›.‹table:tables› AS ‹alias:t›",
  "system tables":
    "SELECT ‹star:c›.*, ‹alias:q›.outcome FROM ‹schema:system›.‹table:columns› ‹alias:c›, ‹schema:system›.‹table:queries› ‹alias:q› LIMIT 3",
  "the information schema":
    "SELECT ‹star:t›.*, ‹alias:c›.‹column:data_type› FROM ‹schema:information_schema›.‹table:tables› AS ‹alias:t› JOIN ‹schema:information_schema›.‹table:columns› ‹alias:c› USING (‹column:table_name›)",
  "the names of the information schema":
    "SELECT ‹schema:information_schema›.‹table:schemata›.‹column:schema_name› FROM ‹schema:information_schema›.‹table:schemata›",
  "a table by its database":
    "SELECT ‹star:l›.*, ‹schema:mine›.‹table:users›.‹column:name› FROM ‹schema:mine›.‹table:logs› AS ‹alias:l›, ‹schema:mine›.‹table:users›",
  "a table by its catalog and database":
    "SELECT ‹star:l›.* FROM ‹schema:engine›.‹schema:mine›.‹table:logs› AS ‹alias:l›",
  "a table by its database, as of then":
    "SELECT ‹star:l›.* FROM ‹schema:mine›.‹table:logs› AS ‹alias:l› AT (VERSION => ‹expression:2›)",
  "SHOW DATABASES in a query": "SELECT ‹star:d›.* FROM (SHOW DATABASES) AS ‹alias:d›",
  "SHOW TABLES of a database in a query": "SELECT ‹star:s›.* FROM (SHOW TABLES FROM ‹schema:mine›) AS ‹alias:s›",
  "the time of now": "SELECT ‹star:l›.* FROM logs AS ‹alias:l› WHERE ‹alias:l›.at < now() - INTERVAL ‹text:1 hour›",
  "a time zone":
    "SELECT at AT TIME ZONE ‹text:Europe/Berlin› AS ‹alias:v›, ‹text:2026-01-01›::TIMESTAMPTZ AS ‹alias:w› FROM ‹table:logs›",
  "a unit of time":
    "SELECT date_trunc(‹text:hour›, at) AS ‹alias:v›, date_part(‹text:hour›, at), extract(‹text:hour› FROM at), time_bucket(INTERVAL ‹text:1 hour›, at) FROM logs",
  "a format of time":
    "SELECT strftime(at, ‹text:%Y›) AS ‹alias:v›, max(at) + INTERVAL 1 HOUR AS ‹alias:w› FROM logs GROUP BY ALL",
  "a bound of time":
    "SELECT label FROM ‹table:logs› WHERE at >= ‹text:2020-01-01› AND at BETWEEN TIMESTAMP '2020-01-01' AND ‹expression:now()›",
  "bounds that are computed":
    "SELECT label FROM ‹table:logs› WHERE at > now() - to_days(CAST(‹text:10000› AS INTEGER)) AND label = concat(‹text:a›, ‹text:b›)",
  "a sub-query":
    "SELECT (SELECT ‹star:q›.* FROM (SELECT 1 AS a) AS ‹alias:q›) AS ‹alias:v›, label IN (SELECT ‹column:name› FROM ‹table:users›), EXISTS (FROM ‹table:users›) FROM logs",
  "CASE and operators":
    "SELECT CASE ‹column:label› WHEN ‹text:x› THEN ‹text:y› ELSE NULL END AS ‹alias:v›, label LIKE ‹text:%› ESCAPE ‹text:!›, label SIMILAR TO ‹text:.*›, label IN (‹text:a›, ‹text:b›) FROM logs",
  "ORDER BY": "SELECT label AS ‹alias:a› FROM logs ORDER BY ‹column:a› DESC NULLS LAST, lower(‹column:label›)",
  "a version": "SELECT ‹star:l›.* FROM ‹table:logs› AS ‹alias:l› AT (VERSION => ‹expression:2›)",
  "a moment":
    "SELECT ‹star:l›.* FROM ‹table:logs› AS ‹alias:l› AT (TIMESTAMP => now()), ‹table:users› AT (TIMESTAMP => ‹expression:now() + INTERVAL 1 HOUR›)",
};

/** A qualified star once came out of the engine's own text without its quotes. */
const STARS: Readonly<Record<string, string>> = {
  "a qualified star": "SELECT ‹star:e›.* FROM (SELECT 1 AS ‹column:a›) AS ‹alias:e›",
};

/** DuckDB binds the name in the anchor to a table or a file, and knows the CTE only after it. */
const ANCHORS: Readonly<Record<string, string>> = {
  "a recursive CTE whose anchor reads its name":
    "WITH RECURSIVE ‹cte:logs› AS (FROM ‹table:logs› UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "a recursive CTE with a key whose anchor reads its name":
    "WITH RECURSIVE ‹cte:logs› USING KEY (label) AS (FROM ‹table:logs› UNION SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
};

/** Names that stand for a CTE in one place, and for a table in another. */
const SCOPES: Readonly<Record<string, string>> = {
  "an anchor that is a union":
    "WITH RECURSIVE ‹cte:logs› AS ((SELECT label FROM ‹table:logs› UNION ALL SELECT 'x') UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "an anchor with a sub-query":
    "WITH RECURSIVE ‹cte:logs› AS (SELECT (SELECT max(label) FROM ‹table:logs›) AS label UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "an anchor with a derived table":
    "WITH RECURSIVE ‹cte:logs› AS (SELECT label FROM (FROM ‹table:logs›) AS q UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "an anchor with a join":
    "WITH RECURSIVE ‹cte:logs› AS (SELECT a.label FROM ‹table:logs› AS a JOIN ‹table:logs› AS b ON true UNION SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "an anchor with a CTE":
    "WITH RECURSIVE ‹cte:logs› AS (SELECT label FROM (WITH x AS (FROM ‹table:logs›) FROM x) UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "an anchor in another's":
    "WITH RECURSIVE x AS ((WITH RECURSIVE ‹cte:logs› AS (SELECT label FROM ‹table:logs› UNION ALL SELECT * FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›) UNION ALL SELECT * FROM x WHERE false) FROM x",
  "an anchor of a materialized CTE":
    "WITH RECURSIVE ‹cte:logs›(label) AS MATERIALIZED (SELECT label FROM ‹table:logs› UNION ALL SELECT label FROM ‹cte:logs› WHERE false) FROM ‹cte:logs›",
  "a table beside a CTE of a sub-query":
    "SELECT r.label FROM (WITH ‹cte:logs› AS (SELECT 1 AS a) FROM ‹cte:logs›) AS q, ‹table:logs› AS r",
  "a table before a CTE of its name":
    "WITH x AS (FROM ‹table:logs›), ‹cte:logs› AS (SELECT 1 AS a) SELECT x.label FROM x, ‹cte:logs›",
  "a CTE of a CTE of its name":
    "WITH ‹cte:logs› AS (SELECT 'x' AS label) SELECT (WITH ‹cte:logs› AS (FROM ‹cte:logs›) SELECT max(label) FROM ‹cte:logs›) AS label",
};

const COMMANDS: Readonly<Record<string, string>> = {
  "SHOW TABLES": "SHOW TABLES",
  "SHOW of a table": "SHOW ‹table:logs›",
  DESCRIBE: "DESCRIBE ‹table:logs›",
  "DESCRIBE of a query": "DESCRIBE SELECT ‹star:l›.*, now()::TIMESTAMPTZ AS ‹alias:z› FROM ‹table:logs› AS ‹alias:l›",
  SUMMARIZE: "SUMMARIZE ‹table:logs›",
  EXPLAIN: "EXPLAIN SELECT ‹star:l›.*, now()::TIMESTAMPTZ AS ‹alias:z› FROM ‹table:logs› AS ‹alias:l›",
  "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT ‹star:l›.* FROM ‹table:logs› AS ‹alias:l› WHERE label = ‹text:x›",
  "EXPLAIN in JSON": "EXPLAIN (FORMAT json) WITH ‹cte:w› AS (FROM ‹table:logs›) SELECT ‹star:w›.* FROM ‹cte:w›",
  "PIVOT with values that are looked up":
    "PIVOT (SELECT label, at, ‹star:e›.* FROM ‹table:logs›, (SELECT 1 AS ‹alias:a›) AS ‹alias:e›) ON ‹column:label› USING max(at + INTERVAL 1 HOUR)",
  "PIVOT of an expression":
    "PIVOT ‹table:logs› ON ‹column:label› || ‹text:x› USING count(*) AS ‹alias:n› GROUP BY ‹column:body›",
  "WITH before PIVOT": "WITH ‹cte:w› AS (FROM ‹table:logs›) PIVOT ‹cte:w› ON ‹column:label› USING count(*)",
  "UNPIVOT of columns":
    "UNPIVOT (SELECT label, body FROM ‹table:logs›) ON COLUMNS(‹text:.*›) INTO NAME ‹column:n› VALUE ‹column:v›",
};

export const SEEDS: readonly Seed[] = [
  ...Object.entries(QUERIES).map(([name, template]): Seed => ({ name, template })),
  ...Object.entries(STARS).map(([name, template]): Seed => ({ name, template, thorough: "breaks" })),
  ...Object.entries(ANCHORS).map(([name, template]): Seed => ({ name, template, thorough: "names" })),
  ...Object.entries(SCOPES).map(([name, template]): Seed => ({ name, template, thorough: "scopes" })),
  ...Object.entries(COMMANDS).map(([name, template]): Seed => ({ name, template, isCommand: true })),
];
