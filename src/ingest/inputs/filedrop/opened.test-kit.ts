import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { systemRandom } from "../../../core/random.ts";
import { openFilesystemStore } from "../../../io/objectstore/filesystem.ts";
import type { OpenedStore } from "./drop-world.test-kit.ts";

export async function openSqlite(): Promise<OpenedCatalog> {
  const clock = new ManualClock(systemClock.nowMs());
  const { catalog } = openMemoryCatalog(clock);
  return { catalog, clock, close: () => catalog.close() };
}

export async function openDisk(): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), "engine-drop-store-"));
  const store = await openFilesystemStore({ root: folder, random: systemRandom, log: silentLog });
  return { store, close: () => rm(folder, { recursive: true }) };
}
