import { describe, expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { type Random } from "../../../core/random.ts";
import { BatchQueue } from "./batch-queue.ts";
import { markAborted, splitBatches } from "./fetched-batches.ts";
import { FetchMemory } from "./memory.ts";
import { batchBytes, type MadeRecord } from "./record-batch.test-kit.ts";
import { keyOf, openRecords, valueOf, type KafkaMessage } from "./record-batch.ts";

const pick = (random: Random, below: number): number => Math.floor(random.next() * below);
const LIMITS = { maxMessages: 1_000_000, maxBytes: 1 << 30 };

function someRecords(random: Random, from: number): MadeRecord[] {
  let offset = from;
  return Array.from({ length: 1 + pick(random, 30) }, () => {
    const bytes = (most: number) => (random.next() < 0.2 ? null : Buffer.from("x".repeat(pick(random, most))));
    const record = {
      offset,
      timestampMs: 1_700_000_000_000 + pick(random, 1_000) - 500,
      key: bytes(9),
      value: bytes(300),
    };
    offset += 1 + pick(random, 3);
    return { ...record, headers: pick(random, 3) };
  });
}

const shown = (message: KafkaMessage) => ({
  offset: message.offset,
  timestampMs: message.timestampMs,
  key: keyOf(message) ?? null,
  value: valueOf(message) ?? null,
});

async function readAll(bytes: Buffer): Promise<KafkaMessage[]> {
  const messages: KafkaMessage[] = [];
  for (const { batch } of splitBatches(bytes).batches) {
    const reader = await openRecords(batch);
    while (!reader.isDone) messages.push(reader.next());
  }
  return messages;
}

describe("record batches", () => {
  test("read as they were written, compressed or not, whatever a fetch cuts off", async () => {
    const random = drawnRandom();
    for (let round = 0; round < 50; round++) {
      const [first, second] = [someRecords(random, 2 ** 40), someRecords(random, 2 ** 40 + 1_000)];
      const [one, two] = [batchBytes({ records: first, isGzip: round % 2 === 0 }), batchBytes({ records: second })];
      const expected = [...first, ...second].map(({ headers: _headers, ...record }) => record);
      expect((await readAll(Buffer.concat([one, two]))).map(shown)).toEqual(expected);
      const cut = Buffer.concat([one, two.subarray(0, pick(random, two.length))]);
      expect(await readAll(cut)).toHaveLength(first.length);
    }
  });

  test("have the broker's time where the topic goes by that, and none where there is none", async () => {
    const records = [5, 7].map((timestampMs, offset) => ({ offset, timestampMs, key: null, value: null }));
    expect((await readAll(batchBytes({ records, attributes: 8 }))).map(({ timestampMs }) => timestampMs)).toEqual([
      7, 7,
    ]);
  });

  test("of transactions that were aborted are marked, and no others", () => {
    const value = Buffer.from("v");
    const data = (offset: number, producerId: bigint, attributes = 16) =>
      batchBytes({ records: [{ offset, timestampMs: 0, key: null, value }], producerId, attributes });
    const marker = (offset: number, producerId: bigint, type: number) =>
      batchBytes({
        records: [{ offset, timestampMs: 0, key: Buffer.from([0, 0, 0, type]), value }],
        producerId,
        attributes: 48,
      });
    const bytes = [
      data(0, 1n),
      data(1, 2n),
      data(2, 1n),
      marker(3, 1n, 0),
      data(4, 1n),
      data(5, 3n, 0),
      marker(6, 1n, 1),
    ];
    const { batches: fetched } = splitBatches(Buffer.concat([...bytes, data(7, 2n), marker(8, 2n, 0), data(9, 2n)]));
    // Two began before what was fetched, as kafkajs 2.2.4 does not expect.
    markAborted(fetched, [
      { producerId: "2", firstOffset: "-3" },
      { producerId: "1", firstOffset: "-5" },
    ]);
    expect(fetched.filter(({ batch }) => batch.isAborted).map(({ batch }) => batch.baseOffset)).toEqual([0, 1, 2, 7]);
    expect(fetched.filter(({ batch }) => batch.isControl).map(({ batch }) => batch.baseOffset)).toEqual([3, 6, 8]);
  });

  test("are refused by their header where they are none, and never read past their end", async () => {
    const random = drawnRandom();
    for (let round = 0; round < 3_000; round++) {
      const bytes = batchBytes({ records: someRecords(random, 10), isGzip: random.next() < 0.3 });
      for (let i = 0; i <= pick(random, 3); i++) bytes[pick(random, bytes.length)] = pick(random, 256);
      const found = await readAll(bytes).catch((error: unknown) => error);
      const messages = Array.isArray(found) ? (found as KafkaMessage[]) : [];
      expect(Array.isArray(found) || found instanceof Error).toBe(true);
      for (const message of messages) expect(valueOf(message)?.length ?? 0).toBeLessThan(10_000);
    }
  });

  test("end where something comes that is none, which does not hurt those before it", () => {
    const fine = batchBytes({ records: someRecords(drawnRandom(), 10) });
    const [unknown, short] = [Buffer.from(fine), Buffer.from(fine)];
    unknown[16] = 3;
    short.writeInt32BE(20, 8);
    for (const [bytes, problem] of [
      [unknown, "the broker sends messages in format 3, which is unknown"],
      [short, "the broker sends a record batch with a length of 20 bytes"],
    ] as const) {
      const found = splitBatches(Buffer.concat([fine, bytes, fine]));
      expect([found.batches.length, found.problem]).toEqual([1, problem]);
    }
  });
});

describe("a queue of batches", () => {
  const push = (queue: BatchQueue, bytes: Buffer) => {
    for (const { batch } of splitBatches(bytes).batches) queue.push(batch);
  };

  test("gives messages in order, as many as are asked for, once", async () => {
    const random = drawnRandom();
    for (let round = 0; round < 30; round++) {
      const queue = new BatchQueue(new FetchMemory());
      const sent: number[] = [];
      let nulls = 0;
      for (let from = 0; from < 1_000;) {
        const records = someRecords(random, from);
        for (const { offset, value } of records) {
          if (value === null) nulls++;
          else sent.push(offset);
        }
        from = (records.at(-1)?.offset ?? from) + 1;
        push(queue, batchBytes({ records, isGzip: random.next() < 0.5 }));
      }
      const got: number[] = [];
      for (let to = 0; !queue.isEmpty;) {
        const gathered = await queue.take(to, { maxMessages: 1 + pick(random, 40), maxBytes: 1 + pick(random, 5_000) });
        got.push(...gathered.messages.map(({ offset }) => offset));
        nulls -= gathered.tombstones;
        expect(gathered.to).toBeGreaterThan(to);
        to = gathered.to;
      }
      expect([got, nulls, queue.messages, queue.sizeBytes]).toEqual([sent, 0, 0, 0]);
    }
  });

  test("passes over what came before, control batches, aborted and empty ones", async () => {
    const queue = new BatchQueue(new FetchMemory());
    const record = (offset: number): MadeRecord => ({ offset, timestampMs: 0, key: null, value: Buffer.from("v") });
    push(queue, batchBytes({ records: [0, 1, 2, 3].map(record) }));
    push(queue, batchBytes({ records: [record(4)], attributes: 48 }));
    push(queue, batchBytes({ records: [], baseOffset: 5, lastOffset: 9 }));
    const { messages, to } = await queue.take(2, LIMITS);
    expect([messages.map(({ offset }) => offset), to]).toEqual([[2, 3], 10]);
  });

  test("tells of a batch that cannot be read, and goes on after it", async () => {
    const queue = new BatchQueue(new FetchMemory());
    const records = [7, 8].map((offset) => ({ offset, timestampMs: 0, key: null, value: Buffer.from("v") }));
    const damaged = batchBytes({ records, isGzip: true });
    damaged.fill(0, 61, 80);
    push(queue, Buffer.concat([damaged, batchBytes({ records: [{ ...records[0], offset: 9 } as MadeRecord] })]));
    const { messages, unreadable, to } = await queue.take(0, LIMITS);
    expect(messages.map(({ offset }) => offset)).toEqual([9]);
    expect(unreadable).toMatchObject([
      { first: 7, last: 8, reason: expect.stringMatching(/^offsets 7 to 8 cannot be read: /) },
    ]);
    expect(to).toBe(10);
  });
});
