import { foldName } from "../../../core/names.ts";
import { parquetFooterSize, readParquetFooter, type ParquetFooter } from "../../../format/parquet-footer.ts";
import type { ByteRange } from "./extent-source.ts";

/** A Parquet file's footer, with how many bytes it takes at the end of the file. */
export type LocatedFooter = { footer: ParquetFooter; footerBytes: number };

/** Large enough for the footers of nearly all files: a second request costs more than some bytes. */
const TAIL_BYTES = 64 * 1024;
/** Between two parts that are wanted, fewer bytes than this are fetched along: a request costs more. */
const GAP_BYTES = 128 * 1024;

/** Reads the footer of a file through `read`. Throws `ParquetFooterError` and what `read` throws. */
export async function locateFooter(
  fileSizeBytes: number,
  read: (range: ByteRange) => Promise<Uint8Array>,
): Promise<LocatedFooter> {
  const tailBytes = Math.min(TAIL_BYTES, fileSizeBytes);
  const tail = await read({ offset: fileSizeBytes - tailBytes, sizeBytes: tailBytes });
  const footerBytes = parquetFooterSize(tail, fileSizeBytes);
  const missingBytes = Math.max(0, footerBytes - tailBytes);
  const before =
    missingBytes === 0
      ? new Uint8Array(0)
      : await read({ offset: fileSizeBytes - footerBytes, sizeBytes: missingBytes });
  const footer = Buffer.concat([before, tail.subarray(Math.max(0, tailBytes - footerBytes))]);
  return { footer: readParquetFooter(footer, fileSizeBytes), footerBytes };
}

/** What readers of these columns open, sorted and without overlaps, near neighbours in one range. */
export function rangesOf(footer: ParquetFooter, columns: readonly string[]): ByteRange[] {
  const wanted = new Set(columns.map(foldName));
  return joined(footer.parts.filter((part) => wanted.has(foldName(part.column))));
}

/** The bytes of a file that a reader of these columns cannot do without. */
export function neededBytes({ footer, footerBytes }: LocatedFooter, columns: readonly string[]): number {
  const wanted = new Set(columns.map(foldName));
  const parts = footer.parts.filter((part) => wanted.has(foldName(part.column)));
  return parts.reduce((total, part) => total + part.sizeBytes, footerBytes);
}

/** The parts of `wanted` that `stored` does not have. Both may be in any order. */
export function missingFrom(wanted: readonly ByteRange[], stored: readonly ByteRange[]): ByteRange[] {
  const have = [...stored].sort((a, b) => a.offset - b.offset);
  return wanted.flatMap((range) => {
    const missing: ByteRange[] = [];
    const end = range.offset + range.sizeBytes;
    let offset = range.offset;
    for (const known of have) {
      if (known.offset > offset) add(missing, offset, Math.min(known.offset, end));
      offset = Math.max(offset, known.offset + known.sizeBytes);
      if (offset >= end) break;
    }
    add(missing, offset, end);
    return missing;
  });
}

function add(ranges: ByteRange[], offset: number, end: number): void {
  if (end > offset) ranges.push({ offset, sizeBytes: end - offset });
}

function joined(parts: readonly ByteRange[]): ByteRange[] {
  const ranges: ByteRange[] = [];
  for (const { offset, sizeBytes } of [...parts].sort((a, b) => a.offset - b.offset)) {
    const last = ranges.at(-1);
    const gapBytes = last === undefined ? Infinity : offset - (last.offset + last.sizeBytes);
    if (last === undefined || gapBytes > GAP_BYTES) ranges.push({ offset, sizeBytes });
    else last.sizeBytes = Math.max(last.sizeBytes, offset + sizeBytes - last.offset);
  }
  return ranges.filter((range) => range.sizeBytes > 0);
}
