import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, query } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * Every column type in through ingest and out through a query, at its edges. One table holds the same rows twice, once
 * in a fresh `tlm` extent and once in Parquet, and every answer is the same for both.
 */
type Format = "tlm" | "parquet";
const FORMATS: readonly Format[] = ["parquet", "tlm"];

/** JSON tokens, in and out; one of them means the same. */
type Case = readonly [column: string, input: string, output?: string];

/** The first and the last nanosecond that 64 bits reach. */
const TIME_ENDS = ["1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z"];

const VALUES: readonly Case[] = [
  ["s", '""'],
  ["s", '"plain"'],
  ["s", '"a string of more than twelve bytes"'],
  ["s", '"nul\\u0000byte"'],
  ["s", '"\\u0000"'],
  ["s", '"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f"', '"\\b\\f\\n\\r\\t\\u0001\\u001F\u007f"'],
  ["s", '"\\"\\\\\\/"', '"\\"\\\\/"'],
  ["s", '"ü 日本語 \u2028 \ufeff \uffff"'],
  ["s", '"😀 \\ud83d\\ude00 e\u0301"', '"😀 😀 e\u0301"'],
  ["s", "200", '"200"'],
  ["s", "1e400", '"1e400"'],
  ["s", "true", '"true"'],
  ["s", '{"b": 1, "a": [1.50]}', '"{\\"b\\":1,\\"a\\":[1.50]}"'],
  ["s", "null"],
  ["i", "0"],
  ["i", "-0", "0"],
  ["i", "2147483647"],
  ["i", "-2147483648"],
  ["i", "1e3", "1000"],
  ["i", "null"],
  ["l", "9007199254740991"],
  ["l", "9007199254740993"],
  ["l", "-9007199254740993"],
  ["l", "9223372036854775807"],
  ["l", "-9223372036854775808"],
  ["l", "1000000000000000000.0", "1000000000000000000"],
  ["l", "null"],
  ["r", "0.1"],
  ["r", "1", "1.0"],
  ["r", "-0.0"],
  ["r", "5e-324"],
  ["r", "-2.2250738585072011e-308", "-2.225073858507201e-308"],
  ["r", "1e308"],
  ["r", "1.7976931348623157e308"],
  ["r", "-1.7976931348623157e+308", "-1.7976931348623157e308"],
  ["r", "9007199254740993", "9007199254740992.0"],
  ["r", "0.30000000000000004"],
  ["r", "123456789012345678", "123456789012345680.0"],
  ["r", "null"],
  ["b", "true"],
  ["b", "false"],
  ["b", "null"],
  ["t", '"2024-02-29T12:00:00Z"'],
  ["t", '"2024-02-29T12:00:00.123456789Z"'],
  ["t", '"2024-02-29T12:00:00.100000000Z"', '"2024-02-29T12:00:00.1Z"'],
  ["t", '"2024-02-29T12:00:00.5+05:30"', '"2024-02-29T06:30:00.5Z"'],
  ["t", '"1969-12-31T23:59:59.999999999Z"'],
  ["t", '"1970-01-01T00:00:00.000000001Z"'],
  ["t", "1709208000.25", '"2024-02-29T12:00:00.25Z"'],
  ...TIME_ENDS.map((time): Case => ["t", JSON.stringify(time)]),
  ["t", '"1677-09-21T00:12:43.145224193Z"'],
  ["t", '"1677-09-21T08:00:00.1Z"'],
  ["t", '"1677-09-21T23:59:59Z"'],
  ["t", '"1677-09-22T00:00:00Z"'],
  ["t", '"2262-04-11T23:47:16.854775806Z"'],
  ["t", "null"],
  ["d", "{}"],
  ["d", "[]"],
  ["d", "null"],
  ["d", "true"],
  ["d", '"text"'],
  ["d", '""'],
  ["d", "[18446744073709551615,-9223372036854775808,9007199254740993,0.1]"],
  // DuckDB writes numbers past 64 bits as doubles; the text of the column (below) is what was sent.
  ["d", "12345678901234567890123.50", "1.2345678901234568e22"],
  [
    "d",
    '{"": 1, "a b": {"$.x": [null, {"\\"": "\\u0000"}]}, "ü": -0.0, "at": "x", "A": 1, "a": 2}',
    '{"":1,"a b":{"$.x":[null,{"\\"":"\\u0000"}]},"ü":-0.0,"at":"x","A":1,"a":2}',
  ],
  ["d", '{"a": 1, "b": 2, "a": 3}', '{"a":3,"b":2}'],
  ["d", `${"[".repeat(200)}${"]".repeat(200)}`],
  ["v", "[0.1, -0.0, 3]", "[0.1,-0.0,3.0]"],
  ["v", "[3.4028234663852886e38, 1e-45, 16777217]", "[3.4028235e38,1e-45,16777216.0]"],
];

