import * as fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "../../../io/duckdb/duckdb.ts";
import { foreignType, type TypeSignature } from "./types.ts";

let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
});

const of = (rawType: string, ...args: readonly unknown[]): TypeSignature =>
  ({ rawType, arguments: args }) as TypeSignature;
const typed = (value: TypeSignature) => ({ kind: "TYPE", value });
const long = (value: number) => ({ kind: "LONG", value });
const field = (name: string | undefined, typeSignature: TypeSignature) => ({
  kind: "NAMED_TYPE",
  value: { ...(name !== undefined && { fieldName: { name } }), typeSignature },
});
const array = (inner: TypeSignature): TypeSignature => of("array", typed(inner));
const map = (key: TypeSignature, value: TypeSignature): TypeSignature => of("map", typed(key), typed(value));
const typeOf = (typeSignature: TypeSignature) => foreignType({ name: "x", type: typeSignature.rawType, typeSignature });

/** What DuckDB makes of the text of a value, in its own words or as JSON. */
async function cast(signature: TypeSignature, value: unknown, shown = "%"): Promise<string | null | undefined> {
  const { sqlType, isNested, text } = typeOf(signature);
  const written = text(value);
  const literal = written === undefined ? "NULL" : written.split("\0").map(quoteText).join(" || chr(0) || ");
  const read = isNested ? `CAST(${literal} AS JSON)` : literal;
  const result = shown.replace("%", () => `CAST(${read} AS ${sqlType})`);
  const rows = await runSql(duckdb, connection, `SELECT CAST(${result} AS VARCHAR)`);
  return rows[0]?.[0];
}
/** Integers as their digits. */
async function asJson(signature: TypeSignature, value: unknown): Promise<unknown> {
  const exactly = (_key: string, own: unknown, context?: { source?: string }) =>
    typeof own === "number" ? context?.source : own;
  return JSON.parse((await cast(signature, value, "to_json(%)")) ?? "null", exactly) as unknown;
}

const VARCHAR = of("varchar", long(10));

test.each<[TypeSignature, unknown, string | null]>([
  [of("boolean"), true, "true"],
  [of("bigint"), "9223372036854775807", "9223372036854775807"],
  [of("bigint"), -5, "-5"],
  [of("real"), "NaN", "nan"],
  [of("double"), "-Infinity", "-inf"],
  [of("double"), 1e300, "1e+300"],
  [of("decimal", long(38), long(2)), "-123456789012345678901234567890.12", "-123456789012345678901234567890.12"],
  [of("char", long(3)), "x  ", "x  "],
  [of("varbinary"), "AP8KXA==", "\\x00\\xFF\\x0A\\x5C"],
  [of("uuid"), "12151fd2-7586-11e9-8f9e-2a86e4085a59", "12151fd2-7586-11e9-8f9e-2a86e4085a59"],
  [of("date"), "+12020-01-01", "12020-01-01"],
  [of("date"), "-0005-01-01", "0006-01-01 (BC)"],
  [of("time", long(6)), "12:34:56.123456", "12:34:56.123456"],
  [of("timestamp"), "2020-01-01 00:00:00.500", "2020-01-01 00:00:00.5"],
  [of("timestamp", long(6)), "+12020-01-01 00:00:00.000001", "12020-01-01 00:00:00.000001"],
  [of("timestamp with time zone", long(6)), "2020-01-01 00:00:00.500000 +05:30", "2019-12-31 18:30:00.5+00"],
  [of("timestamp with time zone", long(9)), "2020-01-01 00:00:00.123456789 UTC", "2020-01-01 00:00:00.123456789"],
  [of("time with time zone", long(3)), "01:02:03.000+02:00", "01:02:03+02"],
  [of("interval year to month"), "-2-3", "-2 years -3 months"],
  [of("interval day to second"), "-2 03:04:05.678", "-2 days -03:04:05.678"],
  [of("json"), '{"a":[1]}', '{"a":[1]}'],
  [of("ipaddress"), "10.0.0.1", "10.0.0.1"],
  [of("unknown"), null, null],
  [array(of("unknown")), [null], "[NULL]"],
  [array(array(of("bigint"))), [["9223372036854775807", null], null, []], "[[9223372036854775807, NULL], NULL, []]"],
  [map(of("double"), array(of("varbinary"))), { "1.5": ["AQ=="] }, "{1.5=['AQ==']}"],
  [of("row", field("a", of("bigint")), field("A", VARCHAR)), [1, "x"], "{'a': 1, 'A_1': x}"],
  [of("row", field(undefined, of("bigint"))), [1], "{'field0': 1}"],
])("%j has the value %j", async (signature, value, expected) => {
  await runSql(duckdb, connection, "SET TimeZone = 'UTC'");
  expect(await cast(signature, value)).toBe(expected);
});

