import { describe, expect, it } from "vitest";
import { hasToken, KeyTable } from "./key-table.ts";

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));

function find(table: KeyTable<string>, key: string, before = ""): string | undefined {
  const source = bytesOf(`${before}${key}"`);
  return table.find(source, before.length, source.length - 1)?.target;
}

function add(table: KeyTable<string>, key: string): void {
  const source = bytesOf(key);
  table.add(source, 0, source.length, key);
}

describe("a key", () => {
  it("is found by its bytes among thousands, wherever it stands", () => {
    const table = new KeyTable<string>();
    const keys = Array.from({ length: 3_000 }, (_, i) => `${"é".repeat(i % 7)}k${i}`);
    for (const [i, key] of keys.entries()) {
      expect(find(table, key)).toBeUndefined();
      add(table, key);
      expect(table.size).toBe(i + 1);
    }
    for (const key of keys) expect(find(table, key, '{"x')).toBe(key);
    for (const key of ["", "k", "k3000", "k1 ", "K1", "ék"]) expect(find(table, key)).toBeUndefined();
  });

  it("is not taken for another of the same hash", () => {
    // FNV-1a returns to the hash of `key` after these.
    const same = ["key", "keyfmqjisn", "keyenhbgxn"];
    for (const [i, first] of same.entries()) {
      const table = new KeyTable<string>();
      add(table, first);
      for (const [k, other] of same.entries()) expect(find(table, other)).toBe(i === k ? first : undefined);
      for (const other of same) if (other !== first) add(table, other);
      for (const key of same) expect(find(table, key)).toBe(key);
    }
  });

  it("may be empty", () => {
    const table = new KeyTable<string>();
    expect(find(table, "")).toBeUndefined();
    table.add(bytesOf(""), 0, 0, "none");
    expect(find(table, "")).toBe("none");
  });
});

describe("a token", () => {
  it("stands where all of its bytes do, whatever follows", () => {
    for (let length = 0; length < 20; length++) {
      const table = new KeyTable<string>();
      const key = "abcdefghijklmnopqrst".slice(0, length);
      const { token, words, lastMask } = table.add(bytesOf(key), 0, length, "");
      expect(Buffer.from(token).toString()).toBe(`"${key}":`);
      for (const offset of [0, 1, 2, 3, 5]) {
        const source = Buffer.alloc(offset + token.length + 4, 0x7a);
        source.set(token, offset);
        const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
        expect(hasToken(view, offset, words, lastMask)).toBe(true);
        for (let at = offset; at < offset + token.length; at++) {
          for (const bit of [1, 0x80]) {
            source[at] = (source[at] ?? 0) ^ bit;
            expect(hasToken(view, offset, words, lastMask), `${length} characters, byte ${at - offset}`).toBe(false);
            source[at] = (source[at] ?? 0) ^ bit;
          }
        }
      }
    }
  });
});
