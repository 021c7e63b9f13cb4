import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "../../core/errors.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { itemsToWrite, parquetOptions } from "../../io/duckdb/parquet.ts";
import { registerTlmScan, type TlmScans } from "../../io/duckdb/tlm-scan.ts";
import type { FixtureRow } from "../../io/duckdb/tlm.test-kit.ts";
import type { ResolvedTable } from "../contract/tables.ts";
import { createQueryHarness, type ExtentFixture, type QueryHarness } from "../query.test-kit.ts";
import { tableQuery } from "./views.ts";

/** Extents of `tlm`, of Parquet with nanoseconds, and of Parquet with microseconds, in one table: `format/parquet-times.ts`. */
const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
  { name: "big", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "ok", type: { kind: "bool" } },
  { name: "s", type: { kind: "string" } },
  { name: "d", type: { kind: "dynamic" } },
  { name: "v", type: { kind: "vector", dimensions: 2 } },
];
const START_NS = 1_704_067_200_000_000_000n;

function row(n: number, at: bigint, seen: bigint | null): FixtureRow {
  if (n % 5 === 0) return { at, seen, n: null, big: null, r: null, ok: null, s: null, d: null, v: [n, 0] };
  const some = { big: 2n ** 63n - 1n - BigInt(n), r: n / 8, ok: n % 2 === 0, s: `text ${n % 3}` };
  return { at, seen, n, ...some, d: JSON.stringify({ n }), v: [n, -0.5] };
}

const KINDS = [
  { format: "tlm" },
  { format: "parquet", isOld: true },
  { format: "parquet" },
] as const satisfies readonly Partial<ExtentFixture>[];

let harness: QueryHarness;
beforeEach(() => {
  harness = createQueryHarness();
});
afterEach(() => harness.close());

/** The same rows in `tlm` alone, and in extents of all kinds by turns. */
async function addBoth(rows: readonly FixtureRow[][], name = ""): Promise<void> {
  const of = (kinds: readonly (typeof KINDS)[number][]) =>
    rows.map((own, i) => ({ columns: COLUMNS, rows: own, ...(kinds[i % kinds.length] ?? KINDS[0]) }));
  await harness.addTable("default", `plain${name}`, COLUMNS, of([KINDS[0]]));
  await harness.addTable("default", `mixed${name}`, COLUMNS, of([KINDS[2], KINDS[0], KINDS[1], KINDS[2]]));
}

async function expectSame(sql: (table: string) => string, name = ""): Promise<void> {
  const [plain, mixed] = [`plain${name}`, `mixed${name}`];
  expect({ sql: sql(plain), rows: await harness.rows(sql(mixed)) }).toEqual({
    sql: sql(plain),
    rows: await harness.rows(sql(plain)),
  });
}