test("what is JSON inside of another value stays JSON", async () => {
  const signature = of("row", field("list", array(of("json"))), field("n", of("decimal", long(3), long(2))));
  expect(await asJson(signature, [['"x"', '{"y":[1]}', null], "1.50"])).toEqual({
    list: ["x", { y: ["1"] }, null],
    n: "1.5",
  });
  const exact = '["x",{"y":12345678901234567890}]';
  expect(await cast(array(of("json")), [exact], "CAST(%[1] AS VARCHAR)")).toBe(exact);
  expect(await asJson(map(VARCHAR, of("json")), { a: "1" })).toEqual({ a: "1" });
});

test.each<[TypeSignature, unknown]>([
  [of("HyperLogLog"), "x"],
  [of("constructor"), "x"],
  [of("time", long(9)), "x"],
  [of("timestamp", long(9)), "x"],
  [of("timestamp with time zone", long(12)), "x"],
  [of("decimal", { kind: "VARIABLE", value: "1)); ATTACH" }), "x"],
  [map(array(of("bigint")), of("bigint")), {}],
  [of("row"), []],
  [array({ rawType: "array" }), []],
])("%j is refused by its name", (signature) => {
  expect(() => typeOf(signature)).toThrow(/^column "x" has the type .*, which has no counterpart here/);
});

test("lists in lists end somewhere", () => {
  const deep = Array.from({ length: 100 }).reduce<TypeSignature>((inner) => array(inner), of("bigint"));
  expect(() => typeOf(deep)).toThrow("which has no counterpart here");
});

test("a value that is not of its type is refused", () => {
  const cases: [TypeSignature, unknown][] = [
    [array(of("bigint")), "[1]"],
    [map(VARCHAR, of("bigint")), [1]],
    [of("row", field("a", of("bigint"))), [1, 2]],
    [of("bigint"), { a: 1 }],
    [of("interval year to month"), "soon"],
    [array(of("json")), ["{"]],
  ];
  for (const [signature, value] of cases) {
    expect(() => typeOf(signature).text(value)).toThrow("the query engine sent something else than the");
  }
  const moment = typeOf(of("timestamp with time zone"));
  expect(() => moment.text("2020-01-01 00:00:00 Europe/Berlin")).toThrow("AT TIME ZONE 'UTC'");
});

/** Texts full of what the syntax of lists, maps and structs is made of. */
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(...Array.from("\"'\\,={}[]: \n\tNULnul0\0éß"), "😀") }),
  fc.constantFrom("NULL", "null", "", " "),
);
const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);

type Sample = { signature: TypeSignature; value: unknown };
const { value: sample } = fc.letrec<{ value: Sample }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text.map((value) => ({ signature: VARCHAR, value })),
    integer.map((value) => ({ signature: of("bigint"), value })),
    fc.constant({ signature: VARCHAR, value: null }),
    tie("value").map(({ signature, value }) => ({ signature: array(signature), value: [value, null, value] })),
    fc.tuple(tie("value"), text).map(([{ signature, value }, key]) => ({
      signature: map(VARCHAR, signature),
      value: { [key]: value },
    })),
    fc.tuple(tie("value"), tie("value"), text).map(([a, b, name]) => ({
      signature: of("row", field("a", a.signature), field(`b${name.replaceAll("\0", "")}`, b.signature)),
      value: [a.value, b.value],
    })),
  ),
}));

/** The same as DuckDB's JSON has it: integers by their digits, rows by their names. */
function expected({ rawType, arguments: given = [] }: TypeSignature, value: unknown): unknown {
  if (value === null) return null;
  const inner = given as readonly { value: unknown }[];
  if (rawType === "array") return (value as unknown[]).map((item) => expected(inner[0]?.value as never, item));
  if (rawType === "map") {
    const entries = Object.entries(value as object).map(([key, item]) => [
      key,
      expected(inner[1]?.value as never, item),
    ]);
    return Object.fromEntries(entries) as unknown;
  }
  if (rawType !== "row") return value;
  const fields = given as readonly { value: { fieldName: { name: string }; typeSignature: TypeSignature } }[];
  const entries = fields.map(({ value: own }, i) => [
    own.fieldName.name,
    expected(own.typeSignature, (value as unknown[])[i]),
  ]);
  return Object.fromEntries(entries) as unknown;
}

test("values in values come through, whatever they hold", async () => {
  await fc.assert(
    fc.asyncProperty(sample, async ({ signature, value }) => {
      expect(await asJson(signature, value)).toEqual(expected(signature, value));
    }),
    { numRuns: 300 },
  );
});
