import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ingest, ndjson, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

let engine: Engine;
let removeHome: () => Promise<void>;

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
});

let tables = 0;
const newTable = () => `t${++tables}`;
const createTable = (table: string, schema: string) => runCli("create-table", "--name", table, "--schema", schema);

async function runCli(command: string, ...args: string[]): Promise<void> {
  const { execFile } = await import("node:child_process");
  const { promisify } = await import("node:util");
  const { cleanEnv } = await import("../support/engine.ts");
  const env = { ...cleanEnv(), ENGINE_HOME: engine.home };
  await promisify(execFile)(process.execPath, ["bin/engine.js", command, "--db", "default", ...args], { env });
}

describe("the acknowledgement", () => {
  test("has the five fields, and the rows are visible at once", async () => {
    const table = newTable();
    const { status, json } = await ingest(engine.url, table, ndjson([{ body: "a" }, { body: "b" }]));
    expect(status).toBe(200);
    expect(json).toEqual({
      snapshot_id: expect.stringMatching(/^[0-9]+$/),
      extent_count: 1,
      rows_ingested: 2,
      bytes_written: expect.any(Number),
      replayed: false,
    });
    expect(await rowsOf(engine.url, `SELECT body FROM ${table} ORDER BY body`)).toEqual([{ body: "a" }, { body: "b" }]);
  });

  test("the head strictly increases", async () => {
    const table = newTable();
    const ids: number[] = [];
    for (let i = 0; i < 5; i++) ids.push(Number((await ingest(engine.url, table, '{"body":"x"}')).json.snapshot_id));
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
  });
});

describe("times", () => {
  const UTC = "2026-01-02T03:04:05Z";
  const epochMs = Date.parse(UTC);

  test("without an offset are UTC, in at and in every timestamp column, and so are numbers in quotes", async () => {
    const table = newTable();
    await createTable(table, "at:timestamp, t:timestamp, props:dynamic");
    const texts = [
      "2026-01-02T03:04:05",
      "2026-01-02 03:04:05",
      "2026-01-02t03:04:05z",
      "2026-01-02T05:34:05+02:30",
      "2026-01-02T03:04:05.000000000",
      String(epochMs / 1_000),
      String(epochMs),
      `${epochMs}000`,
      `${epochMs}000000`,
    ];
    const { json } = await ingest(engine.url, table, ndjson(texts.map((text) => ({ at: text, t: text }))));
    expect([json.rows_ingested, json.warnings]).toEqual([texts.length, undefined]);
    const sql = `SELECT count(*) AS n, min("at") AS a, max("at") AS b, min(t) AS c, max(t) AS d FROM ${table}`;
    expect(await rowsOf(engine.url, sql)).toEqual([{ n: texts.length, a: UTC, b: UTC, c: UTC, d: UTC }]);
    await ingest(engine.url, table, ndjson([{ at: "2026-02-03", t: "2024-02-29 23:59:59.123456789" }]));
    expect(await rowsOf(engine.url, `SELECT "at", t FROM ${table} WHERE "at" > '2026-02-01'`)).toEqual([
      { at: "2026-02-03T00:00:00Z", t: "2024-02-29T23:59:59.123456789Z" },
    ]);
  });

  test("that cannot be read are the time of arrival, and the acknowledgement says so", async () => {
    const table = newTable();
    await createTable(table, "at:timestamp, n:int, t:timestamp, props:dynamic");
    const body =
      '{"n":1}\n\n{"at":"2026-02-30","n":2}\n{"at":"24:00","n":"x","t":"soon"}\n{"timestamp":" 1","n":1.5}\n';
    const before = new Date().toISOString();
    const { status, json } = await ingest(engine.url, table, body);
    expect([status, json.warnings]).toEqual([
      200,
      [
        { code: "at_unreadable", count: 3, first_line: 3 },
        { code: "kept_in_props", field: "n", type: "int", count: 2, first_line: 4 },
        { code: "kept_in_props", field: "t", type: "timestamp", count: 1, first_line: 4 },
      ],
    ]);
    const rows = await rowsOf(
      engine.url,
      `SELECT props FROM ${table} WHERE "at" >= '${before}' ORDER BY props::VARCHAR`,
    );
    expect(rows).toEqual([
      { props: { at: "2026-02-30" } },
      { props: { at: "24:00", n: "x", t: "soon" } },
      { props: { n: 1.5, timestamp: " 1" } },
      { props: null },
    ]);
  });

  test("in a body that several threads read are told of by their line in all of it", async () => {
    const table = newTable();
    await createTable(table, "at:timestamp, n:int, body:string, props:dynamic");
    const row = JSON.stringify({ at: "2026-01-02 03:04:05", n: 1, body: "x".repeat(900) });
    const lines = Array.from({ length: 9_000 }, (_, i) => (i % 100 === 50 ? "" : row));
    lines[6_500] = '{"at":"soon","n":1}';
    lines[8_999] = '{"at":"soon","n":"one"}';
    lines[7_000] = '{"n":"two"}';
    const { json } = await ingest(engine.url, table, lines.join("\n"));
    expect([json.extent_count > 1, json.warnings]).toEqual([
      true,
      [
        { code: "at_unreadable", count: 2, first_line: 6_501 },
        { code: "kept_in_props", field: "n", type: "int", count: 2, first_line: 7_001 },
      ],
    ]);
  });
});

