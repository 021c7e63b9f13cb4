import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentSummary } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { bringExtent, type Way } from "./bring-extent.ts";
import type { IoBudget } from "./io-budget.ts";
import { mergeInProcess, SpareProcess } from "./merge-process.ts";
import type { MergedFile, MergeInput, MergeTask } from "./merge.ts";
import { TARGET_BYTES } from "./pick.ts";
import type { Merged, MergeJob, Merger } from "./publish.ts";

/**
 * Merges in a process of its own, over local files. `tempDir` is a folder for this alone; each merge works in one
 * inside, which is gone once it is disposed of. Whatever is read and written on the way is the budget's.
 * The process, and its compiled program in the folder `code`, are kept from one merge to the next.
 */
export function mergeOnDisk(tempDir: string, clock: Clock, budget: IoBudget): Merger {
  const codeCache = join(tempDir, "code");
  const spare = new SpareProcess();
  return {
    prepare: () => rm(tempDir, { recursive: true, force: true }),
    rest: () => spare.end(),
    async merge(store, job) {
      await mkdir(tempDir, { recursive: true, mode: 0o700 });
      const folder = await mkdtemp(join(tempDir, "merge-"));
      const dispose = () => rm(folder, { recursive: true, force: true });
      try {
        const inputs = await bringInputs({ store, budget }, folder, job);
        const files = await mergeInProcess(taskOf(folder, inputs, job), { ...job, clock, budget, codeCache, spare });
        return mergedFiles({ store, budget }, files, job.signal, dispose);
      } catch (error) {
        await dispose();
        throw error;
      }
    },
  };
}

function mergedFiles(
  { store, budget }: { store: Pick<ObjectStore, "putFile">; budget: IoBudget },
  files: readonly MergedFile[],
  signal: AbortSignal,
  dispose: () => Promise<void>,
): Merged {
  return {
    files: files.map(({ path: _path, ...described }) => described),
    async put(index, key) {
      const file = files[index];
      if (file === undefined) throw new Error("an output without a file");
      // The store sends it as it likes; what comes next waits until that is paid.
      await budget.take("upload", file.sizeBytes, signal);
      await store.putFile(key, file.path, { signal });
    },
    dispose,
  };
}

function taskOf(folder: string, inputs: readonly MergeInput[], { table, limits, encodings }: MergeJob): MergeTask {
  const columns = table.columns.map(({ id, name, type }) => ({ id, name, type }));
  return { columns, inputs, clusterBy: table.clusterBy, folder, targetBytes: TARGET_BYTES, limits, encodings };
}

async function bringInputs(way: Way, folder: string, job: MergeJob): Promise<MergeInput[]> {
  const inputs: MergeInput[] = [];
  for (const extent of inCommitOrder(job.inputs)) {
    const { id, format, rows, checksum } = extent;
    const path = await bringExtent(way, extent, folder, job.signal);
    inputs.push({ id, path, format, rows, checksum });
  }
  return inputs;
}

/** Extents in the order of their commits: by it rows of one time are ordered. */
export function inCommitOrder(extents: readonly ExtentSummary[]): ExtentSummary[] {
  return extents.toSorted((a, b) => a.beginSnapshot - b.beginSnapshot || (a.id < b.id ? -1 : 1));
}
