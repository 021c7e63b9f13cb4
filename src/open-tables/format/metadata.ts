import { NANOSECOND_IDS } from "../../format/parquet-ids.ts";
import { schemaAt, schemaIdAt, type Columns, type IcebergSchema } from "./schema.ts";
import type { Announced } from "../announced.ts";
import type { Pending } from "../published.ts";
import type { LocationOf } from "./manifest.ts";

/** A table's metadata, of version 2: https://iceberg.apache.org/spec/#table-metadata-fields. */
export type TableMetadata = ReturnType<typeof tableMetadata>;

export type MetadataOf = {
  table: Columns;
  uuid: string;
  locationOf: LocationOf;
  /** The folder of the table's metadata. */
  folder: string;
  /** The snapshot whose columns are the table's own. */
  schemaOf: number;
  /** Ascending; the last is the current one. */
  snapshots: readonly Announced[];
  properties: Readonly<Record<string, string>>;
};

export function tableMetadata({ table, uuid, locationOf, folder, schemaOf, snapshots, properties }: MetadataOf) {
  const current = snapshots.at(-1);
  return {
    "format-version": 2,
    "table-uuid": uuid,
    location: locationOf(folder.slice(0, -1)),
    "last-sequence-number": current?.snapshot ?? 0,
    "last-updated-ms": current?.committedAtMs ?? 0,
    // The highest field id of any file: ClickHouse refuses a file with one above it.
    "last-column-id": NANOSECOND_IDS + Math.max(0, ...table.columns.map(({ id }) => id)),
    schemas: schemasOf(table, schemaOf, snapshots),
    "current-schema-id": schemaIdAt(table, schemaOf),
    "partition-specs": [{ "spec-id": 0, fields: [] }],
    "default-spec-id": 0,
    // As Iceberg's own writers begin: the first field of a partition would be 1,000.
    "last-partition-id": 999,
    "sort-orders": [{ "order-id": 0, fields: [] }],
    "default-sort-order-id": 0,
    properties,
    "current-snapshot-id": current?.snapshot ?? -1,
    snapshots: snapshots.map((snapshot, i) => snapshotOf(table, snapshot, snapshots[i - 1], locationOf)),
    "snapshot-log": snapshots.map(({ snapshot, committedAtMs }) => ({
      "snapshot-id": snapshot,
      "timestamp-ms": committedAtMs,
    })),
    "metadata-log": [],
    refs: current === undefined ? {} : { main: { "snapshot-id": current.snapshot, type: "branch" } },
    statistics: [],
    "partition-statistics": [],
  };
}

/** Those of the snapshots, and the table's own, each once. */
function schemasOf(table: Columns, schemaOf: number, snapshots: readonly Announced[]): IcebergSchema[] {
  const ids = new Map<number, number>([[schemaIdAt(table, schemaOf), schemaOf]]);
  for (const { snapshot } of snapshots) {
    const id = schemaIdAt(table, snapshot);
    if (!ids.has(id)) ids.set(id, snapshot);
  }
  return [...ids].sort(([a], [b]) => a - b).map(([, snapshot]) => schemaAt(table, snapshot));
}

function snapshotOf(
  table: Columns,
  snapshot: Announced,
  parent: Announced | undefined,
  locationOf: LocationOf,
): object {
  return {
    "snapshot-id": snapshot.snapshot,
    ...(parent !== undefined && { "parent-snapshot-id": parent.snapshot }),
    "sequence-number": snapshot.snapshot,
    "timestamp-ms": snapshot.committedAtMs,
    "manifest-list": locationOf(snapshot.listKey),
    summary: summaryOf(snapshot),
    "schema-id": schemaIdAt(table, snapshot.snapshot),
  };
}

function summaryOf({ added, removed, files, rows, sizeBytes, pending }: Announced): Record<string, string> {
  return {
    operation: operationOf(added, removed),
    "added-data-files": String(added),
    "deleted-data-files": String(removed),
    "total-data-files": String(files),
    "total-records": String(rows),
    "total-files-size": String(sizeBytes),
    "total-delete-files": "0",
    "total-position-deletes": "0",
    "total-equality-deletes": "0",
    ...pendingSummary(pending),
  };
}

/** Rows of the table that the snapshot does not have yet, and since when they wait. */
function pendingSummary({ rows, sinceMs }: Pending): Record<string, string> {
  const since = sinceMs === undefined || rows === 0 ? {} : { "engine.pending-since": new Date(sinceMs).toISOString() };
  return { "engine.pending-rows": String(rows), ...since };
}

/** A merge brings rows along with those of the files that it replaces, so it counts as an overwrite. */
function operationOf(added: number, removed: number): string {
  if (removed === 0) return "append";
  return added === 0 ? "delete" : "overwrite";
}
