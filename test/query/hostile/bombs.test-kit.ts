import { ANONYMOUS } from "../../../src/auth/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { EngineError } from "../../../src/core/errors.ts";
import { withBackstop } from "./backstop.test-kit.ts";
import type { QueryHarness } from "../../../src/query/query.test-kit.ts";

/**
 * Queries that grow without end, in what they compute or in their own text. Each ends in one of its budgets or in an
 * error of its own, or is done in time; and the next query works. `BOMBS` are tried by every test run, `MORE_BOMBS` by
 * `scripts/abuse.ts bombs`.
 */
const repeat = (text: string, times: number): string => text.repeat(times);
const listed = (count: number, item: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => item(i)).join(",");

type Bombs = Readonly<Record<string, string | (() => string)>>;

export const BOMBS: Bombs = {
  "a long range": "SELECT sum(r) FROM range(1_000_000_000_000) t(r)",
  "a range as a list": "SELECT len(range(1_000_000_000))",
  "cross joins":
    "SELECT count(*) FROM range(1_000_000) a(x), range(1_000_000) b(y), range(1_000_000) c(z) WHERE x + y + z = -1",
  "an endless recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
  "a recursion that doubles":
    "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(len(s)) FROM t",
  "a long text": "SELECT len(repeat('x', 10_000_000_000))",
  "long texts": "SELECT max(repeat('x', 10_000_000) || r) FROM range(10_000) t(r)",
  "a wide format": "SELECT len(format('{:>2000000000}', 'x'))",
  "base64 of much": "SELECT len(to_base64(repeat('x', 1_000_000_000)::BLOB))",
  "a regular expression that is large":
    "SELECT count(*) FROM range(10_000_000) t(r) WHERE regexp_matches(r::VARCHAR || repeat('a', 1000), '(((a{1,30}){1,30}){1,1}.*b)')",
  "a regular expression that is much repeated":
    "SELECT regexp_matches('a', repeat('(a?)', 200_000) || repeat('a', 200_000))",
  "a list of lists": "SELECT len(list_transform(range(100_000), lambda x: range(100_000)))",
  "a reduction that grows":
    "SELECT len(list_reduce(list_transform(range(1_000), lambda x: [x]), lambda a, b: list_concat(a, a, b)))",
  "a resized list": "SELECT len(list_resize([1], 10_000_000_000, 0))",
  "a large array distance": "SELECT list_distance(range(200_000_000)::FLOAT[], range(200_000_000)::FLOAT[])",
  "a sort of everything": "SELECT r FROM range(1_000_000_000) t(r) ORDER BY hash(r) LIMIT 1 OFFSET 900_000_000",
  "huge numbers":
    "SELECT sum(r::HUGEINT * 170141183460469231731687303715884105727::HUGEINT) FROM range(10_000_000) t(r)",
  "JSON that is deep": "SELECT json_structure(repeat('[', 10_000_000) || repeat(']', 10_000_000))",
  "JSON cast to deep types": `SELECT ('[]'::JSON)::INTEGER${repeat("[]", 500)}`,
  "JSON transformed by a deep structure": `SELECT json_transform('{}', '${repeat('{"a":', 5_000)}"INTEGER"${repeat("}", 5_000)}')`,
  "a pivot of many values": "PIVOT (SELECT r AS a FROM range(10_000_000) t(r)) ON a USING count(*)",
  "a large result": "SELECT repeat('x', 1_000_000) AS s FROM range(1_000_000)",
  "a bound on time that is costly":
    "SELECT count(*) FROM logs WHERE at > make_timestamp(list_sum(range(2_000_000_000))::BIGINT)",
  "a snapshot number that is costly": "SELECT count(*) FROM logs AT (VERSION => len(range(2_000_000_000)))",
  "10 MB of parentheses": () => `SELECT ${repeat("(", 5_000_000)}1${repeat(")", 5_000_000)}`,
  "a thousand parentheses": () => `SELECT ${repeat("(", 1_000)}1${repeat(")", 1_000)}`,
  "a million conditions": () => `SELECT 1 WHERE ${repeat("a and ", 1_000_000)}a`,
  "deep lists": () => `SELECT ${repeat("[", 20_000)}1${repeat("]", 20_000)}`,
  "deep calls": () => `SELECT ${repeat("abs(", 50_000)}1${repeat(")", 50_000)}`,
  "deep types": () => `SELECT NULL::${repeat("STRUCT(a ", 5_000)}INT${repeat(")", 5_000)}`,
  "many tables": () => `SELECT count(*) FROM ${listed(2_000, (i) => `logs t${i}`)}`,
  "CTEs that double": () =>
    `WITH c0 AS NOT MATERIALIZED (FROM range(10)), ${listed(40, (i) => `c${i + 1} AS NOT MATERIALIZED (SELECT a.range FROM c${i} a, c${i} b)`)} SELECT count(*) FROM c40`,
  "a huge IN": () => `SELECT count(*) FROM range(10) t(r) WHERE r IN (${listed(500_000, String)})`,
  "many grouping sets": () => `SELECT count(*) FROM range(1) t(r) GROUP BY CUBE (${listed(30, (i) => `r + ${i}`)})`,
  "a long number": () => `SELECT ${repeat("9", 5_000_000)}`,
  "many bounds": () =>
    `SELECT count(*) FROM logs WHERE ${Array.from({ length: 5_000 }, (_, i) => `at > '2024-01-01'::TIMESTAMP + INTERVAL ${i} SECOND`).join(" AND ")}`,
  "many pivots": () => `PIVOT logs ON ${listed(2_000, (i) => `label || ${i}`)} USING count(*)`,
  "16 MB of nothing": () => repeat(" ", 16_000_000),
};