describe("a refused request", () => {
  test("leaves no database, no table and no column", async () => {
    const table = newTable();
    const schemaOf = async () => (await fetch(`${engine.url}/v1/catalog/schema`)).text();
    const before = await schemaOf();
    const refused = await ingest(engine.url, table, '{"stray":1}\n{"stray":', { "X-Database": "never" });
    expect([refused.status, refused.json.error.line]).toEqual([400, 2]);
    const other = { "X-Database": "never" };
    expect((await ingest(engine.url, table, "", other)).status).toBe(400);
    expect((await ingest(engine.url, table, "{}", { ...other, "Content-Encoding": "br" })).status).toBe(415);
    expect((await ingest(engine.url, table, "{}", { ...other, "Content-Encoding": "deflate" })).status).toBe(400);
    expect((await ingest(engine.url, table, "{}", { ...other, "Content-Type": "text/html" })).status).toBe(415);
    const bomb = new Uint8Array(deflateSync(Buffer.alloc(65 * 1024 * 1024, " ")));
    expect((await ingest(engine.url, table, bomb, { ...other, "Content-Encoding": "deflate" })).status).toBe(413);
    expect((await query(engine.url, `SELECT 1 FROM ${table}`)).status).toBe(404);
    expect((await fetch(`${engine.url}/v1/admin/databases/never/tables/${table}`)).status).toBe(404);
    await ingest(engine.url, table, '{"body":"x"}');
    expect((await ingest(engine.url, table, '{"stray":1}\n[]')).status).toBe(400);
    const { columns } = (await (await fetch(`${engine.url}/v1/admin/databases/default/tables/${table}`)).json()) as {
      columns: { name: string }[];
    };
    expect(columns.map(({ name }) => name)).toEqual(["at", "label", "body", "props"]);
    expect(before).not.toContain("never");
    await expect.poll(schemaOf, { interval: 500 }).toContain(table);
    expect(await schemaOf()).not.toContain("never");
  });
});

