import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatColumnType } from "../../../format/types.ts";
import { DropWorld } from "./drop-world.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";
import { parquetOf } from "./parquet.test-kit.ts";

/** What is in dropped files, good and bad. */

let world: DropWorld;
beforeEach(async () => {
  world = await DropWorld.open(await openSqlite(), await openDisk());
});
afterEach(async () => {
  expect(await world.orphans()).toEqual([]);
  await world.close();
});

const reasonsOf = (files: Parameters<DropWorld["outcomesOf"]>[0]) => world.outcomesOf(files);

async function columns(): Promise<Record<string, string>> {
  const table = await world.catalog.table("shop", "orders");
  return Object.fromEntries((table?.columns ?? []).map(({ name, type }) => [name, formatColumnType(type)]));
}

describe("a Parquet file", () => {
  test("gives new columns its types, and its values exactly", async () => {
    const sql = `SELECT TIMESTAMP '2026-01-02 03:04:05' AS "timestamp", 1::TINYINT AS i, 9223372036854775807 AS l,
      18446744073709551615::UBIGINT AS u, 0.5::FLOAT AS f, true AS b, 't' AS s, DATE '2026-01-02' AS d,
      1.10::DECIMAL(9, 2) AS dec, '1234567890123456789.01'::DECIMAL(38, 2) AS huge, [1, 2] AS list, {'a': 1} AS obj`;
    await world.drop("shop/orders/a.parquet", await parquetOf(sql));
    await world.node().look();
    expect(await columns()).toEqual({
      at: "timestamp",
      label: "string",
      body: "string",
      props: "dynamic",
      i: "int",
      l: "long",
      u: "string",
      f: "real",
      b: "bool",
      s: "string",
      d: "timestamp",
      dec: "real",
      huge: "string",
      list: "dynamic",
      obj: "dynamic",
    });
    expect(await world.values("at")).toEqual([String(BigInt(Date.UTC(2026, 0, 2, 3, 4, 5)) * 1_000_000n)]);
    expect(await world.values("l")).toEqual(["9223372036854775807"]);
    expect(await world.values("u")).toEqual(["18446744073709551615"]);
    expect(await world.values("huge")).toEqual(["1234567890123456789.01"]);
    expect(await world.values("props")).toEqual(["null"]);
  });

  test("whose columns have names of megabytes together is rejected", async () => {
    const items = Array.from({ length: 300 }, (_, i) => `${i} AS "${String(i).padEnd(8_000, "x")}"`).join(", ");
    const outcomes = await reasonsOf({ "wide.parquet": await parquetOf(`SELECT ${items}`) });
    expect(outcomes).toEqual({
      "wide.parquet":
        "rejected: the names of the columns of drop/shop/orders/wide.parquet have more than 2097152 bytes",
    });
  });

  test("of more columns than a load may add has the others in props", async () => {
    const items = Array.from({ length: 40 }, (_, i) => `${i} AS c${String(i).padStart(2, "0")}`).join(", ");
    await world.drop("shop/orders/a.parquet", await parquetOf(`SELECT ${items}`));
    await world.node().look();
    expect(Object.keys(await columns())).toHaveLength(4 + 32);
    expect(await world.values("props")).toEqual([
      '{"c32":32,"c33":33,"c34":34,"c35":35,"c36":36,"c37":37,"c38":38,"c39":39}',
    ]);
  });
});

describe("a CSV file", () => {
  test("is read by the columns of its table", async () => {
    const types = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "id", type: { kind: "long" } },
      { name: "ok", type: { kind: "bool" } },
      { name: "props", type: { kind: "dynamic" } },
    ] as const;
    await world.catalog.createTable({ database: "shop", name: "orders", columns: types });
    await world.drop("shop/orders/a.csv", 'id,ok,name\r\n007,TRUE,"x, ""y"""\r\n9007199254740993,,\r\n');
    await world.drop("shop/orders/b.csv.zst", zstdCompressSync("\ufeffid,name\n1,z\n"));
    await world.node().look();
    expect(await world.values("id")).toEqual(["1", "9007199254740993", "null"]);
    expect(await world.values("name")).toEqual(["null", 'x, "y"', "z"]);
    expect(await columns()).toMatchObject({ id: "long", ok: "bool", name: "string" });
  });

  test("of any size is read the same", async () => {
    const row = (i: number) => `${i},"${"x".repeat(90)}"\n`;
    const rows = Array.from({ length: 4_000 }, (_, i) => row(i)).join("");
    const reasons = await reasonsOf({ "large.csv": `id,pad\n${rows}`, "wrong.csv": `id,pad\n${rows}1\n` });
    expect(reasons).toEqual({
      "large.csv": "ingested: null",
      "wrong.csv": "rejected: line 4002 of drop/shop/orders/wrong.csv has 1 field, the header 2",
    });
    expect(await world.values("id")).toHaveLength(4_000);
  });

  test("that is wrong is rejected with its line", async () => {
    const vector = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "v", type: { kind: "vector", dimensions: 2 } },
    ] as const;
    await world.catalog.createTable({ database: "shop", name: "orders", columns: vector });
    expect(
      await reasonsOf({
        "fields.csv": "a,b\n1,2\n\n3\n",
        "quote.csv": 'a\n"never closed\n',
        "twice.csv": "a,A\n1,2\n",
        "latin1.csv": Buffer.from([0x61, 0x0a, 0xe9, 0x0a]),
        "vector.csv": 'v\n"[1,2]"\n"[1,\n2]"\n"[1]"\n',
        "header.csv": "a,b\n",
      }),
    ).toEqual({
      "fields.csv": "rejected: line 4 of drop/shop/orders/fields.csv has 1 field, the header 2",
      "quote.csv": expect.stringContaining("line 2 of drop/shop/orders/quote.csv: a quote is opened and never closed"),
      "twice.csv": expect.stringContaining('line 1 of drop/shop/orders/twice.csv: the header has "A" twice'),
      "latin1.csv": expect.stringContaining("latin1.csv is not UTF-8"),
      "vector.csv": expect.stringContaining(`rejected: line 3, column "v"`),
      "header.csv": "rejected: the file has no rows",
    });
  });
});