const QUERIES: readonly ((table: string) => string)[] = [
  (table) => `SELECT * FROM ${table} ORDER BY at, n, seen`,
  (table) => `SELECT typeof(at) AS a, typeof(seen) AS b, typeof(v) AS c FROM ${table} LIMIT 1`,
  (table) => `SELECT min(at), max(at), min(seen), max(seen), count(seen), count(*) AS n FROM ${table}`,
  (table) => `SELECT at, n FROM ${table} ORDER BY at DESC LIMIT 3`,
  (table) => `SELECT n FROM ${table} WHERE at > '2024-01-01T00:00:00.000010Z' AND seen IS NULL ORDER BY at`,
  (table) =>
    `SELECT at FROM ${table} WHERE at BETWEEN '2024-01-01T00:00:00.000003Z' AND '2024-01-01T00:00:00.00001Z' ORDER BY at`,
  (table) => `SELECT at, seen FROM ${table} WHERE seen >= make_timestamp_ns(${START_NS + 7_001n}) ORDER BY at`,
  (table) => `SELECT at FROM ${table} WHERE at = make_timestamp_ns(${START_NS + 9_000n})`,
  (table) => `SELECT at FROM ${table} WHERE at <= make_timestamp_ns(${START_NS + 9_001n}) ORDER BY at`,
  (table) => `SELECT at FROM ${table} WHERE at < 'infinity' AND at > '-infinity' ORDER BY at`,
  (table) =>
    `WITH w AS (SELECT * FROM ${table}) SELECT a.n FROM w a JOIN w b ON a.at = b.at WHERE b.at > '2024-01-01T00:00:00.000010Z' ORDER BY a.at`,
  (table) => `SELECT date_trunc('second', at) AS t, count(*) AS n FROM ${table} GROUP BY 1 ORDER BY 1`,
  (table) => `SELECT n % 3 AS k, min(at), max(at) AS at, max(seen) FROM ${table} GROUP BY 1 ORDER BY at, k`,
  (table) => `SELECT max(at) FILTER (WHERE n < 5), min(seen) FILTER (WHERE false), count(*) FROM ${table} WHERE n > 2`,
  (table) =>
    `SELECT n % 2 AS k, max(l.at) AS m FROM ${table} AS l GROUP BY k HAVING max(at) > min(at) ORDER BY max(at), k`,
  (table) =>
    `SELECT max(at) - INTERVAL 1 HOUR AS a, date_trunc('second', min(at)) AS b, typeof(max(at)) AS c FROM ${table}`,
  (table) => `SELECT max(at) AS at, (SELECT max(seen) FROM ${table} AS x WHERE x.at < '2025-01-01') AS s FROM ${table}`,
  (table) =>
    `SELECT s, (SELECT max(x.at) FROM ${table} AS x WHERE x.n = l.n) AS m FROM ${table} AS l ORDER BY n, m LIMIT 4`,
  (table) => `SELECT * FROM ${table} ORDER BY at, n, seen LIMIT 5 OFFSET 2`,
  (table) => `SELECT l.* EXCLUDE (d, v, at), n + 1 AS m FROM ${table} AS l ORDER BY l.at DESC, n, seen LIMIT 5`,
  (table) => `SELECT seen AS t, n FROM ${table} ORDER BY t DESC NULLS FIRST, n, at LIMIT 6`,
  (table) => `SELECT n AS at, seen FROM ${table} ORDER BY at DESC NULLS LAST, seen LIMIT 5`,
  (table) => `SELECT n AS at, max(at) AS m FROM ${table} GROUP BY n ORDER BY max(at), n LIMIT 5`,
  (table) => `SELECT * REPLACE (seen AS at) FROM ${table} ORDER BY at DESC NULLS LAST, n LIMIT 5`,
  (table) => `SELECT n FROM (SELECT * FROM ${table} WHERE n > 3 ORDER BY at DESC LIMIT 7) ORDER BY at, n`,
  (table) => `SELECT l FROM ${table} AS l ORDER BY at, n, seen LIMIT 2`,
  (table) => `SELECT COLUMNS(*) FROM ${table} ORDER BY at, n, seen LIMIT 2`,
  (table) => `SELECT #3 AS c FROM ${table} ORDER BY at, #3, seen LIMIT 2`,
  (table) => `SELECT count(DISTINCT l) AS c, max(at) FROM ${table} AS l`,
  (table) =>
    `SELECT x.* FROM (SELECT at, seen, n FROM ${table} ORDER BY seen NULLS FIRST, at, n LIMIT 5) AS x ORDER BY ALL`,
  (table) => `SELECT DISTINCT at FROM ${table} ORDER BY at LIMIT 3`,
  (table) => `FROM ${table} SELECT at, row_number() OVER (ORDER BY at, n, seen) AS r ORDER BY at DESC, r LIMIT 3`,
  (table) =>
    `SELECT list_max(list_transform([at], at -> at + INTERVAL 1 DAY)) AS t FROM ${table} ORDER BY at, seen LIMIT 2`,
  (table) => `SELECT at FROM ${table} UNION ALL SELECT max(at) FROM ${table} ORDER BY at DESC LIMIT 3`,
  (table) => `SELECT count(*) AS c FROM ${table} WHERE at > (SELECT max(at) - INTERVAL 5 MICROSECONDS FROM ${table})`,
  (table) => `DESCRIBE SELECT *, at AS again FROM ${table} ORDER BY at LIMIT 1`,
];

