import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import { resetInputPosition } from "../../../catalog/input-positions.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { drawnRandom, drawnSeed } from "../../../core/drawn-seed.test-kit.ts";
import { seededRandom, systemRandom } from "../../../core/random.ts";
import { decodeTlm } from "../../../format/tlm-decode.ts";
import { openFilesystemStore } from "../../../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { Committer } from "../../committer.ts";
import type { IngestService } from "../../ingest.ts";
import { seal } from "../../seal-thread.ts";
import { createIngestService } from "../../service.ts";
import type { Gathered } from "./batch-queue.ts";
import { KAFKA_METRICS } from "./metrics.ts";
import { PartitionStore } from "./partition-store.ts";
import type { KafkaMessage } from "./record-batch.ts";

let folder: string;
let catalog: CatalogDatabase;
let objects: ObjectStore;
let ingest: IngestService;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-kafka-"));
  ({ catalog } = openMemoryCatalog(systemClock));
  objects = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log: silentLog });
  const common = { catalog, clock: systemClock, metrics: createMetrics() };
  ingest = createIngestService({
    ...common,
    store: objects,
    committer: new Committer({ ...common, windowMs: 0, maxExtents: 128 }),
    seal,
    sealThreads: 1,
    random: systemRandom,
    newId: uuidV7Source(systemClock, systemRandom),
    log: silentLog,
    format: "tlm",
    keyPrefix: "engine",
    batching: { maxRows: 8_000, maxBytes: 1 << 24, maxAgeMs: 50, disabled: false },
    maxInflightBytes: 1 << 28,
    rate: { perSec: 0, burst: 1 },
  });
});
afterEach(async () => {
  await catalog.verify();
  await catalog.close();
  await rm(folder, { recursive: true });
});

type Fault = (table: string) => "before" | "after" | undefined;

/** What a process does that has just been given the partition; `fault` loses requests, or their answers. */
async function opened(fault: Fault = () => undefined, low = 0): Promise<PartitionStore> {
  const flaky: Pick<IngestService, "ingest"> = {
    async ingest(request) {
      const when = fault(request.table);
      if (when === "before") throw new Error("lost before");
      const ack = await ingest.ingest(request);
      if (when === "after") throw new Error("lost after");
      return ack;
    },
  };
  const metrics = KAFKA_METRICS.of(createMetrics());
  const ports = { ingest: flaky, catalog, records: catalog.records, seal, clock: systemClock, inferTypes: false };
  const mapping = { topic: "t", database: "default", table: "rows" };
  const store = new PartitionStore({ ...ports, metrics, log: silentLog }, { mapping, partition: 0 }, () => undefined);
  expect(await store.load(low)).toBe(true);
  return store;
}

function messageOf(offset: number, value: string): KafkaMessage {
  const bytes = Buffer.from(value);
  return { offset, timestampMs: 1_000, bytes, keyStart: 0, keyEnd: -1, valueStart: 0, valueEnd: bytes.length };
}

const gathered = (values: readonly [offset: number, value: string][], to?: number): Gathered => ({
  messages: values.map(([offset, value]) => messageOf(offset, value)),
  unreadable: [],
  tombstones: 0,
  to: to ?? (values.at(-1)?.[0] ?? -1) + 1,
});

/** Values of a column over all live extents, in order. */
async function stored(table: string, column: string): Promise<string[]> {
  const record = await catalog.table("default", table);
  if (record === undefined) return [];
  const values: string[] = [];
  for (const { key } of await catalog.extents(record.id, (await catalog.head()).id)) {
    const { rows, columns } = decodeTlm(await objects.get(key));
    const found = columns.find(({ spec }) => spec.name === column);
    values.push(...Array.from({ length: rows }, (_, row) => String(found?.values[row] ?? null)));
  }
  return values.toSorted((a, b) => Number(a) - Number(b));
}

const letters = () => stored("kafka_dead_letters", "offset");

