import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { rowsOf } from "../../test/support/client.ts";
import { systemClock } from "../../src/core/clock.ts";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { findKafka, startBroker, type Broker } from "../../test/kafka/broker.test-kit.ts";
import { createTopic } from "../../test/kafka/topics.test-kit.ts";
import { readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";

/**
 * How fast does the engine store a topic that is there already, against kafkajs reading it and dropping what it reads?
 * The clock of each side starts with its first message, and the engine's stops when the last row is visible.
 */
const OPTIONS = {
  messages: { type: "string", default: "1000000" },
  partitions: { type: "string", default: "4" },
  bytes: { type: "string", default: "300" },
  codec: { type: "string", default: "none" },
  rounds: { type: "string", default: "3" },
  "batch-size": { type: "string", default: "20000" },
} as const;

const CHILD = fileURLToPath(new URL("./kafka-drop-child.ts", import.meta.url));
const POLL_MS = 50;
const PER_SEND = 2_000;

/** Of one side, in one round. */
type Taken = { seconds: number; cpuSeconds: number };
type Run = { messages: number; partitions: number; bytes: number; batchSize: number; topic: string };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const lib = findKafka();
  if (lib === undefined) throw new Error("there is no Java, or no Maven, to run Kafka with");
  const counts = {
    messages: options.count("messages"),
    partitions: options.count("partitions"),
    bytes: options.count("bytes"),
  };
  const run: Run = { ...counts, batchSize: options.count("batch-size"), topic: "bench" };
  const broker = await startBroker(lib);
  try {
    await createTopic(broker, run.topic, run.partitions);
    await fill(broker, run);
    const engine: Taken[] = [];
    const dropped: Taken[] = [];
    for (let round = 0; round < options.count("rounds"); round++) {
      engine.push(await storeAll(broker, run));
      dropped.push(dropAll(broker, run));
    }
    report(run, engine, dropped);
  } finally {
    await broker.stop();
  }
}

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

function report(run: Run, engine: readonly Taken[], dropped: readonly Taken[]): void {
  console.log(machine());
  console.log(
    `${run.messages} messages of ${run.bytes} bytes in ${run.partitions} partitions, ${run.batchSize} a batch`,
  );
  const ofOne = (taken: readonly Taken[]) => ({
    perSecond: run.messages / median(taken.map(({ seconds }) => seconds)),
    perCpuSecond: run.messages / median(taken.map(({ cpuSeconds }) => cpuSeconds)),
  });
  const [stored, read] = [ofOne(engine), ofOne(dropped)];
  const row = (name: string, side: typeof stored): string[] => {
    const figures = [side.perSecond, side.perCpuSecond, side.perSecond / read.perSecond];
    return [name, ...figures.map(shown), shown(side.perCpuSecond / read.perCpuSecond)];
  };
  printTable(
    ["side", "messages/s", "per CPU-s", "ratio", "of CPU"],
    [row("engine, stored and visible", stored), row("kafkajs, read and dropped", read)],
  );
}

if (import.meta.main) await main(process.argv.slice(2));
