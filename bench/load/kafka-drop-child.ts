import { Kafka, logLevel } from "kafkajs";
import { systemClock } from "../../src/core/clock.ts";

/** Reads so many messages of a topic with kafkajs as it is, drops them, and prints what that took: BROKER TOPIC COUNT. */

const [broker = "", topic = "", count = "0"] = process.argv.slice(2);
const client = new Kafka({ clientId: "drop", brokers: [broker], logLevel: logLevel.NOTHING });
const consumer = client.consumer({
  groupId: `drop-${process.pid}`,
  maxBytesPerPartition: 4 * 1024 * 1024,
  maxBytes: 16 * 1024 * 1024,
  maxWaitTimeInMs: 250,
});
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: true });
const done = Promise.withResolvers<void>();
let left = Number(count);
let startedMs: number | undefined;
let cpuBefore = process.cpuUsage();
await consumer.run({
  autoCommit: false,
  eachBatch: ({ batch }) => {
    if (startedMs === undefined) {
      startedMs = systemClock.monotonicMs();
      cpuBefore = process.cpuUsage();
    }
    left -= batch.messages.length;
    if (left <= 0) done.resolve();
    return Promise.resolve();
  },
});
await done.promise;
const seconds = (systemClock.monotonicMs() - (startedMs ?? 0)) / 1_000;
const { user, system } = process.cpuUsage(cpuBefore);
await consumer.disconnect();
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6 })}\n`);
