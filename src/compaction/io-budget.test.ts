import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TableRecord } from "../catalog/catalog.ts";
import { ManualClock } from "../core/clock.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import { seededRandom } from "../core/random.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { openBench, type Bench } from "./compaction.test-kit.ts";
import { IoBudget } from "./io-budget.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

const MIB = 2 ** 20;
const never = new AbortController().signal;

async function movedBytes(metrics: Metrics): Promise<Record<string, number>> {
  const { values } = await COMPACTION_METRICS.of(metrics).compactionIoBytes.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.kind), value]));
}

async function waitedMs(metrics: Metrics): Promise<number> {
  return ((await COMPACTION_METRICS.of(metrics).compactionIoWait.get()).values[0]?.value ?? 0) * 1000;
}

describe("a budget of bytes", () => {
  const open = (bytesPerSec: number) => {
    const clock = new ManualClock();
    const metrics = createMetrics();
    const budget = new IoBudget({ clock, bytesPerSec, metrics });
    const passed: string[] = [];
    const take = (name: string, sizeBytes: number, signal = never): Promise<void> =>
      budget.take("download", sizeBytes, signal).then(() => void passed.push(name));
    const advance = async (ms: number): Promise<string[]> => {
      clock.advance(ms);
      await new Promise<void>((resolve) => setImmediate(resolve));
      return passed.splice(0);
    };
    return { clock, metrics, budget, take, advance };
  };

  it("lets a piece pass when all before it is paid, one after the other", async () => {
    const { take, advance, budget, metrics } = open(1_000);
    const all = [take("first", 500), take("second", 2_000), take("third", 100)];
    // A quarter of a second is there at the start; the other 250 bytes of the first are to be paid.
    expect(await advance(0)).toEqual(["first"]);
    expect(await advance(249)).toEqual([]);
    expect(await advance(1)).toEqual(["second"]);
    expect(await advance(1_999)).toEqual([]);
    expect(await advance(1)).toEqual(["third"]);
    await Promise.all(all);
    expect(budget.owedMs).toBe(100);
    expect(await waitedMs(metrics)).toBeCloseTo(250 + 2_250);
    expect(await movedBytes(metrics)).toEqual({ download: 2_600 });
  });

  it("saves no more than a quarter of a second", async () => {
    const { take, advance, budget } = open(1_000);
    await advance(3_600_000);
    await take("first", 250);
    expect(budget.owedMs).toBe(0);
    await take("second", 250);
    expect(budget.owedMs).toBe(250);
  });

  it("charges what has been moved to those who come next, and to nobody without a bound", async () => {
    const { budget, take, advance } = open(1_000);
    budget.charge("merge", 3_250);
    expect(budget.owedMs).toBe(3_000);
    const taken = take("upload", 1);
    expect(await advance(2_999)).toEqual([]);
    expect(await advance(1)).toEqual(["upload"]);
    await taken;
    const unbounded = open(0);
    unbounded.budget.charge("merge", 2 ** 50);
    expect(unbounded.budget.owedMs).toBe(0);
    await unbounded.take("download", 2 ** 50);
    expect(await movedBytes(unbounded.metrics)).toEqual({ merge: 2 ** 50, download: 2 ** 50 });
  });

  it("keeps nobody who leaves, and waits longer than a timer can", async () => {
    const { budget, take, advance } = open(1);
    // Sixty-nine days and a half.
    budget.charge("merge", 6_000_000);
    const leaving = new AbortController();
    const left = take("left", 1, leaving.signal);
    leaving.abort(new Error("the lease is lost"));
    await expect(left).rejects.toThrow("the lease is lost");
    const patient = take("patient", 1);
    for (let day = 0; day < 69; day++) expect(await advance(86_400_000)).toEqual([]);
    for (let hour = 0; hour < 24; hour++) {
      // Each sleep ends before the next is begun.
      for (let minute = 0; minute < 60; minute++) await advance(60_000);
    }
    await patient;
  });
});

describe("merges within a budget", () => {
  const COLUMNS = [
    { name: "at", type: { kind: "timestamp" as const } },
    { name: "text", type: { kind: "string" as const } },
  ];
  /** 2024-01-01T00:00:00Z */
  const START_NS = 19_723n * 86_400_000_000_000n;
  let bench: Bench;
  let table: TableRecord;
  beforeEach(async () => {
    bench = await openBench();
    ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
    const random = seededRandom(1);
    // Half a MiB that does not compress well.
    const rows = (extent: number) =>
      Array.from({ length: 512 }, (_, i) => ({
        at: START_NS + BigInt(extent * 1_000 + i),
        text: Buffer.from(random.fill(new Uint8Array(768))).toString("base64"),
      }));
    await bench.add(
      table,
      Array.from({ length: 4 }, (_, extent) => ({ columns: COLUMNS, rows: rows(extent) })),
    );
  });
  afterEach(() => bench.close());

  const merge = async (ioBytesPerSec: number, store: ObjectStore = bench.store): Promise<number> => {
    const startedMs = bench.clock.monotonicMs();
    await bench.compactor({ ioBytesPerSec }, { store })({ lease: bench.lease, signal: never });
    expect(bench.failures).toEqual([]);
    return bench.clock.monotonicMs() - startedMs;
  };
  const sizeOf = async (): Promise<number> =>
    (await bench.live(table)).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

  /** As one whose objects are no files of this machine. */
  const remote = (): ObjectStore =>
    new Proxy(bench.store, {
      get: (store, name) => {
        if (name === "localPath") return undefined;
        const value: unknown = Reflect.get(store, name);
        return typeof value === "function" ? (value.bind(store) as unknown) : value;
      },
    });

  it("count what is brought, what the process moves, and what is uploaded", async () => {
    const inputBytes = await sizeOf();
    await merge(0, remote());
    const moved = await movedBytes(bench.metrics);
    const outputBytes = await sizeOf();
    expect(moved).toMatchObject({ download: inputBytes, upload: outputBytes });
    // It reads all inputs and writes the output, where the system says so.
    const leastBytes = process.platform === "linux" ? inputBytes + outputBytes : 0;
    expect(moved["merge"]).toBeGreaterThanOrEqual(leastBytes);
    expect(await waitedMs(bench.metrics)).toBe(0);
  });

  it.runIf(process.platform === "linux")("keep to the rate, also in the process that merges", async () => {
    const inputBytes = await sizeOf();
    const rate = 2 * MIB;
    const tookMs = await merge(rate);
    const { download = 0, merge: merged = 0, upload = 0 } = await movedBytes(bench.metrics);
    expect(download).toBe(0);
    expect(merged).toBeGreaterThan(inputBytes);
    // What comes last is waited for by whoever comes next.
    const paidBytes = merged - rate / 4;
    expect(upload).toBe(await sizeOf());
    expect(tookMs).toBeGreaterThan((paidBytes / rate) * 1000);
    expect(await waitedMs(bench.metrics)).toBeGreaterThan(0);
    expect((await bench.live(table)).map(({ rows }) => rows)).toEqual([2_048]);
  });

  it("keep to the rate on the way from and to the store", async () => {
    const inputBytes = await sizeOf();
    const rate = MIB;
    const tookMs = await merge(rate, remote());
    expect(tookMs).toBeGreaterThan(((inputBytes - rate / 4) / rate) * 1000);
    expect(await waitedMs(bench.metrics)).toBeGreaterThan(0);
  });
});
