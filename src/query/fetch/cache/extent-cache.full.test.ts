import { CACHE_METRICS } from "./metrics.ts";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { bytesOf, openCacheKit, type CacheKit } from "./cache.test-kit.ts";
import { mountTmpfs, unmount } from "../../../io/objectstore/tmpfs.test-kit.ts";

const KIB = 1024;

describe.skipIf(lacks("mounts", "mount"))("a cache on a disk that is too small", () => {
  let disk: string;
  let kit: CacheKit;
  beforeEach(async () => {
    disk = mkdtempSync(join(tmpdir(), "engine-full-"));
    mountTmpfs(disk, "size=1m");
    mkdirSync(join(disk, "cache"));
    kit = await openCacheKit({ folder: join(disk, "cache") });
  });
  afterEach(() => {
    unmount(disk);
    rmSync(disk, { recursive: true });
    kit.close();
  });

  test("evicts what nobody uses, and goes on", async () => {
    for (let n = 0; n < 8; n++) {
      const bytes = bytesOf(n, 300 * KIB);
      const lease = await kit.cache.acquire(await kit.addExtent(`e${n}`, bytes), kit.want());
      expect(Buffer.compare(readFileSync(lease.path), bytes)).toBe(0);
      lease.release();
    }
    expect((await CACHE_METRICS.of(kit.metrics).queryCacheEvictions.get()).values[0]?.value).toBeGreaterThan(0);
  });

  test("fails the query that finds no room, leaves what others use, and goes on when there is room", async () => {
    const used = await kit.cache.acquire(await kit.addExtent("a", bytesOf(1, 300 * KIB)), kit.want());
    writeFileSync(join(disk, "other"), bytesOf(2, 500 * KIB));
    const extent = await kit.addExtent("b", bytesOf(3, 300 * KIB));
    await expect(kit.cache.acquire(extent, kit.want())).rejects.toMatchObject({
      code: "insufficient_storage",
      message: "the disk of the query cache has no room for extent b",
    });
    expect(readFileSync(used.path)).toHaveLength(300 * KIB);
    const { bavail, bsize } = statfsSync(disk);
    expect(bavail * bsize).toBeGreaterThan(150 * KIB);
    rmSync(join(disk, "other"));
    expect(readFileSync((await kit.cache.acquire(extent, kit.want())).path)).toHaveLength(300 * KIB);
  });
});
