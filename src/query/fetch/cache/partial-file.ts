import { open, readFile, rm, type FileHandle } from "node:fs/promises";
import type { ExtentSummary } from "../../../catalog/catalog.ts";
import { systemCodeOf } from "../../../core/errors.ts";
import { foldName } from "../../../core/names.ts";
import { checksumOf } from "../../../format/checksum.ts";
import { PARQUET_MAGIC } from "../../../format/parquet-footer.ts";
import { keyOf, manifestPathOf, type CacheFolder } from "./cache-folder.ts";
import { checksumAt, fetchBytes, fetchToFile, writeAt, type ByteRange, type ExtentSource } from "./extent-source.ts";
import type { CacheEntry } from "./lru-index.ts";
import { parseManifest, type Manifest, type StoredRange } from "./manifest.ts";
import { locateFooter, missingFrom, rangesOf, type LocatedFooter } from "./parquet-ranges.ts";

/**
 * Parquet extents of which some columns are here: a sparse file of the extent's length with the footer and those
 * column chunks at their own places. A reader that opens no other column finds it whole; one that does finds zeros,
 * which are no page header, and fails. Columns are added to the same file as queries need them.
 */

/** Fetching parts takes a request more, and must be worth it. */
const MIN_SAVED_BYTES = 1024 * 1024;
const MAX_FETCHED_SHARE = 0.5;

/** Whether it can be worth fetching the extent in parts at all. */
export function mayBePartial(extent: ExtentSummary): boolean {
  return extent.format === "parquet" && extent.sizeBytes > MIN_SAVED_BYTES;
}

export function covers(manifest: Manifest, columns: readonly string[]): boolean {
  const stored = new Set(manifest.columns);
  return columns.every((column) => stored.has(foldName(column)));
}

/**
 * Brings columns of an extent, into `former` if there is one. Undefined when the whole extent is the better deal.
 * Throws `ParquetFooterError` besides what fetching throws; `former` is as good as before then.
 */
export async function fetchColumns(
  source: ExtentSource,
  extent: ExtentSummary,
  columns: readonly string[],
  place: { folder: CacheFolder; former: CacheEntry | undefined },
): Promise<CacheEntry | undefined> {
  const known =
    place.former?.manifest === undefined ? undefined : { entry: place.former, manifest: place.former.manifest };
  const path = known?.entry.path ?? place.folder.newPath(extent.id, "partial");
  const file = await open(path, known === undefined ? "wx+" : "r+", 0o600);
  let kept = known !== undefined;
  try {
    const { footer, fetched } = await footerOf(source, extent, file, known?.manifest);
    const stored = [...(known?.manifest.ranges ?? []), ...fetched];
    const missing = missingFrom(rangesOf(footer.footer, columns), stored);
    if (!isWorthIt(extent, missing)) return undefined;
    const added = [...fetched, ...(await fetchToFile(source, extent, missing, file))];
    source.signal.throwIfAborted();
    const entry = await record(extent, columns, { ...place, path, footerBytes: footer.footerBytes, added });
    kept = true;
    return entry;
  } finally {
    await file.close();
    if (!kept) await rm(path, { force: true });
  }
}

/** Whether a partial file that an earlier process left has what its manifest says. Sets the manifest if so. */
export async function isIntact(entry: CacheEntry, extent: ExtentSummary): Promise<boolean> {
  const manifest = await readManifest(entry);
  if (manifest === undefined || manifest.fileSizeBytes !== extent.sizeBytes) return false;
  const file = await open(entry.path, "r");
  try {
    if ((await file.stat()).size !== extent.sizeBytes) return false;
    for (const range of manifest.ranges) if ((await checksumAt(file, range)) !== range.checksum) return false;
  } finally {
    await file.close();
  }
  entry.manifest = manifest;
  return true;
}

function isWorthIt(extent: ExtentSummary, missing: readonly ByteRange[]): boolean {
  const fetchBytesTotal = missing.reduce((total, range) => total + range.sizeBytes, 0);
  const savedBytes = extent.sizeBytes - fetchBytesTotal;
  return fetchBytesTotal <= extent.sizeBytes * MAX_FETCHED_SHARE && savedBytes >= MIN_SAVED_BYTES;
}

/** The footer, from the file where it is there already; a new file gets it, and its length. */
async function footerOf(
  source: ExtentSource,
  extent: ExtentSummary,
  file: FileHandle,
  manifest: Manifest | undefined,
): Promise<{ footer: LocatedFooter; fetched: StoredRange[] }> {
  const fetched: StoredRange[] = [];
  if (manifest !== undefined) {
    const start = extent.sizeBytes - manifest.footerBytes;
    const footer = await locateFooter(extent.sizeBytes, async (range) => {
      // The reader asks for more than the footer, of which only the footer is known to be here.
      const { buffer } = await file.read(new Uint8Array(range.sizeBytes), 0, range.sizeBytes, range.offset);
      return buffer.fill(0, 0, Math.max(0, Math.min(range.sizeBytes, start - range.offset)));
    });
    return { footer, fetched };
  }
  await file.truncate(extent.sizeBytes);
  await writeAt(file, PARQUET_MAGIC, 0);
  const footer = await locateFooter(extent.sizeBytes, async (range) => {
    const bytes = await fetchBytes(source, extent, range);
    await writeAt(file, bytes, range.offset);
    fetched.push({ ...range, checksum: checksumOf(bytes) });
    return bytes;
  });
  return { footer, fetched };
}

type Addition = {
  folder: CacheFolder;
  former: CacheEntry | undefined;
  path: string;
  footerBytes: number;
  added: readonly StoredRange[];
};

/** Makes what was added count. */
async function record(extent: ExtentSummary, columns: readonly string[], addition: Addition): Promise<CacheEntry> {
  const { folder, former, path, footerBytes, added } = addition;
  const modifiedSecs = await folder.settle(path, former?.modifiedSecs ?? 0);
  const manifest: Manifest = {
    fileSizeBytes: extent.sizeBytes,
    footerBytes,
    columns: [...new Set([...(former?.manifest?.columns ?? []), ...columns.map(foldName)])],
    ranges: [...(former?.manifest?.ranges ?? []), ...added],
  };
  const key = keyOf(extent.id, true);
  const entry = former ?? {
    key,
    path,
    sizeBytes: 0,
    leases: 0,
    verified: true,
    touchedMs: modifiedSecs * 1000,
    modifiedSecs,
  };
  await folder.writeManifest(path, manifest);
  return Object.assign(entry, { manifest, modifiedSecs });
}

async function readManifest(entry: CacheEntry): Promise<Manifest | undefined> {
  try {
    return parseManifest(await readFile(manifestPathOf(entry), "utf8"));
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
