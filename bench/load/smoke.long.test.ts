import { expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { findKafka } from "../../test/kafka/broker.test-kit.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as runCluster } from "./cluster.ts";
import { main as runKafka } from "./kafka.ts";

/** The benchmarks of whole write paths in their smallest form: that they run and that their sides agree. */
const printed = keepPrinted();
const kafka = findKafka();

test("a mode that does not exist is refused by name", async () => {
  await expect(runCluster(["--mode", "async"])).rejects.toThrow("async is no mode");
});

test.skipIf(kafka === undefined)("a topic is stored, and read and dropped", { timeout: 240_000 }, async () => {
  await runKafka(["--messages", "5000", "--partitions", "2", "--rounds", "1", "--batch-size", "500"]);
  expect(printed.join("\n")).toMatch(/^kafkajs, read and dropped( +[0-9.]+){2}( +1.00){2}$/m);
});

test.skipIf(lacks("PostgreSQL", "S3 server", "ps"))(
  "a staged cluster is measured through its edge and past it",
  { timeout: 240_000 },
  async () => {
    const small = ["--rows", "1000", "--seconds", "1", "--rounds", "1", "--body-kib", "64"];
    await runCluster(["--mode", "staged", "--no-single", ...small]);
    const text = printed.join("\n");
    expect(text).toMatch(/^staged, edge( +[0-9.]+){11}$/m);
    expect(text).toMatch(/^staged, direct( +[0-9.]+){11}$/m);
    expect(text).toMatch(/^staged, edge: the edge takes [0-9.]+× the CPU of the ingest node/m);
  },
);
