import { beforeAll, describe, expect, test } from "vitest";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import type { Random } from "../../src/core/random.ts";
import type { KqlValue } from "./cases.test-kit.ts";
import { Translated } from "./translated.test-kit.ts";

/** Aggregates, series and nested tops of drawn rows, compared with what the reference says in plain loops. */
const ROUNDS = 25;

/** `v` is another power of two in each row: no two sums are the same. */
type Row = { k: string; g: string; x: number | null; w: number; v: number };
type Out = Readonly<Record<string, KqlValue>>;

let translated: Translated;
beforeAll(async () => {
  translated = await Translated.open();
});

function below(limit: number, random: Random): number {
  return Math.floor(random.next() * limit);
}

function drawRows(random: Random): Row[] {
  return Array.from({ length: below(16, random) }, (_, i) => ({
    k: "abc"[below(3, random)] ?? "",
    g: "pqr"[below(3, random)] ?? "",
    x: random.next() < 0.15 ? null : below(16, random) - 5,
    w: below(4, random),
    v: 2 ** i,
  }));
}

function tableOf(rows: readonly Row[]): string {
  const values = rows.map(({ k, g, x, w, v }) => `'${k}', '${g}', ${x === null ? "long(null)" : x}, ${w}, ${v}`);
  return `datatable(k: string, g: string, x: long, w: long, v: long)[${values.join(", ")}]`;
}

async function answer(query: string): Promise<readonly Out[]> {
  const outcome = await translated.run(query);
  if ("refused" in outcome) throw new Error(`${query}\n${outcome.refused.message}`);
  return outcome.rows;
}