export const MORE_BOMBS: Bombs = {
  "unnested ranges": "SELECT count(*) FROM (SELECT unnest(range(100_000_000)) AS r) WHERE r = -1",
  "padded texts": "SELECT max(lpad(r::VARCHAR, 2_000_000_000, 'y')) FROM range(100) t(r)",
  "a replacement that grows": "SELECT len(replace(repeat('x', 1_000_000), 'x', repeat('y', 1_000_000)))",
  "a list function in a list function":
    "SELECT list_sum(list_transform(range(1_000_000), lambda x: list_sum(list_transform(range(1_000_000), lambda y: x * y))))",
  "a sorted list": "SELECT len(list_sort(list_transform(range(100_000_000), lambda x: hash(x))))",
  "zipped lists": "SELECT len(list_zip(range(100_000_000), range(100_000_000)))",
  "everything in one array": "SELECT len(array_agg(r ORDER BY hash(r))) FROM range(200_000_000) t(r)",
  "everything in one text": "SELECT len(string_agg(repeat('x', 1_000), ',')) FROM range(100_000_000)",
  "groups of everything": "SELECT max(n) FROM (SELECT count(*) AS n FROM range(1_000_000_000) t(r) GROUP BY hash(r))",
  "a large power": "SELECT sum(power(r::DOUBLE, 1e300)), sum(pow(2, r)) FROM range(10_000_000_000) t(r)",
  "JSON that is deep, as rows": "SELECT count(*) FROM json_tree(repeat('[', 100_000) || repeat(']', 100_000))",
  "JSON merged":
    "SELECT len(list_reduce(list_transform(range(100_000), lambda x: json_object('k' || x, repeat('v', 10_000))), lambda a, b: json_merge_patch(a, b)))",
  "a sample of everything":
    "SELECT count(*) FROM range(10_000_000_000) t(r) USING SAMPLE reservoir(1_000_000_000 ROWS)",
  "an explained run": "EXPLAIN ANALYZE SELECT sum(r) FROM range(1_000_000_000_000) t(r)",
  "a limit that is costly": "SELECT 1 LIMIT len(range(2_000_000_000))",
  "deep subqueries": () => `SELECT * FROM ${repeat("(SELECT * FROM ", 3_000)}range(1)${repeat(")", 3_000)}`,
  "deep lambdas": () => `SELECT ${repeat("list_transform([1], lambda x: ", 1_000)}1${repeat(")", 1_000)}`,
  "many unions": () => `SELECT 1${repeat(" UNION ALL SELECT 1", 50_000)}`,
  "many columns": () => `SELECT ${listed(200_000, String)}`,
  "many aggregates": () => `SELECT ${listed(20_000, (i) => `sum(r + ${i})`)} FROM range(1000) t(r)`,
  "a long name": () => `SELECT 1 AS "${repeat("x", 8_000_000)}"`,
  "many semicolons": () => `SELECT 1${repeat(";", 5_000_000)}`,
  "many travels": () => `SELECT count(*) FROM ${listed(500, (i) => `logs AT (VERSION => 1) t${i}`)}`,
  "a histogram of everything": "SELECT cardinality(histogram(hash(r))) FROM range(100_000_000) t(r)",
  "a wide printf": "SELECT len(printf('%2000000000d', 1))",
  "a long series": "SELECT count(*) FROM generate_series(1, 1_000_000_000_000) t(r) WHERE r % 7 = 9",
  "a series of times":
    "SELECT count(*) FROM generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL 1 SECOND) t(r) WHERE r IS NULL",
  "a series of times as a list":
    "SELECT len(generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL 1 MICROSECOND))",
  "nested unnests":
    "SELECT count(*) FROM (SELECT unnest(range(10_000)) AS a, unnest(range(10_000)) AS b), (SELECT unnest(range(100_000)) AS c) WHERE a + b + c = -1",
  "a lateral join":
    "SELECT max(s) FROM range(100_000) a(x), LATERAL (SELECT sum(y) AS s FROM range(1_000_000) b(y) WHERE y > x)",
  "a join of everything with everything":
    "SELECT count(*) FROM range(10_000_000) a(x) JOIN range(10_000_000) b(y) ON x < y",
  "a join on one key":
    "SELECT count(*) FROM (SELECT 1 AS k FROM range(1_000_000)) a JOIN (SELECT 1 AS k FROM range(10_000_000)) b USING (k)",
  "a recursion that branches":
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM t UNION ALL SELECT n + 2 FROM t)) SELECT count(*) FROM t",
  "a recursion with keys":
    "WITH RECURSIVE t(n, m) USING KEY (n) AS (SELECT 1, 1 UNION SELECT n + 1, m FROM t) SELECT count(*) FROM t",
  "a long text by doubling": `SELECT len(concat(s, s, s, s, s)) FROM (SELECT repeat('x', 500_000_000) AS s)`,
  "a padded text": "SELECT len(lpad('x', 1_000_000_000, 'y')), len(rpad('x', 1_000_000_000, 'y'))",
  "a bar": "SELECT len(bar(1, 0, 2, 1_000_000_000))",
  "hex of much": "SELECT len(hex(repeat('x', 1_000_000_000)))",
  "bits of much": "SELECT len(bitstring('1', 2_000_000_000))",
  "a regular replacement that grows":
    "SELECT len(regexp_replace(repeat('x', 1_000_000), 'x', repeat('y', 100_000), 'g'))",
  "a translated text": "SELECT len(translate(repeat('x', 500_000_000), 'x', 'y'))",
  "a split text": "SELECT len(string_split(repeat('x,', 100_000_000), ','))",
  "a text split by characters": "SELECT len(regexp_extract_all(repeat('x', 100_000_000), '.'))",
  "many matches": "SELECT len(regexp_extract_all(repeat('ab', 50_000_000), '(a)(b)', 1))",
  "regular expressions made of rows":
    "SELECT count(*) FROM range(100_000_000) t(r) WHERE regexp_matches('abc', r::VARCHAR || '.*')",
  "a pattern with many wildcards":
    "SELECT count(*) FROM range(1_000_000) t(r) WHERE repeat('a', 10_000) LIKE repeat('%a', 1_000) || '%b'",
  "edit distances": "SELECT max(levenshtein(repeat('a', 50_000), repeat('b', 50_000) || r)) FROM range(1_000) t(r)",
  "an edit distance with a large table": "SELECT damerau_levenshtein(repeat('ab', 200_000), repeat('ba', 200_000))",
  "a reduction of texts that grows":
    "SELECT len(list_reduce(list_transform(range(100), lambda x: 'x'), lambda a, b: a || a || b))",
  "a filled list": "SELECT len(list_resize([repeat('x', 1_000)], 1_000_000_000, 'y'))",
  "a repeated list": "SELECT len(repeat([1, 2, 3], 1_000_000_000))",
  "a flattened list": "SELECT len(flatten(list_transform(range(50_000), lambda x: range(50_000))))",
  "a map": "SELECT cardinality(map(range(50_000_000), range(50_000_000)))",
  "everything in one list": "SELECT len(list(r)) FROM range(1_000_000_000) t(r)",
  "everything in one JSON": "SELECT len(json_group_array(repeat('x', 1_000))) FROM range(10_000_000)",
  "a mode of everything": "SELECT mode(hash(r)) FROM range(100_000_000) t(r)",
  "an exact quantile of everything": "SELECT median(hash(r)) FROM range(200_000_000) t(r)",
  "distinct values of everything": "SELECT count(DISTINCT repeat(r::VARCHAR, 100)) FROM range(100_000_000) t(r)",
  "a cube": `SELECT count(*) FROM (SELECT 1 FROM range(1_000_000) t(r) GROUP BY CUBE (${listed(12, (i) => `r % ${i + 2}`)}))`,
  "a window over everything":
    "SELECT max(s) FROM (SELECT sum(r) OVER (ORDER BY hash(r) ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM range(100_000_000) t(r))",
  "a window of distinct values":
    "SELECT max(s) FROM (SELECT count(DISTINCT r) OVER (ORDER BY r ROWS BETWEEN 100_000 PRECEDING AND CURRENT ROW) AS s FROM range(5_000_000) t(r))",
  "a large factorial": "SELECT factorial(1_000_000_000)",
  "a decimal of a long text": "SELECT repeat('9', 100_000_000)::DECIMAL(38, 0)",
  "a number from a long text": "SELECT repeat('9', 500_000_000)::DOUBLE",
  "JSON that is deep, extracted":
    "SELECT json_extract(repeat('{\"a\":', 1_000_000) || '1' || repeat('}', 1_000_000), '$.a.a.a')",
  "JSON that is wide": "SELECT len(json_structure('[' || repeat('{\"a\":1},', 20_000_000) || '1]'))",
  "JSON pretty": "SELECT len(json_pretty(repeat('[', 5_000) || repeat(']', 5_000)))",
  "a sample by percent": "SELECT count(*) FROM range(100_000_000_000) t(r) USING SAMPLE 0.0001 PERCENT (bernoulli)",
  "random numbers": "SELECT count(*) FROM range(100_000_000_000) WHERE random() > 2",
  identifiers: "SELECT count(DISTINCT uuid()) FROM range(1_000_000_000)",
  "hashes of a long text": "SELECT max(sha256(repeat('x', 10_000_000) || r)) FROM range(10_000) t(r)",
  "rows repeated": "SELECT count(*) FROM repeat_row(1, 'x', num_rows = 1_000_000_000_000) t(a, b) WHERE a = 2",
  "a text repeated as rows": "SELECT count(*) FROM repeat(repeat('x', 1_000_000), 1_000_000) t(a) WHERE a = 'y'",
  "a result of many rows": "SELECT * FROM range(100_000_000_000)",
  "a summary of everything": "SUMMARIZE SELECT r, hash(r), md5(r::VARCHAR) FROM range(1_000_000_000) t(r)",
  "a date far away":
    "SELECT count(*) FROM generate_series(DATE '2000-01-01', DATE '5000000-01-01', INTERVAL 1 DAY) a(x), range(10_000) b(y) WHERE x IS NULL",
  "buckets of equal width": "SELECT len(equi_width_bins(0, 1_000_000_000, 1_000_000_000, false))",
  "an enumeration": "SELECT len(enum_range(NULL::ENUM ('a', 'b')))",
  "a million sums": () => `SELECT ${repeat("1+", 1_000_000)}1`,
  "a million negations": () => `SELECT ${repeat("NOT ", 1_000_000)}true`,
  "a million signs": () => `SELECT ${repeat("- ", 1_000_000)}1`,
  "a million casts": () => `SELECT 1${repeat("::INT", 1_000_000)}`,
  "a million fields": () => `SELECT a${repeat(".b", 1_000_000)}`,
  "a million subscripts": () => `SELECT a${repeat("[1]", 500_000)}`,
  "deep structs": () => `SELECT ${repeat("{'a':", 20_000)}1${repeat("}", 20_000)}`,
  "deep branches": () => `SELECT ${repeat("CASE WHEN true THEN ", 20_000)}1${repeat(" END", 20_000)}`,
  "deep scalar subqueries": () => `${repeat("SELECT (", 3_000)}SELECT 1${repeat(")", 3_000)}`,
  "a type with many brackets": () => `SELECT NULL::INT${repeat("[]", 20_000)}`,
  "many joins": () =>
    `SELECT count(*) FROM range(2)${listed(300, (i) => ` JOIN range(2) t${i} ON true`).replaceAll(",", "")}`,
  "many CTEs": () =>
    `WITH ${listed(5_000, (i) => `c${i + 1} AS (SELECT * FROM ${i === 0 ? "range(1)" : `c${i}`})`)} FROM c5000`,
  "huge VALUES": () => `SELECT count(*) FROM (VALUES ${listed(300_000, (i) => `(${i})`)})`,
  "many stars": () => `SELECT ${listed(20_000, () => "*")} FROM logs`,
  "many windows": () => `SELECT ${listed(3_000, (i) => `sum(r + ${i}) OVER (ORDER BY r)`)} FROM range(1000) t(r)`,
  "many groups": () => `SELECT count(*) FROM range(1) t(r) GROUP BY ${listed(20_000, (i) => `r + ${i}`)}`,
  "many sorts": () => `SELECT 1 FROM range(1) t(r) ORDER BY ${listed(50_000, (i) => `r + ${i}`)}`,
  "a long table name": () => `SELECT * FROM "${repeat("x", 8_000_000)}"`,
  "a long function name": () => `SELECT ${repeat("x", 8_000_000)}()`,
  "a long constant": () => `SELECT len('${repeat("x", 15_000_000)}')`,
  "a long comment": () => `SELECT 1 /*${repeat("x", 15_000_000)}*/`,
  "deep comments": () => `SELECT 1 ${repeat("/*", 3_000_000)}`,
  "many quotes": () => `SELECT ${repeat("''", 4_000_000)}`,
  "many ats": () => `SELECT ${listed(500_000, () => "at")} FROM logs`,
  "many system tables": () => `SELECT count(*) FROM ${listed(500, (i) => `system.queries t${i}`)}`,
  "16 MB of words": () => repeat("select ", 2_200_000),
};

