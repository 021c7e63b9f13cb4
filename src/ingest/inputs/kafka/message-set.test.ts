import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { BatchQueue } from "./batch-queue.ts";
import { splitBatches } from "./fetched-batches.ts";
import { FetchMemory } from "./memory.ts";
import { batchBytes } from "./record-batch.test-kit.ts";
import { keyOf, valueOf, type KafkaMessage } from "./record-batch.ts";

/** Messages in old formats, as kafkajs writes them. */

type Entry = { key: string | null; value: string | null; timestamp: number };
type Encoded = { buffer: Buffer };
type Version = 0 | 1;

const load = createRequire(import.meta.url);
const messageSet = load("kafkajs/src/protocol/messageSet/index.js") as (options: {
  messageVersion: Version;
  compression: number;
  entries: readonly (Omit<Entry, "value"> & { value: string | Buffer | null; compression?: number })[];
}) => Encoded;

const GZIP = 1;
const LIMITS = { maxMessages: 1_000, maxBytes: 1 << 20 };
const entries: Entry[] = [
  { key: null, value: '{"n":0}', timestamp: 1_000 },
  { key: "k", value: "é", timestamp: 2_000 },
  { key: "", value: "", timestamp: 1_500 },
];

/** One entry, with the offset that a broker gives it. */
function entry(version: Version, offset: number, content: Parameters<typeof messageSet>[0]["entries"][number]): Buffer {
  const { buffer } = messageSet({ messageVersion: version, compression: 0, entries: [content] });
  const bytes = Buffer.from(buffer);
  bytes.writeBigInt64BE(BigInt(offset), 0);
  return bytes;
}

/** Entries within one, the first of them with that offset. */
function compressed(version: Version, first: number, attributes = GZIP): Buffer {
  const inner = Buffer.from(messageSet({ messageVersion: version, compression: GZIP, entries }).buffer);
  if (version === 0) {
    // There inner offsets are those of the topic.
    for (let at = 0, i = 0; at < inner.length; at += 12 + inner.readInt32BE(at + 8)) {
      inner.writeBigInt64BE(BigInt(first + i++), at);
    }
  }
  const outer = { key: null, value: gzipSync(inner), timestamp: 9_000, compression: GZIP };
  const bytes = entry(version, first + entries.length - 1, outer);
  bytes[17] = attributes;
  return bytes;
}

async function readAll(bytes: Buffer) {
  const queue = new BatchQueue(new FetchMemory());
  for (const { batch } of splitBatches(bytes).batches) queue.push(batch);
  return await queue.take(0, LIMITS);
}

const shown = (message: KafkaMessage) => ({
  offset: message.offset,
  timestamp: message.timestampMs,
  key: keyOf(message)?.toString() ?? null,
  value: valueOf(message)?.toString() ?? null,
});

const expected = (version: Version, first: number) =>
  entries.map((one, i) => ({ ...one, offset: first + i, timestamp: version === 0 ? -1 : one.timestamp }));

test.each([0, 1] as const)(
  "messages in format %i are read, compressed or not, in front of newer ones",
  async (version) => {
    const newer = batchBytes({ records: [{ offset: 30, timestampMs: 7, key: null, value: Buffer.from("new") }] });
    const plain = entries.map((one, i) => entry(version, 10 + i, one));
    const bytes = Buffer.concat([...plain, compressed(version, 20), newer]);
    const { messages, to } = await readAll(bytes);
    const all = [...expected(version, 10), ...expected(version, 20)];
    expect(messages.map(shown)).toEqual([...all, { offset: 30, timestamp: 7, key: null, value: "new" }]);
    expect(to).toBe(31);
    const cut = bytes.subarray(0, bytes.length - newer.length - 1);
    expect((await readAll(cut)).messages).toHaveLength(3);
  },
);

test("messages in format 1 have the broker's time where the topic goes by that, and null is a tombstone", async () => {
  const { messages } = await readAll(compressed(1, 5, GZIP | 8));
  expect(messages.map(({ timestampMs }) => timestampMs)).toEqual([9_000, 9_000, 9_000]);
  const tombstone = await readAll(entry(1, 3, { key: "k", value: null, timestamp: 1 }));
  expect(tombstone).toMatchObject({ messages: [], tombstones: 1, to: 4 });
});

test("a damaged entry is told of by its offset, and those after it are read", async () => {
  const random = drawnRandom();
  const [first, last] = [3, 9].map((offset) => entry(1, offset, { key: "a", value: "v", timestamp: 1 })) as [
    Buffer,
    Buffer,
  ];
  const damaged = compressed(1, 5);
  damaged.fill(0, 40, 60);
  const { messages, unreadable, to } = await readAll(Buffer.concat([first, damaged, last]));
  expect(messages.map(({ offset }) => offset)).toEqual([3, 9]);
  expect(unreadable).toMatchObject([{ first: 4, last: 7, reason: expect.stringMatching(/^offsets 4 to 7 cannot/) }]);
  expect(to).toBe(10);
  for (let round = 0; round < 2_000; round++) {
    const bytes = random.next() < 0.5 ? compressed(random.next() < 0.5 ? 0 : 1, 5) : Buffer.from(first);
    // Behind the size, so that it stays an entry.
    for (let i = 0; i < 3; i++)
      bytes[12 + Math.floor(random.next() * (bytes.length - 12))] = Math.floor(random.next() * 256);
    const found = await readAll(bytes);
    for (const message of found.messages) expect(message.offset).toBeLessThanOrEqual(found.to);
  }
});
