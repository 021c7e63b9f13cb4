import type { Skill } from "./skill.ts";

export const SQL: Skill = {
  name: "engine-sql",
  description:
    "How to query tables of the engine with SQL: its dialect, times, JSON columns, other databases, and what makes a query " +
    "fast. Read it before the first query, or when a query is refused.",
  body: `# SQL of the engine

A query is one SELECT in DuckDB's dialect. It reads and never writes: no INSERT, no CREATE, no files, no settings.

## Find your way

Use list_tables and describe_table before you query a table that you do not know. Never guess the name of a column: an error
names the column that may have been meant.

~~~sql
SHOW TABLES
SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY table_name, ordinal_position
~~~

## Times

\`at\` is the time of a row, in UTC; it needs no quotes. Bound it in every query of a large table: what lies outside is not
read.

~~~sql
SELECT count(*) FROM events WHERE at >= now() - INTERVAL 1 DAY
SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY hour ORDER BY hour
SELECT time_bucket(INTERVAL 5 MINUTES, at) AS bucket, avg(ms::DOUBLE) FROM events GROUP BY bucket ORDER BY bucket
~~~

Numbers are often stored as text: where describe_table says \`string\`, cast to calculate or compare, as \`ms::DOUBLE\` above.

## Nested data

A \`dynamic\` column is JSON. Fields that have no column of their own are in \`props\`.

~~~sql
SELECT props->>'$.user.id' AS user_id, count(*) FROM events GROUP BY user_id ORDER BY count(*) DESC LIMIT 10
SELECT count(*) FROM events WHERE (props->>'$.ms')::DOUBLE > 100
~~~

## Other databases

A table of another database is \`database.table\`; both are read at one moment. SHOW DATABASES has those that can be read.

## Few rows, quickly

- Count and aggregate in the query; ask for rows only to show examples, with a LIMIT.
- Compare bare columns with constants: \`label = 'error'\`, \`starts_with(label, 'err')\`, \`IN\`, \`BETWEEN\`. A function around
  the column, or LIKE with % in front, reads every row.
- Name the columns that you need: only these are read.
- \`ORDER BY at DESC LIMIT 10\` over one table is cheap.
- An answer that says it is truncated has more rows than it shows: aggregate, or narrow the query. Its number of rows is that
  of the whole result.

~~~sql
SELECT label, count(*) AS n, max(at) AS latest FROM events WHERE at >= now() - INTERVAL 7 DAYS GROUP BY label ORDER BY n DESC LIMIT 20
SELECT at, label FROM events ORDER BY at DESC LIMIT 10
~~~

## When it is refused

An error has its place in the text, and often a suggestion: change the query there and run it again. \`budget_exceeded\` means
that it took too long or too much memory: bound the time, read fewer columns, group by less.
`,
};
