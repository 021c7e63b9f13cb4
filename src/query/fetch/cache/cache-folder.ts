import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentSummary } from "../../../catalog/catalog.ts";
import type { Clock } from "../../../core/clock.ts";
import { systemCodeOf } from "../../../core/errors.ts";
import type { ExtentFormat } from "../../../format/types.ts";
import type { CacheEntry } from "./lru-index.ts";
import type { Manifest } from "./manifest.ts";

/**
 * The files of the cache, in one folder that one program at a time uses:
 *
 *     <extent>.<unique>.tlm | .parquet       a whole extent
 *     <extent>.<unique>.partial              a Parquet file with holes, and with it
 *     <extent>.<unique>.partial.json         its manifest
 *     <anything else>.tmp                    being written
 *
 * A file gets its name when it is complete, and no name is ever used for other bytes. Nothing is synced: what a power
 * cut spoilt is found by its checksum when it is first needed.
 *
 * The access time of a file is when it was last used; it is set by hand, because most systems don't. The time of
 * modification stays, as readers that remember something about a file go by it.
 */
export class CacheFolder {
  readonly path: string;
  readonly #clock: Clock;
  #names = 0;
  #epoch = "";

  constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
  }

  /** Makes the folder, removes what is incomplete or out of date, and returns the rest, the oldest use first. */
  async open(): Promise<CacheEntry[]> {
    await this.make();
    this.#epoch = this.#clock.nowMs().toString(36);
    const names = new Set(await readdir(this.path));
    const found: CacheEntry[] = [];
    for (const name of names) {
      const entry = await this.#entryOf(name, names);
      if (entry !== undefined) found.push(entry);
      else if (!name.endsWith(MANIFEST) || !names.has(name.slice(0, -MANIFEST.length))) {
        await rm(join(this.path, name), { force: true, recursive: true });
      }
    }
    return found.sort((a, b) => a.touchedMs - b.touchedMs);
  }

  async make(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
  }

  /** A path for a new file of the extent. */
  newPath(extentId: string, kind: ExtentFormat | "partial"): string {
    return join(
      this.path,
      `${encodeURIComponent(extentId).replaceAll(".", "%2E")}.${this.#epoch}-${this.#names++}.${kind}`,
    );
  }

  /** Gives the complete file of a whole extent its name. */
  async publish(temporary: string, path: string, extent: ExtentSummary): Promise<CacheEntry> {
    const modifiedSecs = await this.settle(temporary, 0);
    await rename(temporary, path);
    const key = keyOf(extent.id, false);
    const sizeBytes = sizeOnDisk(extent.sizeBytes);
    return { key, path, sizeBytes, leases: 0, verified: true, touchedMs: modifiedSecs * 1000, modifiedSecs };
  }

  /** Gives a file that was written times in whole seconds, the later one of now and `afterSecs` plus one. */
  async settle(path: string, afterSecs: number): Promise<number> {
    const nowSecs = Math.floor(this.#clock.nowMs() / 1000);
    const modifiedSecs = Math.max(nowSecs, afterSecs + 1);
    await utimes(path, modifiedSecs, modifiedSecs);
    return modifiedSecs;
  }

  async writeManifest(path: string, manifest: Manifest): Promise<void> {
    const temporary = `${path}.${this.#names++}${TEMPORARY}`;
    try {
      await writeFile(temporary, JSON.stringify(manifest), { mode: 0o600 });
      await rename(temporary, path + MANIFEST);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** Writes down that the file is used now, unless that was done lately. */
  async touch(entry: CacheEntry): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (Math.abs(nowMs - entry.touchedMs) < TOUCH_EVERY_MS) return;
    entry.touchedMs = nowMs;
    try {
      await utimes(entry.path, nowMs / 1000, entry.modifiedSecs);
    } catch (error) {
      // It was evicted in the meantime.
      if (systemCodeOf(error) !== "ENOENT") throw error;
    }
  }

  async remove(entry: CacheEntry): Promise<void> {
    if (entry.path.endsWith(PARTIAL)) await rm(entry.path + MANIFEST, { force: true });
    await rm(entry.path, { force: true });
  }

  async #entryOf(name: string, names: ReadonlySet<string>): Promise<CacheEntry | undefined> {
    const [, extent, kind] = NAME.exec(name) ?? [];
    if (extent === undefined || kind === undefined) return undefined;
    const partial = kind === "partial";
    if (partial && !names.has(name + MANIFEST)) return undefined;
    const path = join(this.path, name);
    const { size, blocks, atimeMs, mtimeMs } = await stat(path);
    return {
      key: keyOf(decodeURIComponent(extent), partial),
      path,
      sizeBytes: partial ? Math.min(size, blocks * STAT_BLOCK_BYTES) : sizeOnDisk(size),
      leases: 0,
      verified: false,
      touchedMs: atimeMs,
      modifiedSecs: Math.floor(mtimeMs / 1000),
    };
  }
}

const PARTIAL = ".partial";
const MANIFEST = ".json";
export const TEMPORARY = ".tmp";
const NAME = /^((?:[\w-]|%[0-9A-F]{2})+)\.[0-9a-z]+-\d+\.(tlm|parquet|partial)$/;
/** The unit of `Stats.blocks`, whatever the file system's own is. */
const STAT_BLOCK_BYTES = 512;
const PAGE_BYTES = 4096;
const TOUCH_EVERY_MS = 60_000;

/** The key of a cache entry. */
export function keyOf(extentId: string, partial: boolean): string {
  return partial ? `${extentId} partial` : extentId;
}

/** The extent that an entry of that key is of. */
export function extentOfKey(key: string): string {
  return key.split(" ", 1)[0] ?? key;
}

export function sizeOnDisk(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / PAGE_BYTES)) * PAGE_BYTES;
}

export const manifestPathOf = (entry: CacheEntry): string => entry.path + MANIFEST;
