import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ApiError } from "../../base/api-error.ts";
import { parseExactly } from "../../base/exact-number.ts";
import { messageOf } from "../../base/log-fields.ts";
import { countsRequest, type HistogramCounts } from "./counts.ts";
import { countedFields, fieldItems, fieldProblem, fieldTitle, levelColumn, MOST_DYNAMIC } from "./fields.ts";
import {
  areFields,
  areFilters,
  conditionProblem,
  conditionSql,
  filterSql,
  withFilter,
  type Filter,
} from "./filters.ts";
import { chartOf, seriesOf, stepTitle } from "./histogram.tsx";
import { momentsOfBar } from "./histogram-table.tsx";
import { before1ns, readPage, type Row } from "./paging.ts";
import { placedInCondition } from "./place.ts";
import { PAGE_ROWS, rowsSql } from "./queries.ts";
import { shareOf, shortCount } from "./sample-note.tsx";
import { readServerEvents } from "./server-events.ts";
import { prepared, raw, sql, written } from "./sql.ts";
import { TailBuffer } from "./tail-buffer.ts";
import { groupsOf } from "./tail-view.tsx";
import { jsonOf } from "./values.ts";

const COLUMNS = [
  { name: "at", type: "timestamp" },
  { name: "level", type: "string" },
  { name: "body", type: "string" },
  { name: "ms", type: "long" },
  { name: "ctx", type: "dynamic" },
];
const filter = (column: string, op: Filter["op"], value = "", keys: string[] = []): Filter => ({
  column,
  keys,
  op,
  value,
});

const HOUR = { fromMs: 0, toMs: 3_600_000 };

const literal = (text: string) => `'${text.split("'").join("''")}'`;

describe("SQL", () => {
  test("values are parameters, the same one once", () => {
    expect(prepared(sql`a = ${"x"} AND b = ${"y"} AND c = ${"x"}`)).toEqual({
      query: "a = $p1 AND b = $p2 AND c = $p1",
      params: { p1: "x", p2: "y" },
    });
  });

  test("no value is in the text that is sent, and literals end where they should", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (column, key, value) => {
        const text = filterSql(filter(column, "=", value, [key]), COLUMNS);
        const { query, params } = prepared(text);
        const name = `"${column.replaceAll('"', '""')}"`;
        const last = Object.keys(params).at(-1) ?? "";
        expect(query).toBe(`(${name}->>$p1) = $${last}`);
        expect(params[last]).toBe(value);
        expect(written(text)).toBe(`(${name}->>${literal(params["p1"] ?? "")}) = ${literal(value)}`);
      }),
    );
  });

  test.each([
    [filter("level", "=", "it's"), `"level" = 'it''s'`],
    [filter("level", "!=", "a"), `"level" IS DISTINCT FROM 'a'`],
    [filter("ms", ">", "5"), `"ms" > '5'`],
    [filter("body", "<", "5"), `TRY_CAST("body" AS DOUBLE) < TRY_CAST('5' AS DOUBLE)`],
    [filter("ctx", "contains", "A"), `contains(lower(CAST("ctx" AS VARCHAR)), lower('A'))`],
    [filter("ctx", "=", "{}"), `CAST("ctx" AS VARCHAR) = '{}'`],
    [filter("ctx", "exists", "", ["a/b", "~c"]), `("ctx"->>'/a~1b/~0c') IS NOT NULL`],
    [filter("x", "missing"), `"x" IS NULL`],
  ])("%j", (one, expected) => {
    expect(written(filterSql(one, COLUMNS))).toBe(expected);
  });

  test("a condition is one, whatever comment ends it", () => {
    const condition = conditionSql([filter("ms", ">", "1")], "a = 1 -- more", COLUMNS);
    expect(condition && written(condition)).toBe(`(\na = 1 -- more\n) AND "ms" > '1'`);
    expect(conditionSql([], "  ", COLUMNS)).toBeUndefined();
  });

  test.each([
    ["1=1) OR (1=1", "A closing bracket has no opening bracket."],
    ["(a", "A bracket does not close."],
    ["a = 'x", "A quote or a comment does not end."],
    ["a; b", "Remove the semicolon: this takes one condition."],
    ["a = ');' AND b = \"(\" -- )", undefined],
  ])("what is wrong with %j", (text, problem) => {
    expect(conditionProblem(text)).toBe(problem);
  });

  test("rows are bounded by the range", () => {
    const scope = { table: "e", columns: COLUMNS, moments: HOUR, condition: raw("x"), run: 0 };
    expect(written(rowsSql(scope))).toBe(
      `SELECT * FROM "e" WHERE "at" >= '1970-01-01T00:00:00.000Z' AND "at" < '1970-01-01T01:00:00.000Z' AND x ORDER BY "at" DESC LIMIT ${PAGE_ROWS}`,
    );
  });
});

