import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ANONYMOUS } from "../../auth/caller.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import type { ColumnSpec, ExtentFormat } from "../../format/types.ts";
import type { FixtureRow } from "../../io/duckdb/tlm.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";
import { explore, type Exploration, type Explored } from "./explore.ts";

/** What an exploration counts, beside what plain queries give, and what a condition cannot reach. */

let harness: QueryHarness;
beforeAll(() => {
  harness = createQueryHarness();
});
afterAll(() => harness.close());

type Asked = Partial<Exploration> & Pick<Exploration, "table">;

function exploring(asked: Asked, { service, catalog } = harness): Promise<Explored> {
  const all = { fromNs: -(2n ** 62n), toNs: 2n ** 62n, language: "sql", facets: [], fields: [] } as const;
  const who = { caller: ANONYMOUS, database: "default", requestId: "test", signal: new AbortController().signal };
  return explore({ query: service, catalog: catalog as Catalog }, { ...who, ...all, ...asked });
}

async function failure(asked: Asked, of = harness): Promise<EngineError> {
  const error: unknown = await exploring(asked, of).then(
    () => new Error(`${JSON.stringify(asked.where)} was answered`),
    (reason: unknown) => reason,
  );
  if (error instanceof EngineError) return error;
  throw error;
}

const column = (name: string, kind: "timestamp" | "string" | "long" | "real" | "bool" | "dynamic"): ColumnSpec => {
  return { name, type: { kind } };
};

const COLUMNS = [
  column("at", "timestamp"),
  column("level", "string"),
  column("n", "long"),
  column("r", "real"),
  column("b", "bool"),
  column("seen", "timestamp"),
  column("props", "dynamic"),
  column('we"ird.näme', "string"),
];

/** Values that few rows have in common, with those that are lost where a count goes through a double or a text. */
const VALUES = {
  at: fc.oneof(fc.bigInt({ min: -20n, max: 20n }), fc.bigInt({ min: 1_000_000_000n, max: 1_000_000_004n })),
  level: fc.constantFrom(null, "a", "b", "", "O'Neil", 'say "hi"', "日本", "nul"),
  n: fc.constantFrom(null, 0n, 1n, -1n, 9_007_199_254_740_993n, 9_007_199_254_740_992n, -(2n ** 63n)),
  r: fc.constantFrom(null, Number.NaN, Infinity, -Infinity, 0.1, 1e300),
  b: fc.constantFrom(null, true, false),
  seen: fc.constantFrom(null, 0n, 1n, 1_700_000_000_123_456_789n),
  props: fc.constantFrom(
    null,
    "{}",
    '{"user":{"id":1},"a/b":"x"}',
    '{"user":{"id":"1"}}',
    '{"user":{"id":null},"user.id":5}',
    '{"user":"alice","~":[1,2]}',
    "[1,2]",
    '"text"',
  ),
  'we"ird.näme': fc.constantFrom(null, "x", "y"),
};

const extent = fc.record({
  format: fc.constantFrom<ExtentFormat>("tlm", "parquet"),
  rows: fc.array(fc.record(VALUES), { minLength: 1, maxLength: 12 }),
});

type Matching = { ns: bigint; values: Record<string, string | null> };

/** The rows that match, by a plain query: values as texts, times as nanoseconds. */
async function matching(table: string, range: { fromNs: bigint; toNs: bigint }, where: string): Promise<Matching[]> {
  const fields = ["level", "n", "r", "b", "props", '"we""ird.näme"'].map((name) => `CAST(${name} AS VARCHAR)`);
  const paths = ["/user/id", "/user.id", "/a~1b", "/user"].map((path) => `json_extract_string(props, '${path}')`);
  const items = ["CAST(epoch_ns(at) AS VARCHAR)", "CAST(epoch_ns(seen) AS VARCHAR)", ...fields, ...paths];
  const listed = items.map((item, i) => `${item} AS c${i}`).join(", ");
  const bounds = `epoch_ns(at) >= ${range.fromNs} AND epoch_ns(at) < ${range.toNs}`;
  const rows = await harness.rows(`SELECT ${listed} FROM ${table} WHERE ${bounds} AND (${where})`);
  const names = ["ns", "seen", "level", "n", "r", "b", "props", 'we"ird.näme', "id", "flat", "slash", "user"];
  return rows.map((row) => {
    const values = Object.fromEntries(names.map((name, i) => [name, row[`c${i}`] as string | null]));
    return { ns: BigInt(values["ns"] ?? ""), values };
  });
}