const COLUMNS = ["s", "i", "l", "r", "b", "t", "d", "v"];
const SCHEMA = "id:int,format:string,s:string,i:int,l:long,r:real,b:bool,t:timestamp,d:dynamic,v:vector(3)";

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  for (const format of FORMATS) {
    engine = await startEngine({ home, env: { ENGINE_WRITE_FORMAT: format } });
    if (format === FORMATS[0]) await createTable(home, "golden", SCHEMA);
    const { status, text } = await ingest(
      engine.url,
      "golden",
      VALUES.map((one, id) => rowOf(one, id, format)).join("\n"),
    );
    if (status !== 200) throw new Error(text);
    if (format !== FORMATS.at(-1)) await engine.stop();
  }
}, 120_000);

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

function rowOf([column, input]: Case, id: number, format: Format): string {
  const vector = column === "v" ? "" : ',"v":[1,2,3]';
  return `{"id":${id},"format":"${format}","${column}":${input}${vector}}`;
}

async function createTable(home: string, name: string, schema: string): Promise<void> {
  const env = { ...cleanEnv(), ENGINE_HOME: home };
  const args = ["bin/engine.js", "create-table", "--db", "default", "--name", name, "--schema", schema];
  await promisify(execFile)(process.execPath, args, { env });
}

/** The answer's lines, which must be the same for both formats. */
async function linesOf(sql: (from: string) => string): Promise<string[]> {
  const answers: string[] = [];
  for (const format of FORMATS) {
    const { status, text } = await query(engine.url, sql(`(FROM golden WHERE format = '${format}')`));
    if (status !== 200) throw new Error(text);
    answers.push(text);
  }
  expect(answers[1]).toBe(answers[0]);
  return (answers[0] ?? "").trimEnd().split("\n");
}

/** The token of one expression over the row whose column was given this token. */
async function valueOf(expression: string, column: string, input: string): Promise<string> {
  const id = VALUES.findIndex((one) => one[0] === column && one[1] === input);
  if (id === -1) throw new Error(`no row has ${column} = ${input}`);
  const [line = ""] = await linesOf((from) => `SELECT ${expression} AS value FROM ${from} WHERE id = ${id}`);
  return line.slice('{"value":'.length, -1);
}

describe("what went in comes out", () => {
  test.each(COLUMNS)("%s", async (column) => {
    const lines = await linesOf((from) => `SELECT id, ${column} FROM ${from} ORDER BY id`);
    const expected = VALUES.flatMap(([name, input, output = input], id) =>
      name === column ? [`{"id":${id},"${column}":${output}}`] : [],
    );
    expect(lines.filter((_line, id) => VALUES[id]?.[0] === column)).toEqual(expected);
  });

  test("all columns at once, and NULL where a row has none", async () => {
    const [line] = await linesOf((from) => `SELECT * EXCLUDE (at, format) FROM ${from} WHERE id = 1`);
    expect(line).toBe('{"id":1,"s":"plain","i":null,"l":null,"r":null,"b":null,"t":null,"d":null,"v":[1.0,2.0,3.0]}');
    const counts = await linesOf(
      (from) => `SELECT ${COLUMNS.map((name) => `count(${name}) AS ${name}`).join(", ")} FROM ${from}`,
    );
    const present = (column: string): number =>
      VALUES.filter(([name, input]) => name === column && input !== "null").length;
    const expected = COLUMNS.map((name) => `"${name}":${name === "v" ? VALUES.length : present(name)}`);
    // `null` is a value of a dynamic column like any other, or none: the same for both formats in any case.
    expect(counts).toEqual([`{${expected.join(",")}}`]);
  });
});

describe("what went in is found by its value", () => {
  test.each([
    ["s", '"nul\\u0000byte"', "s = 'nul' || chr(0) || 'byte'"],
    ["s", '""', "s = ''"],
    ["s", '"😀 \\ud83d\\ude00 e\u0301"', "s LIKE '😀 😀%'"],
    ["l", "9007199254740993", "l = 9007199254740993"],
    ["l", "-9223372036854775808", "l < -9223372036854775807"],
    ["r", "5e-324", "r > 0 AND r < 1e-320"],
    ["t", '"1969-12-31T23:59:59.999999999Z"', "t = '1969-12-31T23:59:59.999999999Z'"],
    ["t", '"1970-01-01T00:00:00.000000001Z"', "t > '1970-01-01T00:00:00Z' AND t < '1970-01-01T00:00:00.000000002Z'"],
    ["d", "12345678901234567890123.50", "d::VARCHAR = '12345678901234567890123.50'"],
    ["v", "[0.1, -0.0, 3]", "v = [0.1, 0, 3]::FLOAT[3]"],
  ])("%s %s: %s", async (column, input, condition) => {
    const id = VALUES.findIndex((one) => one[0] === column && one[1] === input);
    expect(await linesOf((from) => `SELECT id FROM ${from} WHERE ${condition}`)).toEqual([`{"id":${id}}`]);
  });

  test("sums and extremes are exact", async () => {
    const [line] = await linesOf(
      (from) => `SELECT sum(l) AS s, min(l) AS a, max(l) AS b, min(i) AS c, max(i) AS d FROM ${from}`,
    );
    const longs = ["9007199254740991", "1000000000000000000", "-1"].map(BigInt).reduce((a, b) => a + b);
    expect(line).toBe(`{"s":${longs},"a":-9223372036854775808,"b":9223372036854775807,"c":-2147483648,"d":2147483647}`);
    const [times] = await linesOf((from) => `SELECT min(t) AS a, max(t) AS b FROM ${from}`);
    expect(times).toBe(`{"a":"${TIME_ENDS[0]}","b":"${TIME_ENDS[1]}"}`);
  });
});