describe("headers", () => {
  test("X-Table is required", async () => {
    const response = await fetch(`${engine.url}/v1/ingest`, { method: "POST", body: "{}" });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "missing_header", message: /X-Table/ } as never });
  });

  test("X-Database goes to another database, created on the way", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"body":"there"}', { "X-Database": "other" });
    expect(await rowsOf(engine.url, `SELECT body FROM ${table}`, "other")).toEqual([{ body: "there" }]);
    expect((await query(engine.url, `SELECT body FROM ${table}`)).status).toBe(404);
  });

  test("X-Auto-Create: false and a missing table is 404 table_not_found", async () => {
    const { status, json } = await ingest(engine.url, newTable(), "{}", { "X-Auto-Create": "false" });
    expect({ status, code: json.error.code }).toEqual({ status: 404, code: "table_not_found" });
  });

  test("X-Schema-Evolve: false drops unknown fields silently, and keeps what does not fit", async () => {
    const table = newTable();
    const row = { at: "not a time", body: "b", extra: 1 };
    await ingest(engine.url, table, ndjson([row]), { "X-Schema-Evolve": "false" });
    const rows = await rowsOf(engine.url, `SELECT * EXCLUDE (at) FROM ${table}`);
    expect(rows).toEqual([{ label: null, body: "b", props: { at: "not a time" } }]);
  });

  test.each([
    ["X-Auto-Create", "yes"],
    ["X-Schema-Evolve", "1"],
    ["X-Idempotency-Key", "a b"],
    ["X-Idempotency-Key", "k".repeat(256)],
  ])("%s: %s is refused", async (name, value) => {
    const { status, json } = await ingest(engine.url, newTable(), "{}", { [name]: value });
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_header" });
    expect(json.error.message).toContain(name);
  });

  test.each([
    "a/b",
    "..",
    'a"b',
    "_hidden",
    "system",
    "SYSTEM",
    "9lives",
    "a b",
    "x".repeat(129),
    "x".repeat(300),
    "täble",
  ])("a table named %s is refused", async (name) => {
    const { status, json } = await ingest(engine.url, encodeHeader(name), "{}");
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_name" });
  });

  test("128 characters and SQL keywords are names like others", async () => {
    for (const name of ["y".repeat(128), "select", "Order"]) {
      expect((await ingest(engine.url, name, '{"body":"x"}')).status).toBe(200);
      expect(await rowsOf(engine.url, `SELECT count(*) AS n FROM "${name}"`)).toEqual([{ n: 1 }]);
    }
  });

  test("names are one without regard to case", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"body":"x"}');
    await ingest(engine.url, table.toUpperCase(), '{"body":"y"}', { "X-Database": "DEFAULT" });
    expect(await rowsOf(engine.url, `SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 2 }]);
  });
});

/** UTF-8 on the wire, where fetch puts the characters of a value as bytes. */
function encodeHeader(text: string): string {
  return Buffer.from(text).toString("latin1");
}

describe("idempotency", () => {
  test("a retry is acknowledged as then and stored once", async () => {
    const table = newTable();
    const headers = { "X-Idempotency-Key": "k1" };
    const first = await ingest(engine.url, table, '{"body":"once"}', headers);
    const again = await ingest(engine.url, table, '{"body":"ignored"}', headers);
    expect(again.json).toEqual({ ...first.json, replayed: true });
    expect(await rowsOf(engine.url, `SELECT body FROM ${table}`)).toEqual([{ body: "once" }]);
  });

  test("concurrent requests with one key store once", async () => {
    const table = newTable();
    const headers = { "X-Idempotency-Key": "same" };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ingest(engine.url, table, '{"body":"x"}', headers)),
    );
    expect(answers.filter(({ json }) => !json.replayed)).toHaveLength(1);
    expect(new Set(answers.map(({ json }) => json.snapshot_id)).size).toBe(1);
    expect(await rowsOf(engine.url, `SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 1 }]);
  });

  test("a key belongs to its table, and a failed request records nothing", async () => {
    const [one, two] = [newTable(), newTable()];
    const headers = { "X-Idempotency-Key": "shared" };
    expect((await ingest(engine.url, one, "broken", headers)).status).toBe(400);
    expect((await ingest(engine.url, one, '{"body":"x"}', headers)).json.replayed).toBe(false);
    expect((await ingest(engine.url, two, '{"body":"x"}', headers)).json.replayed).toBe(false);
  });
});

