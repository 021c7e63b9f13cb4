import { createHash } from "node:crypto";
import type { ExtentRecord } from "../../catalog/catalog.ts";
import { readStatsOf } from "../../catalog/stats-decoder.ts";
import { foldName } from "../../core/names.ts";
import type { ColumnStats, ColumnType } from "../../format/types.ts";
import { avroFile, type AvroSchema } from "./avro.ts";
import { boundsOf } from "./bounds.ts";
import { columnsAt, schemaAt, type Columns } from "./schema.ts";

/**
 * Manifests and lists of them, of version 2 of Iceberg's table format (https://iceberg.apache.org/spec/#manifests).
 *
 * Both are made of what never changes: a manifest of its extents and of the columns as of the newest of them, a list of
 * its manifests. So whoever writes them writes the same bytes, and a manifest is used again by every snapshot that has
 * the same files. Its files are called existing ones for that reason: which snapshot added a file stands in its entry.
 */

/** A manifest in the store. */
export type ManifestFile = {
  key: string;
  bytes: number;
  files: number;
  rows: number;
  /** Of the snapshots that brought its files, the first and the last. */
  firstSnapshot: number;
  lastSnapshot: number;
};

/** A file's extent, as far as its manifest's name depends on it. */
type Named = Pick<ExtentRecord, "id" | "beginSnapshot">;

/** Says where the object of a key is, for other programs. */
export type LocationOf = (key: string) => string;

/** What a manifest is called: the name tells its bytes, so one that is there need not be written again. */
export function manifestName(table: Columns, extents: readonly Named[], locationOf: LocationOf): string {
  const parts = [MANIFEST_VERSION, schemaAt(table, newestOf(extents)), locationOf(""), extents.map(({ id }) => id)];
  return `manifest-${hashOf(parts)}.avro`;
}

/** The same for a list. */
export function listName(snapshot: number, manifests: readonly ManifestFile[], locationOf: LocationOf): string {
  return `snapshot-${snapshot}-${hashOf([MANIFEST_VERSION, locationOf(""), manifests])}.avro`;
}

function hashOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}

/** Changes with what is written of the same files. */
const MANIFEST_VERSION = 1;

function newestOf(extents: readonly Named[]): number {
  return extents.reduce((newest, { beginSnapshot }) => Math.max(newest, beginSnapshot), 0);
}

/** Bounds and counts are kept of so many columns, as Iceberg's own writers do; a table may have thousands. */
const COLUMNS_WITH_METRICS = 100;

/** The bytes of a manifest; extents come with the statistics of all columns. */
export async function manifestBytes(
  table: Columns,
  extents: readonly ExtentRecord[],
  locationOf: LocationOf,
): Promise<Buffer> {
  const newest = newestOf(extents);
  const schema = schemaAt(table, newest);
  const header = {
    schema: JSON.stringify(schema),
    "schema-id": String(schema["schema-id"]),
    "partition-spec": "[]",
    "partition-spec-id": "0",
    "format-version": "2",
    content: "data",
  };
  const columns = new Map(columnsAt(table, newest).map((column) => [foldName(column.name), column]));
  return await avroFile(ENTRY, header, entriesOf(columns, extents, locationOf));
}

function* entriesOf(
  columns: ReadonlyMap<string, ReturnType<typeof columnsAt>[number]>,
  extents: readonly ExtentRecord[],
  locationOf: LocationOf,
): Generator<object> {
  for (const extent of extents) {
    yield {
      status: EXISTING,
      snapshot_id: extent.beginSnapshot,
      sequence_number: extent.beginSnapshot,
      file_sequence_number: extent.beginSnapshot,
      data_file: {
        content: DATA,
        file_path: locationOf(extent.key),
        file_format: "PARQUET",
        partition: {},
        record_count: extent.rows,
        file_size_in_bytes: extent.sizeBytes,
        column_sizes: null,
        ...readStatsOf(extent.id, () => metricsOf(columns, extent)),
        nan_value_counts: null,
        key_metadata: null,
        split_offsets: null,
        equality_ids: null,
        sort_order_id: null,
      },
    };
  }
}

type Entry<V> = { key: number; value: V };

function metricsOf(
  columns: ReadonlyMap<string, ReturnType<typeof columnsAt>[number]>,
  { rows, stats }: ExtentRecord,
): object {
  const values: Entry<number>[] = [];
  const nulls: Entry<number>[] = [];
  const lower: Entry<Buffer>[] = [];
  const upper: Entry<Buffer>[] = [];
  for (const own of stats) {
    if (values.length === COLUMNS_WITH_METRICS) break;
    const column = columns.get(foldName(own.name));
    // Counts of lists are those of their items, which nobody has counted.
    if (column === undefined || column.type.kind === "vector") continue;
    checkStats(column.type, own, rows);
    values.push({ key: column.id, value: rows });
    nulls.push({ key: column.id, value: own.nullCount });
    const bounds = boundsOf(column.type, own);
    if (bounds.lower !== undefined) lower.push({ key: column.id, value: bounds.lower });
    if (bounds.upper !== undefined) upper.push({ key: column.id, value: bounds.upper });
  }
  return { value_counts: values, null_value_counts: nulls, lower_bounds: lower, upper_bounds: upper };
}

