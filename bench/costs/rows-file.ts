import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { seededRandom } from "../../src/core/random.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { SYNTHETIC } from "../support/row-makers.ts";
import { SHAPES, type ShapeName } from "../support/shapes.ts";

/** Rows of a shape as a file of NDJSON, whose times are equally far apart. */
export type RowsFile = {
  path: string;
  shape: ShapeName;
  columns: readonly ColumnSpec[];
  rows: number;
  sizeBytes: number;
  /** The column `at` of the first row. */
  firstAt: string;
  /** From each row's time to the next one's. */
  stepMs: number;
  /** Of the row in the middle: its place, and its value of the column by which answers are checked, which is nearly unique. */
  middle: { index: number; key: string };
};

const PIECE_CHARS = 1024 * 1024;

/** Writes rows into a file of that name below `folder` until they are at least so many bytes; never all of them at a time in memory. */
export async function writeRows(
  folder: string,
  { name, shape, sizeBytes: wantedBytes, seed }: { name: string; shape: ShapeName; sizeBytes: number; seed: number },
): Promise<RowsFile> {
  const path = join(folder, `${name}.ndjson`);
  const { columns, checks } = SHAPES[shape];
  const random = seededRandom(seed);
  const file = createWriteStream(path);
  const keys: string[] = [];
  let [rows, sizeBytes] = [0, 0];
  while (sizeBytes < wantedBytes) {
    let text = "";
    while (text.length < Math.min(PIECE_CHARS, wantedBytes)) {
      const row: Record<string, unknown> = SYNTHETIC[shape](random, rows++);
      keys.push(String(row[checks.hashColumn]).slice(0, MAX_KEY_CHARS));
      text += `${JSON.stringify(row)}\n`;
    }
    const bytes = Buffer.from(text);
    sizeBytes += bytes.length;
    if (!file.write(bytes)) await once(file, "drain");
  }
  file.end();
  await finished(file);
  const timeOf = (index: number) => SYNTHETIC[shape](seededRandom(0), index).at;
  const [firstAt, secondAt] = [timeOf(0), timeOf(1)];
  const stepMs = Date.parse(secondAt) - Date.parse(firstAt);
  return {
    path,
    shape,
    columns,
    rows,
    sizeBytes,
    firstAt,
    stepMs,
    middle: { index: rows >> 1, key: keys[rows >> 1] ?? "" },
  };
}

/** Of the shape `text` it is the whole text, which nobody looks for. */
const MAX_KEY_CHARS = 64;
