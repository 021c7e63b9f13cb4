import type { NewExtent } from "../catalog/catalog.ts";
import type { MergeColumn, MergeTask } from "./merge.ts";

/**
 * Verifying: whether extents are what the catalog says of them. It runs in a process of its own (`merge-process.ts`),
 * one extent after the other:
 *
 *     bytes        size and checksum; nothing else is looked at when they are not those that were committed
 *     rows         their number, and the smallest and largest `at`
 *     statistics   of each column how many rows are NULL, and the bounds, where the catalog has some
 *
 * Statistics that are wrong lose rows of queries, which read only what statistics say that they need.
 */
export type VerifyTask = Pick<MergeTask, "folder" | "limits"> & {
  /** The table's columns. */
  columns: readonly MergeColumn[];
  extents: readonly LocalVerified[];
};

/** An extent as the catalog has it, and the file with its bytes. */
export type LocalVerified = Pick<
  NewExtent,
  "id" | "key" | "format" | "rows" | "sizeBytes" | "checksum" | "minAtNs" | "maxAtNs" | "stats"
> & { path: string };

export type ExtentProblem = {
  extentId: string;
  objectKey: string;
  /** A sentence, at most `PROBLEM_CHARS` long. */
  problem: string;
};

/** Of one extent so many are named: whatever wrote one wrong statistic may have written a thousand. */
export const PROBLEMS_PER_EXTENT = 10;

const PROBLEM_CHARS = 500;

export function problemOf({ id, key }: Pick<LocalVerified, "id" | "key">, problem: string): ExtentProblem {
  return { extentId: id, objectKey: key, problem: problem.slice(0, PROBLEM_CHARS).toWellFormed() };
}
