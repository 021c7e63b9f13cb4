import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { drawnSeed } from "../../../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../../../core/random.ts";
import { DropWorld } from "./drop-world.test-kit.ts";
import { openDisk, openSqlite } from "./opened.test-kit.ts";
import { parquetOf } from "./parquet.test-kit.ts";

/** Files that are made to do harm. */

let world: DropWorld;
beforeEach(async () => {
  world = await DropWorld.open(await openSqlite(), await openDisk());
});
afterEach(async () => {
  expect(await world.orphans()).toEqual([]);
  await world.close();
});

const MIB = 2 ** 20;

test("Parquet that is damaged anywhere is rejected or read, and nothing hangs", { timeout: 600_000 }, async () => {
  const good = await parquetOf("SELECT i, hash(i) AS h, repeat('x', i % 50) AS s, [i] AS l FROM range(5000) t(i)");
  const seed = drawnSeed();
  const random = seededRandom(seed);
  const files: Record<string, Buffer> = { "magic.parquet": Buffer.from("PAR1"), "empty.parquet": Buffer.alloc(0) };
  for (let i = 0; i < 40; i++) {
    const bad = Buffer.from(good);
    for (let n = 0; n < 4; n++) bad[Math.floor(random.next() * bad.length)] = Math.floor(random.next() * 256);
    // The footer stands at the end.
    for (let n = 0; n < 2; n++) bad[bad.length - 1 - Math.floor(random.next() * 600)] = Math.floor(random.next() * 256);
    files[`${i}.parquet`] = i % 3 === 0 ? bad.subarray(0, Math.floor(random.next() * bad.length)) : bad;
  }
  const outcomes = await world.outcomesOf(files);
  expect([
    seed,
    Object.values(outcomes).filter((one) => !/^(ingested: null|rejected: .+|failed: .+)$/s.test(one)),
  ]).toEqual([seed, []]);
  expect(Object.keys(outcomes)).toHaveLength(Object.keys(files).length);
});

test("bombs are rejected in bounded memory", { timeout: 600_000 }, async () => {
  const before = process.memoryUsage.rss();
  const blanks = Buffer.alloc(800 * MIB, " ");
  const outcomes = await world.outcomesOf({
    "line.json.gz": gzipSync(blanks),
    "line.json.zst": zstdCompressSync(blanks),
    "lines.json.gz": gzipSync(Buffer.alloc(400 * MIB, "\n")),
    "field.csv.gz": gzipSync(Buffer.concat([Buffer.from('a\n"'), Buffer.alloc(300 * MIB, "x")])),
  });
  const tooLong = expect.stringContaining("has more than 67108864 bytes");
  expect(outcomes).toEqual({
    "line.json.gz": tooLong,
    "line.json.zst": tooLong,
    "lines.json.gz": "rejected: the file has no rows",
    "field.csv.gz": tooLong,
  });
  // Besides what makes the bombs.
  expect(process.memoryUsage.rss() - before - blanks.length).toBeLessThan(600 * MIB);
});

test(
  "a Parquet file that says that its strings are huge does not take the machine's memory",
  { timeout: 600_000 },
  async () => {
    const repeated = await parquetOf("SELECT repeat('x', 50000000) AS s FROM range(6)");
    const { "big.parquet": outcome } = await world.outcomesOf({ "big.parquet": repeated });
    expect(outcome).toMatch(/^(ingested: null|rejected: .+|failed: .+)$/s);
  },
);
