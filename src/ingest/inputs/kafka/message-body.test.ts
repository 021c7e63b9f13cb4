import { describe, expect, test } from "vitest";
import { releaseShared } from "../../../core/buffer-pool.ts";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { letterLine } from "./dead-letters.ts";
import { openBatch, splitBatches } from "./fetched-batches.ts";
import { bodyOf, linesOf, obviousProblem } from "./message-body.ts";
import { batchBytes } from "./record-batch.test-kit.ts";
import type { KafkaMessage } from "./record-batch.ts";

const NOW = 42n;

function messageOf(value: string | Buffer, timestampMs = 5): KafkaMessage {
  const bytes = Buffer.concat([Buffer.from("before"), Buffer.from(value), Buffer.from("{after}\n\n")]);
  const valueStart = 6;
  return {
    offset: 1,
    timestampMs,
    bytes,
    keyStart: 0,
    keyEnd: -1,
    valueStart,
    valueEnd: valueStart + Buffer.from(value).length,
  };
}

const lines = (value: string | Buffer) => linesOf(messageOf(value)).toString();

describe("a message as lines", () => {
  test.each([
    ['{"a":1}', '{"a":1}'],
    ['{"a":1}\n', '{"a":1}'],
    ['{\n"a": 1.50e3,\r\n"b":"x\\ny"}\n', '{ "a": 1.50e3,  "b":"x\\ny"}'],
    ['\n\n{\n"a":1}', '  { "a":1}'],
    ['{"a":1}\n{"b":2}', '{"a":1}\n{"b":2}'],
    ['\n{"a":1}\n\n{"b":2}\n', '\n{"a":1}\n\n{"b":2}'],
    // Neither form: it stays no object.
    ['{"a":1\n"b":2}', '{"a":1 "b":2}'],
    ['{"a":"x\ny"}', '{"a":"x y"}'],
  ])("%j", (value, expected) => {
    expect(lines(value)).toBe(expected);
  });

  test("an object over several lines is the same object on one", () => {
    const random = drawnRandom();
    const make = (depth: number): unknown => {
      const kind = depth > 3 ? 0 : Math.floor(random.next() * 4);
      if (kind === 0) return random.next() < 0.5 ? random.next() * 1e9 : 'é\n\r\t{}[]"\\';
      if (kind === 1) return Array.from({ length: 3 }, () => make(depth + 1));
      return { a: make(depth + 1), "b\n": make(depth + 1), c: null };
    };
    for (let round = 0; round < 300; round++) {
      const value = { first: make(0), second: make(0) };
      const text = JSON.stringify(value, undefined, round % 5).replaceAll("\n", round % 2 === 0 ? "\r\n" : "\n");
      const line = lines(text);
      expect(line).not.toContain("\n");
      expect(JSON.parse(line)).toEqual(value);
    }
  });
});

test("a body has a line for each, with the time of its message", () => {
  const { bytes, arrivals } = bodyOf(
    [messageOf('{"a":1}', 7), messageOf('{"a":2}\n{"a":3}', 8), messageOf('{\n"a":4}', -1), messageOf("{}", 1e15)],
    NOW,
  );
  expect(bytes.toString()).toBe('{"a":1}\n{"a":2}\n{"a":3}\n{ "a":4}\n{}\n');
  expect([...arrivals]).toEqual([7_000_000n, 8_000_000n, 8_000_000n, NOW, NOW]);
  const large = bodyOf([messageOf(`{"a":"${"x".repeat(100_000)}"}`)], NOW);
  expect(large.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
  releaseShared(large.bytes);
});

test("messages of batches have the same lines together as alone, whatever lies between them", async () => {
  const random = drawnRandom();
  const pick = (below: number) => Math.floor(random.next() * below);
  const values = [
    '{"a":1}',
    '{"a":"\\n"}',
    '{"a":1}\n{"b":2}',
    '{\n"a":4}',
    "{",
    '{"é":"日本"}',
    `{"a":"${"x".repeat(400)}"}`,
  ];
  for (let round = 0; round < 200; round++) {
    const messages: KafkaMessage[] = [];
    for (let first = 0; first < 30; first += 10) {
      const records = Array.from({ length: 10 }, (_, i) => ({
        offset: first + i,
        timestampMs: 1_000 + pick(4),
        // Their lengths look like line feeds, too.
        key: random.next() < 0.3 ? null : Buffer.from("\n".repeat(random.next() < 0.9 ? 5 : 100)),
        value: random.next() < 0.1 ? null : Buffer.from(values[pick(round % 2 === 0 ? 2 : values.length)] ?? ""),
        headers: pick(2),
      }));
      for (const { batch } of splitBatches(batchBytes({ records })).batches) {
        const reader = await openBatch(batch);
        while (!reader.isDone) messages.push(reader.next());
      }
    }
    const sent = messages.filter(({ valueEnd }) => valueEnd !== -1 && random.next() < 0.9);
    const body = bodyOf(sent, NOW);
    const found = body.bytes
      .toString()
      .split("\n")
      .map((line) => line.trim());
    const alone = sent.map((message) => linesOf(message).toString());
    expect(found).toEqual([...alone.flatMap((text) => text.split("\n").map((line) => line.trim())), ""]);
    const times = sent.flatMap(({ timestampMs }, i) =>
      (alone[i] ?? "").split("\n").map(() => BigInt(timestampMs) * 1_000_000n),
    );
    expect([...body.arrivals]).toEqual(times);
  }
});

test.each([
  ["", true],
  [" \r\n\t", true],
  ["{", false],
  [" {}", false],
  ["x", false],
])("%j is obviously no row: %j", (value, is) => {
  expect(obviousProblem(messageOf(value)) !== undefined).toBe(is);
});

test("a letter is one line of JSON, whatever the message", () => {
  const random = drawnRandom();
  for (let round = 0; round < 300; round++) {
    const value = Buffer.from(Array.from({ length: 20 }, () => Math.floor(random.next() * 256)));
    const line = letterLine("t", 3, { offset: 9, reason: "no", message: messageOf(value) });
    expect(line).not.toContain("\n");
    const read = JSON.parse(line) as { value: string; encoding: BufferEncoding };
    expect(Buffer.from(read.value, read.encoding).equals(value)).toBe(true);
  }
  const gone = JSON.parse(letterLine("t", 3, { offset: 9, reason: "gone" })) as object;
  expect(gone).toEqual({ topic: "t", partition: 3, offset: 9, reason: "gone" });
  const huge = letterLine("t", 0, { offset: 1, reason: "big", message: messageOf(Buffer.alloc(9 << 20, 1)) });
  expect(huge.length).toBeLessThan(60 << 20);
  expect(huge).toContain("only the first 8388608 bytes of the value are kept");
});
