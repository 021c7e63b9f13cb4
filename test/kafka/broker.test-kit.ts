import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Kafka } from "kafkajs";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import type { TlsFiles } from "../../src/io/http/tls.ts";
import { loadKafkaJs } from "../../src/ingest/inputs/kafka/kafkajs.ts";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";

/** A real broker of Kafka (KRaft, one node) on a folder and ports of its own. */
export type Broker = {
  address: string;
  /** Where it takes SASL over TLS, if it does. */
  secureAddress: string;
  /** A client for tests: producers and admin calls. */
  kafka: Kafka;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on what it has, and resolves when it answers. */
  start(): Promise<void>;
  /** Ends it and removes what it stored. */
  stop(): Promise<void>;
  /** Sets what a user authenticates with by SCRAM. */
  setScramPassword(bits: 256 | 512, user: string, password: string): void;
  /** Sends lines with the Java client, each as a message, in batches of that codec; `abort` undoes the transaction. */
  produceByJava(topic: string, codec: JavaCodec, lines: readonly string[], end?: "commit" | "abort"): Promise<void>;
};

/** Has the broker listen for SASL over TLS, too. The user is for `plain`; those of SCRAM come later. */
export type Secured = { certificate: TlsFiles; user: string; password: string };

export const JAVA_CODECS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
export type JavaCodec = (typeof JAVA_CODECS)[number];

const INSTALLER = fileURLToPath(new URL("../../.ci/install-kafka", import.meta.url));
const PRODUCER = fileURLToPath(new URL("./Produce.java", import.meta.url));
const START_WITHIN_MS = 90_000;

/**
 * Where the class files of Kafka are, fetched where they are missing. Undefined, with a line on standard error, where
 * something lacks that they need; that is an error in CI.
 */
export function findKafka(): string | undefined {
  const problem = lacking("Java", "Maven");
  if (problem !== undefined) {
    if ((process.env["CI"] ?? "") !== "") throw new Error(problem);
    process.stderr.write(`not run: tests against a broker of Kafka: ${problem}\n`);
    return undefined;
  }
  const { status, stdout, stderr } = spawnSync("bash", [INSTALLER], { encoding: "utf8", timeout: 600_000 });
  if (status !== 0) throw new Error(`Kafka could not be installed:\n${stderr}`);
  return stdout.trim();
}

/** Starts a broker; rejects with its log when it does not answer in time. */
export async function startBroker(lib: string, secured?: Secured): Promise<Broker> {
  const folder = mkdtempSync(join(tmpdir(), "engine-kafka-"));
  const address = `127.0.0.1:${await freePort()}`;
  const secureAddress = `127.0.0.1:${await freePort()}`;
  const plain = propertiesOf(folder, address, `127.0.0.1:${await freePort()}`);
  const security = secured === undefined ? {} : securityOf(plain, folder, secureAddress, secured);
  const settings: Properties = { ...plain, ...security };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(folder, "server.properties"), lines.join(""));
  const java = (...words: string[]) => spawnSync("java", [...JAVA, "-cp", `${lib}/*`, ...words], { encoding: "utf8" });
  const id = java("kafka.tools.StorageTool", "random-uuid").stdout.trim();
  const properties = join(folder, "server.properties");
  const formatted = java("kafka.tools.StorageTool", "format", "-t", id, "-c", properties, "--standalone");
  if (formatted.status !== 0) throw new Error(`the broker's folder could not be made:\n${formatted.stderr}`);
  const kafka = clientOf(address);
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    signalProcess(child.pid, "SIGKILL");
    await gone;
  };
  const start = async (): Promise<void> => {
    const argv = ["-Xmx384m", ...JAVA, "-cp", `${lib}/*`, "kafka.Kafka", properties];
    child = endsWithThisProcess(spawn("java", argv, { stdio: ["ignore", "pipe", "pipe"] }));
    await answers(child, kafka);
  };
  await start();
  return {
    address,
    secureAddress,
    kafka,
    kill,
    start,
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, maxRetries: 5 });
    },
    setScramPassword(bits, user, password) {
      const config = ["--alter", "--add-config", `SCRAM-SHA-${bits}=[password=${password}]`];
      const words = ["--bootstrap-server", address, ...config, "--entity-type", "users", "--entity-name", user];
      const { status, stderr } = java("kafka.admin.ConfigCommand", ...words);
      if (status !== 0) throw new Error(`the password could not be set:\n${stderr}`);
    },
    produceByJava: (topic, codec, lines, end) => produce(lib, [address, topic, codec, end ?? "none"], lines),
  };
}

const JAVA = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];

type Properties = Readonly<Record<string, string | number | boolean>>;

function propertiesOf(folder: string, address: string, controllerAddress: string): Properties {
  return {
    "process.roles": "broker,controller",
    "node.id": 1,
    listeners: `PLAINTEXT://${address},CONTROLLER://${controllerAddress}`,
    "advertised.listeners": `PLAINTEXT://${address}`,
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": controllerAddress,
    "log.dirs": join(folder, "logs"),
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "log.retention.check.interval.ms": 1_000,
    "log.segment.delete.delay.ms": 0,
    "broker.session.timeout.ms": 2_000,
    "broker.heartbeat.interval.ms": 500,
    "message.max.bytes": 100 * 1024 * 1024,
    "auto.create.topics.enable": false,
  };
}

/** What is to be added for a listener with SASL over TLS; the broker and its controller go on without. */
function securityOf(
  plain: Properties,
  folder: string,
  address: string,
  { certificate, user, password }: Secured,
): Properties {
  const store = join(folder, "certificate.pem");
  writeFileSync(store, [certificate.keyPath, certificate.certPath].map((path) => readFileSync(path, "utf8")).join(""));
  const modules = "org.apache.kafka.common.security";
  const listener = "listener.name.sasl_ssl";
  return {
    listeners: `${plain["listeners"]},SASL_SSL://${address}`,
    "advertised.listeners": `${plain["advertised.listeners"]},SASL_SSL://${address}`,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": store,
    [`${listener}.plain.sasl.jaas.config`]: `${modules}.plain.PlainLoginModule required user_${user}="${password}";`,
    [`${listener}.scram-sha-256.sasl.jaas.config`]: `${modules}.scram.ScramLoginModule required;`,
    [`${listener}.scram-sha-512.sasl.jaas.config`]: `${modules}.scram.ScramLoginModule required;`,
  };
}

function clientOf(address: string): Kafka {
  const { Kafka: Client, logLevel } = loadKafkaJs();
  return new Client({
    clientId: "test",
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { retries: 1e6, initialRetryTime: 50, maxRetryTime: 500 },
  });
}

async function answers(child: ChildProcess, kafka: Kafka): Promise<void> {
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => (log = (log + text).slice(-20_000)));
  }
  try {
    // By its log: a port that answers might be somebody else's.
    await eventually(() => {
      if (child.exitCode !== null) throw new Error(`the broker ended with code ${child.exitCode}`);
      return log.includes("Kafka Server started");
    }, START_WITHIN_MS);
    const admin = kafka.admin();
    await admin.connect();
    await admin.listTopics();
    await admin.disconnect();
  } catch (error) {
    signalProcess(child.pid, "SIGKILL");
    throw new Error(`the broker does not answer; its log:\n${log}`, { cause: error });
  }
}

async function produce(lib: string, words: readonly string[], lines: readonly string[]): Promise<void> {
  const child = spawn("java", [...JAVA, "-cp", `${lib}/*`, PRODUCER, ...words], { stdio: ["pipe", "ignore", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`the Java producer ended with code ${code}:\n${errors}`);
}
