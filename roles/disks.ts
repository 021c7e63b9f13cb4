import { QUERY_OPTIONS } from "../src/query/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { statfs } from "node:fs/promises";
import { objectStoreSettings } from "../src/config/object-store.ts";
import { needsStorage, type Plan } from "./plan.ts";
import type { Parts } from "./parts.ts";

/** Shows the room on the disks that this process writes to. */
export function watchDisks(parts: Parts, plan: Plan): void {
  const { metrics } = parts;
  const config = valuesOf(QUERY_OPTIONS, parts.config);
  if (!needsStorage(plan)) return;
  const isLocal = objectStoreSettings(parts).kind === "local";
  const folders = {
    home: config.home,
    ...(isLocal ? { data: config.localData } : {}),
    ...(!isLocal && plan.query === "here" && config.queryCacheBytes > 0 ? { cache: config.queryCacheDir } : {}),
  };
  for (const [folder, path] of Object.entries(folders)) {
    metrics.diskFree.watch({ folder }, async () => (await disk(path))?.freeBytes);
    metrics.diskSize.watch({ folder }, async () => (await disk(path))?.sizeBytes);
  }
}

/** Undefined while there is no such folder, or none that can be looked at: there is nothing to show then. */
async function disk(path: string): Promise<{ freeBytes: number; sizeBytes: number } | undefined> {
  try {
    const { bavail, blocks, bsize } = await statfs(path);
    return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
  } catch {
    return undefined;
  }
}
