import {
  address,
  bool,
  formatAddress,
  integer,
  oneOf,
  password,
  type Address,
  type Kind,
} from "../../../config/kinds.ts";
import { option, optional } from "../../../config/option.ts";
import { isName } from "../../../core/names.ts";

/** A topic, and the table that its messages go to. */
export type TopicMapping = { readonly topic: string; readonly database: string; readonly table: string };

const TOPIC = /^[A-Za-z0-9._-]{1,249}$/;
const MAX_TOPICS = 1_000;
const MAX_BROKERS = 100;

const brokers: Kind<readonly Address[]> = {
  accepts: `1 to ${MAX_BROKERS} addresses as HOST:PORT, separated by commas`,
  label: "list of host:port",
  parse(text, context) {
    const found = text.split(",").map((item) => address.parse(item.trim(), context));
    const isFine = found.length <= MAX_BROKERS && found.every((one) => one !== undefined && one.port > 0);
    return isFine ? (found as Address[]) : undefined;
  },
  format: (value) => value.map(formatAddress).join(","),
};

const topics: Kind<readonly TopicMapping[]> = {
  accepts: `1 to ${MAX_TOPICS} times TOPIC:DATABASE.TABLE, separated by commas, with every topic once`,
  label: "list of `topic:database.table`",
  parse(text) {
    const found = text.split(",").map((item) => mappingIn(item.trim()));
    const names = new Set(found.map((one) => one?.topic));
    const isFine = found.length <= MAX_TOPICS && names.size === found.length && !names.has(undefined);
    return isFine ? (found as TopicMapping[]) : undefined;
  },
  format: (value) => value.map(({ topic, database, table }) => `${topic}:${database}.${table}`).join(","),
};

function mappingIn(text: string): TopicMapping | undefined {
  const [, topic = "", database = "", table = ""] = /^([^:]+):([^:.]+)\.([^:.]+)$/.exec(text) ?? [];
  const isTopic = TOPIC.test(topic) && topic !== "." && topic !== "..";
  return isTopic && isName(database) && isName(table) ? { topic, database, table } : undefined;
}

const groupName: Kind<string> = {
  accepts: "1 to 255 visible ASCII characters",
  label: "name",
  parse: (text) => (/^[\x21-\x7e]{1,255}$/.test(text) ? text : undefined),
  format: String,
};

const saslUser: Kind<string> = {
  accepts: "1 to 255 characters",
  label: "user name",
  parse: (text) => (text !== "" && text.length <= 255 && !/\p{Cc}/u.test(text) ? text : undefined),
  format: String,
};

export const SASL_MECHANISMS = ["plain", "scram-sha-256", "scram-sha-512"] as const;

export const KAFKA_OPTIONS = {
  kafkaEnabled: option({
    env: "ENGINE_KAFKA_ENABLED",
    toml: "kafka.enabled",
    kind: bool,
    default: false,
    side: "S",
    doc: "Whether servers with the role `ingest` read topics of Kafka: see [Kafka](kafka.md).",
  }),
  kafkaBrokers: option({
    env: "ENGINE_KAFKA_BROKERS",
    toml: "kafka.brokers",
    kind: brokers,
    default: [{ host: "localhost", port: 9092 }],
    side: "S",
    doc: "Brokers that are asked first; they name the others.",
  }),
  kafkaGroup: option({
    env: "ENGINE_KAFKA_GROUP",
    toml: "kafka.group",
    kind: groupName,
    default: "engine-ingest",
    side: "S",
    doc: "Consumer group: its members share the partitions.",
  }),
  kafkaTopics: optional({
    env: "ENGINE_KAFKA_TOPICS",
    toml: "kafka.topics",
    kind: topics,
    whenUnset: "none",
    side: "S",
    doc: "Topics to read, each with the table that its messages go to.",
  }),
  kafkaBatchSize: option({
    env: "ENGINE_KAFKA_BATCH_SIZE",
    toml: "kafka.batch_size",
    kind: integer({ min: 1, max: 100_000 }),
    default: 500,
    side: "S",
    doc: "Messages of a partition that are committed together at most; a busy topic is read faster with 10,000.",
  }),
  kafkaBatchTimeoutMs: option({
    env: "ENGINE_KAFKA_BATCH_TIMEOUT_MS",
    toml: "kafka.batch_timeout_ms",
    kind: integer({ min: 1, max: 60_000 }),
    default: 500,
    side: "S",
    doc: "Milliseconds that the first message of a batch waits for others at most.",
  }),
  kafkaTls: option({
    env: "ENGINE_KAFKA_TLS",
    toml: "kafka.tls",
    kind: bool,
    default: false,
    side: "S",
    doc: "Whether brokers are reached over TLS. `NODE_EXTRA_CA_CERTS` names a file with further authorities.",
  }),
  kafkaSaslMechanism: optional({
    env: "ENGINE_KAFKA_SASL_MECHANISM",
    toml: "kafka.sasl_mechanism",
    kind: oneOf(SASL_MECHANISMS),
    whenUnset: "no authentication",
    side: "S",
    doc: "How to authenticate to brokers. `plain` without TLS sends the password as it is.",
  }),
  kafkaSaslUsername: optional({
    env: "ENGINE_KAFKA_SASL_USERNAME",
    toml: "kafka.sasl_username",
    kind: saslUser,
    whenUnset: "none",
    side: "S",
    doc: "User of the mechanism.",
  }),
  kafkaSaslPassword: optional({
    env: "ENGINE_KAFKA_SASL_PASSWORD",
    toml: "kafka.sasl_password",
    kind: password,
    whenUnset: "none",
    side: "S",
    secret: true,
    doc: "Password of the mechanism.",
  }),
} as const;
