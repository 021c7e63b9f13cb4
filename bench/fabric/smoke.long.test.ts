import { expect, test } from "vitest";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main } from "./jobs.ts";

const printed = keepPrinted();

test("jobs and claims are measured", { timeout: 240_000 }, async () => {
  await main([
    "--rounds",
    "1",
    "--jobs",
    "50",
    "--paced",
    "5",
    "--crowd",
    "1000",
    "--waiting",
    "3",
    "--idle",
    "1",
    "--systems",
    "engine",
  ]);
  const text = printed.join("\n");
  if (text.includes("postgres: skipped")) return;
  expect(text).toMatch(/^engine( +[0-9.]+){4}$/m);
  expect(text).toMatch(/^3( +[0-9.]+){3}$/m);
  expect(text).toMatch(/^a claim beside 2 × 1000 jobs: [0-9.]+× the time$/m);
});