describe("filters", () => {
  test("a filter takes the place of its opposite", () => {
    const all = withFilter([filter("level", "=", "a"), filter("ms", ">", "1")], filter("level", "!=", "a"));
    expect(all).toEqual([filter("ms", ">", "1"), filter("level", "!=", "a")]);
  });

  test("an address may bring anything", () => {
    expect(areFilters([filter("a", "=", "b", ["c"])])).toBe(true);
    for (const bad of [
      {},
      [null],
      [{ column: "a", keys: [1], op: "=", value: "" }],
      [{ column: "a", keys: [], op: "OR 1", value: "" }],
    ]) {
      expect(areFilters(bad)).toBe(false);
    }
  });
});

test("columns that are known by their names", () => {
  expect([levelColumn(COLUMNS), messageOf(COLUMNS)?.name]).toEqual(["level", "body"]);
});

describe("counts", () => {
  const path = (column: string, ...keys: string[]) => ({ column, keys });
  const scope = { table: "e", columns: COLUMNS, moments: HOUR, condition: undefined, run: 0 };

  test("one request names everything, and leaves out what the table cannot count", () => {
    const condition = conditionSql([filter("level", "=", "it's")], "ms > 1", COLUMNS);
    const facets = [path("level"), path("gone"), path("ctx", "a.b"), path("ms", "x")];
    const open = [path("ctx", "user"), path("body", "x")];
    expect(countsRequest("db", { ...scope, condition }, { by: "level", facets, open })).toEqual({
      database: "db",
      table: "e",
      from: "1970-01-01T00:00:00.000Z",
      to: "1970-01-01T01:00:00.000Z",
      where: `(\nms > 1\n) AND "level" = 'it''s'`,
      language: "sql",
      histogram: { buckets: 60, by: ["level"], values: 7 },
      facets: [
        { field: ["level"], values: 10 },
        { field: ["ctx", "a.b"], values: 10 },
      ],
      fields: [["ctx"], ["ctx", "user"], ["at"], ["level"], ["body"], ["ms"]],
    });
    const all = countsRequest("db", scope, { by: undefined, facets: [], open: [] });
    expect(Object.keys(all)).not.toContain("where");
    expect(all["histogram"]).toEqual({ buckets: 60 });
  });

  test.each([
    [path("level"), undefined],
    [path("ctx", "a", ""), undefined],
    [path("gone"), "The table has no column gone."],
    [path("v"), "The values of vectors are not counted."],
    [path("ms", "x"), "ms is of type long: only dynamic columns have fields."],
    [path("ctx", "a\0"), "The keys of this field are too long, too deep or not Unicode text."],
    [path("ctx", "\ud800"), "The keys of this field are too long, too deep or not Unicode text."],
    [
      path("ctx", ...Array.from({ length: 32 }, () => "k")),
      "The keys of this field are too long, too deep or not Unicode text.",
    ],
  ])("whether %j can be counted", (field, problem) => {
    expect(fieldProblem(field, [...COLUMNS, { name: "v", type: "vector(3)" }])).toBe(problem);
  });

  test("vectors are not read to be counted, and fields with keys are as few as the server takes", () => {
    const columns = [{ name: "v", type: "vector(3)" }, ...COLUMNS];
    const open = Array.from({ length: 30 }, (_, i) => path("ctx", `k${i}`));
    const counted = countedFields(columns, open);
    expect(counted.filter(({ column }) => column === "ctx")).toHaveLength(MOST_DYNAMIC);
    expect(counted.map(({ column }) => column)).not.toContain("v");
  });

  test("keys stand under what they are in, with what is not listed", () => {
    const counts = new Map([
      [
        '["ctx"]',
        {
          rows: 9,
          keys: {
            distinct: 300,
            values: [
              { key: "user", rows: 8 },
              { key: "id", rows: 7 },
            ],
          },
        },
      ],
      ['["ctx","user"]', { rows: 8, keys: { distinct: 1, values: [{ key: "name", rows: 6 }] } }],
      ['["ctx","id"]', { rows: 7, keys: { distinct: 0, values: [] } }],
    ]);
    const items = fieldItems(COLUMNS.slice(3), [path("ctx", "user"), path("ctx", "id")], counts);
    const shown = items.map((item) => [fieldTitle(item.field), "note" in item ? item.note : item.rows]);
    expect(shown).toEqual([
      ["ms", undefined],
      ["ctx", 9],
      ["ctx.user", 8],
      ["ctx.user.name", 6],
      ["ctx.id", 7],
      ["ctx.id", "No keys inside."],
      ["ctx", "298 rarer keys not listed."],
    ]);
  });

  test("the place of a failure is one in the condition that was typed", async () => {
    const failure = async (details: { line?: number; column?: number }) => {
      const error = new ApiError(400, { code: "parse_error", message: "no", ...details });
      return await placedInCondition(Promise.reject(error)).catch((one: unknown) => (one as ApiError).details);
    };
    const said = { code: "parse_error", message: "no" };
    expect(await failure({ line: 2, column: 7 })).toEqual({ ...said, line: 1, column: 7 });
    expect(await failure({ line: 1, column: 7 })).toEqual(said);
    expect(await failure({})).toEqual(said);
    expect(await placedInCondition(Promise.resolve(1))).toBe(1);
  });

  test("a count of a sample is a lower bound, so it is not rounded", () => {
    const sample = { rows_read: 1, rows_total: 2, extents_read: 1, extents_total: 2 };
    expect([shortCount(12_260, undefined), shortCount(12_260, sample)]).toEqual(["12.3K", "≥ 12,260"]);
  });

  test("an address may bring any fields, but not more than are counted", () => {
    expect(areFields([path("a", "b")], 1)).toBe(true);
    expect(areFields([path("a"), path("b")], 1)).toBe(false);
    expect(areFields([{ column: "a" }], 1)).toBe(false);
  });

  test.each([
    [1, 3, "33%"],
    [0, 3, "0%"],
    [0, 0, "0%"],
    [1, 1_000, "less than 1%"],
    [999, 1_000, "more than 99%"],
    [3, 3, "100%"],
  ])("the share of a sample: %i of %i", (part, whole, share) => {
    expect(shareOf(part, whole)).toBe(share);
  });
});

