import { DataType, type Data, type Struct } from "apache-arrow";

/** The rows in as few halves of halves as are needed for none to be larger than that; a single row may be. */
export function* splitRows(data: Data<Struct>, maxBytes: number): Generator<Data<Struct>> {
  if (data.length <= 1 || writtenBytes(data) <= maxBytes) {
    yield data;
    return;
  }
  const half = data.length >> 1;
  yield* splitRows(data.slice(0, half), maxBytes);
  yield* splitRows(data.slice(half, data.length - half), maxBytes);
}

/** What the writer makes of it, without padding. `Data.byteLength` counts what a slice shares with the others. */
function writtenBytes(data: Data): number {
  const { length, valueOffsets, children } = data as Data & { valueOffsets?: Int32Array };
  let bytes = data.nullCount === 0 ? 0 : length / 8;
  if (valueOffsets !== undefined) {
    const begin = valueOffsets[0] ?? 0;
    const size = (valueOffsets[length] ?? 0) - begin;
    const [child] = children;
    bytes += 4 * (length + 1) + (child === undefined ? size : writtenBytes(child.slice(begin, size)));
  } else if (DataType.isBool(data.type)) bytes += length / 8;
  else if (children.length > 0) for (const child of children) bytes += writtenBytes(child);
  else bytes += length * data.stride * data.type.ArrayType.BYTES_PER_ELEMENT;
  return bytes;
}