/** The same in files of one kind alone. */
async function addKind(rows: readonly FixtureRow[][], name: string): Promise<void> {
  const of = (kind: Partial<ExtentFixture>) =>
    rows.map((own) => ({ columns: COLUMNS, rows: own, format: "parquet" as const, ...kind }));
  await harness.addTable("default", `plain${name}`, COLUMNS, of({ isOld: true }));
  await harness.addTable("default", `mixed${name}`, COLUMNS, of({}));
}

test("files of version 2 answer as those of version 1", async () => {
  const whole = Array.from({ length: 12 }, (_, n) =>
    row(n, START_NS + BigInt(n) * 1_000n, n % 3 === 0 ? null : START_NS - BigInt(n) * 1_000n),
  );
  await addKind([whole], "_one");
  await addKind([whole.slice(0, 5), whole.slice(5)], "_whole");
  await addKind([whole.slice(0, 5), Array.from({ length: 7 }, (_, n) => row(n, START_NS - 7n, null))], "_finer");
  for (const name of ["_one", "_whole", "_finer"]) for (const sql of QUERIES) await expectSame(sql, name);
});

test("extents of all kinds answer as one table", async () => {
  const whole = Array.from({ length: 12 }, (_, n) =>
    row(n, START_NS + BigInt(n) * 1_000n, n % 3 === 0 ? null : START_NS),
  );
  const finer = Array.from({ length: 12 }, (_, n) =>
    row(n, START_NS + BigInt(n) * 1_001n, START_NS + BigInt(n) * 1_000n),
  );
  const seen = Array.from({ length: 12 }, (_, n) => row(n, -BigInt(n) * 1_000n, n % 4 === 0 ? null : -BigInt(n) - 7n));
  await addBoth([whole, finer, seen, finer, seen, whole]);
  for (const sql of QUERIES) await expectSame(sql);
});

test("any times in any ranges", async () => {
  const ns = fc.oneof(
    fc.bigInt({ min: -20_000n, max: 20_000n }),
    fc.bigInt({ min: -20n, max: 20n }).map((us) => us * 1_000n),
    fc.constantFrom(2n ** 63n - 2n, -(2n ** 63n) + 2n),
  );
  const rows = fc.array(fc.record({ at: ns, seen: fc.option(ns) }), { minLength: 1, maxLength: 6 });
  const whole = fc.boolean();
  const extents = fc.array(fc.tuple(rows, whole), { minLength: 1, maxLength: 6 });
  const operator = fc.constantFrom("<", "<=", ">", ">=", "=", "<>");
  const condition = fc.tuple(fc.constantFrom("at", "seen"), operator, ns);
  const toUs = (time: bigint | null) => (time === null ? null : time - (time % 1_000n));
  let made = 0;
  await fc.assert(
    fc.asyncProperty(extents, fc.array(condition, { minLength: 1, maxLength: 3 }), async (given, conditions) => {
      const all = given.map(([own, isWhole]) =>
        own.map(({ at, seen }, n) => row(n, (isWhole ? toUs(at) : at) ?? 0n, isWhole ? toUs(seen) : seen)),
      );
      const name = String(made++);
      await addBoth(all, name);
      const where = conditions.map(([column, op, time]) => `${column} ${op} make_timestamp_ns(${time})`).join(" AND ");
      await expectSame(
        (table) => `SELECT epoch_ns(at) AS at, epoch_ns(seen) AS seen, n FROM ${table} WHERE ${where} ORDER BY ALL`,
        name,
      );
    }),
    { numRuns: 25 },
  );
});

