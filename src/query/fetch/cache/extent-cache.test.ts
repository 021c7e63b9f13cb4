import { CACHE_METRICS } from "./metrics.ts";
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import { bytesOf, openCacheKit, type CacheKit } from "./cache.test-kit.ts";
import type { ExtentCache, Lease } from "./extent-cache.ts";
import { eventually } from "../../../core/waiting.test-kit.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

let kit: CacheKit;
beforeEach(async () => {
  kit = await openCacheKit();
});
afterEach(() => kit.close());

const files = (): string[] => readdirSync(kit.cacheDir).sort();
const counter = async (name: "queryCacheHits" | "queryCacheMisses" | "queryCacheEvictions"): Promise<number> =>
  (await CACHE_METRICS.of(kit.metrics)[name].get()).values[0]?.value ?? 0;

/** Fetches and gives back at once; resolves to the bytes. */
async function readThrough(cache: ExtentCache, ...args: Parameters<ExtentCache["acquire"]>): Promise<Buffer> {
  const lease = await cache.acquire(...args);
  const bytes = readFileSync(lease.path);
  lease.release();
  return bytes;
}

describe("an extent", () => {
  test("is fetched once, whole and as it was stored, and then found", async () => {
    const bytes = bytesOf(1, 9 * MIB);
    const extent = await kit.addExtent("a", bytes);
    const first = await kit.cache.acquire(extent, kit.want());
    expect(Buffer.compare(readFileSync(first.path), bytes)).toBe(0);
    expect(first.hit).toBe(false);
    expect(kit.store.bytesAsked).toBe(9 * MIB);
    expect(Math.max(...kit.store.gets.map((get) => get.sizeBytes))).toBe(4 * MIB);
    const second = await kit.cache.acquire(extent, kit.want());
    expect(second).toMatchObject({ hit: true, path: first.path });
    expect(kit.charged()).toBe(9 * MIB);
    expect(await counter("queryCacheHits")).toBe(1);
    expect(await counter("queryCacheMisses")).toBe(1);
  });

  test("that two queries need is fetched once, at the expense of the first", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    const free = (): void => expect.fail("charged");
    const open = kit.store.hold();
    const both = [kit.cache.acquire(extent, kit.want()), kit.cache.acquire(extent, kit.want({ charge: free }))];
    await delay(20);
    open();
    const [one, two] = await Promise.all(both);
    expect(one?.path).toBe(two?.path);
    expect([one?.hit, two?.hit]).toEqual([false, true]);
    expect(kit.store.gets).toHaveLength(1);
    expect(kit.charged()).toBe(10 * KIB);
  });

  test("is fetched on when the query that began it is cancelled, and another one waits", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    const open = kit.store.hold();
    const stop = new AbortController();
    const first = kit.cache.acquire(extent, kit.want({ signal: stop.signal }));
    const second = kit.cache.acquire(extent, kit.want());
    stop.abort(new Error("left"));
    // While the store still holds it.
    await expect(first).rejects.toThrow("left");
    expect(kit.store.aborted).toEqual([]);
    open();
    expect(readFileSync((await second).path)).toHaveLength(10 * KIB);
    expect(kit.store.gets).toHaveLength(1);
  });

  test("is not fetched on when nobody waits any more, leaves nothing, and can be had afterwards", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    const open = kit.store.hold();
    const stop = new AbortController();
    const first = kit.cache.acquire(extent, kit.want({ signal: stop.signal }));
    await eventually(() => kit.store.gets.length === 1);
    stop.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    expect(kit.store.aborted).toEqual([extent.key]);
    const again = kit.cache.acquire(extent, kit.want());
    open();
    expect(readFileSync((await again).path)).toHaveLength(10 * KIB);
    await eventually(() => files().length === 1);
  });

  test("of a query without the budget for it is fetched for the others that wait for it", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    const refusal = new EngineError("budget_exceeded", "no");
    const poor = kit.cache.acquire(
      extent,
      kit.want({
        charge: () => {
          throw refusal;
        },
      }),
    );
    const rich = kit.cache.acquire(extent, kit.want());
    await expect(poor).rejects.toBe(refusal);
    expect(readFileSync((await rich).path)).toHaveLength(10 * KIB);
  });

  test("that came damaged is fetched again", async () => {
    const bytes = bytesOf(1, 10 * KIB);
    const extent = await kit.addExtent("a", bytes);
    let damages = 1;
    kit.store.onGet = (got) => {
      if (damages-- > 0) got[5_000] = (got[5_000] ?? 0) ^ 1;
      return got;
    };
    expect(Buffer.compare(await readThrough(kit.cache, extent, kit.want()), bytes)).toBe(0);
    expect(kit.store.gets).toHaveLength(2);
    expect(files()).toHaveLength(1);
  });

  test.each([
    ["damaged", (bytes: Uint8Array<ArrayBuffer>) => bytes.fill(0), "its checksum does not match"],
    [
      "cut short",
      (bytes: Uint8Array<ArrayBuffer>) => bytes.slice(0, 100),
      "100 bytes at 0 where there should be 10240",
    ],
  ])("that stays %s fails the query, naming it, and leaves nothing", async (_, onGet, problem) => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    kit.store.onGet = onGet;
    await expect(kit.cache.acquire(extent, kit.want())).rejects.toMatchObject({
      code: "query_failed",
      message: `extent a cannot be fetched: ${problem}`,
    });
    expect(kit.store.gets).toHaveLength(2);
    expect(files()).toEqual([]);
  });

  test("that is missing fails the query at once", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    await kit.store.delete([extent.key]);
    const failure = { code: "query_failed", message: "the data of extent a is missing" };
    await expect(kit.cache.acquire(extent, kit.want())).rejects.toMatchObject(failure);
    expect(kit.store.gets).toHaveLength(1);
  });

  test("is fetched again after a fault of the store, and the query fails after the second", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    let faults = 1;
    kit.store.onGet = (bytes) => {
      if (faults-- > 0) throw new Error("reset");
      return bytes;
    };
    await readThrough(kit.cache, extent, kit.want());
    faults = 2;
    await expect(kit.cache.acquire({ ...extent, id: "b" }, kit.want())).rejects.toMatchObject({ code: "query_failed" });
  });
});

