import { relative } from "node:path";
import { quoteIdentifier, quoteText } from "../../../../src/io/duckdb/duckdb.ts";

/** What a hostile statement is after: the files of a database that its caller may not use. */
export type Target = {
  /** The folder of all databases' extents, that of the other database, and that of the caller's own. */
  root: string;
  folder: string;
  ownFolder: string;
  /** One extent of the other database in each format. */
  tlm: string;
  parquet: string;
  /** The server's own files. */
  catalog: string;
};

export type HostileText = {
  kind: "path" | "internal name" | "quotes" | "rows" | "statements" | "expression";
  /** What it does where it comes to run, in a word or two. */
  what: string;
  text: string;
};

/** What a payload leaves behind when it runs. No statement has it in one piece. */
export const MARKER = "qzpoisonqz";
const MARKER_SQL = `'qzpoi' || 'sonqz'`;

export function paths(target: Target): HostileText[] {
  return [...namesOfFiles(target), ...globs(target), ...otherFiles(target)].map(([what, text]) => ({
    kind: "path",
    what,
    text,
  }));
}

type Named = [what: string, text: string];

function namesOfFiles({ tlm, parquet, root, ownFolder }: Target): Named[] {
  return [tlm, parquet].flatMap((file): Named[] => {
    const near = relative(process.cwd(), file);
    const within = relative(root, file);
    return [
      ["path", file],
      ["URL", `file://${file}`],
      ["URL without slashes", `file:${file}`],
      ["relative path", near],
      ["relative path with a dot", `./${near}`],
      ["path through /proc", `/proc/self/root${file}`],
      ["relative path through /proc", `/proc/self/cwd/${near}`],
      ["path through the own folder", `${ownFolder}/../${within}`],
      ["path with slashes and dots", `${root}//.//${within}`],
      ["path with a quote", `${ownFolder}/"'/../../${within}`],
    ];
  });
}

function globs({ root, folder, ownFolder }: Target): Named[] {
  return ["tlm", "parquet"].flatMap((format): Named[] => [
    ["glob", `${folder}/**/*.${format}`],
    ["glob of a level", `${folder}/*/*/*.${format}`],
    ["glob of characters", `${folder}/lo[g]s/20??-*/[0-9]*.${format}`],
    ["glob of all databases", `${root}/**/*.${format}`],
    ["glob through the own folder", `${ownFolder}/../*/*/*/*.${format}`],
    ["relative glob", `${relative(process.cwd(), folder)}/**/*.${format}`],
  ]);
}

function otherFiles({ catalog }: Target): Named[] {
  return [
    ["catalog", catalog],
    ["catalog by its kind", `sqlite:${catalog}`],
    ["environment", "/proc/self/environ"],
    ["list of users", "/etc/passwd"],
    ["standard input", "/dev/stdin"],
    ["address", "https://127.0.0.1:9/x.parquet"],
  ];
}

const INTERNAL_NAMES = [
  "duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_functions", "duckdb_indexes", "duckdb_logs",
  "duckdb_schemas", "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_views", "glob", "information_schema",
  "main", "memory", "pg_attribute", "pg_catalog", "pg_class", "pg_settings", "pg_tables", "pragma_database_list",
  "query", "query_table", "read_blob", "read_parquet", "read_text", "sqlite_master", "sqlite_schema",
  "sqlite_temp_master", "system", "temp", "which_secret", "engine_tlm_scan", "_engine_system", "_engine_travel_0",
]; // oxfmt-ignore

export function internalNames(): HostileText[] {
  return INTERNAL_NAMES.map((text) => ({ kind: "internal name", what: text, text }));
}

const QUOTES = [
  '"', '""', "'", "''", '"."', '".*', 'a"b', "a'b", "--", "-- ", "/*", "*/", "/**/", ";", ";;", "\0", "\n", "\r\n", "$$",
  "$a$", "$a$ $a$", 'U&"\\0022"', "U&'\\0027'", "e'\\x27'", "\\", '\\"', "\\'", "?", "$1", ":x", "@x", "(", ")", "*",
  "a.b", ".", "..", "%s", "{}", "[1]", "a, b", "1", "at", "select", "\u00a0", "\u2028", "ｓｅｌｅｃｔ", "\u0000'",
  "’", "`", "a -- b\n", "𝔘&", "x".repeat(3_000), "",
]; // oxfmt-ignore

export function quotes(): HostileText[] {
  return QUOTES.map((text) => ({ kind: "quotes", what: "quotes", text }));
}

