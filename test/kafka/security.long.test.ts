import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { SASL_MECHANISMS } from "../../src/ingest/inputs/kafka/options.ts";
import { certificateFolder, makeCertificate } from "../../src/io/http/tls.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { findKafka, startBroker, type Broker } from "./broker.test-kit.ts";
import { createTopic, kafkaEnv, numberWhen, rowsWhen, sendTo } from "./topics.test-kit.ts";

/** A broker that wants TLS and SASL. */

const lib = findKafka();
const USER = "reader";
const PASSWORD = "correct horse";
const FAILED = "Kafka cannot be read now";

describe.skipIf(lib === undefined)("a broker with TLS and SASL", () => {
  let broker: Broker;
  let authorityPath: string;
  let home: string;
  let remove: () => Promise<void>;
  let engine: Engine | undefined;

  beforeAll(async () => {
    const folder = certificateFolder();
    const authority = await makeCertificate(folder, "authority", { names: [] });
    const certificate = await makeCertificate(folder, "broker", { authority });
    authorityPath = authority.certPath;
    broker = await startBroker(lib ?? "", { certificate, user: USER, password: PASSWORD });
    broker.setScramPassword(256, USER, PASSWORD);
    broker.setScramPassword(512, USER, PASSWORD);
    ({ home, remove } = await temporaryHome());
  }, 180_000);
  afterEach(async () => {
    await engine?.stop("SIGKILL");
    engine = undefined;
  });
  afterAll(async () => {
    await broker.stop();
    await remove();
  });

  const start = async (topic: string, env: Record<string, string> = {}): Promise<Engine> => {
    engine = await startEngine({
      home,
      env: {
        ...kafkaEnv(broker, `${topic}:default.${topic}`),
        ENGINE_KAFKA_BROKERS: broker.secureAddress,
        // Of its own: a group waits for members that were killed.
        ENGINE_KAFKA_GROUP: topic,
        ENGINE_KAFKA_TLS: "true",
        ENGINE_KAFKA_SASL_MECHANISM: "scram-sha-512",
        ENGINE_KAFKA_SASL_USERNAME: USER,
        ENGINE_KAFKA_SASL_PASSWORD: PASSWORD,
        NODE_EXTRA_CA_CERTS: authorityPath,
        ...env,
      },
    });
    return engine;
  };
  const send = (topic: string, first: number): Promise<void> =>
    sendTo(
      broker,
      topic,
      Array.from({ length: 10 }, (_, i) => ({ value: `{"n":${first + i}}` })),
    );
  /** Resolves when a server has tried several times. */
  const hasFailedOften = (server: Engine): Promise<void> =>
    eventually(async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^engine_kafka_session_failures_total (\d+)$/m.exec(metrics)?.[1] ?? 0) >= 4;
    });
  const linesOf = (server: Engine): string[] =>
    server
      .log()
      .split("\n")
      .filter((line) => line.includes(FAILED));
  /** How many lines there may be in that time. */
  const mostSince = (startedMs: number): number => 1 + Math.floor((performance.now() - startedMs) / 60_000);
  const shown = "SELECT state, partition, reason FROM system.kafka WHERE topic";

  test.each(SASL_MECHANISMS)(
    "is read with %s",
    async (mechanism) => {
      const topic = mechanism.replaceAll("-", "_");
      await createTopic(broker, topic);
      await send(topic, 0);
      const running = await start(topic, { ENGINE_KAFKA_SASL_MECHANISM: mechanism });
      await numberWhen(running, 10, `SELECT count(DISTINCT n) FROM ${topic}`);
      expect(await rowsOf(running.url, `SELECT count(*)::INT AS n FROM ${topic}`)).toEqual([{ n: 10 }]);
    },
    120_000,
  );

  test("that changed its password is told of once a minute, and read on when it is mended", async () => {
    await createTopic(broker, "password");
    await send("password", 0);
    const running = await start("password");
    await numberWhen(running, 10, "SELECT count(*) FROM password");
    broker.setScramPassword(512, USER, "another");
    const startedMs = performance.now();
    await broker.kill();
    await broker.start();
    await send("password", 10);
    const states = await rowsWhen(
      running,
      2,
      `${shown} = 'password' AND state = 'backing_off' AND reason LIKE '%redentials%' ORDER BY partition NULLS FIRST`,
    );
    expect(states).toMatchObject([{ partition: null }, { partition: 0 }]);
    await hasFailedOften(running);
    expect(await rowsOf(running.url, "SELECT count(*)::INT AS n FROM password")).toEqual([{ n: 10 }]);
    expect(linesOf(running).length).toBeGreaterThan(0);
    expect(linesOf(running).length).toBeLessThanOrEqual(mostSince(startedMs));
    broker.setScramPassword(512, USER, PASSWORD);
    await numberWhen(running, 20, "SELECT count(DISTINCT n) FROM password");
    await rowsWhen(running, 1, `${shown} = 'password' AND state = 'running'`);
    expect(await rowsOf(running.url, "SELECT count(*)::INT AS n FROM password")).toEqual([{ n: 20 }]);
    await numberWhen(running, 1, "SELECT count(*) FROM system.kafka WHERE topic = 'password'");
  }, 240_000);

  test("whose certificate nobody vouches for is told of once a minute, and read by a server that trusts it", async () => {
    await createTopic(broker, "unknown");
    await send("unknown", 0);
    const startedMs = performance.now();
    const wary = await start("unknown", { NODE_EXTRA_CA_CERTS: "" });
    const [state] = await rowsWhen(wary, 1, `${shown} = 'unknown' AND state = 'backing_off'`);
    expect(state).toMatchObject({ partition: null, reason: expect.stringContaining("NODE_EXTRA_CA_CERTS") });
    await hasFailedOften(wary);
    expect(linesOf(wary)[0]).toContain("NODE_EXTRA_CA_CERTS");
    expect(linesOf(wary).length).toBeLessThanOrEqual(mostSince(startedMs));
    expect((await fetch(`${wary.url}/health`)).status).toBe(200);
    await wary.stop();
    const trusting = await start("unknown");
    await numberWhen(trusting, 10, "SELECT count(DISTINCT n) FROM unknown");
    await numberWhen(trusting, 1, "SELECT count(*) FROM system.kafka WHERE topic = 'unknown'");
  }, 240_000);
});
