import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ParquetFooterError, parquetFooterSize, readParquetFooter } from "./parquet-footer.ts";

/** The compact protocol, written by hand: fields in order, each as its header and its value. */
type Field = { id: number; type: number; value: number[] };

const [I32, I64, BINARY, LIST, STRUCT] = [5, 6, 8, 9, 12];

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

const zigzag = (value: number): number[] => varint(value < 0 ? -2 * value - 1 : 2 * value);
const i32 = (id: number, value: number): Field => ({ id, type: I32, value: zigzag(value) });
const i64 = (id: number, value: number): Field => ({ id, type: I64, value: zigzag(value) });
const text = (value: string): number[] => [...varint(value.length), ...Buffer.from(value)];
const field = (id: number, type: number, value: number[]): Field => ({ id, type, value });
const list = (type: number, items: readonly number[][]): number[] =>
  items.length < 15
    ? [(items.length << 4) | type, ...items.flat()]
    : [0xf0 | type, ...varint(items.length), ...items.flat()];

function struct(...fields: readonly Field[]): number[] {
  const bytes: number[] = [];
  let last = 0;
  for (const { id, type, value } of fields) {
    const delta = id - last;
    last = id;
    if (delta > 0 && delta < 16) bytes.push((delta << 4) | type, ...value);
    else bytes.push(type, ...zigzag(id), ...value);
  }
  bytes.push(0);
  return bytes;
}

function fileOf(metadata: number[], bodyBytes = 1_000): Uint8Array {
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(metadata.length);
  trailer.write("PAR1", 4);
  return Buffer.concat([Buffer.alloc(bodyBytes), Buffer.from(metadata), trailer]);
}

function read(file: Uint8Array): ReturnType<typeof readParquetFooter> {
  const sizeBytes = parquetFooterSize(file.subarray(-64), file.length);
  return readParquetFooter(file.subarray(file.length - sizeBytes), file.length);
}

/** How many parts the footer has, 0 when it is refused. */
function partsOrRefused(file: Uint8Array): number {
  try {
    return read(file).parts.length;
  } catch (error) {
    if (error instanceof ParquetFooterError) return 0;
    throw error;
  }
}

const chunk = (path: string[], ...numbers: readonly Field[]): number[] =>
  struct(field(3, STRUCT, struct(field(3, LIST, list(BINARY, path.map(text))), ...numbers)));
const metadataOf = (chunks: readonly number[][], ...more: readonly Field[]): number[] =>
  struct(i64(3, 10), field(4, LIST, list(STRUCT, [struct(field(1, LIST, list(STRUCT, chunks)))])), ...more);