describe("schema evolution", () => {
  test("unknown fields become string columns; other values become their JSON text", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"status":200,"tags":["a", "b"],"name":"n","ok":true,"none":null}\n{"late":1.50}');
    expect(
      await rowsOf(engine.url, `SELECT status, tags, name, ok, late FROM ${table} ORDER BY late NULLS FIRST`),
    ).toEqual([
      { status: "200", tags: '["a","b"]', name: "n", ok: "true", late: null },
      { status: null, tags: null, name: null, ok: null, late: "1.50" },
    ]);
  });

  test("the 33rd new column of a request goes to props", async () => {
    const table = newTable();
    const row = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`c${i}`, i]));
    await ingest(engine.url, table, ndjson([row]));
    const described = await describeTable(table);
    expect(described.columns).toHaveLength(4 + 32);
    expect(await rowsOf(engine.url, `SELECT c31, props FROM ${table}`)).toEqual([{ c31: "31", props: { c32: 32 } }]);
  });

  test("the 2,001st column of a table goes to props", { timeout: 120_000 }, async () => {
    const table = newTable();
    const fields = Array.from({ length: 1_997 }, (_, i) => `c${i}`);
    for (let i = 0; i < fields.length; i += 32) {
      const row = Object.fromEntries(fields.slice(i, i + 32).map((name) => [name, 1]));
      expect((await ingest(engine.url, table, ndjson([row]))).status).toBe(200);
    }
    expect((await describeTable(table)).columns).toHaveLength(2_000);
    expect(await rowsOf(engine.url, `SELECT props FROM ${table} WHERE props IS NOT NULL`)).toEqual([
      { props: { c1996: 1 } },
    ]);
  });

  test("two bodies of one moment that add the same and different columns both keep their values", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"body":"seed"}');
    const bodies = Array.from({ length: 30 }, (_, i) => ndjson([{ shared: `v${i}`, [`own${i % 5}`]: i }]));
    const answers = await Promise.all(bodies.map((body) => ingest(engine.url, table, body)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const [row] = await rowsOf(
      engine.url,
      `SELECT count(shared) AS b, count(own0)+count(own1)+count(own2)+count(own3)+count(own4) AS o FROM ${table}`,
    );
    expect(row).toEqual({ b: 30, o: 30 });
  });

  test("a column that an admin adds with a type is used at once", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"body":"before"}');
    await runCli("alter-table", "--table", table, "--add-column", "n:long");
    await ingest(engine.url, table, '{"n":9007199254740993}\n{"n":"text"}');
    expect(
      await rowsOf(engine.url, `SELECT n::VARCHAR AS n, props FROM ${table} ORDER BY n NULLS LAST, props NULLS LAST`),
    ).toEqual([
      { n: "9007199254740993", props: null },
      { n: null, props: { n: "text" } },
      { n: null, props: null },
    ]);
  });
});

async function describeTable(table: string): Promise<{ columns: { name: string; type: string }[]; row_count: number }> {
  const response = await fetch(`${engine.url}/v1/admin/databases/default/tables/${table}`);
  return (await response.json()) as never;
}

