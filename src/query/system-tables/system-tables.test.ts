import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";
import { MAX_STAGED, type StagedWrite } from "./rows.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
];
const START = 1_704_067_200_123_456_789n;
const row = (n: bigint) => ({ at: START + n * 1_000_000_000n, label: `row ${n}`, v: [1, 2, 3] });

let harness: QueryHarness;
const rows = (sql: string, database?: string) => harness.rows(sql, database);
const failure = (sql: string) => harness.failure(sql);

beforeAll(async () => {
  harness = createQueryHarness();
  await harness.addTable("default", "logs", COLUMNS, [
    { format: "tlm", columns: COLUMNS, rows: [row(0n), row(1n)] },
    { format: "parquet", columns: COLUMNS, rows: [row(2n)], snapshot: 3 },
  ]);
  // A user's own table of the same name.
  await harness.addTable("default", "tables", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows: [row(7n)] }]);
  await harness.addTable("other", "secret", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows: [row(9n)] }]);
});

afterAll(() => harness.close());

describe("system tables", () => {
  test("tables, of the own database only", async () => {
    expect(await rows("SELECT name, columns, rows, extents, schema_version FROM system.tables ORDER BY name")).toEqual([
      { name: "logs", columns: 3, rows: 3, extents: 2, schema_version: 1 },
      { name: "tables", columns: 3, rows: 1, extents: 1, schema_version: 1 },
    ]);
    expect(await rows("SELECT name FROM system.tables", "other")).toEqual([{ name: "secret" }]);
  });

  test("columns", async () => {
    expect(await rows("SELECT * FROM system.columns WHERE table_name = 'logs' ORDER BY position")).toEqual([
      { table_name: "logs", position: 1, name: "at", type: "timestamp", origin: "declared", misfits: 0 },
      { table_name: "logs", position: 2, name: "label", type: "string", origin: "declared", misfits: 0 },
      { table_name: "logs", position: 3, name: "v", type: "vector(3)", origin: "declared", misfits: 0 },
    ]);
  });

  test("extents as of an earlier snapshot", async () => {
    const at = (travel: string) =>
      rows(`SELECT begin_snapshot FROM system.extents ${travel} WHERE table_name = 'logs' ORDER BY ALL`);
    expect(await at("AT (VERSION => 1)")).toEqual([{ begin_snapshot: 1 }]);
    expect(await at("AT (VERSION => 3)")).toEqual(await at(""));
    expect((await failure("FROM system.extents AT (VERSION => 99)")).code).toBe("invalid_query");
    const both = "FROM system.extents AT (VERSION => 1) UNION ALL FROM system.extents";
    expect((await failure(both)).message).toContain("a query reads system.extents at one snapshot");
    expect((await failure("FROM system.columns AT (VERSION => 1)")).message).toContain("shows the present only");
  });

  test("statistics of columns, over all extents that are alive", async () => {
    const columns: ColumnSpec[] = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "n", type: { kind: "long" } },
      { name: "r", type: { kind: "real" } },
      { name: "s", type: { kind: "string" } },
      { name: "d", type: { kind: "dynamic" } },
    ];
    const some = columns.slice(0, 2);
    await harness.addTable("counted", "t", columns, [
      {
        format: "tlm",
        columns,
        rows: [
          { at: START, n: 9n, r: 2.5, s: "é", d: "{}" },
          { at: START + 1n, n: -(2n ** 63n), r: null, s: null, d: null },
        ],
      },
      {
        format: "parquet",
        columns: some,
        rows: [
          { at: START - 1n, n: 10n },
          { at: START, n: null },
          { at: START, n: 1n },
        ],
      },
      { format: "parquet", columns, rows: [{ at: START, n: 2n ** 63n - 1n, r: -10, s: "z", d: "[]" }] },
    ]);
    const sql = "SELECT * FROM system.column_stats ORDER BY name";
    const of = { table_name: "t" };
    expect(await rows(sql, "counted")).toEqual([
      {
        ...of,
        name: "at",
        type: "timestamp",
        extents: 3,
        values: 6,
        nulls: 0,
        min: "2024-01-01T00:00:00.123456788Z",
        max: "2024-01-01T00:00:00.123456790Z",
      },
      { ...of, name: "d", type: "dynamic", extents: 2, values: 2, nulls: 4, min: null, max: null },
      {
        ...of,
        name: "n",
        type: "long",
        extents: 3,
        values: 5,
        nulls: 1,
        min: "-9223372036854775808",
        max: "9223372036854775807",
      },
      { ...of, name: "r", type: "real", extents: 2, values: 2, nulls: 4, min: "-10", max: "2.5" },
      { ...of, name: "s", type: "string", extents: 2, values: 2, nulls: 4, min: "z", max: "é" },
    ]);
    expect(await rows("SELECT table_name FROM system.column_stats WHERE table_name = 't'")).toEqual([]);
  });

  test("extents, of which other programs read some", async () => {
    const got = await rows(
      "SELECT format, format_version, is_publishable FROM system.extents WHERE table_name = 'logs' ORDER BY begin_snapshot",
    );
    expect(got).toEqual([
      { format: "tlm", format_version: 1, is_publishable: false },
      { format: "parquet", format_version: 2, is_publishable: true },
    ]);
  });

  test("extents, with exact times", async () => {
    const got = await rows(`SELECT format, rows, bytes > 0 AS sized, min_at, max_at, begin_snapshot FROM system.extents
      WHERE table_name = 'logs' AND min_at > '2024-01-01' AND min_at < now() ORDER BY begin_snapshot`);
    expect(got).toEqual([
      {
        format: "tlm",
        rows: 2,
        sized: true,
        min_at: "2024-01-01T00:00:00.123456789Z",
        max_at: "2024-01-01T00:00:01.123456789Z",
        begin_snapshot: 1,
      },
      {
        format: "parquet",
        rows: 1,
        sized: true,
        min_at: "2024-01-01T00:00:02.123456789Z",
        max_at: "2024-01-01T00:00:02.123456789Z",
        begin_snapshot: 3,
      },
    ]);
  });

  test("snapshots, newest first", async () => {
    expect(await rows("SELECT id, committed_at FROM system.snapshots LIMIT 1")).toEqual([
      { id: 3, committed_at: "1970-01-01T00:00:01Z" },
    ]);
    const none = { table_name: null, operation: null, rows_added: null, extents_removed: null };
    const columns = "id, table_name, operation, rows_added, extents_removed";
    expect(await rows(`SELECT ${columns} FROM system.snapshots`)).toEqual([
      { id: 3, table_name: "logs", operation: "append", rows_added: 1, extents_removed: 0 },
      { id: 2, ...none },
      { id: 1, table_name: "logs", operation: "append", rows_added: 2, extents_removed: 0 },
      { id: 1, table_name: "tables", operation: "append", rows_added: 1, extents_removed: 0 },
    ]);
  });

  test("a table of the user's by the same name stays theirs", async () => {
    expect(await rows("SELECT label FROM tables")).toEqual([{ label: "row 7" }]);
    expect(await rows('SELECT label FROM "default".tables')).toEqual([{ label: "row 7" }]);
    const both = "SELECT t.label, s.name FROM tables t JOIN system.tables s ON s.name = 'tables'";
    expect(await rows(both)).toEqual([{ label: "row 7", name: "tables" }]);
  });

  test.each([
    'SELECT count(*) AS n FROM "system"."tables"',
    "SELECT count(*) AS n FROM SYSTEM.Tables",
    "SELECT count(tables.name) AS n FROM system.tables",
    "SELECT count(system.tables.name) AS n FROM system.tables",
    "WITH t AS (FROM system . tables) SELECT count(*) AS n FROM t",
    "SELECT count(*) AS n FROM /* system.queries */ system.tables -- é",
    "SELECT (SELECT count(*) FROM system.tables) AS n",
    "SELECT count(*) AS n FROM system.tables WHERE 'system' = 'system' AND 'é' <> ''",
    "SELECT 2 AS n FROM logs AS system WHERE system.label = 'row 0' AND EXISTS (FROM system.tables)",
  ])("%s", async (sql) => {
    expect(await rows(sql)).toEqual([{ n: 2 }]);
  });

  test("in every statement that a table can be in", async () => {
    expect(await rows("DESCRIBE system.tables")).toHaveLength(10);
    expect(await rows("SUMMARIZE system.tables")).toHaveLength(10);
    expect(await rows("EXPLAIN SELECT * FROM system.tables")).not.toEqual([]);
    expect(await rows("PIVOT system.tables ON name USING any_value(rows) GROUP BY schema_version")).toEqual([
      { schema_version: 1, logs: 3, tables: 1 },
    ]);
    expect(await rows("SHOW TABLES")).toEqual([{ name: "logs" }, { name: "tables" }]);
  });

  test("a misspelt one is not found, with the nearest name", async () => {
    expect(await failure("SELECT *\nFROM system.tabels")).toMatchObject({
      code: "table_not_found",
      details: { line: 2, column: 6, suggestion: "system.tables" },
    });
    expect(await failure("FROM system.pg_class")).toMatchObject({
      code: "table_not_found",
      message: expect.stringContaining("system.queries") as string,
    });
  });

  test("places in the text lead to the original, behind a system table too", async () => {
    expect(await failure("SELECT nmae\nFROM system.tables")).toMatchObject({
      code: "invalid_query",
      details: { line: 1, column: 8, suggestion: "name" },
    });
    expect(await failure("SELECT * FROM system.tables t, system.columns c WHERE c.tpye = 1")).toMatchObject({
      details: { line: 1, column: 55 },
    });
    expect(await failure("SELECT * FROM system.tables, nowhere")).toMatchObject({
      code: "table_not_found",
      details: { line: 1, column: 30 },
    });
  });

  test.each([
    "FROM system.tables AT (VERSION => 1)",
    "FROM system.main.tables",
    "FROM memory.system.tables",
    "FROM _engine_system.tables",
    "FROM _engine_system.tables, system.columns",
    "SELECT system.tables()",
  ])("refused: %s", async (sql) => {
    const { code, message } = await failure(sql);
    expect(code).toBe("invalid_query");
    expect(message).not.toMatch(/there is no .*_engine/);
  });
});

