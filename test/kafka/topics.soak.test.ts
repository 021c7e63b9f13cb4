import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runChild } from "../../src/cli/cli.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { findKafka, JAVA_CODECS, startBroker, type Broker } from "./broker.test-kit.ts";
import { createTopic, kafkaEnv, numberWhen, rowsWhen, sendTo, withAdmin } from "./topics.test-kit.ts";

/** What happens to topics, and what the Java client writes. */

const lib = findKafka();

describe.skipIf(lib === undefined)("a topic", () => {
  let broker: Broker;
  let home: string;
  let remove: () => Promise<void>;
  let engine: Engine | undefined;

  beforeAll(async () => {
    broker = await startBroker(lib ?? "");
    ({ home, remove } = await temporaryHome());
  }, 120_000);
  afterAll(async () => {
    await engine?.stop("SIGKILL");
    await broker.stop();
    await remove();
  });

  const start = async (topics: string, env: Record<string, string> = {}): Promise<Engine> => {
    await engine?.stop();
    engine = await startEngine({ home, env: { ...kafkaEnv(broker, topics), ...env } });
    return engine;
  };

  test.each(JAVA_CODECS)(
    "that the Java client compresses with %s is read, and what it aborts is not",
    async (codec) => {
      const topic = `java-${codec}`;
      await createTopic(broker, topic);
      const lines = (first: number) =>
        Array.from({ length: 3_000 }, (_, i) => JSON.stringify({ n: first + i, text: `é ${"abc".repeat(i % 50)}` }));
      await broker.produceByJava(topic, codec, lines(0));
      await broker.produceByJava(topic, codec, lines(10_000), "abort");
      await broker.produceByJava(topic, codec, lines(20_000), "commit");
      const running = await start(`${topic}:default.java_${codec}`);
      await numberWhen(running, 6_000, `SELECT count(*) FROM java_${codec}`);
      const sql = `SELECT count(DISTINCT n)::INT AS n, min(n::INT) AS first, max(n::INT) AS last, sum(length(text))::INT AS chars FROM java_${codec}`;
      const chars = 2 * lines(0).reduce((sum, line) => sum + (JSON.parse(line) as { text: string }).text.length, 0);
      expect(await rowsOf(running.url, sql)).toEqual([{ n: 6_000, first: 0, last: 22_999, chars }]);
    },
    240_000,
  );

  test("with a batch of 300,000 messages, or one of 70 MB, does not stop", async () => {
    await createTopic(broker, "large");
    await broker.produceByJava(
      "large",
      "zstd",
      Array.from({ length: 300_000 }, () => "{}"),
    );
    await broker.produceByJava("large", "zstd", [`{"body":"${"x".repeat(70_000_000)}"}`, '{"body":"after"}']);
    const running = await start("large:default.large", { ENGINE_KAFKA_BATCH_SIZE: "50000" });
    await numberWhen(running, 300_001, "SELECT count(*) FROM large");
    const [letter] = await rowsWhen(
      running,
      1,
      "SELECT reason, length(value)::INT AS kept FROM kafka_dead_letters l WHERE topic = 'large'",
    );
    expect(letter).toEqual({
      reason: expect.stringMatching(/^the value has 70000011 bytes; .* are kept$/),
      kept: 8 << 20,
    });
  }, 240_000);

  test("whose start has moved past the position goes on there, and says what is missing", async () => {
    await createTopic(broker, "short");
    await sendTo(
      broker,
      "short",
      Array.from({ length: 10 }, (_, n) => ({ value: `{"n":${n}}` })),
    );
    const first = await start("short:default.short");
    await numberWhen(first, 10, "SELECT count(*) FROM short");
    await first.stop();
    engine = undefined;
    await sendTo(
      broker,
      "short",
      Array.from({ length: 10 }, (_, n) => ({ value: `{"n":${10 + n}}` })),
    );
    await withAdmin(broker, async (admin) => {
      // kafkajs knows where partitions are once it has asked for them.
      await admin.fetchTopicOffsets("short");
      await admin.deleteTopicRecords({ topic: "short", partitions: [{ partition: 0, offset: "15" }] });
    });
    const second = await start("short:default.short");
    await numberWhen(second, 15, "SELECT count(*) FROM short");
    const letters = await rowsOf(
      second.url,
      "SELECT l.offset, value, reason FROM kafka_dead_letters l WHERE topic = 'short'",
    );
    const reason = "offsets 10 to 14 were deleted from the topic before they were read";
    expect(letters).toEqual([{ offset: 10, value: null, reason }]);
    expect(await (await fetch(`${second.url}/metrics`)).text()).toContain(
      'engine_kafka_missing_messages_total{topic="short"} 5',
    );
  }, 240_000);

  test("that was made anew is not read until its position is reset, and others are", async () => {
    await createTopic(broker, "anew");
    await createTopic(broker, "other");
    await sendTo(
      broker,
      "anew",
      Array.from({ length: 5 }, (_, n) => ({ value: `{"n":${n}}` })),
    );
    const topics = "anew:default.anew,other:default.other";
    const first = await start(topics);
    await numberWhen(first, 5, "SELECT count(*) FROM anew");
    await first.stop();
    engine = undefined;
    await withAdmin(broker, (admin) => admin.deleteTopics({ topics: ["anew"] }));
    await createTopic(broker, "anew");
    await sendTo(broker, "anew", [{ value: '{"n":100}' }]);
    await sendTo(broker, "other", [{ value: "{}" }]);
    const second = await start(topics);
    await numberWhen(second, 1, "SELECT count(*) FROM other");
    const [stalled] = await rowsWhen(
      second,
      1,
      "SELECT reason FROM system.kafka WHERE topic = 'anew' AND state = 'stalled'",
    );
    expect(stalled?.["reason"]).toContain("its position is 5 and the topic ends at 1, so it was probably made anew");
    expect(stalled?.["reason"]).toContain("`engine ingest positions --reset kafka:anew:0`");
    const reset = await runChild(["ingest", "positions", "--reset", "kafka:anew:0"], { env: { ENGINE_HOME: home } });
    expect(reset).toEqual({ code: 0, stdout: "kafka:anew:0 begins anew\n", stderr: "" });
    await numberWhen(second, 6, "SELECT count(*) FROM anew");
  }, 240_000);

  test("with poison in every other message, and messages that no table takes, never stops", async () => {
    await createTopic(broker, "poison");
    const messages = Array.from({ length: 4_000 }, (_, n) => ({ value: n % 2 === 0 ? `{"n":${n}}` : `{"n":${n}` }));
    await sendTo(broker, "poison", messages);
    const running = await start("poison:default.poison", { ENGINE_KAFKA_BATCH_SIZE: "3000" });
    await numberWhen(running, 2_000, "SELECT count(*) FROM poison");
    await numberWhen(
      running,
      2_000,
      "SELECT count(DISTINCT l.offset) FROM kafka_dead_letters l WHERE topic = 'poison' AND l.offset % 2 = 1",
    );
    expect(
      await rowsOf(running.url, "SELECT count(*)::INT AS n FROM kafka_dead_letters l WHERE topic = 'poison'"),
    ).toEqual([{ n: 2_000 }]);
  }, 240_000);

  test("that does not exist yet is read when it does, and so are partitions that come", async () => {
    const running = await start("late:default.late");
    await createTopic(broker, "late");
    await sendTo(broker, "late", [{ value: '{"n":1}' }]);
    await numberWhen(running, 1, "SELECT count(*) FROM late");
    await withAdmin(broker, (admin) => admin.createPartitions({ topicPartitions: [{ topic: "late", count: 2 }] }));
    await sendTo(broker, "late", [{ value: '{"n":2}', partition: 1 }]);
    await numberWhen(running, 2, "SELECT count(*) FROM late");
    expect(await rowsOf(running.url, "SELECT n FROM late ORDER BY n")).toEqual([{ n: "1" }, { n: "2" }]);
  }, 240_000);
});
