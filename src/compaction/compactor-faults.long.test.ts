import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { signalProcess } from "../core/signals.test-kit.ts";
import type { ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { systemClock } from "../core/clock.ts";
import { seededRandom } from "../core/random.ts";
import type { ColumnSpec } from "../format/types.ts";
import { FaultyStore } from "../io/objectstore/faulty.test-kit.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { openBench, type Bench } from "./compaction.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
];
const MINUTE_MS = 60_000;

let bench: Bench;
let table: TableRecord;
let before: { live: ExtentRecord[]; objects: string[]; head: number };
beforeEach(async () => {
  bench = await openBench();
  ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
  const rows = (from: number) => Array.from({ length: 10 }, (_, i) => ({ at: BigInt(from + i), n: from + i }));
  await bench.add(
    table,
    [0, 10, 20, 30].map((from) => ({ columns: COLUMNS, rows: rows(from) })),
  );
  before = { live: await bench.live(table), objects: await bench.objects(), head: (await bench.catalog.head()).id };
});
afterEach(() => bench.close());

const turn = (signal = new AbortController().signal) => ({ lease: bench.lease, signal });

/** Nothing is different from before, but for extents that are known to be gone. */
async function expectUntouched(gone: readonly string[] = []): Promise<void> {
  expect((await bench.live(table)).map(({ id }) => id)).toEqual(
    before.live.map(({ id }) => id).filter((id) => !gone.includes(id)),
  );
  expect(await bench.objects()).toEqual(before.objects);
  expect(await bench.leftovers()).toEqual([]);
  await bench.catalog.verify();
}

async function expectMerged(): Promise<void> {
  const live = await bench.live(table);
  expect(live.map(({ rows, format }) => [rows, format])).toEqual([[40, "parquet"]]);
  expect(await bench.leftovers()).toEqual([]);
  await bench.catalog.verify();
}

function without(store: ObjectStore, method: keyof ObjectStore): ObjectStore {
  return new Proxy(store, {
    get: (of, name) => {
      const value: unknown = name === method ? undefined : Reflect.get(of, name);
      return typeof value === "function" ? (value.bind(of) as unknown) : value;
    },
  });
}

