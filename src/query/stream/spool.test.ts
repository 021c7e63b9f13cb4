import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Spool, type Spooled } from "./spool.ts";

const folder = mkdtempSync(join(tmpdir(), "engine-spool-test-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

function spooled(pieces: readonly Uint8Array[]): { data: Spooled; bytes: Buffer } {
  const spool = new Spool(join(folder, String(files++)));
  for (const [i, piece] of pieces.entries()) {
    // Whoever writes may use the bytes for something else afterwards.
    const lent = Buffer.from(piece);
    if (i % 2 === 0) spool.write(lent);
    else spool.write(lent.subarray(0, lent.length >> 1), lent.subarray(lent.length >> 1));
    lent.fill(0xee);
  }
  const data = spool.end();
  return { data, bytes: "bytes" in data ? Buffer.from(data.bytes) : readFileSync(data.file) };
}

test("what is small stays in memory, what is not is a file, and both hold all pieces in order", () => {
  const piece = fc
    .tuple(fc.integer({ min: 0, max: 200_000 }), fc.nat(255))
    .map(([size, byte]) => Buffer.alloc(size, byte));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const { data, bytes } = spooled(pieces);
      const all = Buffer.concat(pieces);
      expect(bytes.equals(all)).toBe(true);
      expect("file" in data).toBe(all.byteLength > 256 * 1024);
    }),
    { numRuns: 60 },
  );
});

test("more pieces than one system call takes are written", () => {
  const pieces = Array.from({ length: 5_000 }, (_, i) => Buffer.alloc(100, i % 256));
  expect(spooled(pieces).bytes.equals(Buffer.concat(pieces))).toBe(true);
});