describe("the bound", () => {
  const fetchAll = async (cache: ExtentCache, ...ids: string[]): Promise<void> => {
    for (const id of ids) await readThrough(cache, await kit.addExtent(id, bytesOf(1, 100 * KIB)), kit.want());
  };
  const cached = (): string[] => files().map((name) => name.split(".")[0] ?? "");

  test("is kept by evicting what was not used for the longest time", async () => {
    const cache = await kit.reopen({ capacityBytes: 350 * KIB });
    await fetchAll(cache, "a", "b", "c", "a", "d");
    await eventually(() => cached().join() === "a,c,d");
    await fetchAll(cache, "e");
    await eventually(() => cached().join() === "a,d,e");
    expect(await counter("queryCacheEvictions")).toBe(2);
    expect((await CACHE_METRICS.of(kit.metrics).queryCacheBytes.get()).values[0]?.value).toBe(300 * KIB);
  });

  test("gives way to files that are in use, which go as soon as they are not", async () => {
    const cache = await kit.reopen({ capacityBytes: 150 * KIB });
    const leases: Lease[] = [];
    for (const id of ["a", "b", "c"]) {
      leases.push(await cache.acquire(await kit.addExtent(id, bytesOf(1, 100 * KIB)), kit.want()));
    }
    for (const lease of leases) expect(readFileSync(lease.path)).toHaveLength(100 * KIB);
    for (const lease of leases) lease.release();
    await eventually(() => cached().join() === "c");
  });

  test("of nothing keeps files for the query only", async () => {
    const cache = await kit.reopen({ capacityBytes: 0 });
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    const [one, two] = await Promise.all([cache.acquire(extent, kit.want()), cache.acquire(extent, kit.want())]);
    expect(kit.store.gets).toHaveLength(1);
    one.release();
    expect(readFileSync(two.path)).toHaveLength(10 * KIB);
    two.release();
    await eventually(() => files().length === 0);
  });

  test("of an extent larger than all of it does not keep the query from reading it", async () => {
    const cache = await kit.reopen({ capacityBytes: 10 * KIB });
    expect(await readThrough(cache, await kit.addExtent("a", bytesOf(1, 100 * KIB)), kit.want())).toHaveLength(
      100 * KIB,
    );
    await eventually(() => files().length === 0);
  });
});

