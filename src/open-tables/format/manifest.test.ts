import avsc from "avsc";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { ColumnRecord, ExtentRecord } from "../../catalog/catalog.ts";
import { listName, manifestBytes, manifestListBytes, manifestName } from "./manifest.ts";
import { schemaAt, schemaIdAt } from "./schema.ts";

const COLUMNS: readonly ColumnRecord[] = [
  { id: 1, name: "at", type: { kind: "timestamp" } },
  { id: 2, name: "a.b", type: { kind: "string" } },
  { id: 3, name: "vec", type: { kind: "vector", dimensions: 2 } },
  { id: 4, name: "n", type: { kind: "real" }, sinceSnapshot: 5, widened: { version: 4, snapshot: 9 } },
];
const TABLE = { columns: COLUMNS };
const locationOf = (key: string): string => `s3://bucket/${key}`;

function extent(more: Partial<ExtentRecord> = {}): ExtentRecord {
  return {
    id: "01900000-0000-7000-8000-000000000001",
    key: "engine/d/t/2024-01-01/x y.parquet",
    format: "parquet",
    formatVersion: 2,
    rows: 10,
    sizeBytes: 1_234,
    checksum: "",
    minAtNs: 1_000n,
    maxAtNs: 5_000n,
    tableId: 1,
    schemaVersion: 2,
    beginSnapshot: 7,
    stats: [
      { name: "at", nullCount: 0, min: "1000", max: "5000" },
      { name: "A.B", nullCount: 3, min: "a", max: "b" },
      { name: "vec", nullCount: 0 },
    ],
    ...more,
  };
}

type Decoded = { header: Record<string, string>; records: Record<string, unknown>[] };

/** What a reader of Avro that knows nothing of ours makes of it. */
async function decoded(bytes: Buffer): Promise<Decoded> {
  const decoder = new avsc.streams.BlockDecoder();
  const header: Record<string, string> = {};
  const records: Record<string, unknown>[] = [];
  decoder.on("metadata", (_type: unknown, _codec: unknown, found: { meta: Record<string, Buffer> }) => {
    for (const [key, value] of Object.entries(found.meta)) header[key] = value.toString();
  });
  for await (const record of Readable.from([bytes]).pipe(decoder)) records.push(record as Record<string, unknown>);
  return { header, records };
}

test("a manifest says of each file where it is, what it holds and which snapshot brought it", async () => {
  const { header, records } = await decoded(await manifestBytes(TABLE, [extent()], locationOf));
  expect(header).toMatchObject({ "format-version": "2", content: "data", "partition-spec": "[]", "schema-id": "1" });
  expect(JSON.parse(header["schema"] ?? "")).toEqual(schemaAt(TABLE, 7));
  expect(header["avro.schema"]).toContain('"field-id":134');
  expect(header["avro.schema"]).toContain('"logicalType":"map"');
  const us = (value: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes;
  };
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ status: 0, snapshot_id: 7, sequence_number: 7, file_sequence_number: 7 });
  expect(records[0]?.["data_file"]).toMatchObject({
    file_path: "s3://bucket/engine/d/t/2024-01-01/x y.parquet",
    file_format: "PARQUET",
    record_count: 10,
    file_size_in_bytes: 1_234,
    value_counts: [
      { key: 1, value: 10 },
      { key: 2, value: 10 },
    ],
    null_value_counts: [
      { key: 1, value: 0 },
      { key: 2, value: 3 },
    ],
    lower_bounds: [
      { key: 1, value: us(1n) },
      { key: 2, value: Buffer.from("a") },
    ],
    upper_bounds: [
      { key: 1, value: us(5n) },
      { key: 2, value: Buffer.from("b") },
    ],
  });
});

test("the same files give the same bytes and the same name, whoever writes them; other ones another name", async () => {
  const extents = [extent()];
  const once = await manifestBytes(TABLE, extents, locationOf);
  expect(await manifestBytes(TABLE, [extent()], locationOf)).toEqual(once);
  const name = manifestName(TABLE, extents, locationOf);
  expect(name).toMatch(/^manifest-[0-9a-f]{32}\.avro$/);
  expect(manifestName(TABLE, [extent({ endSnapshot: 9 })], locationOf)).toBe(name);
  const others = [
    manifestName(TABLE, [extent(), extent()], locationOf),
    manifestName(TABLE, extents, (key) => `s3://elsewhere/${key}`),
    manifestName(
      { columns: COLUMNS.slice(0, 3) },
      [extent({ id: "01900000-0000-7000-8000-000000000002" })],
      locationOf,
    ),
    manifestName({ columns: COLUMNS.slice(0, 2) }, extents, locationOf),
  ];
  expect(new Set([name, ...others]).size).toBe(5);
});

test("a list has the manifests with their sums", async () => {
  const manifest = { key: "k", bytes: 99, files: 2, rows: 20, firstSnapshot: 3, lastSnapshot: 7 };
  const { header, records } = await decoded(await manifestListBytes(8, [manifest], locationOf));
  expect(header).toMatchObject({ "snapshot-id": "8", "sequence-number": "8", "format-version": "2" });
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({
    manifest_path: "s3://bucket/k",
    manifest_length: 99,
    content: 0,
    sequence_number: 7,
    min_sequence_number: 3,
    added_snapshot_id: 7,
    existing_files_count: 2,
    existing_rows_count: 20,
  });
  expect((await decoded(await manifestListBytes(8, [], locationOf))).records).toEqual([]);
  expect(listName(8, [manifest], locationOf)).not.toBe(listName(8, [], locationOf));
});

test("schemas are those of then, and their ids count the changes", () => {
  const fieldsAt = (snapshot: number) => schemaAt(TABLE, snapshot).fields.map(({ id, type }) => [id, type]);
  const vector = { type: "list", "element-id": 1_000_003, element: "float", "element-required": false };
  const first = [
    [1, "timestamptz"],
    [2, "string"],
    [3, vector],
  ];
  expect(fieldsAt(4)).toEqual(first);
  expect(fieldsAt(5)).toEqual([...first, [4, "long"]]);
  expect(fieldsAt(9)).toEqual([...first, [4, "double"]]);
  expect([0, 4, 5, 8, 9, 99].map((snapshot) => schemaIdAt(TABLE, snapshot))).toEqual([0, 0, 1, 1, 2, 2]);
});
