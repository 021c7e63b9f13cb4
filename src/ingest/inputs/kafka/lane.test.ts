import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { eventually } from "../../../core/waiting.test-kit.ts";
import type { IngestRequest } from "../../ingest.ts";
import { seal } from "../../seal-thread.ts";
import { splitBatches } from "./fetched-batches.ts";
import { Lane, type Partition } from "./lane.ts";
import { FetchMemory } from "./memory.ts";
import { KAFKA_METRICS } from "./metrics.ts";
import { batchBytes } from "./record-batch.test-kit.ts";
import type { RecordBatch } from "./record-batch.ts";

/** A lane between a consumer and an ingest service that are played here. */

let catalog: CatalogDatabase;
beforeEach(() => {
  ({ catalog } = openMemoryCatalog(systemClock));
});
afterEach(() => catalog.close());

type Played = { lane: Lane; calls: string[]; bodies: string[]; steps: string[]; bounds: { low: number; high: number } };

function play(
  limits = { maxMessages: 1_000, maxAgeMs: 10 },
  ingest?: () => Promise<void>,
  memory = new FetchMemory(),
): Played {
  const played = {
    calls: [] as string[],
    bodies: [] as string[],
    steps: [] as string[],
    bounds: { low: 0, high: 100 },
  };
  const partition: Partition = {
    mapping: { topic: "t", database: "default", table: "rows" },
    partition: 0,
    bounds: () => Promise.resolve(played.bounds),
    seek: (offset) => void played.calls.push(`seek ${offset}`),
    pause: () => void played.calls.push("pause"),
    resume: () => void played.calls.push("resume"),
    onStored: () => undefined,
  };
  const service = {
    async ingest({ readBody, source }: IngestRequest) {
      await ingest?.();
      const bytes = Buffer.from(await readBody(() => undefined));
      // What lay between messages is blank.
      played.bodies.push(bytes.toString().replaceAll(/^ +/gm, ""));
      played.steps.push(`${source?.from ?? "nowhere"} → ${source?.to}`);
      const rows = bytes.toString().trim().split("\n").length;
      return { snapshotId: 1, extentCount: 1, rows, sizeBytes: 1, replayed: false };
    },
  };
  const ports = { ingest: service, catalog, records: catalog.records, seal, clock: systemClock, inferTypes: false };
  const metrics = KAFKA_METRICS.of(createMetrics());
  const lane = new Lane(
    { ...ports, metrics, log: silentLog, random: systemRandom, limits, memory },
    partition,
    Promise.resolve(),
  );
  return { lane, ...played };
}

function batchOf(first: number, values: readonly string[]): RecordBatch[] {
  const records = values.map((value, i) => ({
    offset: first + i,
    timestampMs: 1,
    key: null,
    value: Buffer.from(value),
  }));
  return splitBatches(batchBytes({ records })).batches.map(({ batch }) => batch);
}

const ends = async ({ lane }: Played): Promise<void> => {
  lane.close();
  await lane.done;
};

