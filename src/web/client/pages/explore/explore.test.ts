import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExactly } from "../../base/exact-number.ts";
import { messageOf } from "../../base/log-fields.ts";
import { fieldTitle, levelColumn, nestedFields } from "./fields.ts";
import { areFilters, conditionProblem, conditionSql, filterSql, withFilter, type Filter } from "./filters.ts";
import { chartOf } from "./histogram.tsx";
import { before1ns, readPage, type Row } from "./paging.ts";
import { bucketsOf, histogramSql, LEVEL_VALUES, PAGE_ROWS, rowsSql } from "./queries.ts";
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
    expect(condition && written(condition)).toBe(`"ms" > '1' AND (\na = 1 -- more\n)`);
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

  test("rows and histograms are bounded by the range", () => {
    const scope = { table: "e", columns: COLUMNS, moments: { fromMs: 0, toMs: 3_600_000 }, condition: raw("x") };
    expect(written(rowsSql(scope))).toBe(
      `SELECT * FROM "e" WHERE "at" >= '1970-01-01T00:00:00.000Z' AND "at" < '1970-01-01T01:00:00.000Z' AND x ORDER BY "at" DESC LIMIT ${PAGE_ROWS}`,
    );
    const buckets = bucketsOf(scope.moments, "utc");
    expect(buckets).toEqual({ stepMs: 120_000, shiftMs: 0, first: 0, last: 29 });
    expect(written(histogramSql(scope, "level", buckets))).toContain(`place <= ${LEVEL_VALUES}`);
  });

  test("a range has at most sixty buckets", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 4e12 }), fc.integer({ min: 1, max: 1e13 }), (fromMs, length) => {
        const { first, last } = bucketsOf({ fromMs, toMs: fromMs + length }, "utc");
        expect(last - first + 1).toBeGreaterThanOrEqual(1);
        expect(last - first + 1).toBeLessThanOrEqual(60);
      }),
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

test("fields inside of JSON, and columns that are known by their names", () => {
  const rows = [{ ctx: { user: { id: 1 }, tags: [1] } }, { ctx: { path: null } }, { ctx: "text" }, { body: { no: 1 } }];
  expect(nestedFields(COLUMNS, rows).map(fieldTitle)).toEqual(["ctx.path", "ctx.user.id"]);
  expect([levelColumn(COLUMNS), messageOf(COLUMNS)?.name]).toEqual(["level", "body"]);
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

test("a histogram has all buckets, and the most frequent value at the bottom", () => {
  const counts = [
    { bucket: 10, value: "info", n: 5 },
    { bucket: 12, value: "error", n: 1 },
    { bucket: 12, value: null, is_other: true, n: 9 },
  ];
  const { data, series, total } = chartOf(counts, { stepMs: 1_000, shiftMs: 0, first: 10, last: 12 });
  expect(data).toEqual([
    [10.5, 11.5, 12.5],
    [0, 0, 9],
    [0, 0, 1],
    [5, 0, 0],
  ]);
  expect(series.map(({ title }) => title)).toEqual(["others", "error", "info"]);
  expect(total).toBe(15);
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
