import type { Kafka, LogEntry, SASLOptions } from "kafkajs";
import type { OptionValues } from "../../../config/option.ts";
import { formatAddress } from "../../../config/kinds.ts";
import { messageOf, StartupError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { loadKafkaJs } from "./kafkajs.ts";
import { KAFKA_OPTIONS, type TopicMapping } from "./options.ts";

export type KafkaConfig = OptionValues<typeof KAFKA_OPTIONS>;

/** kafkajs gives a call up after so many attempts; whoever made it begins anew. */
const RETRIES = 5;
const RETRY_MS = { initialRetryTime: 100, maxRetryTime: 1_500 };
const CONNECT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 30_000;

/**
 * The topics that are to be read.
 * @throws StartupError (exit code 2) where options that belong together do not.
 */
export function topicsOf(config: KafkaConfig): readonly TopicMapping[] {
  const { kafkaTopics, kafkaSaslMechanism, kafkaSaslUsername, kafkaSaslPassword } = config;
  if (kafkaTopics === undefined) {
    throw wrong(
      `${env("kafkaEnabled")} is on, and ${env("kafkaTopics")} names no topic: set it to TOPIC:DATABASE.TABLE`,
    );
  }
  const credentials = { kafkaSaslUsername, kafkaSaslPassword };
  for (const [name, value] of Object.entries(credentials) as [keyof typeof credentials, string | undefined][]) {
    if (kafkaSaslMechanism !== undefined && value === undefined) {
      throw wrong(`${env("kafkaSaslMechanism")} is ${kafkaSaslMechanism}, and ${env(name)} is not set`);
    }
    if (kafkaSaslMechanism === undefined && value !== undefined) {
      throw wrong(`${env(name)} is set, and ${env("kafkaSaslMechanism")} does not say how to use it`);
    }
  }
  return kafkaTopics;
}

function env(name: keyof typeof KAFKA_OPTIONS): string {
  return KAFKA_OPTIONS[name].env ?? name;
}

function wrong(message: string): StartupError {
  return new StartupError(message, 2);
}

/** A client of the brokers that the configuration names. It connects when it is used. */
export function openKafka(config: KafkaConfig, log: Log): Kafka {
  const { Kafka: Client, logLevel } = loadKafkaJs();
  return new Client({
    clientId: "engine",
    brokers: config.kafkaBrokers.map(formatAddress),
    ssl: config.kafkaTls,
    ...saslOf(config),
    connectionTimeout: CONNECT_WITHIN_MS,
    requestTimeout: ANSWER_WITHIN_MS,
    retry: { ...RETRY_MS, retries: RETRIES },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => logged(log, entry),
  });
}

function saslOf({ kafkaSaslMechanism: mechanism, kafkaSaslUsername, kafkaSaslPassword }: KafkaConfig) {
  if (mechanism === undefined) return {};
  const sasl = { mechanism, username: kafkaSaslUsername ?? "", password: kafkaSaslPassword ?? "" };
  return { sasl: sasl as SASLOptions };
}

/** What Node.js calls a certificate that no authority it knows has signed. */
const UNTRUSTED = /^(SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/;

/** Why the brokers cannot be read, and what to do where that is known. */
export function problemOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!UNTRUSTED.test(String((cause as NodeJS.ErrnoException).code))) continue;
    return `${messageOf(error)}; name a file with the certificate of your own authority in NODE_EXTRA_CA_CERTS`;
  }
  return messageOf(error);
}

/** kafkajs tells of every attempt; what comes of it is logged by whoever made it. */
function logged(
  log: Log,
  { namespace, log: { message, timestamp: _timestamp, logger: _logger, ...fields } }: LogEntry,
): void {
  log.debug({ kafkajs: namespace, ...fields }, message);
}
