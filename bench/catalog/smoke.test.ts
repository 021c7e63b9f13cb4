import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./commits.ts";

const printed = keepPrinted();

test("commits and planning are measured on both catalogs", async () => {
  await main(["--seconds", "1", "--extents", "3000", "--nodes", "2", "--writers", "2"]);
  expect(printed.join("\n")).toMatch(/^sqlite +1 +2( +[0-9.]+){3}$/m);
  expect(printed.join("\n")).toMatch(/^sqlite +3000( +[0-9.]+){4}$/m);
  const isSkipped = printed.some((line) => line.startsWith("postgres: skipped"));
  expect(isSkipped || /^postgres +3000( +[0-9.]+){4}$/m.test(printed.join("\n"))).toBe(true);
});
