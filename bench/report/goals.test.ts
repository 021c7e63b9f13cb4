import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { benchmarksNamed } from "../suite/named.ts";
import { BENCHMARKS } from "../suite/registry.ts";
import { optionsOf } from "../suite/run.ts";
import { evidenceFor } from "./evidence.ts";
import { withResults } from "./goals-file.ts";
import { goalsIn, lastStanding, standingOf, type Goal } from "./goals.ts";
import { resultOf, summaryOf } from "./report.test-kit.ts";

const PATH = fileURLToPath(new URL("../goals.toml", import.meta.url));
const TEXT = readFileSync(PATH, "utf8");

const GOAL: Goal = {
  name: "fast",
  chapter: "Speed",
  title: "Fast",
  benchmark: "kernel/otlp",
  options: {},
  measure: "seal",
  peer: "NDJSON",
  better: "more",
  wanted: 1,
  basis: "the test",
};

test("the goals of this repository are read, and name benchmarks and measures that are there", async () => {
  const measured = goalsIn(TEXT, PATH).filter(({ benchmark }) => benchmark !== undefined);
  expect(measured.length).toBeGreaterThan(0);
  for (const { benchmark, measure, options } of measured) {
    const [found] = await benchmarksNamed(benchmark, BENCHMARKS);
    expect(Object.keys(found?.measures ?? {})).toContain(measure);
    const texts = Object.entries(options).map(([option, value]) => [option, String(value)]);
    expect(() => found && optionsOf(found, Object.fromEntries(texts))).not.toThrow();
  }
});

test.each<[Goal["better"], number, number, number, ReturnType<typeof lastStanding>]>([
  ["more", 1.2, 1.1, 1.3, "holds"],
  ["more", 1.1, 0.9, 1.3, "unclear"],
  ["more", 0.8, 0.7, 0.9, "missed"],
  ["less", 0.8, 0.7, 0.9, "holds"],
  ["less", 0.9, 0.8, 1.1, "unclear"],
  ["less", 1.2, 1.1, 1.3, "missed"],
])("where %s is better, %d (%d to %d) of 1 is: %s", (better, value, low, high, standing) => {
  const result = { value, low, high, date: "2026-11-28", commit: "c", processor: "p", release: "2.0.0" };
  expect(lastStanding({ ...GOAL, better, result })).toBe(standing);
  expect(standingOf({ ...GOAL, better, result }, "2.0.0")).toBe(standing);
  expect(standingOf({ ...GOAL, better, result }, "2.1.0")).toBe("none");
  expect(standingOf(GOAL, "2.0.0")).toBe("none");
});

describe("a file of goals", () => {
  test.each([
    ["[[goal", /^g.toml is not TOML: /],
    ['[[goal]]\nname = "a"', /^g.toml is no file of goals: goal.0.chapter/],
    [TEXT.replace('name = "bodies-wall"', 'name = "bodies-cpu"'), /two goals have one name/],
    [TEXT.replace('benchmark = "load/bodies"\n', ""), /it takes a benchmark or a program/],
    [TEXT.replace('unit = "MB/CPU-s"\n', ""), /it takes a peer or a unit/],
    [TEXT.replace(/^low = .*\n/m, ""), /an interval has both ends/],
  ])("is refused in a sentence", (text, message) => {
    expect(() => goalsIn(text, "g.toml")).toThrow(message);
  });

  test("keeps order and comments when results are written, replaced ones and new ones", () => {
    const result = {
      value: 3,
      low: 2,
      high: 4,
      date: "2027-01-02",
      commit: "c0ffee",
      processor: 'a "b" c',
      release: "9",
    };
    const results = new Map([
      ["bodies-cpu", result],
      ["edge-share", result],
    ]);
    const text = withResults(TEXT, results);
    const [before, after] = [goalsIn(TEXT, PATH), goalsIn(text, PATH)];
    expect(after).toEqual(before.map((goal) => (results.has(goal.name) ? Object.assign({}, goal, { result }) : goal)));
    expect(text.match(/^#.*$/gm)).toEqual(TEXT.match(/^#.*$/gm));
    expect(withResults(text, results)).toBe(text);
    expect(() => withResults(TEXT, new Map([["flight-to-mars", result]]))).toThrow("there is no goal flight-to-mars");
  });
});

describe("the result of a goal", () => {
  const options = { records: 10_000, requests: 10 };
  const summary = [summaryOf("OTLP", 200, null), summaryOf("NDJSON", 100, 2)];
  const result = resultOf({ benchmark: "kernel/otlp", options, summary });

  test("is the newest of its benchmark with its options: the peer's ratio, or the side's own value", async () => {
    const newer = { ...result, startedAt: "2026-12-02T00:00:00.000Z", commit: "0123456789" };
    const found = await evidenceFor(GOAL, [result, newer]);
    expect(found).toMatchObject({ own: { value: 2, date: "2026-12-02", commit: "01234567", release: "3.0.0" } });
    const changed = await evidenceFor(GOAL, [{ ...newer, isClean: false }]);
    expect(changed?.own.commit).toBe("01234567 with changes");
    const { peer: _peer, ...own } = GOAL;
    expect(await evidenceFor({ ...own, unit: "rows/CPU-s" }, [result])).toMatchObject({ own: { value: 200 } });
  });

  test("is none of a machine with other work, of a smaller run, and of another benchmark", async () => {
    const busy = { ...result, noise: { ...result.noise, foreignShare: 0.5, problems: ["other processes"] } };
    const smaller = { ...result, options: { ...options, records: 10 } };
    const other = { ...result, benchmark: "kernel/scanner" };
    expect(await evidenceFor(GOAL, [busy, smaller, other])).toBeUndefined();
    // How noisy it was is in its intervals.
    const noisy = { ...result, noise: { ...result.noise, problems: ["cpu of two rounds differs from itself by 9 %"] } };
    expect(await evidenceFor(GOAL, [noisy])).toBeDefined();
  });
});
