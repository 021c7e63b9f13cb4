import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./planning.ts";

const printed = keepPrinted();

test("planning and listing are measured, and the sides find the same extents", { timeout: 240_000 }, async () => {
  await main(["--extents", "1000", "--rounds", "1", "--plans", "3"]);
  const text = printed.join("\n");
  for (const side of ["sqlite", "duckdb"]) expect(text).toMatch(new RegExp(`^${side}( +[0-9.]+){5}$`, "m"));
  expect(text).toMatch(/^sqlite( +[0-9.]+){6}$/m);
  expect(text).toMatch(/^sqlite \/ duckdb: first plan [0-9.]+×, plan [0-9.]+×, list [0-9.]+× the time$/m);
});
