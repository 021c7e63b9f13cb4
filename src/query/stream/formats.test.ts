import { ANONYMOUS } from "../../auth/caller.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../../core/errors.ts";
import { loadDuckDb, quoteText, runSql } from "../../io/duckdb/duckdb.ts";
import { formatOf, RESULT_FORMATS, type ResultFormat } from "./formats.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let harness: QueryHarness;
let folder: string;
let files = 0;
beforeAll(() => {
  harness = createQueryHarness();
  folder = mkdtempSync(join(tmpdir(), "engine-formats-test-"));
});
afterAll(async () => {
  await harness.close();
  rmSync(folder, { recursive: true });
});

async function answer(text: string, format: ResultFormat): Promise<{ rows: number; bytes: Buffer }> {
  const { signal } = new AbortController();
  const { rows, body } = await harness.service.run({
    caller: ANONYMOUS,
    database: "default",
    text,
    format,
    requestId: "test",
    signal,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return { rows, bytes: Buffer.concat(chunks) };
}

/** What another DuckDB reads from the answer, as text. */
async function readBack(bytes: Buffer, reader: string, select: string): Promise<(string | null)[][]> {
  const file = join(folder, String(files++));
  writeFileSync(file, bytes);
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET TimeZone = 'UTC'");
  return runSql(duckdb, connection, `SELECT ${select} FROM ${reader.replace("FILE", quoteText(file))}`);
}

const fromParquet = (bytes: Buffer, select: string) => readBack(bytes, "read_parquet(FILE)", select);
const fromCsv = (bytes: Buffer, select: string) =>
  readBack(bytes, "read_csv(FILE, header = true, all_varchar = true, allow_quoted_nulls = false)", select);

/** What a value of Arrow is, in JSON: bigints as text, bytes as numbers, decimals by their digits. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof Uint32Array) return decimalDigits(value);
  if (value instanceof Uint8Array || value instanceof Float32Array) return [...value];
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.iterator in value && !("toJSON" in value && value.constructor.name.startsWith("Struct"))) {
    return [...(value as Iterable<unknown>)].map(plain);
  }
  const fields = (value as { toJSON(): Record<string, unknown> }).toJSON();
  return Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, plain(one)]));
}

function decimalDigits(words: Uint32Array): string {
  let value = 0n;
  for (const word of [...words].toReversed()) value = (value << 32n) | BigInt(word);
  return String(BigInt.asIntN(128, value));
}

/** SQL; how Arrow types it and what it holds; type and text in Parquet; text in CSV; JSON. */
const VALUES: [sql: string, arrow: string, held: unknown, parquet: string, inParquet: string, csv: string][] = [
  ["42::INTEGER", "Int32", 42, "INTEGER", "42", "42"],
  ["-7::TINYINT", "Int8", -7, "TINYINT", "-7", "-7"],
  ["300::SMALLINT", "Int16", 300, "SMALLINT", "300", "300"],
  ["200::UTINYINT", "Uint8", 200, "UTINYINT", "200", "200"],
  ["60000::USMALLINT", "Uint16", 60_000, "USMALLINT", "60000", "60000"],
  ["4000000000::UINTEGER", "Uint32", 4_000_000_000, "UINTEGER", "4000000000", "4000000000"],
  [
    "18446744073709551615::UBIGINT",
    "Uint64",
    "18446744073709551615",
    "UBIGINT",
    "18446744073709551615",
    "18446744073709551615",
  ],
  [
    "9223372036854775807::BIGINT",
    "Int64",
    "9223372036854775807",
    "BIGINT",
    "9223372036854775807",
    "9223372036854775807",
  ],
  [
    "170141183460469231731687303715884105::HUGEINT",
    "Decimal[38e0]",
    "170141183460469231731687303715884105",
    "DECIMAL(38,0)",
    "170141183460469231731687303715884105",
    "170141183460469231731687303715884105",
  ],
  ["0.1::DOUBLE", "Float64", 0.1, "DOUBLE", "0.1", "0.1"],
  ["'nan'::DOUBLE", "Float64", "NaN", "DOUBLE", "nan", "nan"],
  ["'-inf'::DOUBLE", "Float64", "-Infinity", "DOUBLE", "-inf", "-inf"],
  ["0.5::FLOAT", "Float32", 0.5, "FLOAT", "0.5", "0.5"],
  ["true", "Bool", true, "BOOLEAN", "true", "true"],
  ["'héllo, \"w\"'", "Utf8", 'héllo, "w"', "VARCHAR", 'héllo, "w"', 'héllo, "w"'],
  ["''", "Utf8", "", "VARCHAR", "", ""],
  [
    "repeat('long text ', 3)",
    "Utf8",
    "long text long text long text ",
    "VARCHAR",
    "long text long text long text ",
    "long text long text long text ",
  ],
  ["'\\x00\\xFF'::BLOB", "Binary", [0, 255], "BLOB", "\\x00\\xFF", "AP8="],
  ["-12.50::DECIMAL(4,2)", "Decimal[4e+2]", "-1250", "DECIMAL(4,2)", "-12.50", "-12.50"],
  ["12345.678::DECIMAL(9,3)", "Decimal[9e+3]", "12345678", "DECIMAL(9,3)", "12345.678", "12345.678"],
  ["-1.5::DECIMAL(18,1)", "Decimal[18e+1]", "-15", "DECIMAL(18,1)", "-1.5", "-1.5"],
  [
    "-99999999999999999999.5::DECIMAL(38,1)",
    "Decimal[38e+1]",
    "-999999999999999999995",
    "DECIMAL(38,1)",
    "-99999999999999999999.5",
    "-99999999999999999999.5",
  ],
  ["DATE '2024-02-29'", "Date32<DAY>", Date.UTC(2024, 1, 29), "DATE", "2024-02-29", "2024-02-29"],
  ["TIME '12:34:56.789'", "Time64<MICROSECOND>", "45296789000", "TIME", "12:34:56.789", "12:34:56.789"],
  [
    "make_timestamp_ns(1704067200123456789)",
    "Timestamp<NANOSECOND, UTC>",
    1_704_067_200_123.456_8,
    "TIMESTAMP_NS",
    "2024-01-01 00:00:00.123456789",
    "2024-01-01T00:00:00.123456789Z",
  ],
  [
    "make_timestamptz(2024, 1, 1, 0, 0, 0.5)",
    "Timestamp<MICROSECOND, UTC>",
    1_704_067_200_500,
    "TIMESTAMP WITH TIME ZONE",
    "2024-01-01 00:00:00.5+00",
    "2024-01-01T00:00:00.5Z",
  ],
  [
    "TIMESTAMP '2024-01-01 00:00:00.25'",
    "Timestamp<MICROSECOND>",
    1_704_067_200_250,
    "TIMESTAMP",
    "2024-01-01 00:00:00.25",
    "2024-01-01T00:00:00.25",
  ],
  ["'{\"a\": [1, null]}'::JSON", "Utf8", '{"a": [1, null]}', "JSON", '{"a": [1, null]}', '{"a": [1, null]}'],
  [
    "[1.5, 2, NULL]::FLOAT[3]",
    "FixedSizeList[3]<Float32>",
    [1.5, 2, null],
    "FLOAT[]",
    "[1.5, 2.0, NULL]",
    "[1.5,2.0,null]",
  ],
  [
    "['a', NULL, repeat('b', 20)]",
    "List<Utf8>",
    ["a", null, "b".repeat(20)],
    "VARCHAR[]",
    `[a, NULL, ${"b".repeat(20)}]`,
    `["a",null,"${"b".repeat(20)}"]`,
  ],
  [
    "[[1], [], NULL, [2, 3]]",
    "List<List<Int32>>",
    [[1], [], null, [2, 3]],
    "INTEGER[][]",
    "[[1], [], NULL, [2, 3]]",
    "[[1],[],null,[2,3]]",
  ],
  [
    "{'a': 1, 'b': [TIMESTAMP '2024-01-01']}",
    "Struct<{a:Int32, b:List<Timestamp<MICROSECOND>>}>",
    { a: 1, b: [1_704_067_200_000] },
    "STRUCT(a INTEGER, b TIMESTAMP[])",
    "{'a': 1, 'b': ['2024-01-01 00:00:00']}",
    '{"a":1,"b":["2024-01-01T00:00:00"]}',
  ],
  [
    "row(1, 'x')",
    "Struct<{f1:Int32, f2:Utf8}>",
    { f1: 1, f2: "x" },
    "STRUCT(f1 INTEGER, f2 VARCHAR)",
    "{'f1': 1, 'f2': x}",
    '[1,"x"]',
  ],
  [
    "MAP {'k': 1, 'l': NULL}",
    "Map<{key:Utf8, value:Int32}>",
    { k: 1, l: null },
    "MAP(VARCHAR, INTEGER)",
    "{k=1, l=NULL}",
    '{"k":1,"l":null}',
  ],
  ["[1::HUGEINT]", "List<Decimal[38e0]>", ["1"], "DECIMAL(38,0)[]", "[1]", "[1]"],
  ["{'i': INTERVAL 1 DAY}", "Struct<{i:Utf8}>", { i: "1 day" }, "STRUCT(i VARCHAR)", "{'i': 1 day}", '{"i":"1 day"}'],
  ["INTERVAL '1 day 2 hours'", "Utf8", "1 day 02:00:00", "VARCHAR", "1 day 02:00:00", "1 day 02:00:00"],
  ["'12:00:00+02'::TIMETZ", "Utf8", "12:00:00+02", "VARCHAR", "12:00:00+02", "12:00:00+02"],
  ["'101'::BIT", "Utf8", "101", "VARCHAR", "101", "101"],
  ["'a'::ENUM('a', 'b')", "Utf8", "a", "VARCHAR", "a", "a"],
  [
    "'00000000-0000-0000-0000-000000000001'::UUID",
    "Utf8",
    "00000000-0000-0000-0000-000000000001",
    "UUID",
    "00000000-0000-0000-0000-000000000001",
    "00000000-0000-0000-0000-000000000001",
  ],
  ["union_value(a := 1)", "Utf8", '{"a":1}', "VARCHAR", '{"a":1}', '{"a":1}'],
  ["NULL", "Int32", null, "INTEGER", "", ""],
];

describe("every type, read back", () => {
  test.each(VALUES)("%s", async (sql, arrow, held, parquet, inParquet, csv) => {
    // NULL between two of the value.
    const text = `SELECT r, v FROM range(3) t(r) LEFT JOIN (SELECT ${sql} AS v) ON r <> 1 ORDER BY r`;
    const stream = await answer(text, "arrow");
    const table = tableFromIPC(stream.bytes);
    expect([stream.rows, table.numRows]).toEqual([3, 3]);
    const field = table.schema.fields[1];
    const column = table.getChild("v");
    expect(String(field?.type)).toBe(arrow);
    expect([0, 1, 2].map((row) => plain(column?.get(row)))).toEqual([held, null, held]);

    const file = await answer(text, "parquet");
    const found = await fromParquet(file.bytes, "typeof(v), coalesce(v::VARCHAR, 'NULL')");
    const shown = sql === "NULL" ? "NULL" : inParquet;
    expect([file.rows, found]).toEqual([
      3,
      [
        [parquet, shown],
        [parquet, "NULL"],
        [parquet, shown],
      ],
    ]);

    const lines = await answer(text, "csv");
    expect(lines.bytes.toString().startsWith("r,v\n")).toBe(true);
    const cells = sql === "NULL" ? [null, null, null] : [csv, null, csv];
    expect([lines.rows, await fromCsv(lines.bytes, "v")]).toEqual([3, cells.map((one) => [one])]);
  });
});

describe("the formats agree", () => {
  const MANY = `SELECT r, CASE WHEN r % 7 <> 0 THEN 'text number ' || (r * 7919 % 1000) END AS t,
    CASE WHEN r % 3 <> 0 THEN list_transform(range(r % 5), lambda x: 'item ' || (x + r) || repeat('.', 9)) END AS l,
    r % 2 = 0 AS b, {'x': r, 'y': CASE WHEN r % 4 = 0 THEN 'yes' END} AS s FROM range(200_000) t(r) WHERE r % 10 <> 3`;

  test("over many batches, filtered vectors, lists with gaps, texts of every length", async () => {
    const stream = await answer(MANY, "arrow");
    const table = tableFromIPC(stream.bytes);
    expect([stream.rows, table.numRows, table.batches.length > 2]).toEqual([180_000, 180_000, true]);
    const lines = (await answer(MANY, "ndjson")).bytes.toString().trimEnd().split("\n");
    expect(lines).toHaveLength(180_000);
    // Every 37th row: the whole would take seconds.
    for (let row = 0; row < lines.length; row += 37) {
      const { r, t, l, b, s } = JSON.parse(lines[row] ?? "") as Record<string, unknown>;
      const got = ["t", "l", "b", "s"].map((name) => plain(table.getChild(name)?.get(row)));
      const { x, y } = s as { x: number; y: string | null };
      expect([plain(table.getChild("r")?.get(row)), ...got]).toEqual([String(r), t, l, b, { x: String(x), y }]);
    }
    const file = await answer(MANY, "parquet");
    const sums = "count(*), count(t), sum(r)::BIGINT, sum(length(t))::BIGINT, sum(len(l))::BIGINT";
    const [inParquet] = await fromParquet(file.bytes, sums);
    const [inQuery] = (await harness.rows(`SELECT ${sums} FROM (${MANY})`)).map((one) =>
      Object.values(one).map(String),
    );
    expect(inParquet).toEqual(inQuery);
  });
});

describe("every format", () => {
  const formats = Object.keys(RESULT_FORMATS) as ResultFormat[];
  const countsOf = async (text: string) => {
    const answers = await Promise.all(formats.map((format) => answer(text, format)));
    const [ndjson, arrow, csv, parquet, json] = answers.map(({ bytes }) => bytes);
    const table = tableFromIPC(arrow);
    return {
      announced: answers.map(({ rows }) => rows),
      sent: [
        ndjson?.toString().split("\n").slice(0, -1).length,
        table.numRows,
        (await fromCsv(csv ?? Buffer.alloc(0), "count(*)"))[0]?.[0],
        (await fromParquet(parquet ?? Buffer.alloc(0), "count(*)"))[0]?.[0],
        (JSON.parse(String(json)) as unknown[]).length,
      ].map(Number),
      names: table.schema.fields.map(({ name }) => name),
    };
  };

  test("has a media type of its own", () => {
    expect(formats.map((format) => formatOf(RESULT_FORMATS[format].mediaType))).toEqual(formats);
    expect(() => formatOf("text/html")).toThrow("no format");
  });

  test("names its columns alike, doubles made unique, and tells no rows from one", async () => {
    const none = await countsOf("SELECT 1 AS a, 2 AS a, 'x' AS \"b,c\" WHERE false");
    expect(none).toEqual({ announced: [0, 0, 0, 0, 0], sent: [0, 0, 0, 0, 0], names: ["a", "a_1", "b,c"] });
    const one = await countsOf("SELECT 1 AS a -- with a comment");
    expect(one).toEqual({ announced: [1, 1, 1, 1, 1], sent: [1, 1, 1, 1, 1], names: ["a"] });
  });

  test("takes what is no SELECT", async () => {
    for (const text of [
      "EXPLAIN SELECT 1",
      "EXPLAIN ANALYZE SELECT 'it''s'",
      "DESCRIBE SELECT 1 AS a",
      "SHOW TABLES",
    ]) {
      const { announced, sent } = await countsOf(text);
      expect([text, announced]).toEqual([text, sent]);
      expect(new Set(sent).size).toBe(1);
    }
  });

  test.each(["170141183460469231731687303715884105727::HUGEINT", "[170141183460469231731687303715884105727::HUGEINT]"])(
    "fails rather than rounds: %s",
    async (sql) => {
      for (const format of ["arrow", "parquet"] as const) {
        const error = await answer(`SELECT ${sql} AS v`, format).catch((failure: EngineError) => failure);
        expect(error).toMatchObject({ code: "execution_error", message: expect.stringContaining("DECIMAL") as string });
      }
      expect((await answer(`SELECT ${sql} AS v`, "csv")).bytes.toString()).toContain(
        "170141183460469231731687303715884105727",
      );
    },
  );
});

test("JSON is the lines of NDJSON as one array, of any number of rows", async () => {
  for (const rows of [0, 1, 2, 5_000, 60_000]) {
    const text = `SELECT range AS n, 'a\nb "c" é' AS s, '{"x": [1,\n 2]}'::JSON AS j FROM range(${rows})`;
    const [json, ndjson] = [await answer(text, "json"), await answer(text, "ndjson")];
    const lines = ndjson.bytes.toString().split("\n").slice(0, -1);
    expect(json.rows).toBe(rows);
    expect(JSON.parse(json.bytes.toString())).toEqual(lines.map((line) => JSON.parse(line) as unknown));
    expect(json.bytes.toString()).toBe(`[${lines.join(",\n")}]\n`);
  }
});

test("CSV quotes what must be, and tells NULL from the empty text", async () => {
  const text = `SELECT * FROM (VALUES ('a,b', 'say "hi"'), (E'two\nlines', E'cr\r'), (NULL, ''), (' sp ', '#')) t("x y", "q""r")`;
  const { bytes } = await answer(text, "csv");
  const want = '"x y","q""r"\n"a,b","say ""hi"""\n"two\nlines","cr\r"\n,""\n sp ,"#"\n';
  expect(bytes.toString().replace(/^"x y"/, "x y")).toBe(want.replace(/^"x y"/, "x y"));
});

test.each(["ndjson", "arrow", "csv", "parquet", "json"] as const)(
  "%s past the temporary space ends its query, and says which budget",
  async (format) => {
    const small = createQueryHarness({ pool: { spillBytes: 2 * 1024 * 1024 } });
    try {
      const { signal } = new AbortController();
      const text = "SELECT uuid()::VARCHAR AS a, uuid()::VARCHAR AS b FROM range(400_000)";
      const error = await small.service
        .run({ caller: ANONYMOUS, database: "default", text, format, requestId: "test", signal })
        .catch((failure: EngineError) => failure);
      expect(error).toMatchObject({
        code: "budget_exceeded",
        status: 429,
        details: {
          headers: { "X-Engine-Budget-Limit": "temp_bytes=2097152" },
          budget: { name: "temp_bytes", allowed: 2_097_152 },
        },
      });
      expect(await small.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    } finally {
      await small.close();
    }
  },
);