const NESTED = '{"": 1, "a b": {"$.x": [null, {"\\"": "\\u0000"}]}, "ü": -0.0, "at": "x", "A": 1, "a": 2}';

describe("JSON operators on a dynamic column", () => {
  test.each([
    ["d->'$.a'", "2"],
    ["d->>'$.a'", '"2"'],
    ["d->'a'", "2"],
    ["d->>'A'", '"1"'],
    ["d->>'at'", '"x"'],
    ["d->'a b'->'$.x'", "null"],
    ["d->'a b'->'$.\"$.x\"'", '[null,{"\\"":"\\u0000"}]'],
    ["d->'/a b/$.x/0'", "null"],
    ["d->>'$.ü'", '"-0.0"'],
    ["(d->'$.a')::INTEGER + 1", "3"],
    ["d.a", "2"],
    ["d['at']", '"x"'],
    ["json_extract(d, '$.a')", "2"],
    ["json_extract(d, ['$.a', '$.at', '$.none'])", '[2,"x",null]'],
    ["json_extract_string(d, '$.at')", '"x"'],
    ["json_extract(d, '$.*')", '[1,{"$.x":[null,{"\\"":"\\u0000"}]},-0.0,"x",1,2]'],
    ["json_keys(d)", '["","a b","ü","at","A","a"]'],
    ["json_type(d)", '"OBJECT"'],
    ["json_type(d, '$.at')", '"VARCHAR"'],
    ["json_exists(d, '$.a')", "true"],
    ["json_exists(d, '$.none')", "false"],
    ["json_contains(d, '{\"a\": 2}')", "true"],
    ['json_array_length(d, \'$."a b"."$.x"\')', "2"],
    ["json_valid(d)", "true"],
    ['json_transform(d, \'{"a": "INTEGER"}\')', '{"a":2}'],
    ["len(CAST(d->'a b'->'$.\"$.x\"' AS JSON[]))", "2"],
    ["typeof(d)", '"JSON"'],
    ["d->'$.none'", "null"],
  ])("%s", async (expression, expected) => {
    expect(await valueOf(expression, "d", NESTED)).toBe(expected);
  });

  test("arrays spread into rows", async () => {
    const items = (from: string): string =>
      `SELECT unnest(json_extract(d->'a b', '$."$.x"[*]')) AS item FROM ${from} WHERE json_exists(d, '$.A')`;
    expect(await linesOf(items)).toEqual(['{"item":null}', '{"item":{"\\"":"\\u0000"}}']);
    const pairs = (from: string): string =>
      `SELECT key, value FROM ${from} AS g, json_each(g.d) WHERE json_exists(g.d, '$.A') AND key IN ('at', 'A', '') ORDER BY key`;
    expect(await linesOf(pairs)).toEqual(['{"key":"","value":1}', '{"key":"A","value":1}', '{"key":"at","value":"x"}']);
  });
});

describe("distances of vectors", () => {
  test.each([
    ["array_distance(v, [0.1, 0, 7]::FLOAT[3])", "4.0"],
    ["array_inner_product(v, [0, 0, 2]::FLOAT[3])", "6.0"],
    ["array_negative_inner_product(v, [0, 0, 2]::FLOAT[3])", "-6.0"],
    ["round(array_cosine_similarity(v, [0, 0, 1]::FLOAT[3]), 4)", "0.9994"],
    ["round(array_cosine_distance(v, [0, 0, 1]::FLOAT[3]), 4)", "0.0006"],
    ["array_cross_product(v, [0, 0, 1]::FLOAT[3])", "[-0.0,-0.1,0.0]"],
    ["list_distance(v::FLOAT[], [0.1, 0, 7])", "4.0"],
    ["v[3]", "3.0"],
    ["array_length(v)", "3"],
    ["typeof(v)", '"FLOAT[3]"'],
    ["list_sum(v::FLOAT[])", "3.100000001490116"],
  ])("%s", async (expression, expected) => {
    expect(await valueOf(expression, "v", "[0.1, -0.0, 3]")).toBe(expected);
  });

  test("order by one finds the nearest", async () => {
    const nearest = (from: string): string =>
      `SELECT v FROM ${from} ORDER BY array_distance(v, [0, 0, 2.9]::FLOAT[3]), id LIMIT 2`;
    expect(await linesOf(nearest)).toEqual(['{"v":[0.1,-0.0,3.0]}', '{"v":[1.0,2.0,3.0]}']);
  });
});