describe("a batch", () => {
  test("is stored with its position, by whoever has the partition, once", async () => {
    const [mine, other] = [await opened(), await opened()];
    await mine.store(
      gathered([
        [0, '{"n":0}'],
        [1, '{"n":1}'],
      ]),
    );
    const stale = other.store(gathered([[0, '{"n":0}']]));
    await expect(stale).rejects.toMatchObject({ name: "PositionMoved", position: "2" });
    await mine.store(gathered([[2, '{"n":2}']], 5));
    expect(await stored("rows", "n")).toEqual(["0", "1", "2"]);
    expect((await opened()).position).toEqual({ next: 5, pending: [] });
    expect(await mine.hasMoved()).toBe(false);
    expect(await other.hasMoved()).toBe(true);
  });

  test("whose dead letters were lost after its rows has them stored when they are read again, or told of as gone", async () => {
    const batch: [number, string][] = [
      [0, '{"n":0}'],
      [1, "{"],
      [2, '{"n":2}'],
      [3, "[]"],
      [4, "x"],
    ];
    const failing = await opened((table) => (table === "kafka_dead_letters" ? "before" : undefined));
    await expect(failing.store(gathered(batch))).rejects.toThrow("lost before");
    const next = await opened();
    expect(next.position).toEqual({
      next: 5,
      pending: [
        { first: 1, last: 1 },
        { first: 3, last: 4 },
      ],
    });
    // One of them is not in the topic any more.
    await next.store(
      gathered(
        [
          [1, "{"],
          [2, '{"n":2}'],
          [4, "x"],
        ],
        5,
      ),
    );
    expect(await letters()).toEqual(["1", "3", "4"]);
    const reasons = await stored("kafka_dead_letters", "reason");
    expect(reasons).toContain("it was refused, and has gone from the topic since");
    await next.store(gathered([[5, '{"n":5}']]));
    expect(await stored("rows", "n")).toEqual(["0", "2", "5"]);
    expect((await opened()).position).toEqual({ next: 6, pending: [] });
  });

  test("has the same reasons in its dead letters whether a crash comes before them or not", async () => {
    const columns = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "v", type: { kind: "vector", dimensions: 2 } },
    ] as const;
    await catalog.createTable({ database: "default", name: "rows", columns });
    const unreadable = { first: 5, last: 8, reason: "offsets 5 to 8 cannot be read: a record is cut off" };
    const values = ['{"v":[1,2]}', "{", "", " ", '{"v":[1]}'];
    const batch = (from: number) => ({
      ...gathered(values.map((value, i) => [from + i, value])),
      unreadable: [unreadable],
      to: 9,
    });
    const whole = await opened();
    await whole.store(batch(0));
    const told = await stored("kafka_dead_letters", "reason");
    await resetInputPosition(catalog.records, "kafka:t:0");
    const failing = await opened((table) => (table === "kafka_dead_letters" ? "before" : undefined));
    await expect(failing.store(batch(0))).rejects.toThrow("lost before");
    await (await opened()).store(batch(0));
    const all = await stored("kafka_dead_letters", "reason");
    expect(told).toHaveLength(5);
    expect(all.toSorted()).toEqual([...told, ...told].toSorted());
    expect(all.filter((reason) => reason === unreadable.reason)).toHaveLength(2);
  });

  test("that a table does not take, message by message, becomes dead letters", async () => {
    const columns = [
      { name: "at", type: { kind: "timestamp" } },
      { name: "v", type: { kind: "vector", dimensions: 2 } },
    ] as const;
    await catalog.createTable({ database: "default", name: "rows", columns });
    const store = await opened();
    await store.store(
      gathered([
        [0, '{"v":[1,2]}'],
        [1, '{"v":[1]}'],
        [2, "{}"],
      ]),
    );
    expect(await letters()).toEqual(["1", "2"]);
    expect(store.counts).toMatchObject({ rows: 1, deadLetters: 2 });
  });

  test("without rows moves the position too, once there is a table", async () => {
    const store = await opened();
    await store.store({ messages: [], unreadable: [], tombstones: 4, to: 4 });
    expect((await opened()).isNew).toBe(true);
    await store.store(gathered([[4, "{}"]]));
    const next = await opened();
    await next.store({ messages: [], unreadable: [], tombstones: 4, to: 9 });
    expect((await opened()).position.next).toBe(9);
  });

  test("after a position that is none is not stored", async () => {
    const store = await opened();
    await store.store(gathered([[0, "{}"]]));
    await resetInputPosition(catalog.records, "kafka:t:0");
    await expect(store.store(gathered([[1, "{}"]]))).rejects.toMatchObject({ name: "PositionMoved" });
    expect((await opened()).isNew).toBe(true);
  });
});

