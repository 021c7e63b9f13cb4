import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { findKafka, startBroker, type Broker } from "../../test/kafka/broker.test-kit.ts";
import { createTopic } from "../../test/kafka/topics.test-kit.ts";
import { rowsOf } from "../../test/support/client.ts";
import { systemClock } from "../../src/core/clock.ts";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { startBenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "load/kafka",
  question:
    "How fast does the engine store a topic that is there already, against kafkajs that reads it and drops what it reads?",
  notMeasured:
    "Connecting: the clock of each side starts with its first messages, and the engine's stops when the last row is " +
    "visible. The broker works on the same cores.",
  options: z.strictObject({
    messages: count.default(1_000_000).describe("of the topic"),
    partitions: count.default(4).describe("of the topic"),
    bytes: count.default(300).describe("of one message"),
    batchSize: count.default(20_000).describe("messages of one commit (ENGINE_KAFKA_BATCH_SIZE)"),
  }),
  measures: {
    wall: { unit: "messages/s", better: "more", doc: "stored and visible, or read and dropped" },
    cpu: { unit: "messages/CPU-s", better: "more", doc: "per CPU second of the server, or of the reader" },
  },
  rounds: 3,
  hasPeers: true,
  open: async (options) => {
    const lib = findKafka();
    if (lib === undefined) throw new Error("load/kafka needs Java and Maven on this machine, to run Kafka with");
    const run: Run = { ...options, topic: "bench" };
    const broker = await startBroker(lib);
    try {
      await createTopic(broker, run.topic, run.partitions);
      await fill(broker, run);
    } catch (error) {
      await broker.stop();
      throw error;
    }
    const valuesOf = ({ seconds, cpuSeconds }: Taken) => ({
      wall: run.messages / seconds,
      cpu: run.messages / cpuSeconds,
    });
    return {
      sides: [
        { name: "engine", round: async () => valuesOf(await storeAll(broker, run)) },
        { name: "kafkajs", round: () => Promise.resolve(valuesOf(dropAll(broker, run))) },
      ],
      close: () => broker.stop(),
    };
  },
});

const CHILD = fileURLToPath(new URL("./kafka-drop-child.ts", import.meta.url));
const POLL_MS = 50;
const PER_SEND = 2_000;

/** Of one side, in one round. */
type Taken = { seconds: number; cpuSeconds: number };
type Run = { messages: number; partitions: number; bytes: number; batchSize: number; topic: string };

async function fill(broker: Broker, { topic, messages, bytes }: Run): Promise<void> {
  const producer = broker.kafka.producer();
  await producer.connect();
  for (let from = 0; from < messages; from += PER_SEND) {
    const some = Array.from({ length: Math.min(PER_SEND, messages - from) }, (_, i) => {
      const head = `{"at":"2026-01-01T00:00:00Z","n":${from + i},"label":"request","body":"`;
      return { value: `${head}${textOf(from + i, Math.max(1, bytes - head.length - 2))}"}` };
    });
    await producer.send({ topic, messages: some, acks: 1 });
  }
  await producer.disconnect();
}

/** Words that differ from one message to the next: what compares texts has to end somewhere. */
function textOf(n: number, length: number): string {
  const word = ((n * 2_654_435_761) % 2 ** 32).toString(36);
  return `${word} `.repeat(Math.ceil(length / (word.length + 1))).slice(0, length);
}

/** From the first row that is visible to the last, and what was stored before the first counted out. */
async function storeAll(broker: Broker, run: Run): Promise<Taken> {
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "n", type: { kind: "long" } },
    { name: "label", type: { kind: "string" } },
    { name: "body", type: { kind: "string" } },
  ] as const;
  const server = await startBenchServer({
    tables: [{ database: "default", name: "bench", columns }],
    env: {
      ENGINE_KAFKA_ENABLED: "true",
      ENGINE_KAFKA_BROKERS: broker.address,
      ENGINE_KAFKA_TOPICS: `${run.topic}:default.bench`,
      ENGINE_KAFKA_BATCH_SIZE: String(run.batchSize),
    },
  });
  try {
    const started = await countWhen(server.url, (count) => count > 0);
    const cpuBefore = server.cpuSeconds();
    const ended = await countWhen(server.url, (count) => count >= run.messages);
    const cpuSeconds = server.cpuSeconds() - cpuBefore;
    const [checked] = await rowsOf(server.url, "SELECT count(*)::INT AS rows, sum(n)::BIGINT AS n FROM bench");
    const sum = (run.messages * (run.messages - 1)) / 2;
    if (Number(checked?.["rows"]) !== run.messages || Number(checked?.["n"]) !== sum) {
      throw new Error(`the engine has ${JSON.stringify(checked)} of ${run.messages} messages`);
    }
    const share = run.messages / (run.messages - started.count);
    return { seconds: ((ended.atMs - started.atMs) / 1_000) * share, cpuSeconds: cpuSeconds * share };
  } finally {
    await server.stop();
  }
}

/** By the server's own count: it counts rows once their commit is visible, and a query would take from what is measured. */
async function countWhen(url: string, holds: (count: number) => boolean): Promise<{ count: number; atMs: number }> {
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const count = Number(/^engine_kafka_rows_total\{topic="bench"\} (\d+)/m.exec(metrics)?.[1] ?? 0);
    if (holds(count)) return { count, atMs: systemClock.monotonicMs() };
    await delay(POLL_MS);
  }
}

function dropAll(broker: Broker, { topic, messages }: Run): Taken {
  const words = [CHILD, broker.address, topic, String(messages)];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: "utf8" })) as Taken;
}