test("extremes and first rows of any times", async () => {
  const whole = fc.bigInt({ min: -20n, max: 20n }).map((us) => us * 1_000n);
  const any = fc.oneof(
    whole,
    fc.bigInt({ min: -20_000n, max: 20_000n }),
    // The ends of what nanoseconds can tell, and the infinities beyond.
    fc.bigInt({ min: 0n, max: 2_000n }).map((ns) => 2n ** 63n - 1n - ns),
    fc.bigInt({ min: 0n, max: 2_000n }).map((ns) => ns + 1n - 2n ** 63n),
  );
  const extent = fc.boolean().chain((isWhole) =>
    fc.array(fc.record({ at: isWhole ? whole : any, seen: fc.option(isWhole ? whole : any) }), {
      minLength: 1,
      maxLength: 6,
    }),
  );
  const query = fc.record({
    column: fc.constantFrom("at", "seen"),
    direction: fc.constantFrom("", "ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"),
    limit: fc.integer({ min: 0, max: 12 }),
    offset: fc.integer({ min: 0, max: 4 }),
    where: fc.constantFrom("true", "n > 2", "seen IS NULL", "at >= '1970-01-01'", "false"),
  });
  let made = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(extent, { minLength: 1, maxLength: 6 }),
      query,
      fc.boolean(),
      async (given, asked, one) => {
        const all = given.map((own) => own.map(({ at, seen }, n) => row(n, at, seen)));
        const name = String(made++);
        if (one) await addKind(all, name);
        else await addBoth(all, name);
        const { column, direction, limit, offset, where } = asked;
        const ns = (expression: string) => `epoch_ns(${expression})`;
        const extremes = ["max(at)", "min(at)", "max(seen)", "min(seen)"];
        await expectSame((table) => `SELECT ${extremes.map(ns).join(", ")} FROM ${table} WHERE ${where}`, name);
        await expectSame((table) => `SELECT n, ${extremes.join(", ")} FROM ${table} GROUP BY n ORDER BY n`, name);
        const order = `${column} ${direction}, at, seen, n LIMIT ${limit} OFFSET ${offset}`;
        await expectSame(
          (table) => `SELECT n, at, ${ns("seen")} AS s FROM ${table} WHERE ${where} ORDER BY ${order}`,
          name,
        );
        // Which of equal rows come is left open, but not what they are ordered by.
        const first = `${column} ${direction} LIMIT ${limit} OFFSET ${offset}`;
        await expectSame((table) => `SELECT ${ns(column)} AS t FROM ${table} WHERE ${where} ORDER BY ${first}`, name);
      },
    ),
    { numRuns: 40 },
  );
});

test("files of many different columns are read by name, by version", async () => {
  const names = Array.from({ length: 40 }, (_, i) => `c${i}`);
  const at = { name: "at", type: { kind: "timestamp" } } as const;
  const extents = names.map((name, i) => ({
    format: "parquet" as const,
    isOld: i % 3 === 0,
    columns: [at, { name, type: { kind: "timestamp" } }] as const,
    rows: [{ at: START_NS + BigInt(i) * 1_000n, [name]: BigInt(i % 2 === 0 ? i : i * 1_000) }],
  }));
  const columns = names.map((name) => ({ name, type: { kind: "timestamp" } }) as const);
  await harness.addTable("default", "t", [at, ...columns], extents);
  const items = names.map((name) => `epoch_ns(${name})`).join(", ");
  const rows = await harness.rows(`SELECT epoch_ns(at) AS at, coalesce(${items}) AS c FROM t ORDER BY at`);
  expect(rows.map(({ c }) => c)).toEqual(names.map((_, i) => (i % 2 === 0 ? i : i * 1_000)));
});

