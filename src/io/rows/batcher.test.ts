import { array, assert, boolean, constantFrom, integer, property, tuple } from "fast-check";
import { expect, test } from "vitest";
import { Batcher, hasRows, type Batch } from "./batcher.ts";

const ORIGIN = { shown: "the input", unit: "line" } as const;
const BATCH = 16;
const LINE = 64;

function batchesOf(chunks: readonly Uint8Array[], batchBytes = BATCH, lineBytes = LINE): Batch[] {
  const batcher = new Batcher(ORIGIN, batchBytes, lineBytes);
  const found: Batch[] = [];
  for (const chunk of chunks) {
    batcher.push(chunk);
    for (let batch = batcher.takeFull(); batch !== undefined; batch = batcher.takeFull()) found.push(batch);
  }
  const rest = batcher.takeRest();
  return rest === undefined ? found : [...found, rest];
}

const bodies = (batches: readonly Batch[]) => batches.map(({ body }) => body.toString());
const shape = (batches: readonly Batch[]) =>
  batches.map(({ body, firstLine, lines }) => [body.toString(), firstLine, lines]);

const filledLines = (text: string) => text.split("\n").filter((line) => line !== "");

/** The input in pieces of the given sizes, over and over. */
function inPieces(input: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < input.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    pieces.push(input.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

test("lines fill a batch up to its size, to the byte", () => {
  expect(shape(batchesOf([Buffer.from("1234567\nabcdefg\nX\n")]))).toEqual([
    ["1234567\nabcdefg\n", 1, 2],
    ["X\n", 3, 1],
  ]);
  expect(bodies(batchesOf([Buffer.from("1234567\nabcdefgh\n")]))).toEqual(["1234567\n", "abcdefgh\n"]);
});

test("the last line needs no newline", () => {
  expect(shape(batchesOf([Buffer.from("a\nb")]))).toEqual([["a\nb", 1, 2]]);
  expect(batchesOf([])).toEqual([]);
});

test("lines are counted, whatever their lengths", () => {
  const lengths = [0, 0, 3, 300, 0, 63, 64, 65, ...Array.from({ length: 2_000 }, () => 0), 9_000, 5, 0];
  const text = lengths.map((length) => `${"x".repeat(length)}\n`).join("");
  expect(batchesOf([Buffer.from(text)], 2 ** 20, 2 ** 20)).toMatchObject([{ firstLine: 1, lines: lengths.length }]);
});

test("a line longer than a batch goes alone, up to the limit of a line", () => {
  const long = "x".repeat(LINE);
  const found = batchesOf([Buffer.from(`a\n${long}\nb\n`)]);
  expect(shape(found)).toEqual([
    ["a\n", 1, 1],
    [long, 2, 1],
    ["b\n", 3, 1],
  ]);
  expect(bodies(batchesOf([Buffer.from(long)]))).toEqual([long]);
});

test.for(["", "\n", "\nb\n"])("a line beyond the limit is refused by its number (then %j)", (tail) => {
  const input = Buffer.from(`a\n${"x".repeat(LINE + 1)}${tail}`);
  expect(() => batchesOf([input])).toThrow("line 2 of the input has more than 64 bytes");
  expect(() => batchesOf(inPieces(input, [7]))).toThrow("line 2 of the input has more than 64 bytes");
});

test("a line beyond the limit is refused before it is held whole", () => {
  const batcher = new Batcher(ORIGIN, BATCH, LINE);
  batcher.push(Buffer.alloc(LINE + 1, "x"));
  expect(() => batcher.takeFull()).toThrow("line 1 of the input");
});

const input = array(tuple(integer({ min: 0, max: LINE - 1 }), constantFrom("a", "é", "\r")), { maxLength: 30 }).chain(
  (lines) =>
    boolean().map((ends) => {
      const text = lines.map(([length, char]) => char.repeat(Math.floor(length / 2))).join("\n");
      return Buffer.from(ends ? `${text}\n` : text);
    }),
);

test("the cuts depend on the input alone, and nothing is lost, doubled or split", () => {
  assert(
    property(input, array(integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 }), (bytes, sizes) => {
      const whole = batchesOf([bytes]);
      expect(shape(batchesOf(inPieces(bytes, sizes)))).toEqual(shape(whole));
      // A long line gives up its newline, and only that.
      expect(bodies(whole).flatMap(filledLines)).toEqual(filledLines(bytes.toString()));
      for (const { body, lines: count } of whole) expect(body.length <= BATCH || count === 1).toBe(true);
    }),
  );
});

test("each batch knows its first line", () => {
  assert(
    property(input, (bytes) => {
      const all = bytes.toString().split("\n");
      for (const { body, firstLine, lines } of batchesOf(inPieces(bytes, [9]))) {
        expect(all.slice(firstLine - 1, firstLine - 1 + lines).join("\n")).toBe(body.toString().replace(/\n$/, ""));
      }
    }),
  );
});

test("lines can be taken early", () => {
  const batcher = new Batcher(ORIGIN, BATCH, LINE);
  batcher.push(Buffer.from("a\nb\nhal"));
  expect(batcher.takeLines()?.body.toString()).toBe("a\nb\n");
  expect(batcher.takeLines()).toBeUndefined();
  batcher.push(Buffer.from("f\n"));
  expect(batcher.takeLines()).toMatchObject({ firstLine: 3, lines: 1 });
  expect(batcher.takeLines()).toBeUndefined();
});

test("blank lines are no rows", () => {
  for (const blank of ["", "\n\n", " \t\r\n"]) expect(hasRows(Buffer.from(blank))).toBe(false);
  for (const rows of ["{}", "\n\n x", "\u00a0"]) expect(hasRows(Buffer.from(rows))).toBe(true);
});
