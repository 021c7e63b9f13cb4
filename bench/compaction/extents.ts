import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MergeColumn, MergeInput } from "../../src/compaction/merge.ts";
import { seededRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { byteScanner } from "../../src/format/ndjson/byte-scanner.ts";
import { encodeTlm } from "../../src/format/tlm.ts";
import { cutByRows } from "../support/bodies.ts";
import type { Dataset } from "../support/shapes.ts";

/** Extents as ingest seals them, as files that a merge can take. */
export type Extents = { columns: readonly MergeColumn[]; inputs: readonly MergeInput[]; sizeBytes: number };

/** Cuts the rows into `tlm` extents of `rowsPerExtent` and writes them below `folder`. */
export async function writeExtents(dataset: Dataset, folder: string, rowsPerExtent: number): Promise<Extents> {
  await mkdir(folder, { recursive: true });
  const inputs: MergeInput[] = [];
  let sizeBytes = 0;
  for (const bytes of cutByRows(dataset.ndjson, rowsPerExtent)) {
    const set = new ColumnSet(dataset.columns);
    byteScanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
    const tlm = encodeTlm(set);
    const id = String(inputs.length).padStart(6, "0");
    const path = join(folder, `${id}.tlm`);
    await writeFile(path, tlm);
    inputs.push({ id, path, format: "tlm", rows: set.rows, checksum: checksumOf(tlm) });
    sizeBytes += tlm.byteLength;
  }
  return { columns: dataset.columns.map((column, i) => ({ ...column, id: i + 1 })), inputs, sizeBytes };
}

/** The rows in the order in which they arrive when each is up to `late` rows behind its place; 0 leaves them sorted. */
export function delayed(dataset: Dataset, late: number): Dataset {
  if (late === 0) return dataset;
  const random = seededRandom(7);
  const rows = cutByRows(dataset.ndjson, 1).map((row, i) => ({ row, place: i + random.next() * late }));
  rows.sort((a, b) => a.place - b.place);
  return { ...dataset, ndjson: Buffer.concat(rows.map(({ row }) => row)) };
}
