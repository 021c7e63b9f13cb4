import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { seededRandom } from "../../src/core/random.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";
import { findKafka, startBroker, type Broker } from "./broker.test-kit.ts";
import { createTopic, kafkaEnv, numberWhen, rowsWhen, sendTo, withAdmin } from "./topics.test-kit.ts";

/**
 * Two nodes on one catalog that read one topic, while they and the broker are killed or stopped: each message once.
 * `ENGINE_TEST_KAFKA_MESSAGES` and `ENGINE_TEST_SEED` say how many, and which schedule; `ENGINE_TEST_KAFKA_STOPPED_SECS`
 * for how long one stands still.
 */

const lib = findKafka();
const programs = findPostgresPrograms()?.folder;
if (programs === undefined) process.stderr.write("nodes that read Kafka are not tested: PostgreSQL is not installed\n");

const MESSAGES = Number(process.env["ENGINE_TEST_KAFKA_MESSAGES"] ?? 100_000);
const SEED = drawnSeed();
const MIN_KILLS = 12;
const PARTITIONS = 4;
const PER_SEND = 500;
/** Longer than the group waits for a member, which is 30 seconds. */
const STOPPED_MS = Number(process.env["ENGINE_TEST_KAFKA_STOPPED_SECS"] ?? 65) * 1_000;
/** What a million messages take on two busy cores, with room. */
const STORED_WITHIN_MS = 300_000 + MESSAGES;

