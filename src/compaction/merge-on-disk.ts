import { mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentSummary } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { mergeInProcess } from "./merge-process.ts";
import type { MergedFile, MergeInput, MergeTask } from "./merge.ts";
import { TARGET_BYTES } from "./pick.ts";
import type { Merged, MergeJob, Merger } from "./publish.ts";

/**
 * Merges in a process of its own, over local files. `tempDir` is a folder for this alone; each merge works in one
 * inside, which is gone once it is disposed of.
 */
export function mergeOnDisk(tempDir: string, clock: Clock): Merger {
  return {
    prepare: () => rm(tempDir, { recursive: true, force: true }),
    async merge(store, job) {
      await mkdir(tempDir, { recursive: true });
      const folder = await mkdtemp(join(tempDir, "merge-"));
      const dispose = () => rm(folder, { recursive: true, force: true });
      try {
        const inputs = await bringInputs(store, folder, job);
        const files = await mergeInProcess(taskOf(folder, inputs, job), { ...job, clock });
        return mergedFiles(store, files, job.signal, dispose);
      } catch (error) {
        await dispose();
        throw error;
      }
    },
  };
}

function mergedFiles(
  store: ObjectStore,
  files: readonly MergedFile[],
  signal: AbortSignal,
  dispose: () => Promise<void>,
): Merged {
  return {
    files: files.map(({ path: _path, ...described }) => described),
    async put(index, key) {
      const file = files[index];
      if (file === undefined) throw new Error("an output without a file");
      await store.putFile(key, file.path, { signal });
    },
    dispose,
  };
}

function taskOf(folder: string, inputs: readonly MergeInput[], { table, limits }: MergeJob): MergeTask {
  const columns = table.columns.map(({ id, name, type }) => ({ id, name, type }));
  return { columns, inputs, clusterBy: table.clusterBy, folder, targetBytes: TARGET_BYTES, limits };
}

/** Where the store's objects are local files they are read in place. */
async function bringInputs(store: ObjectStore, folder: string, job: MergeJob): Promise<MergeInput[]> {
  const inputs: MergeInput[] = [];
  for (const extent of inCommitOrder(job.inputs)) {
    const { id, key, format, rows, checksum } = extent;
    const path = store.localPath?.(key) ?? (await download(store, extent, join(folder, id), job.signal));
    inputs.push({ id, path, format, rows, checksum });
  }
  return inputs;
}

/** Extents in the order of their commits: by it rows of one time are ordered. */
export function inCommitOrder(extents: readonly ExtentSummary[]): ExtentSummary[] {
  return extents.toSorted((a, b) => a.beginSnapshot - b.beginSnapshot || (a.id < b.id ? -1 : 1));
}

const PIECE_BYTES = 8 * 1024 * 1024;

async function download(
  store: ObjectStore,
  { key, sizeBytes }: ExtentSummary,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  const file = await open(path, "wx");
  try {
    for (let offset = 0; offset < sizeBytes; offset += PIECE_BYTES) {
      await file.writeFile(await store.get(key, { offset, length: Math.min(PIECE_BYTES, sizeBytes - offset), signal }));
    }
    return path;
  } finally {
    await file.close();
  }
}
