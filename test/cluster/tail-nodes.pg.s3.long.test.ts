import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, test } from "vitest";
import { findVersitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { checkReaders, hasMerged, ODD, randomOf, TailReader, TailWriter } from "./tail-readers.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";

/** Several nodes on PostgreSQL and S3: readers go from one to the other, through an edge too, while nodes are killed. */

const KILLS = Number(process.env["TAIL_KILLS"] ?? 4);
const canRun = (await findVersitygw()) !== undefined;

describe.skipIf(!canRun)("tails of several nodes", () => {
  let cluster: LocalCluster;
  beforeAll(async () => {
    cluster = await startLocalCluster({
      env: {
        ENGINE_COMPACTION_POLL_SECS: "1",
        ENGINE_COMPACTION_MIN_EXTENTS: "3",
        ENGINE_COMPACTION_IDLE_SLEEP_MS: "0",
        ENGINE_STAGING_DISABLED: "true",
      },
      counts: { edge: 1, query: 2, ingest: 2, committer: 0, compaction: 1, worker: 0 },
    });
  }, 180_000);
  afterAll(() => cluster.giveUp());

  test("have every row once, in one order, whichever node they ask", async () => {
    const seed = drawnSeed();
    const random = randomOf(seed);
    const anyOf = (names: readonly string[], from: () => number) => () =>
      cluster.urls.get(names[Math.floor(from() * names.length)] ?? "") ?? "";
    const writers = ["a", "b", "c"].map((name, i) => {
      const own = randomOf(seed + 1 + i);
      return new TailWriter({ name, table: "t", url: anyOf(["ingest-1", "ingest-2"], own), random: own });
    });
    await eventually(() => writers.every(({ acknowledged }) => acknowledged.length > 0));
    const newReader = (i: number, filter?: string) => {
      const own = randomOf(seed + 10 + i);
      const url = anyOf(["query-1", "query-2", "edge-1"], own);
      return new TailReader({ table: "t", url, random: own, ...(filter !== undefined && { filter }) });
    };
    const readers = [newReader(0), newReader(1), newReader(2, ODD)];
    const victims = ["query-1", "query-2", "ingest-1", "compaction-1"];
    for (let kill = 0; kill < KILLS; kill++) {
      await delay(1_000 + 2_000 * random());
      const victim = cluster.programs.get(victims[Math.floor(random() * victims.length)] ?? "");
      await victim?.kill();
      await delay(1_000 * random());
      await victim?.start();
    }
    // The last kill is behind all of them when each has some acknowledged that it sent since.
    const before = writers.map(({ acknowledged }) => acknowledged.length);
    await eventually(() => writers.every(({ acknowledged }, i) => acknowledged.length > (before[i] ?? 0) + 20));
    await Promise.all(writers.map((writer) => writer.stop()));
    await eventually(() => hasMerged(cluster.urls.get("query-1") ?? ""));
    readers.push(newReader(3));
    await checkReaders(
      readers,
      writers.flatMap(({ acknowledged }) => acknowledged),
    );
    const connections = readers.map((reader) => reader.connections).join(", ");
    process.stdout.write(`${readers[0]?.rows.length} rows over ${connections} connections\n`);
  }, 300_000);
});
