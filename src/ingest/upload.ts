import type { NewExtent, NewLedgerEntry } from "../catalog/catalog.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { FORMAT_VERSION } from "../format/types.ts";
import { objectKeys, type ObjectStore } from "../io/objectstore/objectstore.ts";
import type { SealedExtent } from "./seal.ts";

/** Extents on their way into the store, and out of it again when the catalog does not want them. */
export type UploadPorts = { store: ObjectStore; newId: IdSource; keyPrefix: string; log: Log };

/** Writes an extent under a new id; its buffer is given back. */
export async function uploadExtent(
  ports: UploadPorts,
  table: { database: string; name: string },
  sealed: SealedExtent,
): Promise<NewExtent> {
  const { bytes, formatVersion = FORMAT_VERSION[sealed.format], ...described } = sealed;
  const sizeBytes = bytes.byteLength;
  const id = ports.newId();
  const key = objectKeys.extent({
    prefix: ports.keyPrefix,
    database: table.database,
    table: table.name,
    day: utcDay(sealed.minAtNs),
    id,
    format: sealed.format,
  });
  await ports.store.put(key, bytes);
  releaseShared(bytes);
  return { ...described, id, key, formatVersion, sizeBytes };
}

/**
 * Deletes the bytes of a flush that the catalog sent back. Only then: when a commit *fails*, whether it took effect may
 * be unknown until the catalog has recovered, and an object that nobody points to costs less than a pointer to nothing.
 */
export async function discardExtents(ports: UploadPorts, extents: readonly NewExtent[]): Promise<void> {
  const keys = extents.map(({ key }) => key);
  try {
    await ports.store.delete(keys);
  } catch (error) {
    ports.log.warn({ err: error, keys }, "could not delete unused extents");
  }
}

/** What a request of `rows` rows has of the flush's extents: see `IngestAck.sizeBytes`. */
export function shareOf(extents: readonly NewExtent[], rows: number): Omit<NewLedgerEntry, "key"> {
  const allBytes = extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const allRows = extents.reduce((sum, extent) => sum + extent.rows, 0);
  return { extentCount: extents.length, rows, sizeBytes: Math.round((allBytes * rows) / allRows) };
}

const NS_PER_DAY = 86_400_000_000_000n;
const MS_PER_DAY = 86_400_000;

/** The folder of an extent: the UTC day of its earliest row (also before 1970, hence the floor). */
function utcDay(atNs: bigint): string {
  const intoDay = ((atNs % NS_PER_DAY) + NS_PER_DAY) % NS_PER_DAY;
  const day = Number((atNs - intoDay) / NS_PER_DAY);
  return new Date(day * MS_PER_DAY).toISOString().slice(0, 10);
}
