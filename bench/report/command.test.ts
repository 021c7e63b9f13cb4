import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VERSION } from "../../src/core/version.ts";
import { main } from "../main.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { readResult } from "../suite/result.ts";
import { readGoals } from "./goals.ts";
import { resultOf, summaryOf } from "./report.test-kit.ts";

const GOALS = fileURLToPath(new URL("../goals.toml", import.meta.url));
const RESULT = resultOf({
  benchmark: "kernel/otlp",
  release: VERSION,
  options: { records: 10_000, requests: 10 },
  summary: [summaryOf("OTLP", 200, null), summaryOf("NDJSON", 400, 0.5)],
});

const printed = keepPrinted();
let folder: string;
let goals: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-bench-report-"));
  [goals, file] = [join(folder, "goals.toml"), join(folder, "result.json")];
  await copyFile(GOALS, goals);
  await writeFile(file, JSON.stringify(RESULT));
});
afterEach(() => rm(folder, { recursive: true }));

test("prints how goals stand, and writes the page", async () => {
  expect(await main(["report", file, "--goals", goals, "--html", join(folder, "page", "index.html")])).toBe(0);
  const text = printed.join("\n");
  expect(text).toMatch(/^✗ missed[^✓]*\nOTLP, requests of 10,000 records, against the same rows.* 0.5× \(0.45–0.55\)/m);
  expect(text).toContain(`– no result of this release`);
  expect(await readFile(join(folder, "page", "index.html"), "utf8")).toContain("kernel/otlp");
  expect(await readFile(goals, "utf8")).toBe(await readFile(GOALS, "utf8"));
});

test("--update writes results into the goals, and keeps their files beside them", async () => {
  await main(["report", file, "--update", "--goals", goals]);
  const updated = (await readGoals(goals)).find(({ name }) => name === "otlp-ndjson");
  expect(updated?.result).toMatchObject({ value: 0.5, commit: "01234567", release: VERSION });
  expect(await readdir(join(folder, "results"))).toEqual(["kernel-otlp.json"]);
  expect(await readResult(join(folder, "results", "kernel-otlp.json"))).toEqual(RESULT);
});

test.each([
  [["--colour", "red"], /^report takes no --colour:\n\nnpm run bench/],
  [["--html"], /^--html is no option with a value/],
])("refuses %j in a sentence", async (args, message) => {
  await expect(main(["report", ...args])).rejects.toThrow(message);
});

test("refuses what is neither a result nor a curve", async () => {
  await writeFile(file, "{}");
  await expect(main(["report", file])).rejects.toThrow(/is no result of a benchmark/);
  await writeFile(file, '{"kind":"growth"}');
  await expect(main(["report", file])).rejects.toThrow(/is no curve of growth: schema/);
});