describe("system.queries", () => {
  const newest = async (where: string): Promise<Record<string, unknown> | undefined> =>
    (await rows(`SELECT * FROM system.queries WHERE ${where} ORDER BY started_at DESC LIMIT 1`))[0];

  test("shows itself running, and what finished with all its figures", async () => {
    expect(await newest("text LIKE '%LIMIT 1'")).toMatchObject({ outcome: "running", request_id: "test" });
    const answer = await harness.text("SELECT label, v FROM logs WHERE at < '2024-01-01T00:00:02Z' -- figures");
    const record = await newest("text LIKE '%-- figures' AND outcome <> 'running'");
    expect(record).toMatchObject({ outcome: "ok", database: "default", rows: 2, extents_read: 1, rows_read: 2 });
    expect(record).toMatchObject({ extents_total: 2, extents_pruned: 1, cache_hits: 0 });
    expect(record?.["result_bytes"]).toBe(answer.length);
    for (const figure of ["cpu_ms", "total_ms", "parse_ms", "plan_ms", "scan_ms", "stream_ms"]) {
      expect({ figure, value: record?.[figure] }).toEqual({ figure, value: expect.any(Number) as number });
      expect(record?.[figure]).toBeGreaterThan(0);
    }
    expect(Math.abs(Date.now() - Date.parse(record?.["started_at"] as string))).toBeLessThan(60_000);
  });

  test("keeps failures, whatever is in their text", async () => {
    const odd = 'SELECT \u0000 nonsense \ud800 "quoted" \\u0000';
    await failure(odd);
    const record = await newest("text LIKE 'SELECT % nonsense%' AND outcome <> 'running'");
    expect(record).toMatchObject({ outcome: "parse_error", rows: null, scan_ms: null });
    expect(record?.["text"]).toBe('SELECT \ufffd nonsense \ufffd "quoted" \\u0000');
  });

  test("shows nobody else's", async () => {
    await rows("SELECT 'theirs'", "other");
    expect(await rows("SELECT * FROM system.queries WHERE text LIKE '%theirs%' AND outcome = 'ok'")).toEqual([]);
    const theirs = await rows("SELECT DISTINCT database FROM system.queries", "other");
    expect(theirs).toEqual([{ database: "other" }]);
  });

  test("says how much was spilled, and is readable with little memory", async () => {
    const small = createQueryHarness({ pool: { memoryBytes: 64 * 1024 * 1024 } });
    try {
      const numbered = "SELECT row_number() OVER (ORDER BY hash(r)) AS n FROM range(2_000_000) t(r)";
      await small.rows(`SELECT max(n) AS n FROM (${numbered})`);
      const spilled = "SELECT max(spill_bytes) > 1_000_000 AS spilled FROM system.queries";
      expect(await small.rows(spilled)).toEqual([{ spilled: true }]);
    } finally {
      await small.close();
    }
  });

  test("leaves no file behind", async () => {
    await rows("FROM system.queries, system.extents, system.snapshots LIMIT 1");
    await failure("SELECT nope FROM system.queries");
    await failure("SELECT * FROM system.queries, nowhere");
    const files = readdirSync(join(harness.folder, "tmp"), { recursive: true, encoding: "utf8" });
    expect(files.filter((name) => name.includes("system"))).toEqual([]);
  });
});