test("large numbers keep their digits", () => {
  const text = '{"a":9007199254740993,"b":[1,"x",null,true]}';
  expect(jsonOf(parseExactly(text))).toBe(text);
});

describe("pages", () => {
  const time = (n: number) => new Date(n * 1_000).toISOString();
  const reader = (times: readonly number[]) => (where: { upTo?: string; at?: string }, limit: number) => {
    const found = times
      .map((n, id): Row => ({ at: time(n), id }))
      .filter(({ at }) => String(at) <= (where.upTo ?? "9") && (where.at === undefined || at === where.at));
    return Promise.resolve(found.sort((a, b) => String(b["at"]).localeCompare(String(a["at"]))).slice(0, limit));
  };

  test("all rows come, each once, however many have one time", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 900 }), { maxLength: 6 }), async (sizes) => {
        const times = sizes.flatMap((size, i) => Array.from({ length: size }, () => i));
        const ids: unknown[] = [];
        let upTo: string | undefined;
        do {
          const page = await readPage(reader(times), upTo);
          ids.push(...page.rows.map(({ id }) => id));
          upTo = page.older;
        } while (upTo !== undefined);
        expect(new Set(ids).size).toBe(times.length);
        expect(ids).toHaveLength(times.length);
      }),
      { numRuns: 30 },
    );
  });

  test("a time of too many rows says so", async () => {
    const { rows, cutAt } = await readPage(reader(Array.from({ length: 6_000 }, () => 7)));
    expect([rows.length, cutAt]).toEqual([5_000, time(7)]);
  });

  test("a nanosecond earlier", () => {
    expect(before1ns("2026-01-02T03:04:05.5Z")).toBe("2026-01-02T03:04:05.499999999Z");
    expect(before1ns("2026-01-01T00:00:00Z")).toBe("2025-12-31T23:59:59.999999999Z");
  });
});