describe.skipIf(lib === undefined || programs === undefined)("two nodes", () => {
  let broker: Broker;
  let postgres: TestServer;
  let catalogUrl: string;
  let home: string;
  let remove: () => Promise<void>;
  const nodes: (Engine | undefined)[] = [undefined, undefined];

  beforeAll(async () => {
    broker = await startBroker(lib ?? "");
    postgres = await startTestServer(programs ?? "", {});
    catalogUrl = await postgres.createDatabase();
    ({ home, remove } = await temporaryHome());
  }, 120_000);
  afterAll(async () => {
    await broker.stop();
    await postgres.stop();
    await remove();
  });

  const start = async (i: number, topics: string, more: Record<string, string> = {}): Promise<Engine> => {
    const own = join(home, `node-${i}`);
    await mkdir(own, { recursive: true });
    const env = {
      ENGINE_CATALOG_URL: catalogUrl,
      ENGINE_LOCAL_DATA: join(home, "data"),
      ENGINE_KAFKA_BATCH_SIZE: "2000",
      ...more,
    };
    const node = await startEngine({ home: own, env: { ...kafkaEnv(broker, topics), ...env } });
    nodes[i] = node;
    return node;
  };
  afterEach(async () => {
    for (const node of nodes.splice(0, 2, undefined, undefined)) await node?.stop("SIGKILL");
  });
  const produce = async (topic: string, first: number, count: number): Promise<void> => {
    const producer = broker.kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    for (let from = first; from < first + count; from += PER_SEND) {
      const messages = Array.from({ length: Math.min(PER_SEND, first + count - from) }, (_, i) => {
        const n = from + i;
        return { value: n % 1_000 === 999 ? `{"n":${n}` : `{"n":${n}}`, partition: n % PARTITIONS };
      });
      await producer.send({ topic, messages });
    }
    await producer.disconnect();
  };
  /** A metric of the node, over all partitions. */
  const metricOf = async (
    node: Engine,
    name: "lag_messages" | "fenced_total" | "rebalances_total",
  ): Promise<number> => {
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    const found = metrics.matchAll(new RegExp(`^engine_kafka_${name}(?:\\{.*\\})? (\\d+)$`, "gm"));
    return [...found].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const inTopic = (topic: string): Promise<number> =>
    withAdmin(broker, async (admin) =>
      (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0),
    );

  test(
    "store each message once while one of them stands still for longer than the group waits",
    async () => {
      await createTopic(broker, "still", PARTITIONS);
      // It gathers for a while, so that it is stopped with messages that it has fetched and not stored.
      const gathers = { ENGINE_KAFKA_BATCH_TIMEOUT_MS: "15000", ENGINE_KAFKA_BATCH_SIZE: "100000" };
      const first = await start(0, "still:default.still", gathers);
      const second = await start(1, "still:default.still");
      await produce("still", 0, 5_000);
      await numberWhen(second, 4_995, "SELECT count(*) FROM still");
      await eventually(async () => (await metricOf(first, "lag_messages")) === 0);
      await produce("still", 5_000, 5_000);
      await eventually(async () => (await metricOf(first, "lag_messages")) > 0);
      const rebalances = await metricOf(first, "rebalances_total");
      signalProcess(first.pid, "SIGSTOP");
      const thawed = delay(STOPPED_MS).then(() => signalProcess(first.pid, "SIGCONT"));
      await produce("still", 10_000, 25_000);
      await numberWhen(second, 34_965, "SELECT count(*) FROM still", STOPPED_MS + 120_000);
      await thawed;
      // It tries to store that, and the position has moved past it; or the group tells it first that it was out.
      await eventually(async () => {
        const [fenced, joined] = [await metricOf(first, "fenced_total"), await metricOf(first, "rebalances_total")];
        return fenced > 0 || joined > rebalances;
      });
      await sendTo(
        broker,
        "still",
        Array.from({ length: 1_000 }, (_, i) => ({ value: `{"n":${100_000 + i}}`, partition: i % 4 })),
      );
      await numberWhen(first, 35_965, "SELECT count(DISTINCT n) FROM still", 120_000);
      expect(await rowsOf(second.url, "SELECT count(*)::INT AS n FROM still")).toEqual([{ n: 35_965 }]);
      await numberWhen(second, 35, "SELECT count(*) FROM kafka_dead_letters l WHERE topic = 'still'");
    },
    STOPPED_MS + 400_000,
  );

  test("of different topics are each given the partitions of their own, whoever leads the group", async () => {
    for (const topic of ["left", "both", "right"]) await createTopic(broker, topic, PARTITIONS);
    const left = "left:default.rollout,both:default.rollout";
    const right = "right:default.rollout,both:default.rollout";
    // The one that is there first leads.
    const first = await start(0, left);
    const reader = await start(1, right);
    const sent = async (from: number): Promise<void> => {
      for (const [i, topic] of ["left", "both", "right"].entries()) {
        const messages = Array.from({ length: 40 }, (_, n) => ({
          value: `{"n":${from + 40 * i + n}}`,
          partition: n % PARTITIONS,
        }));
        await sendTo(broker, topic, messages);
      }
    };
    await sent(0);
    await numberWhen(reader, 120, "SELECT count(DISTINCT n) FROM rollout");
    await first.stop();
    // Now the second leads, and the first comes back.
    await start(0, left);
    await sent(1_000);
    await numberWhen(reader, 240, "SELECT count(DISTINCT n) FROM rollout");
    expect(await rowsOf(reader.url, "SELECT count(*)::INT AS n FROM rollout")).toEqual([{ n: 240 }]);
    const topics = await rowsWhen(
      reader,
      3,
      "SELECT topic FROM system.kafka WHERE topic IN ('left', 'both', 'right') AND state = 'running' " +
        `GROUP BY topic HAVING count(*) = ${PARTITIONS} ORDER BY topic`,
    );
    expect(topics.map(({ topic }) => topic)).toEqual(["both", "left", "right"]);
  }, 240_000);

  test(
    `store each of ${MESSAGES} messages once while they, the broker and the catalog are killed (seed ${SEED})`,
    async () => {
      const random = seededRandom(SEED);
      await createTopic(broker, "chaos", PARTITIONS);
      const topics = "chaos:default.chaos";
      await Promise.all([start(0, topics), start(1, topics)]);
      const progress = { isProducing: true };
      const producing = produce("chaos", 0, MESSAGES).finally(() => (progress.isProducing = false));
      for (let kills = 0; progress.isProducing || kills < MIN_KILLS; kills++) {
        await delay(500 + random.next() * 2_500);
        const victim = Math.floor(random.next() * 4);
        if (victim === 2) {
          await broker.kill();
          await delay(random.next() * 1_000);
          await broker.start();
        } else if (victim === 3) {
          await postgres.kill();
          await postgres.start();
        } else {
          await nodes[victim]?.stop("SIGKILL");
          await start(victim, topics);
        }
      }
      await producing;
      const sent = await inTopic("chaos");
      const letters = MESSAGES / 1_000;
      const [node] = nodes;
      if (node === undefined) throw new Error("there is no node");
      // A producer that lost an answer sends again: what is in the topic twice is two messages.
      const repeated = sent - MESSAGES;
      await numberWhen(node, MESSAGES - letters, "SELECT count(DISTINCT n) FROM chaos", STORED_WITHIN_MS);
      await numberWhen(
        node,
        letters,
        "SELECT count(DISTINCT value) FROM kafka_dead_letters l WHERE topic = 'chaos'",
        60_000,
      );
      const stored = "(SELECT count(*) FROM chaos) + (SELECT count(*) FROM kafka_dead_letters l WHERE topic = 'chaos')";
      await numberWhen(node, sent, `SELECT ${stored} AS n`, 60_000);
      expect(repeated).toBeLessThan(MESSAGES / 10);
    },
    2 * STORED_WITHIN_MS + 300_000,
  );
});