describe("system.staged", () => {
  type Listing = () => AsyncIterable<StagedWrite>;
  const write = (n: number): StagedWrite => {
    const id = String(n).padStart(6, "0");
    return { state: "pending", node: "n", id, key: `p/_staged/n/${id}`, sizeBytes: n, stagedAtMs: 1_704_067_200_123 };
  };
  async function over<T>(listStaged: Listing, work: (own: QueryHarness) => Promise<T>): Promise<T> {
    const own = createQueryHarness({ service: { listStaged } });
    try {
      return await work(own);
    } finally {
      await own.close();
    }
  }

  test("holds what is listed, and lists it only when it is named", async () => {
    let listings = 0;
    await over(
      async function* () {
        listings++;
        yield { ...write(7), state: "damaged" as const, reason: `it is "cut",\nshort ${"x".repeat(100_000)}` };
        yield write(8);
      },
      async (own) => {
        await own.rows("FROM system.tables, system.queries");
        expect(listings).toBe(0);
        const [damaged, pending] = await own.rows("FROM system.staged");
        expect(listings).toBe(1);
        const shown = { node: "n", staged_at: "2024-01-01T00:00:00.123Z" };
        const reason = expect.stringMatching(/^it is "cut",\nshort x{3981}$/) as string;
        const key = "p/_staged/n/000007";
        expect(damaged).toEqual({ ...shown, state: "damaged", id: "000007", key, size_bytes: 7, reason });
        expect(pending).toMatchObject({ ...shown, state: "pending", id: "000008", reason: null });
      },
    );
  });

  test("ends after so many, and lists no further", async () => {
    let listed = 0;
    await over(
      async function* () {
        for (;;) yield write(listed++);
      },
      async (own) => {
        const counted = "SELECT count(*) AS n, max(size_bytes) AS last FROM system.staged";
        expect(await own.rows(counted)).toEqual([{ n: MAX_STAGED, last: MAX_STAGED - 1 }]);
      },
    );
    expect(listed).toBe(MAX_STAGED + 1);
  });

  test("fails with the reason when the store cannot be listed", async () => {
    const listing: Listing = async function* () {
      yield write(1);
      throw new Error("the bucket does not exist");
    };
    const failed = over(listing, (own) => own.text("FROM system.staged"));
    await expect(failed).rejects.toMatchObject({
      code: "query_failed",
      message: "staged writes cannot be listed: the bucket does not exist",
    });
  });
});
