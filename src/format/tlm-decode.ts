import { RecordBatchReader, type Data, type RecordBatch, type Schema } from "apache-arrow";
import { isStoredAs } from "./arrow-types.ts";
import { isBitSet } from "./columns/bits.ts";
import { FORMAT_VERSION, FORMAT_VERSION_KEY, parseColumnType, TYPE_KEY, type ColumnSpec } from "./types.ts";

/** A value as JavaScript has it: `long` and `timestamp` (nanoseconds) as bigint, `dynamic` as its JSON text. */
export type Value = null | boolean | number | bigint | string | readonly number[];

export type DecodedExtent = { rows: number; columns: { spec: ColumnSpec; values: Value[] }[] };

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes a whole `tlm` extent into plain values. Throws when the bytes are no such extent, saying why. */
export function decodeTlm(bytes: Uint8Array): DecodedExtent {
  const reader = openFile(bytes);
  const specs = specsOf(reader.schema);
  const columns = specs.map((spec) => ({ spec, values: [] as Value[] }));
  let rows = 0;
  for (const batch of reader as Iterable<RecordBatch>) {
    rows += batch.numRows;
    for (const [index, { spec, values }] of columns.entries()) {
      const data = batch.data.children[index];
      if (data === undefined) throw new Error(`not a tlm extent: a batch lacks ${JSON.stringify(spec.name)}`);
      for (let row = 0; row < batch.numRows; row++) values.push(valueAt(spec, data, row));
    }
  }
  return { rows, columns };
}

function openFile(bytes: Uint8Array): RecordBatchReader {
  try {
    const reader = RecordBatchReader.from(bytes);
    reader.open();
    if (reader.isFile()) return reader;
  } catch (cause) {
    throw new Error("not a tlm extent: the bytes are no Arrow file", { cause });
  }
  throw new Error("not a tlm extent: the bytes are no Arrow file");
}

function specsOf(schema: Schema): ColumnSpec[] {
  const version = schema.metadata.get(FORMAT_VERSION_KEY);
  if (version !== String(FORMAT_VERSION.tlm)) throw new Error(`not a tlm extent of a known version: ${version}`);
  return schema.fields.map((field) => {
    const type = parseColumnType(field.metadata.get(TYPE_KEY) ?? "");
    const spec = type && { name: field.name, type };
    if (spec === undefined || !isStoredAs(field.type, spec)) {
      throw new Error(`not a tlm extent: field ${JSON.stringify(field.name)} is ${field.type} without a type to match`);
    }
    return spec;
  });
}

function valueAt({ type }: ColumnSpec, data: Data, row: number): Value {
  if (data.nullCount > 0 && !isBitSet(data.nullBitmap, row)) return null;
  switch (type.kind) {
    case "bool":
      return isBitSet(data.values as Uint8Array, row);
    case "int":
      return (data.values as Int32Array)[row] ?? 0;
    case "real":
      return (data.values as Float64Array)[row] ?? 0;
    case "long":
    case "timestamp":
      return (data.values as BigInt64Array)[row] ?? 0n;
    case "string":
    case "dynamic":
      return decoder.decode((data.values as Uint8Array).subarray(data.valueOffsets[row], data.valueOffsets[row + 1]));
    case "vector": {
      const floats = data.children[0]?.values as Float32Array;
      return [...floats.subarray(row * type.dimensions, (row + 1) * type.dimensions)];
    }
  }
}
