import { DataType, Precision, RecordBatchReader, TimeUnit, type Data, type RecordBatch } from "apache-arrow";
import { foldName } from "../../core/names.ts";
import { formatColumnType, parseColumnType, type ColumnSpec, type ColumnType } from "../../format/types.ts";

/** Where the bytes of an extent are. */
export type TlmSource = { path: string } | { bytes: Uint8Array };

/** The columns of one record batch in the order asked for; undefined where the extent has no such column. */
export type TlmBatch = { rows: number; columns: (Data | undefined)[] };

/**
 * Opens the bytes of a `tlm` extent (an Arrow IPC file) and picks the wanted columns of every batch. Buffers are
 * views of `bytes`; nothing is copied. Throws when the bytes are no Arrow file or a column has another type than the
 * table says, naming what is wrong.
 */
export function openTlm(bytes: Uint8Array, wanted: readonly ColumnSpec[]): TlmBatch[] {
  const reader = openReader(bytes);
  const places = new Map(reader.schema.fields.map((field, i) => [foldName(field.name), i]));
  const picked = wanted.map((column) => {
    const place = places.get(foldName(column.name));
    const field = place === undefined ? undefined : reader.schema.fields[place];
    if (field !== undefined && !holds(field.type, column.type)) {
      throw new Error(`column ${JSON.stringify(column.name)} is ${field.type}, not ${formatColumnType(column.type)}`);
    }
    return place;
  });
  const batches: TlmBatch[] = [];
  for (const batch of reader as Iterable<RecordBatch>) {
    if (batch.numRows === 0) continue;
    const columns = picked.map((place) => (place === undefined ? undefined : batch.data.children[place]));
    batches.push({ rows: batch.numRows, columns });
  }
  return batches;
}

/** The columns of an extent, as its fields' metadata says. Throws when the bytes are no extent. */
export function columnsOfTlm(bytes: Uint8Array): ColumnSpec[] {
  return openReader(bytes).schema.fields.map((field) => {
    const type = parseColumnType(field.metadata.get("engine.type") ?? "");
    if (type === undefined) throw new Error(`field ${JSON.stringify(field.name)} has no engine.type`);
    return { name: field.name, type };
  });
}

const MAGIC = "ARROW1";

function openReader(bytes: Uint8Array): RecordBatchReader {
  const ends = [bytes.subarray(0, MAGIC.length), bytes.subarray(-MAGIC.length)];
  // The library takes anything, and fails later in ways that do not say why.
  if (ends.some((end) => Buffer.from(end).toString("latin1") !== MAGIC)) throw new Error("not an Arrow file");
  const reader = RecordBatchReader.from(bytes);
  reader.open();
  return reader;
}

/** Whether the Arrow type is the one that our type is stored as (`types.ts` has the table). */
function holds(arrow: DataType, type: ColumnType): boolean {
  switch (type.kind) {
    case "bool":
      return DataType.isBool(arrow);
    case "int":
      return DataType.isInt(arrow) && arrow.bitWidth === 32 && arrow.isSigned;
    case "long":
      return DataType.isInt(arrow) && arrow.bitWidth === 64 && arrow.isSigned;
    case "real":
      return DataType.isFloat(arrow) && arrow.precision === Precision.DOUBLE;
    case "string":
    case "dynamic":
      return DataType.isUtf8(arrow);
    case "timestamp":
      return DataType.isTimestamp(arrow) && arrow.unit === TimeUnit.NANOSECOND;
    case "vector": {
      if (!DataType.isFixedSizeList(arrow) || arrow.listSize !== type.dimensions) return false;
      const item = arrow.children[0]?.type as DataType | undefined;
      return item !== undefined && DataType.isFloat(item) && item.precision === Precision.SINGLE;
    }
  }
}