/** How a bomb ended: `answered`, or the code and message of its error. */
export type Ending = { code: string; message: string; tookMs: number };

/** That the query is at fault, not the engine. */
const ENDINGS = new Set(["answered", "budget_exceeded", "execution_error", "invalid_query", "parse_error"]);
/** DuckDB recurses without a limit there, and its process, alone, runs out of stack. */
const CRASHES = new Set(["JSON transformed by a deep structure"]);

export function isExpectedEnding(name: string, code: string): boolean {
  return ENDINGS.has(code) || (code === "query_failed" && CRASHES.has(name));
}

/** Runs it on a budget of that time; rejects when something else had to end it. */
export async function detonate(harness: QueryHarness, bomb: string | (() => string), wallMs: number): Promise<Ending> {
  const text = typeof bomb === "string" ? bomb : bomb();
  const startedMs = systemClock.monotonicMs();
  const signal = new AbortController().signal;
  const request = { caller: ANONYMOUS, database: "default", text, requestId: "bomb", signal, budget: { wallMs } };
  const ended = await withBackstop(harness, () =>
    harness.service.run(request).then(
      async ({ body }) => {
        for await (const _ of body);
        return { code: "answered", message: "" };
      },
      (thrown: unknown) => {
        if (!(thrown instanceof EngineError)) throw thrown;
        return { code: thrown.code, message: thrown.message };
      },
    ),
  );
  return { ...ended, tookMs: systemClock.monotonicMs() - startedMs };
}
