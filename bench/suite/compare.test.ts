import { expect, test } from "vitest";
import { z } from "zod";
import { defineBenchmark, type BenchContext } from "./benchmark.ts";
import { againstEachOther, exitCodeOf, verdictsOf, type Verdict } from "./compare.ts";
import type { Summary } from "./result.ts";

function summaryOf(better: Summary["better"], low: number, high: number): Summary {
  const ratio = { median: (low + high) / 2, interval: { low, high } };
  return { side: "before", measure: "m", unit: "ms", better, median: 1, interval: { low: 1, high: 1 }, ratio };
}

test.each<[Summary["better"], number, number, Verdict]>([
  // New over old.
  ["less", 1.06, 1.1, "loss"],
  ["less", 1.04, 1.1, "unknown"],
  ["less", 0.9, 1.04, "none"],
  ["less", 0.5, 0.6, "none"],
  ["more", 0.9, 0.94, "loss"],
  ["more", 0.94, 1.1, "unknown"],
  ["more", 0.97, 1.1, "none"],
  ["more", 1.4, 2, "none"],
])("where %s is better, a ratio from %d to %d is: %s", (better, low, high, verdict) => {
  expect(verdictsOf({ summary: [summaryOf(better, low, high)] })).toEqual([{ measure: "m", verdict }]);
});

test("a loss counts more than what could not be told", () => {
  expect(exitCodeOf(["none", "unknown", "loss"])).toBe(1);
  expect(exitCodeOf(["none", "unknown"])).toBe(3);
  expect(exitCodeOf(["none"])).toBe(0);
});

test("both servers are opened in folders of their own and closed, also when the second does not start", async () => {
  const log: string[] = [];
  const benchmark = defineBenchmark({
    name: "made/up",
    question: "What?",
    notMeasured: "All else.",
    options: z.strictObject({}),
    measures: { speed: { unit: "1/s", better: "more", doc: "how fast" } },
    rounds: 1,
    startsServer: true,
    open: async (_options, { folder, entry }) => {
      log.push(`${folder} ${entry}`);
      if (entry === "broken") throw new Error("it does not start");
      const side = { name: "engine", round: async () => ({ speed: 1 }) };
      return { sides: [side, { ...side, name: "peer" }], close: async () => void log.push(`closed ${entry}`) };
    },
  });
  const context: BenchContext = { folder: "/f", seed: 1, rounds: 1, signal: new AbortController().signal };
  const both = await againstEachOther(benchmark, { before: "old", after: "new" }).open({}, context);
  expect(both.sides.map(({ name }) => name)).toEqual(["after", "before"]);
  await both.close?.();
  expect(log).toEqual(["/f/after new", "/f/before old", "closed new", "closed old"]);
  log.length = 0;
  const failing = againstEachOther(benchmark, { before: "broken", after: "new" }).open({}, context);
  await expect(failing).rejects.toThrow("it does not start");
  expect(log.at(-1)).toBe("closed new");
});
