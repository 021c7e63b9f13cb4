import { open } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentSummary } from "../catalog/catalog.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { IoBudget } from "./io-budget.ts";

/** How extents come to this machine. */
export type Way = { store: Pick<ObjectStore, "get" | "localPath">; budget: IoBudget };

const PIECE_BYTES = 8 * 1024 * 1024;

/**
 * An extent as a local file: in place where the store's objects are local files, else a copy in the folder. Rejects with
 * `ObjectNotFound`, unless it is read in place, or with the signal's reason.
 */
export async function bringExtent(
  { store, budget }: Way,
  { id, key, sizeBytes }: Pick<ExtentSummary, "id" | "key" | "sizeBytes">,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const local = store.localPath?.(key);
  if (local !== undefined) return local;
  const path = join(folder, id);
  const file = await open(path, "wx", 0o600);
  try {
    for (let offset = 0; offset < sizeBytes; offset += PIECE_BYTES) {
      const length = Math.min(PIECE_BYTES, sizeBytes - offset);
      await budget.take("download", length, signal);
      await file.writeFile(await store.get(key, { offset, length, signal }));
    }
    return path;
  } finally {
    await file.close();
  }
}