/** A store whose objects are read through a pipe that nobody writes to: a merge of them never ends. */
async function stuckStore(): Promise<ObjectStore> {
  const pipe = join(bench.folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  return new Proxy(bench.store, {
    get: (store, name) => {
      if (name === "localPath") return () => pipe;
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? (value.bind(store) as unknown) : value;
    },
  });
}

/** Merging processes whose parent is the process given. */
function mergingProcesses(parent = process.pid): number[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  const all = lines.flatMap((line) => {
    const [, pid, ppid, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return args?.includes("--isolate merge") === true ? [{ pid: Number(pid), ppid: Number(ppid) }] : [];
  });
  return all.filter(({ ppid }) => ppid === parent).map(({ pid }) => pid);
}

describe.skipIf(lacks("ps"))("a merge that fails", () => {
  it("because its process is killed leaves nothing behind, and is done again after a while", async () => {
    const stuck = bench.compactor({}, { store: await stuckStore() })(turn());
    const [pid = 0] = await vi.waitUntil(
      () => (mergingProcesses().length > 0 ? mergingProcesses() : undefined),
      10_000,
    );
    signalProcess(pid, "SIGKILL");
    await stuck;
    expect(String(bench.failures)).toContain("ended with SIGKILL");
    await expectUntouched();
    expect(await COMPACTION_METRICS.of(bench.metrics).compactionMerges.get()).toMatchObject({
      values: [{ labels: { outcome: "failed" }, value: 1 }],
    });

    // The same one waits before it touches the day again.
    const store = new FaultyStore({ inner: bench.store, clock: systemClock, random: seededRandom(1) });
    store.script({ operation: "put", fault: { kind: "fail_before" } });
    const compactor = bench.compactor({}, { store });
    await compactor(turn());
    await compactor(turn());
    expect(bench.failures).toHaveLength(2);
    await expectUntouched();
    bench.clock.aheadMs = 2 * MINUTE_MS;
    await compactor(turn());
    expect(bench.failures).toHaveLength(2);
    await expectMerged();
  });

  it("because the server stops ends its process at once", async () => {
    const stop = new AbortController();
    const stuck = bench.compactor({}, { store: await stuckStore() })(turn(stop.signal));
    await vi.waitUntil(() => mergingProcesses().length > 0, 60_000);
    stop.abort(new Error("stopping"));
    await expect(stuck).rejects.toThrow("stopping");
    expect(mergingProcesses()).toEqual([]);
    expect(bench.failures).toEqual([]);
    await expectUntouched();
  });

  it("because uploads fail half way deletes what it has uploaded", async () => {
    const store = new FaultyStore({ inner: bench.store, clock: systemClock, random: seededRandom(1) });
    store.script({ operation: "put", fault: { kind: "fail_after" } });
    await bench.compactor({}, { store })(turn());
    expect(String(bench.failures)).toContain("injected fault");
    await expectUntouched();
  });

  it("because of a damaged input leaves that one alone and merges the others", async () => {
    const [damaged] = before.live;
    const path = bench.store.localPath?.(damaged?.key ?? "") ?? "";
    await writeFile(path, "not what was committed");
    const compactor = bench.compactor({ minExtents: 3 });
    await compactor(turn());
    expect(bench.failures).toEqual([[damaged?.key]]);
    const live = await bench.live(table);
    expect(live.map(({ rows, format }) => [rows, format])).toEqual([
      [10, "tlm"],
      [30, "parquet"],
    ]);
    await compactor(turn());
    expect(bench.failures).toHaveLength(1);
  });
});

it("a merge reads a store without local files over the network", async () => {
  const remote = without(bench.store, "localPath");
  await bench.compactor({}, { store: remote })(turn());
  expect(bench.failures).toEqual([]);
  await expectMerged();
});

describe("a merge that comes too late", () => {
  it("because an input was deleted meanwhile changes nothing", async () => {
    const [first] = before.live;
    const catalog: typeof bench.catalog = Object.create(bench.catalog, {
      mergeExtents: {
        value: async (merge: Parameters<typeof bench.catalog.mergeExtents>[0]) => {
          await bench.catalog.endExtents(table.id, [first?.id ?? ""]);
          return bench.catalog.mergeExtents(merge);
        },
      },
    }) as typeof bench.catalog;
    await bench.compactor({}, { catalog: bound(catalog, bench.catalog) })(turn());
    expect(bench.failures).toEqual([]);
    await expectUntouched([first?.id ?? ""]);
    expect(await COMPACTION_METRICS.of(bench.metrics).compactionMerges.get()).toMatchObject({
      values: [{ labels: { outcome: "lost" }, value: 1 }],
    });
  });

  it("because an input was deleted, and its file with it, before it was read changes nothing", async () => {
    const [first] = before.live;
    const store = new Proxy(bench.store, {
      get: (of, name) => {
        if (name === "localPath") return undefined;
        if (name !== "get") {
          const value: unknown = Reflect.get(of, name);
          return typeof value === "function" ? (value.bind(of) as unknown) : value;
        }
        return async (...args: Parameters<ObjectStore["get"]>) => {
          await bench.catalog.endExtents(table.id, [first?.id ?? ""]);
          await bench.store.delete([first?.key ?? ""]);
          return bench.store.get(...args);
        };
      },
    });
    await bench.compactor({}, { store })(turn());
    expect(bench.failures).toEqual([]);
    before.objects = before.objects.filter((key) => key !== first?.key);
    await expectUntouched([first?.id ?? ""]);
    expect(await COMPACTION_METRICS.of(bench.metrics).compactionMerges.get()).toMatchObject({
      values: [{ labels: { outcome: "lost" }, value: 1 }],
    });
  });

  it("because the lease is another's changes nothing, and the duty ends", async () => {
    await bench.catalog.releaseLease(bench.lease);
    await bench.catalog.acquireLease(bench.lease.name, "somebody else", 60_000);
    await expect(bench.compactor()(turn())).rejects.toThrow(LeaseLost);
    await expectUntouched();
  });

  it("because the catalog does not say what became of it keeps the outputs", async () => {
    const catalog = Object.create(bench.catalog, {
      mergeExtents: {
        value: async (merge: Parameters<typeof bench.catalog.mergeExtents>[0]) => {
          await bench.catalog.mergeExtents(merge);
          throw new Error("the connection broke");
        },
      },
    }) as typeof bench.catalog;
    await bench.compactor({}, { catalog: bound(catalog, bench.catalog) })(turn());
    expect(String(bench.failures)).toContain("the connection broke");
    await expectMerged();
    const [merged] = await bench.live(table);
    expect(await bench.objects()).toContain(merged?.key);
  });
});

/** The catalog with some methods of its own; all others run on the real one. */
function bound<T extends object>(changed: T, real: T): T {
  return new Proxy(changed, {
    get: (of, name) => {
      if (Object.hasOwn(of, name)) return Reflect.get(of, name) as unknown;
      const value: unknown = Reflect.get(real, name);
      return typeof value === "function" ? (value.bind(real) as unknown) : value;
    },
  });
}

it.skipIf(lacks("ps"))(
  "a merging process does not outlive a server that is killed, although it is stopped most of the time",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-guard-"));
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const limits = { memoryBytes: 2 ** 28, spillBytes: 2 ** 28, threads: 1 };
    const inputs = [{ id: "a", path: pipe, format: "tlm", rows: 1, checksum: "crc32:00000000" }];
    const task = { columns: [], inputs, clusterBy: [], folder, targetBytes: 2 ** 28, limits };
    const code = `
    import { mergeInProcess } from ${JSON.stringify(new URL("./merge-process.ts", import.meta.url).href)};
    import { systemClock } from ${JSON.stringify(new URL("../core/clock.ts", import.meta.url).href)};
    const signal = new AbortController().signal;
    await mergeInProcess(${JSON.stringify(task)}, { clock: systemClock, share: () => 0.05, signal });`;
    const server = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
    try {
      const parent = server.pid ?? 0;
      const [pid = 0] = await vi.waitUntil(
        () => (mergingProcesses(parent).length > 0 ? mergingProcesses(parent) : undefined),
        10_000,
      );
      await vi.waitUntil(() => stateOf(pid).startsWith("T"), { timeout: 60_000, interval: 10 });
      server.kill("SIGKILL");
      await expect.poll(() => stateOf(pid), { interval: 50 }).toMatch(/^$|^Z/);
    } finally {
      server.kill("SIGKILL");
      await rm(folder, { recursive: true });
    }
  },
);

/** As `ps` prints it: T for a stopped process, Z for one that is dead; nothing when there is none. */
function stateOf(pid: number): string {
  try {
    return execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}