/** Throws for what no file has: readers would leave the file out by it. */
function checkStats({ kind }: ColumnType, { name, nullCount, min, max }: ColumnStats, rows: number): void {
  const isCount = Number.isSafeInteger(nullCount) && nullCount >= 0 && nullCount <= rows;
  const isWhole = kind === "int" || kind === "long" || kind === "timestamp";
  const isRange = !isWhole || min === undefined || max === undefined || BigInt(min) <= BigInt(max);
  if (!isCount || !isRange) throw new Error(`column ${name}: ${nullCount} nulls in ${rows} rows from ${min} to ${max}`);
}

/** The bytes of the list of a snapshot's manifests. */
export async function manifestListBytes(
  snapshot: number,
  manifests: readonly ManifestFile[],
  locationOf: LocationOf,
): Promise<Buffer> {
  const header = {
    "snapshot-id": String(snapshot),
    "parent-snapshot-id": "null",
    "sequence-number": String(snapshot),
    "format-version": "2",
  };
  const records = manifests.map((manifest) => ({
    manifest_path: locationOf(manifest.key),
    manifest_length: manifest.bytes,
    partition_spec_id: 0,
    content: DATA,
    sequence_number: manifest.lastSnapshot,
    min_sequence_number: manifest.firstSnapshot,
    added_snapshot_id: manifest.lastSnapshot,
    added_files_count: 0,
    existing_files_count: manifest.files,
    deleted_files_count: 0,
    added_rows_count: 0,
    existing_rows_count: manifest.rows,
    deleted_rows_count: 0,
    partitions: null,
    key_metadata: null,
  }));
  return await avroFile(LIST, header, records);
}

const EXISTING = 0;
const DATA = 0;

type Field = { name: string; type: unknown; "field-id": number; default?: null };

function record(name: string, fields: readonly Field[]): AvroSchema {
  return { type: "record", name, fields };
}

function required(name: string, id: number, type: unknown): Field {
  return { name, type, "field-id": id };
}

function nullable(name: string, id: number, type: unknown): Field {
  return { name, type: ["null", type], default: null, "field-id": id };
}

/** Avro's maps have text for keys; those of Iceberg are lists of pairs. */
function mapOf(key: number, value: number, type: "long" | "bytes"): AvroSchema {
  const pair = record(`k${key}_v${value}`, [required("key", key, "int"), required("value", value, type)]);
  return { type: "array", logicalType: "map", items: pair };
}

function listOf(id: number, items: unknown): AvroSchema {
  return { type: "array", items, "element-id": id };
}

const ENTRY = record("manifest_entry", [
  required("status", 0, "int"),
  nullable("snapshot_id", 1, "long"),
  nullable("sequence_number", 3, "long"),
  nullable("file_sequence_number", 4, "long"),
  required(
    "data_file",
    2,
    record("r2", [
      required("content", 134, "int"),
      required("file_path", 100, "string"),
      required("file_format", 101, "string"),
      required("partition", 102, record("r102", [])),
      required("record_count", 103, "long"),
      required("file_size_in_bytes", 104, "long"),
      nullable("column_sizes", 108, mapOf(117, 118, "long")),
      nullable("value_counts", 109, mapOf(119, 120, "long")),
      nullable("null_value_counts", 110, mapOf(121, 122, "long")),
      nullable("nan_value_counts", 137, mapOf(138, 139, "long")),
      nullable("lower_bounds", 125, mapOf(126, 127, "bytes")),
      nullable("upper_bounds", 128, mapOf(129, 130, "bytes")),
      nullable("key_metadata", 131, "bytes"),
      nullable("split_offsets", 132, listOf(133, "long")),
      nullable("equality_ids", 135, listOf(136, "int")),
      nullable("sort_order_id", 140, "int"),
    ]),
  ),
]);

const LIST = record("manifest_file", [
  required("manifest_path", 500, "string"),
  required("manifest_length", 501, "long"),
  required("partition_spec_id", 502, "int"),
  required("content", 517, "int"),
  required("sequence_number", 515, "long"),
  required("min_sequence_number", 516, "long"),
  required("added_snapshot_id", 503, "long"),
  required("added_files_count", 504, "int"),
  required("existing_files_count", 505, "int"),
  required("deleted_files_count", 506, "int"),
  required("added_rows_count", 512, "long"),
  required("existing_rows_count", 513, "long"),
  required("deleted_rows_count", 514, "long"),
  nullable(
    "partitions",
    507,
    listOf(
      508,
      record("r508", [
        required("contains_null", 509, "boolean"),
        nullable("contains_nan", 518, "boolean"),
        nullable("lower_bound", 510, "bytes"),
        nullable("upper_bound", 511, "bytes"),
      ]),
    ),
  ),
  nullable("key_metadata", 519, "bytes"),
]);
