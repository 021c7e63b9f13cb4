import { rowsOf } from "../support/client.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import type { Broker } from "./broker.test-kit.ts";

/** What tests do with topics, and with servers that read them. */

export type Sent = { value: string | Buffer | null; key?: string; partition?: number; timestamp?: string };

export async function withAdmin<T>(
  broker: Broker,
  task: (admin: ReturnType<Broker["kafka"]["admin"]>) => Promise<T>,
): Promise<T> {
  const admin = broker.kafka.admin();
  await admin.connect();
  try {
    return await task(admin);
  } finally {
    await admin.disconnect();
  }
}

/** Creates a topic; one that was just deleted may be in the way for a moment. */
export async function createTopic(broker: Broker, topic: string, numPartitions = 1): Promise<void> {
  await withAdmin(broker, async (admin) => {
    await eventually(async () => {
      const made = admin.createTopics({ topics: [{ topic, numPartitions }], waitForLeaders: true });
      return await made.catch(() => false);
    });
  });
}

export async function sendTo(broker: Broker, topic: string, messages: readonly Sent[]): Promise<void> {
  const producer = broker.kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [...messages] });
  await producer.disconnect();
}

/** Settings of a server that reads these topics. */
export function kafkaEnv(broker: Broker, topics: string): Record<string, string> {
  return {
    ENGINE_KAFKA_ENABLED: "true",
    ENGINE_KAFKA_BROKERS: broker.address,
    ENGINE_KAFKA_TOPICS: topics,
    ENGINE_KAFKA_BATCH_TIMEOUT_MS: "50",
  };
}

/** A server that is asked; its log is shown where an answer does not come. */
type Read = { url: string; log?: () => string };

/** What a server says of its topics, and the end of its log. */
async function stateOf({ url, log }: Read): Promise<string> {
  const topics = await rowsOf(url, "FROM system.kafka").catch(String);
  const lines = (log?.() ?? "").split("\n").filter((line) => !line.includes('"msg":"answered"'));
  return `${JSON.stringify(topics)}\n${lines.join("\n").slice(-4_000)}`;
}

/** Rows of a query once there are that many; its table may not exist yet. */
export async function rowsWhen(
  engine: Read,
  count: number,
  sql: string,
  timeoutMs = 90_000,
): Promise<Record<string, unknown>[]> {
  let rows: Record<string, unknown>[] = [];
  try {
    await eventually(async () => {
      rows = await rowsOf(engine.url, sql).catch(() => []);
      return rows.length >= count;
    }, timeoutMs);
  } catch (error) {
    throw new Error(`${rows.length} rows instead of ${count}: ${sql}\n${await stateOf(engine)}`, { cause: error });
  }
  return rows;
}

/** The one number that a query gives, once it is that. */
export async function numberWhen(engine: Read, wanted: number, sql: string, timeoutMs = 90_000): Promise<void> {
  let found: unknown;
  try {
    await eventually(async () => {
      const [row] = await rowsOf(engine.url, sql).catch(() => []);
      found = row === undefined ? undefined : Number(Object.values(row)[0]);
      return found === wanted;
    }, timeoutMs);
  } catch (error) {
    throw new Error(`${String(found)} instead of ${wanted}: ${sql}\n${await stateOf(engine)}`, { cause: error });
  }
}
