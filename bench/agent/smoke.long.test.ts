import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as runAsk } from "./ask.ts";
import { main as runDream } from "./dream.ts";

const printed = keepPrinted();

test("questions are measured against the library's own loop, and no event is lost", { timeout: 120_000 }, async () => {
  await runAsk(["--rounds", "3", "--warmup", "1", "--clients", "5"]);
  expect(printed.join("\n")).toMatch(/^agent\/library [0-9.]+×/mu);
  expect(printed.join("\n")).toMatch(/^5 at once: .* none missing, 0 wrong answers$/mu);
});

test("a dream over events is measured", { timeout: 120_000 }, async () => {
  await runDream(["--events", "50"]);
  expect(printed.join("\n")).toMatch(/^50 events( +[0-9.-]+){4}$/mu);
});
