import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { main } from "../main.ts";
import { readFiles } from "../report/files.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { resultOf } from "../report/report.test-kit.ts";
import { defineCurve, type Curve } from "./curve.ts";
import { exponentOf, verdictOf } from "./fit.ts";
import { runCurve, type CurveRun } from "./run.ts";

const printed = keepPrinted();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-bench-growth-"));
});
afterEach(() => rm(folder, { recursive: true }));

const pointsOf = (law: (x: number) => number, spread = 0) =>
  [10, 100, 1_000, 10_000].map((x) => {
    const y = law(x);
    return { x, y, interval: { low: y * (1 - spread), high: y * (1 + spread) } };
  });

test.each([
  ["no power", () => 7, 0],
  ["a root", (x: number) => 3 * Math.sqrt(x), 0.5],
  ["a square", (x: number) => 0.1 * x ** 2, 2],
])("the power of %s is found", (_, law, power) => {
  expect(exponentOf(pointsOf(law))).toBeCloseTo(power, 10);
});

test("what grows by more than was promised exceeds it only where the intervals say so", () => {
  expect(
    verdictOf(
      pointsOf(() => 7),
      "flat",
    ),
  ).toBe("holds");
  expect(
    verdictOf(
      pointsOf((x) => x ** 0.03),
      "flat",
    ),
  ).toBe("holds");
  expect(
    verdictOf(
      pointsOf((x) => x ** 0.05),
      "flat",
    ),
  ).toBe("exceeds");
  expect(
    verdictOf(
      pointsOf((x) => x ** 0.05, 0.2),
      "flat",
    ),
  ).toBe("unclear");
  expect(
    verdictOf(
      pointsOf((x) => 1 / x),
      "flat",
    ),
  ).toBe("holds");
  expect(
    verdictOf(
      pointsOf((x) => x * Math.log2(x)),
      "n log n",
    ),
  ).toBe("holds");
  expect(
    verdictOf(
      pointsOf((x) => x ** 1.5),
      "n log n",
    ),
  ).toBe("exceeds");
});

const ran: number[] = [];
function curveOf(more: Partial<Curve> = {}): Curve {
  return defineCurve({
    name: "made-up",
    question: "How?",
    x: { unit: "things", sizes: [1, 10, 100], few: [1, 2] },
    series: {
      time: { unit: "ms", doc: "of all", promise: "n log n" },
      one: { unit: "ms", doc: "of one", promise: "flat" },
    },
    open: async () => ({
      at: async (size) => {
        ran.push(size);
        return { time: [size * 2, size * 3, size * 4], one: [5, 5, 5] };
      },
    }),
    ...more,
  });
}

function runOf(more: Partial<CurveRun> = {}): CurveRun {
  const signal = new AbortController().signal;
  const probe = async () => resultOf().machine;
  return { folder, seed: 1, brief: false, signal, commit: null, say: () => undefined, probe, ...more };
}

test("sizes are measured from the smallest to the largest, and few of them in brief", async () => {
  ran.length = 0;
  const { series } = await runCurve(curveOf(), runOf());
  expect(ran).toEqual([1, 10, 100]);
  expect(series.map(({ verdict }) => verdict)).toEqual(["holds", "holds"]);
  expect(series[0]?.points).toEqual([1, 10, 100].map((x) => ({ x, y: 3 * x, interval: { low: 2 * x, high: 4 * x } })));
  ran.length = 0;
  await runCurve(curveOf(), runOf({ brief: true }));
  expect(ran).toEqual([1, 2]);
});

test.each([
  ["none", { time: [1] }, "made-up: one at 1 things was not measured"],
  ["no number", { time: [1], one: [Number.NaN] }, "made-up: one at 1 things is NaN, which is no figure"],
  ["nothing", { time: [0], one: [1] }, "made-up: time at 1 things is 0, which is no figure"],
])("a size with %s as its figure ends the curve, and what it opened is closed", async (_, figures, sentence) => {
  let closed = 0;
  const open = async () => ({ at: async () => figures, close: async () => void closed++ });
  await expect(runCurve(curveOf({ open }), runOf())).rejects.toThrow(sentence);
  expect(closed).toBe(1);
});

test.each([
  ["no name", { name: "Made up" }, "Made up is no name of a curve"],
  ["one size", { x: { unit: "things", sizes: [1], few: [1, 2] } }, "made-up: sizes must be at least two"],
  ["sizes that fall", { x: { unit: "things", sizes: [2, 1], few: [1, 2] } }, "made-up: sizes must be at least two"],
])("a curve with %s is refused in a sentence", (_, more, sentence) => {
  expect(() => curveOf(more)).toThrow(sentence);
});

test("a curve is measured on the command line, and its file is read by the report", async () => {
  expect([0, 1]).toContain(await main(["growth", "session-events", "--brief", "--seed", "3", "--out", folder]));
  const [file = ""] = await readdir(folder);
  const { growth } = await readFiles([join(folder, file)]);
  expect(growth).toMatchObject([{ name: "session-events", series: [{ name: "append" }, { name: "follow" }, {}] }]);
  expect(JSON.parse(await readFile(join(folder, file), "utf8"))).toEqual(growth[0]);
  expect(printed.join("\n")).toMatch(/^append +ms +[0-9.]+ +[0-9.]+ +x\^/m);
  const page = join(folder, "page.html");
  expect(await main(["report", join(folder, file), "--html", page])).toBe(0);
  expect(await readFile(page, "utf8")).toContain("the newest hundred lines");
});

test.each([
  [["growth", "nothing"], "there is no curve nothing; there are clients, columns"],
  [["growth", "--rounds", "3"], "growth takes no --rounds"],
  [["growth", "--size", "3"], "growth takes no --size"],
])("refuses %j in a sentence", async (args, sentence) => {
  await expect(main(args)).rejects.toThrow(sentence);
});