const FIRST = drawnSeed();
test.each(Array.from({ length: 6 }, (_, n) => FIRST + n))(
  "each message is stored once, whatever is lost when (seed %i)",
  async (seed) => {
    const random = seededRandom(seed);
    const pick = (below: number) => Math.floor(random.next() * below);
    const topic = Array.from({ length: 300 }, (_, offset): [number, string] => {
      const kind = pick(10);
      if (kind === 0) return [offset, `{"n":${offset}`];
      return kind === 1 ? [offset, " "] : [offset, `{"n":${offset}}`];
    });
    let isCalm = false;
    const fault: Fault = () => (isCalm || random.next() > 0.3 ? undefined : random.next() < 0.5 ? "before" : "after");
    for (let rounds = 0; ; rounds++) {
      isCalm = rounds > 150;
      const store = await opened(fault);
      const { next, pending } = store.position;
      let from = pending[0]?.first ?? next;
      if (next >= topic.length && pending.length === 0) break;
      for (let n = 0, failure: unknown; n < 5 && from < topic.length && failure === undefined; n++) {
        const to = Math.min(topic.length, from + 1 + pick(40));
        failure = await store.store(gathered(topic.slice(from, to), to)).catch((error: unknown) => error);
        expect(String(failure)).toMatch(/^undefined$|lost (before|after)/);
        from = to;
      }
    }
    const good = topic.filter(([, value]) => value.endsWith("}")).map(([offset]) => String(offset));
    const bad = topic.filter(([, value]) => !value.endsWith("}")).map(([offset]) => String(offset));
    expect(await stored("rows", "n")).toEqual(good);
    expect(await letters()).toEqual(bad);
  },
);

test("a value is a row exactly when it is a JSON object, whatever its neighbours are", async () => {
  const random = drawnRandom();
  const pick = (below: number) => Math.floor(random.next() * below);
  const pieces = [
    "{",
    "}",
    '"a"',
    ":",
    ",",
    "1",
    "-",
    "[",
    "]",
    "null",
    " ",
    '"x',
    "\\",
    "\t",
    '{"b":{}}',
    '{"a":1}',
    "\n",
    "\r\n",
  ];
  const valueOf = (): string =>
    random.next() < 0.4
      ? `{"a":${pick(9)}}`
      : Array.from({ length: 1 + pick(7) }, () => pieces[pick(pieces.length)]).join("");
  const store = await opened();
  const topic = Array.from({ length: 2_000 }, (_, offset): [number, string] => [offset, valueOf()]);
  for (let from = 0; from < topic.length; from += 100) await store.store(gathered(topic.slice(from, from + 100)));
  const refused = topic.filter(([, value]) => !isRow(value)).map(([offset]) => String(offset));
  expect(refused.length).toBeGreaterThan(200);
  expect(await letters()).toEqual(refused);
});

/** One object, over any lines, or several, a line each. */
function isRow(value: string): boolean {
  const lines = value.split("\n").filter((line) => /[^ \t\r]/.test(line));
  return isObject(value) || (lines.length > 0 && lines.every((line) => isObject(line)));
}

function isObject(text: string): boolean {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
