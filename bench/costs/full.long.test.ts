import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { QUERY_CLASSES, readCosts, type Costs } from "../../src/capacity/costs/costs.ts";
import { descendantsOf } from "../support/process-stats.ts";
import { runFull } from "./command.ts";

/** Everything tiny: that it runs, what is there, and that figures make sense; not what they are. */
let folder: string;
let costs: Costs;
const said: string[] = [];
const say = (line: string) => void said.push(line);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-costs-"));
  const path = join(folder, "costs.json");
  const signal = new AbortController().signal;
  expect(await runFull(["--brief", "--seed", "7", "--out", path], { commit: "abc", signal, say })).toBe(0);
  costs = await readCosts(path);
}, 600_000);
afterAll(() => rm(folder, { recursive: true }));

test("the file says of what, when and with which rows it is", () => {
  expect(costs).toMatchObject({ schema: 1, commit: "abc", seed: 7 });
  expect(said.at(-1)).toBe(join(folder, "costs.json"));
});

test("requests, bytes and commits of ingest vary, and each load cost something", () => {
  const single = costs.ingest.filter(({ deployment }) => deployment === "single");
  expect(single.length).toBeGreaterThan(4);
  for (const load of costs.ingest) {
    expect(Math.min(load.rows, load.requests, load.commits, load.seconds, load.storedBytes)).toBeGreaterThan(0);
    expect(load.rawBytes).toBeGreaterThan(load.requests);
    expect(load.latencyMs.p99).toBeGreaterThanOrEqual(load.latencyMs.p50);
  }
  for (const { cpuSeconds, mainThreadSeconds, peakBytes } of single) {
    expect(mainThreadSeconds.server).toBeGreaterThan(0);
    expect(mainThreadSeconds.server).toBeLessThan(cpuSeconds.server ?? 0);
    expect(peakBytes.server).toBeGreaterThan(1e7);
  }
  const lone = single.find(({ clients }) => clients === 1);
  expect(lone?.commits).toBe(lone?.requests);
  expect(single.some(({ commits, requests }) => requests > 4 * commits)).toBe(true);
  expect(single.some(({ tables }) => tables > 1)).toBe(true);
  expect(single.filter(({ offeredPerSecond }) => offeredPerSecond !== null).length).toBeGreaterThan(1);
  expect(new Set(single.map(({ shape }) => shape)).size).toBeGreaterThan(1);
});

test("compacted rows take less than fresh ones, and those less than NDJSON", () => {
  for (const merged of costs.compaction) {
    expect(merged.storedAfterBytes).toBeLessThan(merged.storedBeforeBytes);
    expect(merged.storedBeforeBytes).toBeLessThan(merged.rawBytes);
    expect(merged.writtenBytes).toBeGreaterThanOrEqual(merged.storedAfterBytes);
    expect(merged.cpuSeconds).toBeGreaterThan(0);
    expect(merged.peakBytes).toBeGreaterThan(1e7);
  }
  expect(costs.compaction.length).toBeGreaterThan(1);
});

test.each(QUERY_CLASSES)("queries of the class %s were asked about two ranges", (name) => {
  const asked = costs.queries.filter((query) => query.class === name && query.isCached);
  expect(new Set(asked.map(({ rangeBytes }) => rangeBytes)).size).toBe(2);
  for (const { cpuSeconds, latencyMs, peakBytes } of asked) {
    expect(Math.min(cpuSeconds, latencyMs.p50)).toBeGreaterThan(0);
    expect(peakBytes).toBeGreaterThan(1e7);
  }
});

test("memory is that of a server, and what connections and bodies add to it", () => {
  expect(costs.memory.idleBytes.server).toBeGreaterThan(5e7);
  expect(costs.memory.perConnectionBytes).toBeLessThan(1e6);
  expect(costs.memory.perInFlightByte).toBeLessThan(100);
});

test("what is stopped in the middle leaves no process, no folder and no file", { timeout: 120_000 }, async () => {
  const foldersBefore = new Set(await ownFolders());
  const stop = new AbortController();
  const path = join(folder, "stopped.json");
  // The first step is over then, and the next begins.
  const stopping = (line: string) => {
    if (line.startsWith("memory")) setTimeout(() => stop.abort(new Error("stopped")), 4_000);
  };
  const running = runFull(["--brief", "--out", path], { commit: null, signal: stop.signal, say: stopping });
  await expect(running).rejects.toThrow("stopped");
  expect(existsSync(path)).toBe(false);
  expect((await ownFolders()).filter((name) => !foldersBefore.has(name))).toEqual([]);
  expect(descendantsOf(process.pid).filter((pid) => pid !== process.pid)).toEqual([]);
});

test("a word that is no option is refused", async () => {
  const signal = new AbortController().signal;
  await expect(runFull(["fast"], { commit: null, signal, say })).rejects.toThrow("fast is no option of full");
});

async function ownFolders(): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => /^engine-(bench|cluster)-/.test(name));
}
