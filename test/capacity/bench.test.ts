import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

/** Of a release, which is built by then: what it has of the benchmarks runs anywhere, and leaves its files there. */
const ENGINE = fileURLToPath(new URL("../../dist/engine.js", import.meta.url));

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "engine-bench-release-"));
});
afterEach(() => rm(cwd, { recursive: true }));

function bench(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [ENGINE, "bench", ...words], { cwd }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

test("a release lists what it can measure, and nothing that needs a checkout", async () => {
  const { code, stdout } = await bench("list");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^load\/bodies\n {2}How much NDJSON/m);
  expect(stdout).not.toContain("peers/bulk");
});

test("a release loads a server of its own, and writes what came of it", { timeout: 60_000 }, async () => {
  const { stdout } = await bench("run", "load/bodies", "--rows", "1000", "--bytes", "65536", "--rounds", "1");
  expect(stdout).toMatch(/^engine +cpu +[0-9.]+/m);
  expect(await readdir(join(cwd, "bench-results"))).toEqual([expect.stringMatching(/^load-bodies-.*\.json$/)]);
});

test("a release measures how costs grow", { timeout: 60_000 }, async () => {
  const { stdout } = await bench("growth", "jobs", "--brief", "--out", "grown");
  expect(stdout).toMatch(/^enqueue +ms +[0-9.]+ +[0-9.]+/m);
  expect(await readdir(join(cwd, "grown"))).toEqual([expect.stringMatching(/^growth-jobs-.*\.json$/)]);
});

test.each([
  [[], /^error: say what to do:\n\nengine bench COMMAND/],
  [["peers"], /^error: peers is no command:/],
  [["run", "peers/bulk"], /^error: there is no benchmark peers\/bulk; there are kernel\/first-body/],
  [["run", "load/bodies", "--size", "3"], /^error: load\/bodies: Unrecognized key: "size"; it takes --/],
  [["full", "--fast", "1"], /^error: .*fast/],
])("refuses %j in a sentence, with the exit code 1", async (words, sentence) => {
  const { code, stderr } = await bench(...words);
  expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
});