function countsOf(rows: readonly Matching[], name: string): Map<string | null, number> {
  const counts = new Map<string | null, number>();
  for (const { values } of rows) counts.set(values[name] ?? null, (counts.get(values[name] ?? null) ?? 0) + 1);
  return counts;
}

const FACETS = [
  ["level", "level"],
  ["n", "n"],
  ["r", "r"],
  ["b", "b"],
  ["props", "props"],
  ['WE"ird.näme', 'we"ird.näme'],
  ["props.user.id", "id"],
  [["props", "user.id"], "flat"],
  [["props", "a/b"], "slash"],
  ["props.user", "user"],
] as const;

describe("an exploration counts what plain queries count", () => {
  let tables = 0;
  const conditions = fc.constantFrom(
    ...([
      ["sql", undefined, "true"],
      ["sql", "n > 0 OR level IS NULL", "n > 0 OR level IS NULL"],
      ["sql", "props->>'$.user.id' = '1' -- the rest", "props->>'$.user.id' = '1'"],
      ["sql", "r > 0 AND (b OR n < 0)", "r > 0 AND (b OR n < 0)"],
      ["sql", "false", "false"],
      ["kql", "n > 0 // the rest", "n > 0"],
      ["kql", 'level in ("a", "b") and b == true', "level IN ('a', 'b') AND b"],
      ["kql", "tostring(props.user.id) == '1'", "props->>'$.user.id' = '1'"],
    ] as const),
  );
  const edge = fc.bigInt({ min: -25n, max: 25n });

  test("over any rows in any mix of formats", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(extent, { minLength: 1, maxLength: 3 }),
        conditions,
        fc.record({
          from: edge,
          to: fc.oneof(edge, fc.constant(2_000_000_000n)),
          buckets: fc.integer({ min: 1, max: 30 }),
        }),
        fc.integer({ min: 1, max: 4 }),
        async (extents, [language, where, sql], { from, to, buckets }, values) => {
          fc.pre(from < to);
          const table = `random_${tables++}`;
          const stored = extents.map(({ format, rows }) => ({ format, columns: COLUMNS, rows: rows as FixtureRow[] }));
          await harness.addTable("default", table, COLUMNS, stored);
          const range = { fromNs: from, toNs: to };
          const expected = await matching(table, range, sql);
          const histogram = { buckets, by: "level", values };
          const facets = FACETS.map(([field]) => ({ field, values }));
          const fields = FACETS.map(([field]) => field);
          const found = await exploring({ table, ...range, language, where, histogram, facets, fields });
          expect(found.rows).toBe(expected.length);
          for (const [i, [field, name]] of FACETS.entries()) {
            const counts = countsOf(expected, name);
            const nulls = counts.get(null) ?? 0;
            counts.delete(null);
            const own = found.facets[i];
            expect([field, own?.nulls, own?.distinct, own?.rows]).toEqual([
              field,
              nulls,
              counts.size,
              expected.length - nulls,
            ]);
            expect(found.fields[i]?.rows).toBe(expected.length - nulls);
            const most = [...counts.values()].toSorted((a, b) => b - a).slice(0, values);
            expect([field, own?.values.map(({ rows }) => rows)]).toEqual([field, most]);
            for (const { value, rows } of own?.values ?? [])
              expect([field, value, counts.get(value)]).toEqual([field, value, rows]);
          }
          const { stepNs, by, buckets: bars } = found.histogram ?? { stepNs: 1n, by: undefined, buckets: [] };
          expect(bars.length).toBeLessThanOrEqual(buckets);
          for (const { fromNs, rows, series } of bars) {
            const inside = expected.filter(({ ns }) => ns >= fromNs && ns < fromNs + stepNs);
            expect([fromNs, rows]).toEqual([fromNs, inside.length]);
            const levels = countsOf(inside, "level");
            expect([fromNs, series]).toEqual([fromNs, by?.series.map(({ value }) => levels.get(value) ?? 0)]);
          }
          const levels = countsOf(expected, "level");
          for (const { value, rows } of by?.series ?? []) expect([value, levels.get(value)]).toEqual([value, rows]);
          expect(by?.series.length).toBe(Math.min(values, levels.size));
        },
      ),
      { numRuns: 30 },
    );
  }, 240_000);

  test("with times, keys of objects, and values that are cut", async () => {
    const props = ['{"user":{"id":1,"né":2},"a":1}', '{"user":"alice"}', '{"user":{"id":2}}', null];
    const rows = props.map((own, i) => ({
      at: 1_700_000_000_000_000_001n + BigInt(i % 2),
      level: "x".repeat(1_200),
      props: own,
    }));
    await harness.addTable("default", "shapes", COLUMNS, [{ format: "parquet", columns: COLUMNS, rows }]);
    const found = await exploring({
      table: "SHAPES",
      facets: [
        { field: "at", values: 5 },
        { field: "level", values: 1 },
      ],
      fields: ["props", "props.user", "level"],
    });
    expect(found.facets[0]?.values).toEqual([
      { value: "2023-11-14T22:13:20.000000001Z", rows: 2 },
      { value: "2023-11-14T22:13:20.000000002Z", rows: 2 },
    ]);
    expect(found.facets[1]?.values).toEqual([{ value: "x".repeat(1_000), rows: 4, cut: true }]);
    expect(found.fields.map(({ rows: own, keys }) => [own, keys])).toEqual([
      [
        3,
        {
          distinct: 2,
          values: [
            { value: "user", rows: 3 },
            { value: "a", rows: 1 },
          ],
        },
      ],
      [
        3,
        {
          distinct: 2,
          values: [
            { value: "id", rows: 2 },
            { value: "né", rows: 1 },
          ],
        },
      ],
      [4, undefined],
    ]);
    expect(found.histogram).toBeUndefined();
  });

  test("over the widest table there can be", async () => {
    const wide = [column("at", "timestamp"), ...Array.from({ length: 1_999 }, (_, i) => column(`c${i}`, "long"))];
    const rows = Array.from({ length: 20 }, (_, r) =>
      Object.fromEntries([
        ["at", BigInt(r)],
        ...Array.from({ length: 1_999 }, (_, i) => [`c${i}`, i % (r + 1) === 0 ? BigInt(i % 3) : null] as const),
      ]),
    );
    await harness.addTable("default", "wide", wide, [
      { format: "tlm", columns: wide, rows: rows.slice(0, 10) },
      { format: "parquet", columns: wide, rows: rows.slice(10) },
    ]);
    const names = wide.map(({ name }) => name);
    const facets = names.slice(1, 21).map((field) => ({ field, values: 3 }));
    const found = await exploring({
      table: "wide",
      fromNs: 0n,
      toNs: 20n,
      fields: names,
      facets,
      histogram: { buckets: 20, values: 5, by: "c6" },
    });
    const present = names.map((name) => rows.filter((row) => row[name] !== null).length);
    expect(found.fields.map((one) => one.rows)).toEqual(present);
    expect(found.facets.map((one) => one.rows)).toEqual(present.slice(1, 21));
    expect(found.histogram?.buckets.map((one) => one.rows)).toEqual(rows.map(() => 1));
  }, 120_000);

  test("over no row at all, and over the whole range of times", async () => {
    await harness.addTable(
      "default",
      "ends",
      [column("at", "timestamp")],
      [{ format: "tlm", columns: [column("at", "timestamp")], rows: [{ at: -(2n ** 62n) }, { at: 2n ** 62n }] }],
    );
    const ends = { table: "ends", histogram: { buckets: 2, values: 1 } };
    const whole = await exploring({
      ...ends,
      fromNs: -(2n ** 63n) + 2n,
      toNs: 2n ** 63n - 2n,
      histogram: { buckets: 900, values: 1 },
    });
    expect(whole.rows).toBe(2);
    expect(whole.histogram?.buckets.reduce((sum, { rows }) => sum + rows, 0)).toBe(2);
    const none = await exploring({
      ...ends,
      fromNs: 0n,
      toNs: 10n,
      facets: [{ field: "at", values: 2 }],
      fields: ["at"],
    });
    expect(none).toMatchObject({
      rows: 0,
      facets: [{ rows: 0, nulls: 0, distinct: 0, values: [] }],
      fields: [{ rows: 0 }],
    });
    expect(none.histogram?.buckets.map(({ rows }) => rows)).toEqual([0, 0]);
  });
});

