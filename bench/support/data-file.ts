import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expectedAnswers, type Answers } from "./answers.ts";
import { debianPackages, gitHistory } from "./real-data.ts";
import { SHAPES, synthetic, type Dataset, type ShapeName } from "./shapes.ts";

/** A dataset as a file, which the generator and the peers read, with the answers that all sides must give. */
export type DataFile = Omit<Dataset, "ndjson"> & { path: string; sizeBytes: number; expected: Answers };

export const REAL_DATA = ["git", "packages"] as const;
export const DATASET_NAMES = [...Object.keys(SHAPES), ...REAL_DATA];

/** The dataset of that name; undefined, with a line, for real data that this machine doesn't have. */
export function datasetOf(name: string, rows: number): Dataset | undefined {
  if (name in SHAPES) return synthetic(name as ShapeName, rows);
  if (name === "git") return gitHistory(rows);
  if (name !== "packages") throw new Error(`${name} is no data; there are ${DATASET_NAMES.join(", ")}`);
  const packages = debianPackages(rows);
  if (packages === undefined)
    console.log("packages: skipped, there is no package index here (`apt-get update` gets it)");
  return packages;
}

/** The same for a benchmark that has no other: throws for data that this machine does not have. */
export function requiredDataset(name: string, rows: number): Dataset {
  const dataset = datasetOf(name, rows);
  if (dataset === undefined) throw new Error(`this machine does not have the data ${name}`);
  return dataset;
}

/** Writes the dataset below `folder`. */
export async function writeDataset(dataset: Dataset, folder: string): Promise<DataFile> {
  const { ndjson, ...rest } = dataset;
  const path = join(folder, `${dataset.name.replaceAll(/\W/g, "-")}.ndjson`);
  await writeFile(path, ndjson);
  return { ...rest, path, sizeBytes: ndjson.length, expected: expectedAnswers(dataset) };
}

/** Runs `task` with a folder that is gone afterwards. */
export async function withTemporaryFolder<T>(task: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "engine-bench-data-"));
  try {
    return await task(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
