import type { Config } from "../config/options.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { LocationOf } from "./format/manifest.ts";

/**
 * Where other programs find the objects of the store: `s3://bucket/key`, or `file:///folder/key`. Nothing in it is
 * percent-encoded, for clients take it for the key as it is.
 */
export function locationsIn({ store, config }: { store: Pick<ObjectStore, "localPath">; config: Config }): LocationOf {
  const local = store.localPath?.("x");
  // Keys are relative, so what is before one is the same for all.
  const root = local === undefined ? `s3://${config.objstoreBucket}/` : `file://${local.slice(0, -1)}`;
  return (key) => root + key;
}

/** The folder of a table's metadata, in the store. */
export function metadataFolder(prefix: string, tableId: number): string {
  return `${allMetadata(prefix)}${tableId}/`;
}

/** What the keys of all metadata start with. No database's name starts with `_`. */
export function allMetadata(prefix: string): string {
  return `${prefix}/_iceberg/`;
}