describe("a footer", () => {
  test("tells where each column's chunks, Bloom filters and indexes are", () => {
    const first = chunk(["a"], i64(7, 100), i64(9, 50), i64(11, 4), i64(14, 500), i32(15, 47));
    const second = struct(
      field(
        3,
        STRUCT,
        struct(field(3, LIST, list(BINARY, ["v", "list", "element"].map(text))), i64(7, 20), i64(9, 104)),
      ),
      i64(4, 600),
      i32(5, 10),
      i64(6, 610),
      i32(7, 12),
    );
    expect(read(fileOf(metadataOf([first, second])))).toEqual({
      rows: 10,
      parts: [
        { column: "a", offset: 4, sizeBytes: 100 },
        { column: "a", offset: 500, sizeBytes: 47 },
        { column: "v", offset: 104, sizeBytes: 20 },
        { column: "v", offset: 600, sizeBytes: 10 },
        { column: "v", offset: 610, sizeBytes: 12 },
      ],
    });
  });

  test("of many columns, and with fields of all kinds that nobody asked for", () => {
    const many = Array.from({ length: 300 }, (_, n) => chunk([`c${n}`], i64(7, 1), i64(9, 4 + n), i64(11, 0)));
    const odd = [
      field(20, 1, []),
      field(21, 7, [0, 0, 0, 0, 0, 0, 0, 0]),
      field(22, 11, [1, 0x8c, ...text("k"), 0]),
      field(23, LIST, list(1, [[1], [2]])),
      field(
        24,
        13,
        Array.from({ length: 16 }, () => 7),
      ),
      field(2_000, 3, [9]),
    ];
    const { parts } = read(fileOf(metadataOf(many, ...odd)));
    expect(parts).toHaveLength(300);
    expect(parts[299]).toEqual({ column: "c299", offset: 303, sizeBytes: 1 });
  });

  test.each([
    ["nothing", new Uint8Array(0), "the file is too short"],
    ["no magic", Buffer.alloc(100), "the magic is missing"],
    ["a length past the start", fileOf([0]).subarray(-9), "it is larger than the file"],
    ["no number of rows", fileOf([0]), "it tells no number of rows"],
    ["an end in the middle", fileOf([0x16]), "it ends in the middle"],
    ["a list larger than all", fileOf(struct(field(4, LIST, [0xfc, ...varint(2 ** 40)]))), "larger than what is left"],
    ["a text larger than all", fileOf(struct(field(9, BINARY, varint(2 ** 50)))), "it ends in the middle"],
    ["an endless integer", fileOf([0x16, ...Array.from({ length: 50 }, () => 0xff)]), "too many bytes"],
    ["an inexact integer", fileOf(metadataOf([chunk(["a"], i64(7, 2 ** 54), i64(9, 4))])), "out of range"],
    ["a chunk outside", fileOf(metadataOf([chunk(["a"], i64(7, 997), i64(9, 4))])), "lies outside of the file"],
    ["a chunk before", fileOf(metadataOf([chunk(["a"], i64(7, 10), i64(9, -4))])), "lies outside of the file"],
    ["a negative size", fileOf(metadataOf([chunk(["a"], i64(7, -1), i64(9, 4))])), "lies outside of the file"],
    ["a chunk without place", fileOf(metadataOf([chunk(["a"], i64(7, 1))])), "has no place"],
    ["a chunk without name", fileOf(metadataOf([struct(field(3, STRUCT, struct()))])), "has no name"],
    ["a chunk without metadata", fileOf(metadataOf([struct()])), "has no metadata"],
    ["a chunk in another file", fileOf(metadataOf([struct(field(1, BINARY, text("x")))])), "not stored plainly"],
    [
      "a Bloom filter without length",
      fileOf(metadataOf([chunk(["a"], i64(7, 1), i64(9, 4), i64(14, 9))])),
      "no length",
    ],
    ["encryption", fileOf(metadataOf([], field(8, STRUCT, struct()))), "encrypted"],
    ["text for a number", fileOf(struct(field(3, BINARY, text("x")))), "a number is none"],
    ["an unknown type", fileOf(struct(field(1, 14, []))), "there is no type 14"],
    ["endless nesting", fileOf(Array.from({ length: 5_000 }, () => 0x1c)), "nested deeper"],
    ["endless lists", fileOf([0x19, ...Array.from({ length: 5_000 }, () => 0x19)]), "nested deeper"],
  ])("with %s is refused", (_, file, problem) => {
    expect(() => read(file)).toThrow(ParquetFooterError);
    expect(() => read(file)).toThrow(problem);
  });

  test("of any bytes is read or refused, in no time", () => {
    const good = metadataOf(
      Array.from({ length: 20 }, (_, n) => chunk([`c${n}`, "list"], i64(7, 1), i64(9, 4 + n), i64(14, 9), i32(15, 1))),
    );
    const edit = fc.record({ place: fc.nat(good.length - 1), byte: fc.nat(255) });
    const mutated = fc.array(edit, { minLength: 1, maxLength: 8 }).map((edits) => {
      const bytes = good.slice();
      for (const { place, byte } of edits) bytes[place] = byte;
      return bytes;
    });
    const noise = fc.uint8Array({ maxLength: 400 }).map((bytes) => Array.from(bytes));
    const startedMs = performance.now();
    fc.assert(
      fc.property(fc.oneof(mutated, noise), (metadata) => {
        expect(partsOrRefused(fileOf(metadata))).toBeLessThanOrEqual(metadata.length);
      }),
      { numRuns: 20_000 },
    );
    expect(performance.now() - startedMs).toBeLessThan(30_000);
  });
});