describe("a condition", () => {
  beforeAll(async () => {
    const columns = [column("at", "timestamp"), column("level", "string"), column(`engine_condition_0`, "string")];
    const rows = [
      { at: 1n, level: "a", engine_condition_0: "own" },
      { at: 2n, level: "b", engine_condition_0: "own" },
    ];
    await harness.addTable("default", "events", columns, [{ format: "parquet", columns, rows }]);
    await harness.addTable("default", "secret-1", columns, [{ format: "parquet", columns, rows }]);
    await harness.addTable("other", "hidden", columns, [{ format: "parquet", columns, rows }]);
  });

  test("may say what changes, as of now", async () => {
    expect((await exploring({ table: "events", where: "at < now() AND random() >= 0" })).rows).toBe(2);
    expect((await exploring({ table: "events", where: "at < now() and rand() >= 0", language: "kql" })).rows).toBe(2);
  });

  test.each([
    ["true) UNION ALL SELECT 1 FROM events WHERE (true"],
    ["true) GROUP BY ALL HAVING (true"],
    ["true) ORDER BY (level"],
    ["true) LIMIT (1"],
    ["true); SELECT (1"],
    ["true); COPY events TO '/tmp/x"],
    ["true) -- "],
    ["true /*"],
    ["(SELECT count(*) FROM events) > 0"],
    ["level IN (SELECT level FROM other.hidden)"],
    ["EXISTS (FROM system.tables)"],
    ["EXISTS (FROM 'x.parquet')"],
    ["level IN (FROM read_text('/etc/passwd'))"],
    ["level = current_setting('threads')"],
    ["level = getenv('HOME')"],
    ["row_number() OVER () = 1"],
    ["count(*) > 1"],
    ["sum(1) OVER () > 1"],
    ["COLUMNS(*) = 'a'"],
    ["level = $1"],
    ["level = ?"],
    ["other.hidden.level = 'a'"],
    ["system.tables.name = 'a'"],
    ["unnest([true])"],
    ["level = 'a', true"],
    ["nothing = 1"],
    ["true AS level"],
    [""],
    [" -- nothing"],
  ])("in SQL is one expression over the table: %s", async (where) => {
    const { code } = await failure({ table: "events", where });
    expect(["invalid_query", "parse_error", "execution_error"]).toContain(code);
  });

  test.each([
    ['level == "a") or (true'],
    ["true) | where (true"],
    ["true) | project level | where (true"],
    ["true) | union (events"],
    ["true) | take (1"],
    ["true); events | where (true"],
    ["true) // "],
    ["level in ((events | project level))"],
    ['level in ((["secret-1"] | project level))'],
    ['level in ((database("other").hidden | project level))'],
    ['level in ((table("hidden") | project level))'],
    ["toscalar(events | count) > 1"],
    ["toscalar(print 1) == 1"],
    ["count() > 1"],
    ["row_number() == 1"],
    ["nothing == 1"],
    ["level"],
    ["true); let x = (1"],
  ])("in KQL is one expression over the table: %s", async (where) => {
    const error = await failure({ table: "events", where, language: "kql" });
    expect([where, ["invalid_query", "parse_error"].includes(error.code)]).toEqual([where, true]);
  });

  test("that closes a parenthesis and opens another is still within the range", async () => {
    const asked = { table: "events", where: "level = 'a') OR (1 = 1", fields: ["level"] };
    expect((await exploring(asked)).rows).toBe(2);
    const bounded = await exploring({ ...asked, fromNs: 0n, toNs: 2n });
    expect([bounded.rows, bounded.fields[0]?.rows]).toEqual([1, 1]);
  });

  test("says where it is wrong, as it was written", async () => {
    const sql = await failure({ table: "events", where: "level = 'a'\n AND leve = 'b'" });
    expect([sql.code, sql.details.line, sql.details.column, sql.details.suggestion]).toEqual([
      "invalid_query",
      2,
      6,
      "level",
    ]);
    const kql = await failure({ table: "events", where: "level == 'a'\n and leve == 'b'", language: "kql" });
    expect([kql.code, kql.details.line, kql.details.column]).toEqual(["invalid_query", 2, 6]);
  });

  test("is not what stands for it in our query, whatever a column is called", async () => {
    const facets = [{ field: "engine_condition_0", values: 3 }];
    const found = await exploring({ table: "events", where: "level = 'a'", facets });
    expect(found.facets[0]?.values).toEqual([{ value: "own", rows: 1 }]);
  });

  test.each([
    ["nothing", /there is no column "nothing"/],
    ["leve", /did you mean "level"/],
    ["level.x", /only dynamic columns have fields/],
    ['level" FROM other.hidden --', /there is no column/],
    ["x'); DROP TABLE events; --", /there is no column/],
  ])("has no part in what a field is called: %s", async (field, message) => {
    const error = await failure({ table: "events", fields: [field] });
    expect([error.code, error.message]).toEqual(["invalid_parameter", expect.stringMatching(message)]);
  });

  test("names of keys are literals, whatever is in them", async () => {
    const columns = [column("at", "timestamp"), column("d", "dynamic")];
    const keys = ["it's", 'a"b', "a.b", "/", "~1", "", "*", "$", "é", "\\", "'); --", "0", " ", "💥"];
    const rows = keys.map((own, i) => ({ at: BigInt(i), d: JSON.stringify({ [own]: i }) }));
    await harness.addTable("default", "keyed", columns, [{ format: "tlm", columns, rows }]);
    const fields = keys.map((own) => ["d", own] as const);
    const facets = fields.map((field) => ({ field, values: 20 }));
    const found = await exploring({ table: "keyed", facets, fields });
    expect(found.facets.map(({ rows: n, values }) => [n, values])).toEqual(
      keys.map((_, i) => [1, [{ value: String(i), rows: 1 }]]),
    );
    expect(found.fields.map(({ rows: n }) => n)).toEqual(keys.map(() => 1));
  });
});

