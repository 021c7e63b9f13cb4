import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { PARTS, QUERY_CLASSES, readCosts, type Costs } from "../../src/capacity/costs/costs.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { descendantsOf } from "../support/process-stats.ts";
import { runFull } from "./command.ts";
import { observeIngest } from "./ingest-load.ts";
import { singleTarget } from "./ingest.ts";
import { writeRows } from "./rows-file.ts";
import { startBenchServer } from "../support/server.ts";
import { whyNoSandboxes } from "./sandboxes.ts";

/** Everything tiny: that it runs, what is there, and that figures make sense; not what they are. */
const lacksCluster = lacks("PostgreSQL", "S3 server", "ps");
const lacksSandboxes = (await whyNoSandboxes()) !== undefined;
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

test.skipIf(lacksCluster)("a cluster's parts are told apart, past the edge and through it, in both modes", () => {
  for (const deployment of ["sync", "staged"] as const) {
    for (const viaEdge of [false, true]) {
      const load = costs.ingest.find((each) => each.deployment === deployment && each.viaEdge === viaEdge);
      const works = [
        "ingest",
        "postgres",
        "store",
        ...(viaEdge ? ["edge"] : []),
        ...(deployment === "staged" ? ["committer"] : []),
      ];
      expect(Object.keys(load?.cpuSeconds ?? {}).toSorted()).toEqual(works.toSorted());
      for (const seconds of Object.values(load?.cpuSeconds ?? {})) expect(seconds).toBeGreaterThan(0);
      expect(load?.walBytes).toBeGreaterThan(0);
      expect(load?.storeRequests["put"]).toBeGreaterThan(0);
    }
  }
  expect(Object.keys(costs.memory.idleBytes).toSorted()).toEqual([...PARTS].toSorted());
  for (const bytes of Object.values(costs.memory.idleBytes)) expect(bytes).toBeGreaterThan(1e7);
});

test.skipIf(lacksCluster)("what the cache spares was asked for without it", () => {
  const without = costs.queries.filter(({ isCached }) => !isCached);
  expect(new Set(without.map((query) => query.class))).toEqual(new Set(QUERY_CLASSES));
});

test("commits and jobs were counted on each catalog that is there", () => {
  const catalogs = lacksCluster ? ["sqlite"] : ["sqlite", "postgres"];
  expect([...new Set(costs.commits.map(({ catalog }) => catalog))]).toEqual(catalogs);
  expect([...new Set(costs.jobs.map(({ catalog }) => catalog))]).toEqual(catalogs);
  for (const loop of costs.commits) {
    expect(Math.min(loop.commits, loop.seconds, loop.cpuSeconds)).toBeGreaterThan(0);
    expect((loop.walBytes ?? 0) > 0).toBe(loop.catalog === "postgres");
  }
  for (const loop of costs.jobs) expect(Math.min(loop.jobs, loop.seconds, loop.cpuSeconds)).toBeGreaterThan(0);
});

test("sandboxes are there, or a line says that they are left out", () => {
  expect(costs.sandboxes === null).toBe(lacksSandboxes);
  expect(said.some((line) => line.startsWith("sandboxes are left out: "))).toBe(lacksSandboxes);
});

test.skipIf(lacksSandboxes)("sandboxes are measured where there are some", () => {
  const { startMs, startCpuSeconds, idleBytes, eventsPerSecond } = costs.sandboxes ?? { startMs: { p50: 0 } };
  expect(startMs.p50).toBeGreaterThan(1);
  expect(startCpuSeconds).toBeGreaterThan(0);
  expect(idleBytes).toBeGreaterThan(1e5);
  expect(eventsPerSecond).toBeGreaterThan(1);
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

test("what is stopped in the middle leaves no process, no folder and no file", { timeout: 240_000 }, async () => {
  // Others may make folders in the usual one.
  const temporary = join(folder, "tmp");
  await mkdir(temporary);
  vi.stubEnv("TMPDIR", temporary);
  const processesBefore = new Set(descendantsOf(process.pid));
  const stop = new AbortController();
  const path = join(folder, "stopped.json");
  // That step is over then, and the next one has begun.
  const stopping = (line: string) => {
    if (line.startsWith("memory")) setTimeout(() => stop.abort(new Error("stopped")), 4_000);
  };
  const running = runFull(["--brief", "--out", path], { commit: null, signal: stop.signal, say: stopping });
  await expect(running).rejects.toThrow("stopped");
  vi.unstubAllEnvs();
  expect(existsSync(path)).toBe(false);
  expect(await readdir(temporary)).toEqual([]);
  expect(descendantsOf(process.pid).filter((pid) => !processesBefore.has(pid))).toEqual([]);
});

test("a server that dies in the middle of a load is told by name, with what to do", { timeout: 60_000 }, async () => {
  const home = join(folder, "home");
  await mkdir(home);
  const data = await writeRows(folder, { name: "rows", shape: "logs", sizeBytes: 100_000, seed: 1 });
  const server = await startBenchServer({ home, env: { ENGINE_QUERY_WORKERS: "1" } });
  const bodies = { cut: { rows: 1 }, clients: 4, tables: 1, durationMs: 20_000, warmUpMs: 0 };
  const running = observeIngest(singleTarget(server), { name: "killed", data, ...bodies });
  // Once it is under way.
  setTimeout(() => signalProcess(server.pid, "SIGKILL"), 5_000);
  await expect(running).rejects.toThrow(
    "the process of the server ended during the load killed: look whether memory ran out (`dmesg`), and measure again",
  );
  await server.stop();
});

test("a word that is no option is refused", async () => {
  const signal = new AbortController().signal;
  await expect(runFull(["fast"], { commit: null, signal, say })).rejects.toThrow("fast is no option of full");
});
