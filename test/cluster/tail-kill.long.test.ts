import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, test } from "vitest";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { checkReaders, hasMerged, ODD, randomOf, TailReader, TailWriter } from "./tail-readers.ts";

/** A server that is killed again and again, and merges all the time, with the embedded catalog. */

const KILLS = Number(process.env["TAIL_KILLS"] ?? 4);
const ENV = {
  ENGINE_COMPACTION_POLL_SECS: "1",
  ENGINE_COMPACTION_MIN_EXTENTS: "2",
  ENGINE_COMPACTION_IDLE_SLEEP_MS: "0",
  // An extent for each request.
  ENGINE_STAGING_DISABLED: "true",
};

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

test("tails that come again have every row once, in one order, over kills and merges", async () => {
  const seed = drawnSeed();
  const random = randomOf(seed);
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const port = await freePort();
  let engine: Engine = await startEngine({ home, env: ENV, port });
  closers.push(() => engine.stop("SIGKILL"));
  const url = () => `http://127.0.0.1:${port}`;
  const writers = ["a", "b"].map((name) => new TailWriter({ name, table: "t", url, random: randomOf(seed + 1) }));
  await eventually(() => writers.every(({ acknowledged }) => acknowledged.length > 0));
  const readers = [undefined, undefined, ODD].map(
    (filter, i) => new TailReader({ table: "t", url, random: randomOf(seed + 2 + i), ...(filter && { filter }) }),
  );
  for (let kill = 0; kill < KILLS; kill++) {
    await delay(1_500 + 3_000 * random());
    await engine.stop("SIGKILL");
    engine = await startEngine({ home, env: ENV, port });
  }
  // The last kill is behind all of them when each has some acknowledged that it sent since.
  const before = writers.map(({ acknowledged }) => acknowledged.length);
  await eventually(() => writers.every(({ acknowledged }, i) => acknowledged.length > (before[i] ?? 0) + 20));
  await Promise.all(writers.map((writer) => writer.stop()));
  await eventually(() => hasMerged(url()));
  // It reads what was merged since, in the extents that it came in.
  readers.push(new TailReader({ table: "t", url, random: randomOf(seed + 9) }));
  await checkReaders(
    readers,
    writers.flatMap(({ acknowledged }) => acknowledged),
  );
  const connections = readers.map((reader) => reader.connections).join(", ");
  process.stdout.write(`${readers[0]?.rows.length} rows over ${connections} connections\n`);
}, 300_000);
