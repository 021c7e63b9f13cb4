import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { findKafka, startBroker, type Broker } from "./broker.test-kit.ts";
import { createTopic, kafkaEnv, rowsWhen, sendTo } from "./topics.test-kit.ts";

/** A real broker and a real server, from outside. */

const lib = findKafka();

describe.skipIf(lib === undefined)("topics of Kafka", () => {
  let broker: Broker;
  let home: string;
  let remove: () => Promise<void>;

  beforeAll(async () => {
    broker = await startBroker(lib ?? "");
    ({ home, remove } = await temporaryHome());
  }, 120_000);
  afterAll(async () => {
    await broker.stop();
    await remove();
  });

  const start = (topics: string, env: Record<string, string> = {}): Promise<Engine> =>
    startEngine({ home, env: { ...kafkaEnv(broker, topics), ...env } });

  test("become rows, with dead letters beside them, and are gone on with after a restart", async () => {
    await createTopic(broker, "orders", 2);
    const at = "2026-01-02T03:04:05.678Z";
    const timestamp = String(Date.parse(at));
    await sendTo(broker, "orders", [
      { value: '{"id":1,"at":"2020-01-01T00:00:00Z"}', partition: 0 },
      { value: '{\r\n  "id": 2,\n  "body": "two\\nlines"\n}\n', partition: 0, timestamp },
      { value: '{"id":3}\n\n{"id":4}\n', partition: 0, timestamp },
      { value: '{"id":5', partition: 0, key: "k5", timestamp },
      { value: null, partition: 0 },
      { value: "", partition: 0 },
      { value: Buffer.from([0x7b, 0xff, 0x7d]), partition: 0 },
      { value: "[1]", partition: 0 },
      { value: '{"id":6}', partition: 1, timestamp },
    ]);
    const first = await start("orders:default.orders");
    const rows = await rowsWhen(first, 5, "SELECT id, t.at AS at, body FROM orders t ORDER BY id");
    expect(rows).toEqual([
      { id: "1", at: "2020-01-01T00:00:00Z", body: null },
      { id: "2", at, body: "two\nlines" },
      { id: "3", at, body: null },
      { id: "4", at, body: null },
      { id: "6", at, body: null },
    ]);
    const letters = await rowsWhen(first, 4, "SELECT * FROM kafka_dead_letters l ORDER BY l.offset");
    expect(letters).toMatchObject([
      { topic: "orders", partition: 0, offset: 3, key: "k5", value: '{"id":5', encoding: "utf8", at },
      { offset: 5, value: "", reason: "the value is empty: a message is a JSON object" },
      { offset: 6, value: "e/99", encoding: "base64" },
      { offset: 7, value: "[1]", encoding: "utf8" },
    ]);
    for (const { reason } of letters) expect(reason).toMatch(/./);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    await sendTo(broker, "orders", [{ value: '{"id":7}', partition: 0 }]);
    const second = await start("orders:default.orders", { ENGINE_INGEST_MODE: "staged" });
    await rowsWhen(second, 6, "SELECT id FROM orders");
    const ids = await rowsOf(second.url, "SELECT id FROM orders ORDER BY id");
    expect(ids.map(({ id }) => id)).toEqual(["1", "2", "3", "4", "6", "7"]);
    expect(await rowsOf(second.url, "SELECT count(*)::INT AS n FROM kafka_dead_letters")).toEqual([{ n: 4 }]);
    const shown = await rowsWhen(
      second,
      2,
      "SELECT topic, partition, database, table_name, state, position, lag FROM system.kafka " +
        "WHERE state = 'running' AND lag = 0 AND position > 0 ORDER BY partition",
    );
    const common = { topic: "orders", database: "default", table_name: "orders", state: "running", lag: 0 };
    expect(shown).toEqual([
      { ...common, partition: 0, position: 9 },
      { ...common, partition: 1, position: 1 },
    ]);
    const metrics = await (await fetch(`${second.url}/metrics`)).text();
    expect(metrics).toMatch(/^engine_kafka_rows_total\{topic="orders"\} 1$/m);
    expect(await second.stop()).toEqual({ code: 0, signal: null });
  }, 180_000);
});