describe("after a restart", () => {
  test("extents are still there, and are read without a request", async () => {
    const bytes = bytesOf(1, 9 * MIB);
    const extent = await kit.addExtent("a", bytes);
    await readThrough(kit.cache, extent, kit.want());
    kit.store.gets.length = 0;
    const cache = await kit.reopen();
    expect(cache.has(extent, undefined)).toBe(true);
    const lease = await cache.acquire(extent, kit.want());
    expect(Buffer.compare(readFileSync(lease.path), bytes)).toBe(0);
    expect(lease.hit).toBe(true);
    expect(kit.store.gets).toEqual([]);
  });

  test("the order of use is known, and a smaller bound is kept at once", async () => {
    const extents = [];
    for (const id of ["a", "b", "c"]) extents.push(await kit.addExtent(id, bytesOf(1, 100 * KIB)));
    for (const extent of extents) {
      await readThrough(kit.cache, extent, kit.want());
      kit.clock.advance(120_000);
    }
    for (const extent of extents.slice(0, 1)) await readThrough(kit.cache, extent, kit.want());
    await delay(50);
    await kit.reopen({ capacityBytes: 250 * KIB });
    await eventually(
      () =>
        files()
          .map((name) => name[0])
          .join() === "a,c",
    );
  });

  test.each([
    ["truncated", (path: string) => truncateSync(path, 100)],
    ["of other bytes", (path: string) => writeFileSync(path, bytesOf(7, 10 * KIB))],
    ["gone", (path: string) => rmSync(path)],
  ])("a file that is %s is fetched again", async (_, damage) => {
    const bytes = bytesOf(1, 10 * KIB);
    const extent = await kit.addExtent("a", bytes);
    await readThrough(kit.cache, extent, kit.want());
    const cache = await kit.reopen();
    for (const name of files()) damage(join(kit.cacheDir, name));
    expect(Buffer.compare(await readThrough(cache, extent, kit.want()), bytes)).toBe(0);
    expect(kit.store.gets).toHaveLength(2);
    await eventually(() => files().length === 1);
  });

  test("what was half written does not count, nor does anything else that lies there", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    await readThrough(kit.cache, extent, kit.want());
    const [kept] = files();
    for (const name of ["b.x-0.tlm.tmp", "c.x-0.partial", "d.x-0.partial.json", "%zz.x-0.tlm", "notes.txt"]) {
      writeFileSync(join(kit.cacheDir, name), "x");
    }
    await kit.reopen();
    expect(files()).toEqual([kept]);
  });
});

describe("the folder", () => {
  test("may be deleted while the cache runs", async () => {
    const extent = await kit.addExtent("a", bytesOf(1, 10 * KIB));
    await readThrough(kit.cache, await kit.addExtent("b", bytesOf(2, 10 * KIB)), kit.want());
    rmSync(kit.cacheDir, { recursive: true });
    expect(await readThrough(kit.cache, extent, kit.want())).toHaveLength(10 * KIB);
  });

  test("that cannot be made fails the query, and is tried again for the next", async () => {
    const blocked = join(kit.folder, "blocked");
    writeFileSync(blocked, "");
    const opening = kit.reopen({ folder: join(blocked, "cache") });
    await expect(opening).rejects.toMatchObject({ code: "unavailable" });
  });
});

test("extents that are gone are deleted, whole and in part, also those of an earlier process and those in use", async () => {
  const [kept, gone, open] = [
    await kit.addExtent("kept", bytesOf(1, 10 * KIB)),
    await kit.addExtent("gone", bytesOf(2, 10 * KIB)),
    await kit.addExtent("open", bytesOf(3, 10 * KIB)),
  ];
  for (const extent of [kept, gone, open]) await readThrough(kit.cache, extent, kit.want());
  const cache = await kit.reopen();
  const lease = await cache.acquire(open, kit.want());
  const asked: string[][] = [];
  const goneOf = (ids: readonly string[]) => {
    asked.push([...ids].toSorted());
    return Promise.resolve([gone.id, open.id]);
  };
  expect(await cache.sweep(goneOf)).toBe(2);
  expect(asked).toEqual([[kept.id, gone.id, open.id].toSorted()]);
  expect(files()).toHaveLength(2);
  expect(readFileSync(lease.path)).toHaveLength(10 * KIB);
  lease.release();
  await eventually(() => files().length === 1);
  expect(cache.has(kept, undefined)).toBe(true);
  expect(cache.has(gone, undefined)).toBe(false);
  expect(await cache.sweep(() => Promise.resolve([]))).toBe(0);
});