describe("who may not use a database", () => {
  const caller = { ...ANONYMOUS, databases: ["default"] };
  test("is told the same of it and of none", async () => {
    const hidden = await failure({ table: "hidden", database: "other", caller });
    const absent = await failure({ table: "hidden", database: "absent", caller });
    expect([hidden.code, hidden.message.replace("other", "absent")]).toEqual([absent.code, absent.message]);
    expect((await exploring({ table: "events", caller })).rows).toBe(2);
  });
});

describe("where the budget of bytes is too small", () => {
  for (const local of [true, false]) {
    test(`a part of the extents is counted, and the answer says so; ${local ? "in place" : "through the cache"}`, async () => {
      const own = createQueryHarness({ local });
      try {
        const columns = [column("at", "timestamp"), column("level", "string")];
        const extents = Array.from({ length: 20 }, (_, e) => ({
          format: "tlm" as const,
          columns,
          rows: Array.from({ length: 50 }, (__, r) => ({ at: BigInt(e * 50 + r), level: `l${r % 5}` })),
        }));
        await own.addTable("default", "t", columns, extents);
        const asked = {
          table: "t",
          facets: [{ field: "level", values: 5 }],
          fields: ["level"],
          histogram: { buckets: 20, values: 1 },
        };
        const exact = await exploring(asked, own);
        expect([exact.rows, exact.sample]).toEqual([1_000, undefined]);
        // Of what is in the cache nothing is asked of the store.
        const fresh = createQueryHarness({ local });
        try {
          await fresh.addTable("default", "t", columns, extents);
          const found = await exploring({ ...asked, budget: { objectStoreBytes: 12_000 } }, fresh);
          const { extentsRead = 0, rowsRead = 0, ...total } = found.sample ?? {};
          expect(total).toEqual({ extentsTotal: 20, rowsTotal: 1_000 });
          expect(extentsRead).toBeGreaterThan(0);
          expect(extentsRead).toBeLessThan(20);
          expect(rowsRead).toBe(extentsRead * 50);
          // Exact for what was read, and never scaled up.
          expect(found.rows).toBe(rowsRead);
          expect(found.facets[0]?.values.map(({ rows }) => rows)).toEqual([1, 2, 3, 4, 5].map(() => rowsRead / 5));
          expect(found.fields[0]?.rows).toBe(rowsRead);
          expect(found.histogram?.buckets.reduce((sum, { rows }) => sum + rows, 0)).toBe(rowsRead);
        } finally {
          await fresh.close();
        }
        const none = createQueryHarness({ local });
        try {
          await none.addTable("default", "t", columns, extents);
          const error = await failure({ ...asked, budget: { objectStoreBytes: 10 } }, none);
          expect([error.code, error.details.budget?.name]).toEqual(["budget_exceeded", "object_store_bytes"]);
        } finally {
          await none.close();
        }
      } finally {
        await own.close();
      }
    }, 120_000);
  }
});