describe("a lane", () => {
  test("is fetched for from its position on, and stores what comes", async () => {
    const played = play();
    expect(played.lane.accept(0, 9, batchOf(0, ["{}"]))).toBe(false);
    await eventually(() => played.calls.length === 2);
    expect(played.calls).toEqual(["seek 0", "resume"]);
    expect(played.lane.accept(0, 9, batchOf(0, ['{"n":0}', '{"n":1}']))).toBe(true);
    expect(played.lane.accept(2, 9, batchOf(2, ['{"n":2}']))).toBe(true);
    await eventually(() => played.bodies.length === 1);
    expect(played.bodies).toEqual(['{"n":0}\n{"n":1}\n{"n":2}\n']);
    expect(played.steps).toEqual(["nowhere → 3"]);
    await eventually(() => played.lane.report.rows === 3);
    expect(played.lane.report).toMatchObject({ source: "kafka:t:0", state: "running", next: 3, logEnd: 9 });
    await ends(played);
  });

  test("looks anew where it is when something else was fetched than what comes next", async () => {
    const played = play();
    await eventually(() => played.calls.length === 2);
    for (const offset of [7, -1]) {
      played.calls.length = 0;
      expect(played.lane.accept(offset, 9, batchOf(7, ["{}"]))).toBe(false);
      await eventually(() => played.calls.length === 3);
      expect(played.calls).toEqual(["pause", "seek 0", "resume"]);
    }
    expect(played.bodies).toEqual([]);
    await ends(played);
  });

  test("is not fetched for while it holds much", async () => {
    const held = Promise.withResolvers<void>();
    const played = play({ maxMessages: 1, maxAgeMs: 1 }, () => held.promise);
    await eventually(() => played.calls.length === 2);
    const large = `{"a":"${"x".repeat(5 << 20)}"}`;
    for (let offset = 0; offset < 4; offset++) {
      expect(played.lane.accept(offset, 9, batchOf(offset, [large]))).toBe(true);
    }
    expect(played.calls).toEqual(["seek 0", "resume", "pause"]);
    held.resolve();
    await eventually(() => played.lane.report.rows === 4);
    expect(played.calls).toEqual(["seek 0", "resume", "pause", "resume"]);
    await ends(played);
  });

  test("is not fetched for while all together hold too much, and has its turn before those that had theirs", async () => {
    const held = Promise.withResolvers<void>();
    const memory = new FetchMemory({ fetchedBytes: 2 << 20, openedBytes: 1 << 20 });
    const lanes = [0, 1, 2].map(() => play({ maxMessages: 1, maxAgeMs: 1 }, () => held.promise, memory));
    const [first, second, third] = lanes as [Played, Played, Played];
    await eventually(() => lanes.every(({ calls }) => calls.length === 2));
    const large = `{"a":"${"x".repeat(1 << 20)}"}`;
    first.lane.accept(0, 9, batchOf(0, [large]));
    expect(third.calls).toEqual(["seek 0", "resume"]);
    second.lane.accept(0, 9, batchOf(0, [large]));
    for (const { calls } of lanes) expect(calls).toEqual(["seek 0", "resume", "pause"]);
    expect(memory.held.fetchedBytes).toBeGreaterThan(2 << 20);
    held.resolve();
    await eventually(() => first.lane.report.rows + second.lane.report.rows === 2);
    await eventually(() => lanes.every(({ calls }) => calls.at(-1) === "resume"));
    expect(memory.held).toEqual({ fetchedBytes: 0, openedBytes: 0 });
    await Promise.all(lanes.map(ends));
  });

  test("stores what it has gathered before it ends, in order, and takes no more", async () => {
    const played = play({ maxMessages: 2, maxAgeMs: 60_000 });
    await eventually(() => played.calls.length === 2);
    played.lane.accept(0, 9, batchOf(0, ["{}"]));
    played.lane.drain();
    expect(played.lane.accept(1, 9, batchOf(1, ["{}"]))).toBe(false);
    await played.lane.done;
    expect(played.steps).toEqual(["nowhere → 1"]);
  });

  test("stores what came before something that nobody can read, and stands still with the reason", async () => {
    const played = play();
    await eventually(() => played.calls.length === 2);
    played.lane.accept(0, 9, batchOf(0, ["{}"]));
    played.lane.refuse("format 3 is unknown");
    await eventually(() => played.lane.report.state === "backing_off");
    expect(played.lane.report).toMatchObject({ reason: "format 3 is unknown", rows: 1, next: 1 });
    expect(played.calls).toEqual(["seek 0", "resume", "pause"]);
    // It is asked for again, from the catalog's position: nothing was really stored here.
    await eventually(() => played.lane.report.state === "running");
    expect(played.calls.slice(3)).toEqual(["seek 0", "resume"]);
    await ends(played);
  });

  test("reads again what could not be stored, after a pause, and says why", async () => {
    let failures = 1;
    const played = play(undefined, async () => {
      if (failures-- > 0) throw new Error("the store is away");
    });
    await eventually(() => played.calls.length === 2);
    played.lane.accept(0, 9, batchOf(0, ["{}"]));
    await eventually(() => played.lane.report.state === "backing_off");
    expect(played.lane.report.reason).toBe("the store is away");
    await eventually(() => played.lane.report.state === "running");
    expect(played.calls).toEqual(["seek 0", "resume", "pause", "seek 0", "resume"]);
    played.lane.accept(0, 9, batchOf(0, ["{}"]));
    await eventually(() => played.lane.report.rows === 1);
    await ends(played);
  });
});
