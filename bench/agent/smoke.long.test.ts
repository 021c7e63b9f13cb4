import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as runDream } from "./dream.ts";

const printed = keepPrinted();

test("a dream over events is measured", { timeout: 120_000 }, async () => {
  await runDream(["--events", "50"]);
  expect(printed.join("\n")).toMatch(/^50 events( +[0-9.-]+){4}$/mu);
});