describe("an NDJSON file", () => {
  test("of several pieces keeps the columns of the first, and says which line is wrong", async () => {
    const line = (i: number) => `{"id":${i},"pad":"${"x".repeat(990)}"}\n`;
    const many = Array.from({ length: 20_000 }, (_, i) => line(i)).join("");
    await world.drop("shop/orders/good.json", many);
    const reasons = await reasonsOf({ "bad.json": `${many}{"id":\n`, "bad.json.gz": gzipSync(`${many}[]\n`) });
    expect(reasons).toEqual({
      "good.json": "ingested: null",
      "bad.json": expect.stringContaining("rejected: line 20001: "),
      "bad.json.gz": expect.stringContaining("rejected: line 20001: "),
    });
    expect(await world.values("id")).toHaveLength(20_000);
  });

  test("whose later pieces have fractions gets a column that holds all of its numbers", async () => {
    const pad = "x".repeat(4_000);
    const rows = (value: (i: number) => string) =>
      Array.from({ length: 5_000 }, (_, i) => `{"n":${value(i)},"pad":"${pad}"}\n`).join("");
    const node = world.node({}, { inferTypes: true });
    const columnsOf = async (name: string, content: string) => {
      await world.drop(`shop/${name}/a.json`, content);
      await node.look();
      const table = await world.catalog.table("shop", name);
      const { type } = table?.columns.find((column) => column.name === "n") ?? {};
      return { type: type?.kind, values: new Set(await world.values("n", name)) };
    };
    const late = `${rows(() => "1")}{"n":0.5}\n`;
    expect(await columnsOf("fresh", late)).toEqual({ type: "real", values: new Set(["1", "0.5"]) });
    const far = `{"n":9007199254740993}\n${late}`;
    expect(await columnsOf("far", far)).toEqual({ type: "long", values: new Set(["1", "9007199254740993", "null"]) });
    expect(await columnsOf("known", '{"n":1}\n')).toMatchObject({ type: "long" });
    await world.drop("shop/known/b.json", late);
    await node.look();
    expect((await world.catalog.table("shop", "known"))?.columns.at(-2)).toMatchObject({ type: { kind: "real" } });
  });

  test("that is none is rejected in words", async () => {
    expect(
      await reasonsOf({
        "array.json": "[{}]",
        "utf16.json": Buffer.from("\ufeff{}", "utf16le"),
        "zip.json": Buffer.from("504b030400000000", "hex"),
        "binary.json": Buffer.from([123, 0, 0, 0, 0]),
        "empty.json": "",
        "blank.json": " \n\n",
        "cut.json.gz": gzipSync('{"a":1}\n'.repeat(100)).subarray(0, -9),
        "garbage.json.gz": Buffer.concat([gzipSync("{}\n"), Buffer.from("garbage")]),
        "cut.json.zst": zstdCompressSync('{"a":1}\n').subarray(0, -1),
        "deep.json": `{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`,
      }),
    ).toEqual({
      "array.json": expect.stringContaining("is a JSON array, not NDJSON"),
      "utf16.json": expect.stringContaining("is UTF-16"),
      "zip.json": expect.stringContaining("is a zip archive"),
      "binary.json": expect.stringContaining("is no text"),
      "empty.json": "rejected: the file has no rows",
      "blank.json": "rejected: the file has no rows",
      "cut.json.gz": expect.stringContaining("its gzip data cannot be decoded"),
      "garbage.json.gz": expect.stringContaining("its gzip data"),
      "cut.json.zst": expect.stringContaining("it is cut off"),
      "deep.json": expect.stringContaining("rejected: line 1"),
    });
    expect(await world.catalog.databases()).toEqual([]);
  });
});

test("names of any kind are read, rejected or left alone", async () => {
  const good = '{"body":"x"}\n';
  const long = `${"n".repeat(248)}.jsonl`;
  const names = {
    [`shop/orders/${long}`]: "ingested",
    "shop/orders/ü '\"%20*?{}.ndjson": "ingested",
    "shop/orders/CAPS.JSON": "ingested",
    "shop/orders/deep/er/and/deeper/x.json": "ingested",
    "shop/x.json": "rejected",
    "x.json": "rejected",
    "_shop/orders/x.json": "rejected",
    "shop/system/x.json": "rejected",
    "shop/o rders/x.json": "rejected",
    "main/orders/x.json": "rejected",
    [`shop/orders/bad-${"n".repeat(240)}.json`]: "rejected",
  };
  for (const [name, state] of Object.entries(names)) {
    await world.drop(name, name.includes("/bad-") ? "bad" : good);
    expect(state).toMatch(/^(ingested|rejected)$/);
  }
  for (const name of ["shop/orders/readme.txt", "shop/orders/x.rejected.json", "shop/orders/y.tsv"]) {
    await world.drop(name, good);
  }
  await world.node().look();
  await world.node().look();
  expect(await world.files()).toEqual(names);
  expect(await world.values("body")).toEqual(["x", "x", "x", "x"]);
});