describe("bad input", () => {
  const LONE = '{"body":"\\ud800"}';
  test.each([
    ["cut off mid-line", '{"body":"a"}\n{"body":', 2, /./],
    ["JSON but no object", '{"body":"a"}\n[1]\n', 2, /object/],
    ["a string", '"x"', 1, /object/],
    ["1,001 levels", `{"p":${"[".repeat(1000)}${"]".repeat(1000)}}`, 1, /1,?000/],
    ["a BOM", '\ufeff{"body":"a"}', 1, /byte order mark|BOM/i],
    ["a raw NUL", '{"body":"a\u0000"}', 1, /./],
    ["an escaped lone surrogate", LONE, 1, /surrogate/],
  ])("%s: rejected with its line, nothing stored", async (_name, body, line, message) => {
    const table = newTable();
    const { status, json } = await ingest(engine.url, table, body);
    expect({ status, code: json.error.code, line: json.error.line }).toEqual({
      status: 400,
      code: "bad_request_body",
      line,
    });
    expect(json.error.message).toMatch(message);
    expect((await query(engine.url, `SELECT 1 FROM ${table}`)).status).toBe(404);
  });

  test("invalid UTF-8 is rejected with its line", async () => {
    const { status, json } = await ingest(
      engine.url,
      newTable(),
      Buffer.from([...Buffer.from('{"a":1}\n{"b":"'), 0xff, 0x22, 0x7d]),
    );
    expect({ status, line: json.error.line }).toEqual({ status: 400, line: 2 });
    expect(json.error.message).toMatch(/UTF-8/);
  });

  test.each(["", "\n", "\n \r\n\n"])("a body without rows (%j) says so", async (body) => {
    const { status, json } = await ingest(engine.url, newTable(), body);
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "bad_request_body" });
    expect(json.error.message).toMatch(/no rows/);
  });

  test("1,000 levels, CRLF and blank lines are accepted", async () => {
    const table = newTable();
    const deep = `{"p":${"[".repeat(999)}${"]".repeat(999)}}`;
    const { json } = await ingest(engine.url, table, `\r\n${deep}\r\n\r\n{"body":"x"}\r\n`);
    expect(json.rows_ingested).toBe(2);
  });

  test("odd keys lose nothing", async () => {
    const table = newTable();
    const long = "k".repeat(10_000);
    const [bytes255, bytes256] = ["c".repeat(255), "c".repeat(256)];
    const body = `{"__proto__":"p","":"empty","${long}":"long","${bytes255}":"fits","${bytes256}":"over","\\u0000":"nul"}`;
    await ingest(engine.url, table, body);
    expect(await rowsOf(engine.url, `SELECT "__proto__" AS p, "${bytes255}" AS c, props FROM ${table}`)).toEqual([
      { p: "p", c: "fits", props: { "": "empty", [long]: "long", [bytes256]: "over", "\u0000": "nul" } },
    ]);
  });

  test("a poisoned body hurts no neighbour", async () => {
    const table = newTable();
    await ingest(engine.url, table, '{"body":"seed"}');
    const bodies = Array.from({ length: 60 }, (_, i) =>
      i % 3 === 0 ? `{"n":${i}}\n{broken` : ndjson([{ n: i }, { n: i }]),
    );
    const answers = await Promise.all(bodies.map((body) => ingest(engine.url, table, body)));
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(20);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(40);
    expect(await rowsOf(engine.url, `SELECT count(n) AS n FROM ${table}`)).toEqual([{ n: 80 }]);
  });

  test("64 MiB is taken, and one byte more is 413", { timeout: 120_000 }, async () => {
    const table = newTable();
    const limit = 64 * 1024 * 1024;
    const row = `{"body":"${"x".repeat(1000)}"}\n`;
    const rows = Math.floor(limit / row.length);
    const body = Buffer.alloc(limit + 1, "\n");
    body.write(row.repeat(rows));
    const over = await ingest(engine.url, table, body);
    expect({ status: over.status, code: over.json.error.code }).toEqual({ status: 413, code: "body_too_large" });
    const exact = await ingest(engine.url, table, body.subarray(0, limit));
    expect(exact.json.rows_ingested).toBe(rows);
  });

  test("gzip and zstd bodies; the limit counts decoded bytes; other codings are 415", async () => {
    const table = newTable();
    const body = ndjson([{ body: "packed" }]);
    for (const [coding, packed] of [
      ["gzip", gzipSync(body)],
      ["zstd", zstdCompressSync(body)],
      ["deflate", deflateSync(body)],
      ["deflate", deflateRawSync(body)],
    ] as const) {
      expect((await ingest(engine.url, table, new Uint8Array(packed), { "Content-Encoding": coding })).status).toBe(
        200,
      );
    }
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(65 * 1024 * 1024, " ")));
    expect((await ingest(engine.url, table, bomb, { "Content-Encoding": "gzip" })).status).toBe(413);
    expect((await ingest(engine.url, table, body, { "Content-Encoding": "br" })).status).toBe(415);
    expect((await ingest(engine.url, table, body, { "Content-Encoding": "gzip" })).status).toBe(400);
    const deflated = new Uint8Array(deflateRawSync(Buffer.alloc(65 * 1024 * 1024, " ")));
    expect((await ingest(engine.url, table, deflated, { "Content-Encoding": "deflate" })).status).toBe(413);
    expect((await ingest(engine.url, table, body, { "Content-Encoding": "deflate" })).status).toBe(400);
    expect(await rowsOf(engine.url, `SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 4 }]);
  });
});

describe("large bodies at the same time", () => {
  test("keep their bytes to themselves, whatever buffers they are received into", async () => {
    const table = newTable();
    const rows = 3_000;
    const bodyOf = (n: number) =>
      ndjson(Array.from({ length: rows }, (_, i) => ({ label: `b${n}`, n: i, body: `${n}`.repeat(100 + (i % 7)) })));
    for (let round = 0; round < 3; round++) {
      const numbers = Array.from({ length: 8 }, (_, i) => round * 8 + i + 10);
      const answers = await Promise.all(numbers.map((n) => ingest(engine.url, table, bodyOf(n))));
      expect(answers.map(({ status, json }) => [status, json.rows_ingested])).toEqual(numbers.map(() => [200, rows]));
    }
    const wrong = `SELECT count(*) AS n FROM ${table} WHERE body <> repeat(label[2:], 100 + n::INT % 7)`;
    expect(await rowsOf(engine.url, wrong)).toEqual([{ n: 0 }]);
    const [sums] = await rowsOf(
      engine.url,
      `SELECT count(*) AS rows, sum(n::INT)::BIGINT AS sum, count(DISTINCT label) AS labels FROM ${table}`,
    );
    expect(sums).toEqual({ rows: 24 * rows, sum: (24 * rows * (rows - 1)) / 2, labels: 24 });
  });
});

describe("types", () => {
  test("every type in and out", async () => {
    const table = newTable();
    await createTable(
      table,
      "b:bool, i:int, l:long, r:real, s:string, t:timestamp, d:dynamic, v:vector(2), props:dynamic",
    );
    const row =
      '{"at":"2026-01-02T03:04:05.123456789+02:00","b":true,"i":-2147483648,"l":9223372036854775807,"r":1e-320,' +
      '"s":"\\u0000é😀","t":1767323045,"d":{"z":1,"1":[1.0,null]},"v":[0.5,-1]}';
    expect((await ingest(engine.url, table, row)).status).toBe(200);
    const { text } = await query(engine.url, `SELECT at, b, i, l, r, s, t, d, v FROM ${table}`);
    expect(text.trim()).toBe(
      '{"at":"2026-01-02T01:04:05.123456789Z","b":true,"i":-2147483648,"l":9223372036854775807,"r":1e-320,' +
        '"s":"\\u0000é😀","t":"2026-01-02T03:04:05Z","d":{"z":1,"1":[1.0,null]},"v":[0.5,-1.0]}',
    );
  });

  test("what does not fit its column is NULL there and whole in props", async () => {
    const table = newTable();
    await createTable(table, "i:int, l:long, r:real, b:bool, props:dynamic");
    await ingest(
      engine.url,
      table,
      '{"i":2147483648,"l":9223372036854775808,"r":1e400,"b":"true","props":{"own":1}}\n{"i":1e3,"l":3.0}',
    );
    const { text } = await query(engine.url, `SELECT i, l, r, b, props FROM ${table} ORDER BY i NULLS FIRST`);
    expect(text.trim().split("\n")).toEqual([
      '{"i":null,"l":null,"r":null,"b":null,"props":{"own":1,"i":2147483648,"l":9223372036854775808,"r":1e400,"b":"true"}}',
      '{"i":1000,"l":3,"r":null,"b":null,"props":null}',
    ]);
  });

  test("a table without props rejects what it would have to put there, naming line and column", async () => {
    const table = newTable();
    await createTable(table, "i:int");
    const { status, json } = await ingest(engine.url, table, '{"i":1}\n{"i":"no"}');
    expect({ status, line: json.error.line, column: json.error.column }).toEqual({ status: 400, line: 2, column: "i" });
  });

  test("without props, the 2,001st column and a 256-byte name are refused, naming line and field", async () => {
    const table = newTable();
    await createTable(table, Array.from({ length: 1_999 }, (_, i) => `c${i}:string`).join(","));
    for (const name of ["one_more", "n".repeat(256)]) {
      const { status, json } = await ingest(engine.url, table, `{"c0":"x"}\n${JSON.stringify({ [name]: 1 })}`);
      expect({ status, line: json.error.line, column: json.error.column }).toEqual({
        status: 400,
        line: 2,
        column: name,
      });
    }
    expect((await describeTable(table)).row_count).toBe(0);
  });

  test("a vector of the wrong length rejects its body, naming line and column", async () => {
    const table = newTable();
    await createTable(table, "v:vector(3), props:dynamic");
    for (const body of ['{"v":[1,2,3]}\n{"v":[1,2]}', '{"v":[1,2,3]}\n{"body":1}', '{"v":[1,2,3]}\n{"v":[1,2,"3"]}']) {
      const { status, json } = await ingest(engine.url, table, body);
      expect({ status, line: json.error.line, column: json.error.column }).toEqual({
        status: 400,
        line: 2,
        column: "v",
      });
    }
  });

  test("a vector column comes to a table while it is empty, and never to rows", async () => {
    const table = newTable();
    await createTable(table, "body:string, props:dynamic");
    await runCli("alter-table", "--table", table, "--add-column", "v:vector(2)");
    await ingest(engine.url, table, '{"body":"new","v":[1,2]}');
    expect(await rowsOf(engine.url, `SELECT body, v FROM ${table}`)).toEqual([{ body: "new", v: [1, 2] }]);
    const late = runCli("alter-table", "--table", table, "--add-column", "w:vector(2)");
    await expect(late).rejects.toThrow(/column "w" vector\(2\) cannot be added: .* has rows/);
    await runCli("alter-table", "--table", table, "--add-column", "n:int");
    expect((await ingest(engine.url, table, '{"body":"again","v":[3,4]}')).status).toBe(200);
  });
});