function groupsOf(rows: readonly Row[], key: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

function byName([a]: [string, Row[]], [b]: [string, Row[]]): number {
  return a < b ? -1 : 1;
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function numbersOf(rows: readonly Row[]): number[] {
  return rows.flatMap(({ x }) => (x === null ? [] : [x]));
}

/** The smallest value up to which there is that share of all. */
function percentile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.find((_, i) => (i + 1) * 100 >= share * sorted.length) ?? null;
}

function variance(values: readonly number[], less: number): number {
  const mean = sum(values) / values.length;
  return values.length <= less ? 0 : sum(values.map((one) => (one - mean) ** 2)) / (values.length - less);
}

describe("aggregates by key", () => {
  test("percentiles, deviations, conditions and bits", async () => {
    const random = drawnRandom();
    for (let round = 0; round < ROUNDS; round++) {
      const rows = drawRows(random);
      const share = below(101, random);
      const query = `${tableOf(rows)} | summarize p = percentile(x, ${share}), q = percentilew(x, w, ${share}),
        s = sumif(v, x > 2), c = countif(x != 3), d = dcountif(x, w > 0), lo = minif(x, w > 0), e = binary_all_xor(v),
        a = round(variance(x), 6), b = round(variancep(x), 6) by k | sort by k asc`;
      const expected = [...groupsOf(rows, ({ k }) => k)].toSorted(byName).map(([k, own]) => {
        const [all, weighted] = [numbersOf(own), numbersOf(own.filter(({ w }) => w > 0))];
        return {
          k,
          p: percentile(all, share),
          q: percentile(
            own.flatMap(({ x, w }) => (x === null ? [] : Array.from({ length: w }, () => x))),
            share,
          ),
          s: sum(own.filter(({ x }) => x !== null && x > 2).map(({ v }) => v)),
          // A null differs from every value.
          c: own.filter(({ x }) => x !== 3).length,
          d: new Set(weighted).size,
          lo: weighted.length === 0 ? null : Math.min(...weighted),
          e: sum(own.map(({ v }) => v)),
          a: Number(variance(all, 1).toFixed(6)),
          b: Number(variance(all, 0).toFixed(6)),
        };
      });
      expect({ query, rows: await answer(query) }).toEqual({ query, rows: expected });
    }
  });

  test("the rows that arg_max and arg_min pick", async () => {
    const random = drawnRandom();
    for (let round = 0; round < ROUNDS; round++) {
      const rows = drawRows(random);
      const query = `${tableOf(rows)} | summarize arg_max(x, v, g), arg_min(x, v, w) by k`;
      const found = await answer(query);
      expect(found.length).toBe(new Set(rows.map(({ k }) => k)).size);
      for (const { k, x, v, g, x1, v1, w } of found) {
        const all = numbersOf(rows.filter((row) => row.k === k));
        const [most, least] = all.length === 0 ? [null, null] : [Math.max(...all), Math.min(...all)];
        const isPicked = (row: Row, own: Record<string, unknown>): boolean =>
          Object.entries(own).every(([name, value]) => row[name as keyof Row] === value);
        const picks = [
          { k, x, v, g },
          { k, x: x1, v: v1, w },
        ].map((own) => rows.some((row) => isPicked(row, own)));
        expect({ query, most: x, least: x1, picks }).toEqual({ query, most, least, picks: [true, true] });
      }
    }
  });
});

describe("make-series", () => {
  test("fills what is missing from the first to the last step", async () => {
    const random = drawnRandom();
    for (let round = 0; round < ROUNDS; round++) {
      const rows = drawRows(random);
      const step = 1 + below(4, random);
      const from = random.next() < 0.6 ? below(8, random) - 6 : undefined;
      const to = random.next() < 0.6 ? below(12, random) : undefined;
      const range = `${from === undefined ? "" : `from ${from} `}${to === undefined ? "" : `to ${to} `}step ${step}`;
      const query = `${tableOf(rows)} | make-series n = count(), s = sum(v) default = -1 on x ${range} by k | sort by k asc`;
      const inside = rows.filter(({ x }) => x !== null && x >= (from ?? x) && x < (to ?? x + 1));
      const origin = from ?? 0;
      const indexOf = (value: number): number => Math.floor((value - origin) / step);
      const expected = [...groupsOf(inside, ({ k }) => k)].toSorted(byName).map(([k, own]) => {
        const there = numbersOf(own).map(indexOf);
        const low = from === undefined ? Math.min(...there) : 0;
        const high = to === undefined ? Math.max(...there) : Math.ceil((to - origin) / step) - 1;
        const indexes = Array.from({ length: high - low + 1 }, (_, i) => low + i);
        const at = (index: number): Row[] => own.filter(({ x }) => x !== null && indexOf(x) === index);
        return {
          k,
          n: indexes.map((index) => at(index).length),
          s: indexes.map((index) => (at(index).length === 0 ? -1 : sum(at(index).map(({ v }) => v)))),
          x: indexes.map((index) => origin + index * step),
        };
      });
      expect({ query, rows: await answer(query) }).toEqual({ query, rows: expected });
    }
  });
});

describe("top-nested", () => {
  test("chooses within what is chosen, and adds up the others", async () => {
    const random = drawnRandom();
    for (let round = 0; round < ROUNDS; round++) {
      const rows = drawRows(random);
      const [first, second] = [1 + below(3, random), 1 + below(3, random)];
      const [hasFirst, hasSecond] = [random.next() < 0.5, random.next() < 0.5];
      const query = `${tableOf(rows)}
        | top-nested ${first} of k ${hasFirst ? "with others = 'K' " : ""}by a = sum(v),
          top-nested ${second} of g ${hasSecond ? "with others = 'G' " : ""}by b = sum(v)`;
      const totals = (own: readonly Row[], key: (row: Row) => string): [string, number, Row[]][] =>
        [...groupsOf(own, key)]
          .map(([name, group]): [string, number, Row[]] => [name, sum(group.map(({ v }) => v)), group])
          .toSorted((a, b) => b[1] - a[1]);
      const othersOf = (left: readonly Row[]): [string, number | null] =>
        hasSecond ? ["G", sum(left.map(({ v }) => v))] : ["", null];
      const expected: Out[] = [];
      const levels = totals(rows, ({ k }) => k);
      for (const [k, a, own] of levels.slice(0, first)) {
        const inner = totals(own, ({ g }) => g);
        for (const [g, b] of inner.slice(0, second)) expected.push({ k, a, g, b });
        const left = inner.slice(second).flatMap(([, , group]) => group);
        if (hasSecond && left.length > 0) expected.push({ k, a, g: "G", b: sum(left.map(({ v }) => v)) });
      }
      const left = levels.slice(first).flatMap(([, , group]) => group);
      if (left.length > 0 && (hasFirst || hasSecond)) {
        const [g, b] = othersOf(left);
        const [k, a] = hasFirst ? ["K", sum(left.map(({ v }) => v))] : ["", null];
        expected.push({ k, a, g, b });
      }
      const text = (row: Out): string => JSON.stringify(row);
      const [found, wanted] = [await answer(query), expected].map((own) => own.map(text).toSorted());
      expect({ query, rows: found }).toEqual({ query, rows: wanted });
    }
  });
});
