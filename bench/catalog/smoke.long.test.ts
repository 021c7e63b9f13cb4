import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./commits.ts";
import { main as runPlanning } from "./planning.ts";

const printed = keepPrinted();

test("commits and planning are measured on both catalogs", async () => {
  await main(["--seconds", "1", "--extents", "3000", "--nodes", "2", "--writers", "2"]);
  expect(printed.join("\n")).toMatch(/^sqlite +1 +2( +[0-9.]+){3}$/m);
  expect(printed.join("\n")).toMatch(/^sqlite +3000( +[0-9.]+){4}$/m);
  const isSkipped = printed.some((line) => line.startsWith("postgres: skipped"));
  expect(isSkipped || /^postgres +3000( +[0-9.]+){4}$/m.test(printed.join("\n"))).toBe(true);
});

test("planning and listing are measured, and the sides find the same extents", { timeout: 240_000 }, async () => {
  await runPlanning(["--extents", "1000", "--rounds", "1", "--plans", "3"]);
  const text = printed.join("\n");
  for (const side of ["sqlite", "duckdb"]) expect(text).toMatch(new RegExp(`^${side}( +[0-9.]+){5}$`, "m"));
  expect(text).toMatch(/^sqlite( +[0-9.]+){6}$/m);
  expect(text).toMatch(/^sqlite \/ duckdb: first plan [0-9.]+×, plan [0-9.]+×, list [0-9.]+× the time$/m);
});