describe("histogram", () => {
  const bucket = (second: number, rows: number, by?: number[]) => ({
    from: `1970-01-01T00:00:${second}.000000000Z`,
    rows,
    ...(by && { by }),
  });
  const split: HistogramCounts = {
    step_ns: 1e9,
    by: {
      distinct: 5,
      series: [
        { value: "info", rows: 5 },
        { value: null, rows: 1 },
      ],
    },
    buckets: [bucket(10, 5, [5, 0]), bucket(11, 0, [0, 0]), bucket(12, 10, [0, 1])],
  };

  test("has all buckets, the most frequent value at the bottom, and others above all", () => {
    const { data, series, sums } = chartOf(split);
    expect(data).toEqual([
      [10.5, 11.5, 12.5],
      [0, 0, 9],
      [0, 0, 1],
      [5, 0, 0],
    ]);
    expect(series.map(({ title }) => title)).toEqual(["others", "no value", "info"]);
    expect(sums).toEqual([9, 1, 5]);
  });

  test("is one series where no value tells rows apart", () => {
    const whole = { ...split, by: null, buckets: [bucket(10, 5), bucket(11, 2)] };
    expect(seriesOf(whole)).toEqual([{ key: "rows", title: "rows", values: [5, 2], sum: 7 }]);
    const none = { ...split, by: { distinct: 0, series: [] }, buckets: [bucket(10, 0, [])] };
    expect(seriesOf(none).map(({ key, values }) => [key, values])).toEqual([["rows", [0]]]);
  });

  test("a bar as a range ends where the range does", () => {
    const range = { fromMs: 10_200, toMs: 12_700 };
    expect([0, 1, 2].map((i) => momentsOfBar(split.buckets, i, range))).toEqual([
      { fromMs: 10_200, toMs: 11_000 },
      { fromMs: 11_000, toMs: 12_000 },
      { fromMs: 12_000, toMs: 12_700 },
    ]);
  });

  test.each([
    [1e9, "second"],
    [15 * 60e9, "15 minutes"],
    [14 * 86_400e9, "2 weeks"],
    [20e3, "20 microseconds"],
    [5, "5 nanoseconds"],
  ])("%i nanoseconds are a %s", (stepNs, title) => {
    expect(stepTitle(stepNs)).toBe(title);
  });
});

describe("live tail", () => {
  const stream = (text: string, size: number) => {
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    return new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, (at += size)));
      },
    });
  };
  const TEXT =
    'id: 1.0\nretry: 1000\n\n: still here\n\nid: 1.1\r\ndata: {"a":"ü"}\r\n\r\nevent: end\ndata: {}\n\ndata: cut';

  test.each([1, 2, 3, 7, 1_000])("events that come in pieces of %i bytes", async (size) => {
    const events = [];
    for await (const some of readServerEvents(stream(TEXT, size))) events.push(...some);
    expect(events).toEqual([
      { id: "1.0", event: "message", data: undefined },
      { id: "1.1", event: "message", data: '{"a":"ü"}' },
      { id: undefined, event: "end", data: "{}" },
    ]);
  });

  const rows = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ n: from + i }));
  const shownOf = (buffer: TailBuffer) => buffer.shown.map((entry) => ("gap" in entry ? "gap" : entry.row["n"]));

  test("the newest are held", () => {
    const buffer = new TailBuffer(3);
    buffer.add(rows(0, 5));
    expect([shownOf(buffer), buffer.received]).toEqual([[2, 3, 4], 5]);
  });

  test("a pause moves nothing, and says what it lost", () => {
    const buffer = new TailBuffer(4);
    buffer.add(rows(0, 1));
    buffer.pause();
    const { shown } = buffer;
    buffer.add(rows(1, 2));
    expect([buffer.shown === shown, buffer.waiting]).toEqual([true, 2]);
    buffer.add(rows(3, 3));
    expect(buffer.waiting).toBe(5);
    buffer.resume();
    expect([shownOf(buffer), buffer.waiting]).toEqual([["gap", 2, 3, 4, 5], 0]);
    const roomy = new TailBuffer(2);
    roomy.pause();
    roomy.gap("why");
    roomy.resume();
    expect(shownOf(roomy)).toEqual(["gap"]);
  });

  test("groups have names of their own, and a mark parts them", () => {
    const buffer = new TailBuffer();
    buffer.add(rows(0, 120));
    buffer.gap("why");
    buffer.add(rows(120, 3));
    const groups = groupsOf(buffer.shown);
    expect(new Set(groups.map(({ key }) => key)).size).toBe(groups.length);
    const seen = groups.flatMap((group) => ("gap" in group ? ["gap"] : group.rows.map(({ row }) => row["n"])));
    expect(seen.slice(0, 5)).toEqual([122, 121, 120, "gap", 119]);
    expect(seen).toHaveLength(124);
  });
});