/** Items of a SELECT list that bring their own FROM, and take what follows for a comment. */
export function rows({ folder, parquet }: Target, closer: string): HostileText[] {
  const sources: Named[] = [
    ["blobs", `filename, size, content FROM read_blob('${folder}/**/*.tlm')`],
    ["a blob", `max(content) FROM read_blob('${parquet}')`],
    ["a table", `label FROM '${folder}/**/*.parquet' LIMIT 1`],
    ["a number", `1000 + ascii(label) FROM '${folder}/**/*.parquet' LIMIT 1`],
    ["names of files", `max(file) FROM glob('${folder}/**')`],
    ["settings", "string_agg(name) FROM duckdb_settings()"],
    ["the environment", "max(content) FROM read_text('/proc/self/environ')"],
    ["SQL in a text", `* FROM query('FROM ''${parquet}''')`],
  ];
  return sources.map(([what, text]) => ({ kind: "rows", what, text: `${text}${closer} -- ` }));
}

/** The end of one statement, others, and the beginning of one that takes what follows for a comment. */
export function statements({ folder, ownFolder, tlm, parquet }: Target, closer: string): HostileText[] {
  const payloads: Named[] = [
    ["COPY over an extent", `COPY (SELECT ${MARKER_SQL} AS label) TO '${parquet}' (FORMAT parquet)`],
    ["COPY over a fresh extent", `COPY (SELECT ${MARKER_SQL}) TO '${tlm}' (FORMAT csv)`],
    ["COPY to a new file", `COPY (SELECT ${MARKER_SQL}) TO '${folder}/forged.tlm' (FORMAT csv)`],
    ["COPY of rows", `COPY (FROM '${folder}/**/*.parquet') TO '${ownFolder}/stolen.parquet' (FORMAT parquet)`],
    ["MACRO", `COMMIT; CREATE OR REPLACE MACRO main.lower(x) AS ${MARKER_SQL}; BEGIN`],
    ["TABLE", "COMMIT; CREATE TABLE main.leftover AS SELECT 1; BEGIN"],
    ["ATTACH", "COMMIT; ATTACH ':memory:' AS leftover; BEGIN"],
    ["ATTACH of a file", `COMMIT; ATTACH '${ownFolder}/leftover.db' AS leftover; BEGIN`],
    ["SET", "SET GLOBAL memory_limit = '7GB'; SET GLOBAL streaming_buffer_size = '1KB'"],
    ["EXPORT", `EXPORT DATABASE '${folder}/exported'`],
  ];
  return payloads.map(([what, text]) => ({ kind: "statements", what, text: `1${closer}; ${text}; SELECT 1 -- ` }));
}

/** Whole expressions, which need no break in any quotes. */
export function expressions(target: Target): HostileText[] {
  const { folder, parquet, tlm } = target;
  const glob = quoteText(`${folder}/**/*.parquet`);
  const plain: Named[] = [
    ["a number", `(SELECT 1000 + ascii(label) FROM ${glob} LIMIT 1)`],
    ["a number by name", `(FROM ${quoteIdentifier(parquet)} SELECT max(ascii(label)))`],
    ["a number of a CTE", `(WITH RECURSIVE x AS (FROM ${glob}) SELECT max(1000 + ascii(label)) FROM x)`],
    ["a text", `(SELECT max(label) FROM ${glob})`],
    ["an error", `(SELECT CAST(max(label) AS INTEGER) FROM ${glob})`],
    ["an error of ours", `(SELECT error(max(label)) FROM ${glob})`],
    ["a function that reads", `(SELECT max(content) FROM read_blob(${quoteText(tlm)}))`],
    ["names of files", `(SELECT max(file) FROM glob('${folder}/**'))`],
    ["settings", "(SELECT string_agg(name) FROM duckdb_settings())"],
    ["a view of DuckDB's", "(SELECT count(*) FROM duckdb_views)"],
    ["the environment", "getenv('HOME')"],
    ["a setting", "current_setting('temp_directory')"],
    ["SQL in a text", `(SELECT max(label) FROM query('FROM ''${parquet}'''))`],
  ];
  const stars = [")) AS BIGINT)", ")) AS bound(v)", ")"].flatMap((closer) =>
    [...rows(target, closer).slice(2, 4), ...statements(target, closer)].map(({ what, text }): Named => {
      const name = quoteIdentifier(text);
      return [`a star: ${what}`, `(SELECT ${name}.* FROM (SELECT 1 AS a) AS ${name})`];
    }),
  );
  return [...plain, ...stars].map(([what, text]) => ({ kind: "expression", what, text }));
}
