import { expect, test } from "vitest";
import { keepPrinted } from "./support/printed.test-kit.ts";
import { main as runFilters } from "./kernel/filters.ts";

/** The benchmarks in their smallest form: that they run and that their sides agree, not how fast. */
const printed = keepPrinted();

test("filters of values and of grams are measured", async () => {
  await runFilters(["logs", "--rows", "10000", "--rounds", "1"]);
  expect(printed.join("\n")).toMatch(/^logs +trace_id( +[0-9.]+){5}$/m);
  expect(printed.join("\n")).toMatch(/^logs +body( +[0-9.]+){4} +–$/m);
});