describe("row groups", () => {
  const layout = {
    columns: COLUMNS.slice(0, 3).map(({ name, type }, i) => ({ name, type, id: i + 1 })),
    finer: new Set<string>(),
  };
  const ROWS = 10_000;
  let folder: string;
  let duckdb: DuckDb;
  let connection: Connection;
  let scans: TlmScans;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "engine-groups-"));
    duckdb = await loadDuckDb();
    connection = await duckdb.connect(await duckdb.open(":memory:"));
    scans = registerTlmScan(duckdb, connection);
  });
  afterEach(() => {
    duckdb.disconnect_sync(connection);
    rmSync(folder, { recursive: true });
  });

  /** A file whose rows are all in the last of its row groups but for those that cannot be read. */
  async function damaged(finer: ReadonlySet<string>): Promise<string> {
    const path = join(folder, "t.parquet");
    const own = { ...layout, finer };
    const options = parquetOptions({ encodings: "v2", rowGroupRows: 2_048, layout: own });
    const ns = `${START_NS} + i * 1000`;
    const rows = `SELECT make_timestamp_ns(${ns}) AS "at", make_timestamp_ns(${ns}) AS seen, i::INTEGER AS n`;
    await duckdb.query(
      connection,
      `COPY (SELECT ${itemsToWrite(own)} FROM (${rows} FROM range(${ROWS}) t(i))) TO ${quoteText(path)} (${options})`,
    );
    const [end] = await runSql(
      duckdb,
      connection,
      `SELECT max(data_page_offset + total_compressed_size) FROM parquet_metadata(${quoteText(path)}) WHERE row_group_id < 3`,
    );
    const bytes = readFileSync(path);
    bytes.fill(0xff, 4, Number(end?.[0]));
    writeFileSync(path, bytes);
    return path;
  }

  async function countFrom(path: string, changed: Partial<ResolvedTable>, column: string, finer: readonly string[]) {
    const fromNs = START_NS + 9_000n * 1_000n - 1n;
    const extent = { id: "e", format: "parquet", formatVersion: 2, rows: ROWS, minAtNs: START_NS, path } as const;
    const inNanoseconds = finer.length === 0 ? {} : { inNanoseconds: finer };
    const columns = layout.columns.map(({ name }) => name);
    const table: ResolvedTable = {
      name: "t",
      columns: layout.columns,
      needed: undefined,
      bareRows: 0,
      extents: [{ ...extent, columns, ...inNanoseconds }],
      ...changed,
    };
    const rows = tableQuery(table, scans);
    const sql = `SELECT count(n) FROM (${rows}) AS t WHERE t."${column}" >= make_timestamp_ns(${fromNs})`;
    return await runSql(duckdb, connection, sql);
  }

  test("are not read for the extremes that the footer has", async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) => row(n, START_NS + BigInt(n) * 1_000n, null));
    await harness.addTable("default", "t", COLUMNS, [{ format: "parquet", columns: COLUMNS, rows }]);
    const file = harness.path("default/t/0.parquet");
    const bytes = readFileSync(file);
    const footerBytes = bytes.readUInt32LE(bytes.length - 8);
    writeFileSync(file, bytes.fill(0xff, 4, bytes.length - 8 - footerBytes));
    const sql = "SELECT epoch_ns(min(at)) AS a, epoch_us(max(at)) AS b, count(*) AS n FROM t";
    const last = START_NS / 1_000n + 4_999n;
    expect(await harness.rows(sql)).toEqual([{ a: Number(START_NS), b: Number(last), n: 5_000 }]);
    await expect(harness.rows("SELECT sum(n) FROM t")).rejects.toThrow(EngineError);
  });

  test("are told apart by the first rows found so far", async () => {
    const rows = [row(1, START_NS, null), row(2, START_NS + 1_000n, null)];
    const finer = [row(1, START_NS + 1n, null)];
    await harness.addTable("default", "t", COLUMNS, [
      { format: "parquet", columns: COLUMNS, rows },
      { format: "parquet", columns: COLUMNS, rows: finer },
    ]);
    for (const order of ["at", "at DESC", "l.at, n"]) {
      const [plan] = await harness.rows(`EXPLAIN SELECT * FROM t AS l WHERE n > 0 ORDER BY ${order} LIMIT 1`);
      expect(String(plan?.["explain_value"]).match(/Dynamic Filter/g)).toHaveLength(2);
    }
  });

  test.each(["at", "seen"])("outside the bounds of %s are not read", async (column) => {
    const path = await damaged(new Set());
    const bounds = [{ column, minNs: START_NS + 9_000n * 1_000n - 1n }];
    expect(await countFrom(path, { bounds }, column, [])).toEqual([["1000"]]);
    await expect(countFrom(path, {}, column, [])).rejects.toThrow(/Error/);
  });

  test("are left out by the query's own comparison with nanoseconds", async () => {
    const path = await damaged(new Set(["at", "seen"]));
    expect(await countFrom(path, {}, "seen", ["at", "seen"])).toEqual([["1000"]]);
  });
});
