import { expect, test } from "vitest";
import { StartupError } from "../../../core/errors.ts";
import { topicsOf, type KafkaConfig } from "./client.ts";
import { KAFKA_OPTIONS } from "./options.ts";

const context = { baseDir: "/", userHome: "/" };
const parseTopics = (text: string) => KAFKA_OPTIONS.kafkaTopics.kind.parse(text, context);
const parseBrokers = (text: string) => KAFKA_OPTIONS.kafkaBrokers.kind.parse(text, context);

test("topics name their tables", () => {
  const found = parseTopics("a.b-c_1:logs.events, orders:default.orders");
  expect(found).toEqual([
    { topic: "a.b-c_1", database: "logs", table: "events" },
    { topic: "orders", database: "default", table: "orders" },
  ]);
});

test.each([
  "",
  "orders",
  "orders:default",
  "orders:default.",
  "orders:.t",
  ":d.t",
  "o:d.t,",
  "o:d.t,o:d.u",
  "o:d.t.u",
  "o:p:d.t",
  "..:d.t",
  "o/p:d.t",
  "o:system.t",
  "o:_d.t",
  `${"x".repeat(250)}:d.t`,
  "ö:d.t",
])("%j is no list of topics", (text) => {
  expect(parseTopics(text)).toBeUndefined();
});

test("brokers are hosts with ports", () => {
  expect(parseBrokers("a:9092, [::1]:9093")).toHaveLength(2);
  for (const text of ["", "a", "a:0", "a:9092,", "a:99999", "http://a:9092"])
    expect(parseBrokers(text)).toBeUndefined();
});

const config = (more: Partial<KafkaConfig>) => ({ kafkaTopics: parseTopics("o:d.t"), ...more }) as KafkaConfig;

test.each([
  [{ kafkaTopics: undefined }, "ENGINE_KAFKA_TOPICS names no topic"],
  [{ kafkaSaslMechanism: "plain" as const, kafkaSaslPassword: "p" }, "ENGINE_KAFKA_SASL_USERNAME is not set"],
  [{ kafkaSaslMechanism: "plain" as const, kafkaSaslUsername: "u" }, "ENGINE_KAFKA_SASL_PASSWORD is not set"],
  [{ kafkaSaslUsername: "u" }, "ENGINE_KAFKA_SASL_MECHANISM does not say how to use it"],
])("%j ends the start", (more, message) => {
  expect(() => topicsOf(config(more))).toThrow(StartupError);
  expect(() => topicsOf(config(more))).toThrow(message);
});
