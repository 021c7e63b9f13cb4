import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../../core/random.ts";
import { InvalidObjectKey, ObjectChanged, ObjectNotFound } from "./objectstore.ts";
import type { ObjectStore } from "./objectstore.ts";

/** A fresh, empty store and what frees it. */
export type StoreUnderTest = { store: ObjectStore; dispose: () => Promise<void> };

/** The tests that every driver passes. */
export function describeObjectStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`object store: ${name}`, () => {
    let opened: StoreUnderTest;
    let store: ObjectStore;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.dispose());

    it.each([0, 1, 4_095, 4_096, 1_000_000, 20_000_001])("gives back %i bytes as they were", async (sizeBytes) => {
      const bytes = seededRandom(sizeBytes).fill(new Uint8Array(sizeBytes));
      await store.put("p/db/t/2026-01-01/x.tlm", bytes);
      expect(Buffer.compare(await store.get("p/db/t/2026-01-01/x.tlm"), bytes)).toBe(0);
      expect(await store.head("p/db/t/2026-01-01/x.tlm")).toMatchObject({ key: "p/db/t/2026-01-01/x.tlm", sizeBytes });
    });

    describe("from a file", () => {
      let folder: string;
      beforeEach(async () => {
        folder = await mkdtemp(join(tmpdir(), "engine-put-file-"));
      });
      afterEach(() => rm(folder, { recursive: true }));

      /** A file of random bytes. */
      async function file(name: string, sizeBytes: number): Promise<{ path: string; bytes: Uint8Array }> {
        const bytes = seededRandom(sizeBytes).fill(new Uint8Array(sizeBytes));
        const path = join(folder, name);
        await writeFile(path, bytes);
        return { path, bytes };
      }

      it.each([0, 1, 1_000_000, 20_000_001])(
        "stores %i bytes, and leaves the file to the caller",
        async (sizeBytes) => {
          const { path, bytes } = await file("x", sizeBytes);
          await store.putFile("p/db/t/2026-01-01/x.parquet", path);
          expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
          await rm(path);
          expect(Buffer.compare(await store.get("p/db/t/2026-01-01/x.parquet"), bytes)).toBe(0);
          expect(await keysOf(store, "")).toEqual(["p/db/t/2026-01-01/x.parquet"]);
        },
      );

      it("replaces an object whole, also by itself", async () => {
        const [long, short] = [await file("long", 100_000), await file("short", 10)];
        for (const { path } of [long, short, short]) await store.putFile("a", path);
        await store.put("b", text("old"));
        await store.putFile("b", long.path);
        expect(Buffer.compare(await store.get("a"), short.bytes)).toBe(0);
        expect(Buffer.compare(await store.get("b"), long.bytes)).toBe(0);
        // What one object becomes is nothing to another that came from the same file.
        await store.putFile("c", long.path);
        await store.put("b", text("new"));
        expect(Buffer.compare(await store.get("c"), long.bytes)).toBe(0);
      });

      it("stores nothing of a file that is not there, under a bad key, or for a caller who has left", async () => {
        const { path } = await file("x", 20_000_000);
        await expect(store.putFile("a", join(folder, "none"))).rejects.toThrow("ENOENT");
        await expect((async () => store.putFile("a//b", path))()).rejects.toThrow(InvalidObjectKey);
        const left = AbortSignal.abort(new Error("client left"));
        await expect(store.putFile("a", path, { signal: left })).rejects.toThrow("client left");
        const controller = new AbortController();
        const put = store.putFile("a", path, { signal: controller.signal });
        controller.abort(new Error("client left too"));
        await expect(put).rejects.toThrow("client left too");
        expect(await keysOf(store, "")).toEqual([]);
      });
    });

    it("stores a view's own bytes, not its whole buffer", async () => {
      await store.put("a", new Uint8Array([1, 2, 3, 4, 5, 6]).subarray(2, 4));
      expect([...(await store.get("a"))]).toEqual([3, 4]);
    });

    it("hands out bytes that own their buffer", async () => {
      await store.put("a", text("0123456789"));
      const part = await store.get("a", { offset: 2, length: 3 });
      expect(part.buffer.byteLength).toBe(3);
    });

    it.each([
      [{}, "0123456789"],
      [{ offset: 4 }, "456789"],
      [{ length: 3 }, "012"],
      [{ offset: 4, length: 3 }, "456"],
      [{ offset: 8, length: 5 }, "89"],
      [{ offset: 10 }, ""],
      [{ offset: 99, length: 1 }, ""],
      [{ offset: 3, length: 0 }, ""],
    ])("reads the range %j", async (range, expected) => {
      await store.put("a", text("0123456789"));
      expect(Buffer.from(await store.get("a", range)).toString()).toBe(expected);
    });

    it.each([{ offset: -1 }, { length: -1 }, { offset: 0.5 }, { length: Number.NaN }])(
      "refuses the range %j",
      async (range) => {
        await store.put("a", text("x"));
        await expect(store.get("a", range)).rejects.toThrow(RangeError);
      },
    );

    it("says which object is missing", async () => {
      await store.put("a/b", text("x"));
      for (const key of ["a", "a/c", "a/b/c", "nothing/here"]) {
        expect(await store.head(key)).toBeUndefined();
        await expect(store.get(key)).rejects.toThrow(new ObjectNotFound(key));
      }
    });

    it("replaces an object whole", async () => {
      await store.put("a", text("long content"));
      await store.put("a", text("new"));
      expect(Buffer.from(await store.get("a")).toString()).toBe("new");
    });

    it("lists what starts with the prefix, in bytewise order", async () => {
      await putAll(store, UNSORTED);
      expect(await keysOf(store, "")).toEqual(SORTED);
      expect(await keysOf(store, "a/")).toEqual(["a/b", "a/b.c", "a/c/d"]);
      expect(await keysOf(store, "a/b")).toEqual(["a/b", "a/b.c"]);
      expect(await keysOf(store, "a/b/")).toEqual([]);
      expect(await keysOf(store, "a/c")).toEqual(["a/c/d"]);
      expect(await keysOf(store, "none")).toEqual([]);
      expect(await keysOf(store, "none/here")).toEqual([]);
    });

    it("continues a listing strictly after any key, present or not", async () => {
      await putAll(store, UNSORTED);
      const bounds = [...SORTED, "a/", "a/b/", "a/bb", "A", "zzz", "a/c/", "~", "é", "\u{1f600}"];
      for (const startAfter of bounds) {
        const expected = SORTED.filter((key) => Buffer.compare(Buffer.from(key), Buffer.from(startAfter)) > 0);
        expect(await keysOf(store, "", startAfter)).toEqual(expected);
        expect(await keysOf(store, "a/", startAfter)).toEqual(expected.filter((key) => key.startsWith("a/")));
      }
    });

    it("lists a random tree as a sorted map would", async () => {
      const random = drawnRandom();
      const keys = new Set(Array.from({ length: 60 }, () => randomKey(random)));
      await putAll(store, [...keys]);
      const sorted = bytewise([...keys]);
      expect(await keysOf(store, "")).toEqual(sorted);
      for (const startAfter of sorted) {
        expect(await keysOf(store, "", startAfter)).toEqual(sorted.slice(sorted.indexOf(startAfter) + 1));
      }
    });

    it("lists sizes", async () => {
      await store.put("a", text("12345"));
      const [info] = await Array.fromAsync(store.list(""));
      expect(info).toEqual(await store.head("a"));
      expect(info).toMatchObject({ key: "a", sizeBytes: 5 });
    });

    it("tells when an object is another one, and reads only the one that was listed", async () => {
      await store.put("a", text("first"));
      const [first] = await Array.fromAsync(store.list(""));
      const identity = first?.identity ?? "";
      expect(identity).not.toBe("");
      expect((await store.head("a"))?.identity).toBe(identity);
      expect(Buffer.from(await store.get("a", { identity })).toString()).toBe("first");
      await store.put("a", text("other"));
      expect((await store.head("a"))?.identity).not.toBe(identity);
      await expect(store.get("a", { identity })).rejects.toThrow(ObjectChanged);
      await expect(store.get("a", { identity, offset: 1, length: 2 })).rejects.toThrow(ObjectChanged);
      await store.delete(["a"]);
      await expect(store.get("a", { identity })).rejects.toThrow(ObjectNotFound);
    });

    it("tells when an object was written", async () => {
      await store.put("a", text("x"));
      const info = await store.head("a");
      // Some stores tell it in seconds, by a clock of their own.
      expect(Math.abs((info?.modifiedAtMs ?? 0) - systemClock.nowMs())).toBeLessThan(60_000);
    });

    it("takes every character that a key may hold", async () => {
      const keys = bytewise([...SPECIAL_KEYS]);
      await putAll(store, keys);
      expect(await keysOf(store, "")).toEqual(keys);
      for (const key of keys) {
        expect(Buffer.from(await store.get(key)).toString()).toBe(key);
        expect(await store.head(key)).toMatchObject({ key });
        expect(await keysOf(store, key)).toEqual([key]);
        expect(await keysOf(store, "", key)).toEqual(keys.slice(keys.indexOf(key) + 1));
      }
      await store.delete(keys);
      expect(await keysOf(store, "")).toEqual([]);
    });

    it("lists and deletes more objects than one request of a remote store takes", async () => {
      const keys = Array.from({ length: 1_050 }, (_, i) => `many/${String(i).padStart(4, "0")}`);
      await putAll(store, [...keys, "other"]);
      expect(await keysOf(store, "many/")).toEqual(keys);
      expect(await keysOf(store, "", "many/0009")).toEqual([...keys.slice(10), "other"]);
      // A reader that stops early leaves the rest alone.
      for await (const { key } of store.list("many/")) if (key === keys[3]) break;
      await store.delete([...keys, "many/none"]);
      expect(await keysOf(store, "")).toEqual(["other"]);
    });

    it("deletes, and ignores what is missing", async () => {
      await putAll(store, ["a/1", "a/2", "b/1"]);
      await store.delete(["a/1", "b/1", "a/none", "none/none", "a", "b/1"]);
      expect(await keysOf(store, "")).toEqual(["a/2"]);
      await store.delete(["a/1"]);
      await store.delete([]);
      await store.put("a/1", text("again"));
      expect(await keysOf(store, "a/")).toEqual(["a/1", "a/2"]);
    });

    it.each([
      ["empty", ""],
      ["absolute", "/a"],
      ["trailing slash", "a/"],
      ["empty segment", "a//b"],
      ["dot", "a/./b"],
      ["dot dot", "a/../../b"],
      ["dotted name", "a/.hidden"],
      ["NUL", "a/b\0c"],
      ["newline", "a\nb"],
      ["lone surrogate", "a\ud800"],
      ["segment of 256 bytes", "s".repeat(256)],
      ["segment of 256 bytes in 128 characters", "é".repeat(128)],
      ["1,025 bytes", `${"s".repeat(200)}/`.repeat(5) + "s".repeat(20)],
    ])("refuses a key that is bad: %s", async (_what, key) => {
      await expect((async () => store.put(key, text("x")))()).rejects.toThrow(InvalidObjectKey);
      await expect((async () => store.get(key))()).rejects.toThrow(InvalidObjectKey);
      await expect((async () => store.head(key))()).rejects.toThrow(InvalidObjectKey);
      await expect((async () => store.delete([key]))()).rejects.toThrow(InvalidObjectKey);
      expect(await keysOf(store, "")).toEqual([]);
    });

    it("takes the longest keys", async () => {
      const key = `${"s".repeat(255)}/${"é".repeat(127)}x/${"t".repeat(255)}/${"u".repeat(255)}`;
      await store.put(key, text("x"));
      expect(await keysOf(store, "")).toEqual([key]);
    });

    it("gives up when told to", async () => {
      const signal = AbortSignal.abort(new Error("client left"));
      await expect(store.put("a", text("x"), { signal })).rejects.toThrow("client left");
      expect(await store.head("a")).toBeUndefined();
      await store.put("a", text("x"));
      await expect(store.get("a", { signal })).rejects.toThrow("client left");
    });

    it("gives up a write that is under way", async () => {
      const controller = new AbortController();
      const put = store.put("a", new Uint8Array(40_000_000), { signal: controller.signal });
      controller.abort(new Error("client left"));
      await expect(put).rejects.toThrow("client left");
      await store.put("b", text("x"));
      expect(Buffer.from(await store.get("b")).toString()).toBe("x");
    });

    it("takes many writers at once", async () => {
      const keys = Array.from({ length: 200 }, (_, i) => `p/t${i % 3}/d${i % 7}/${String(i).padStart(3, "0")}`);
      await Promise.all(keys.map((key) => store.put(key, text(key))));
      expect(await keysOf(store, "")).toEqual(bytewise(keys));
      const read = await Promise.all(keys.map((key) => store.get(key)));
      expect(read.map((bytes) => Buffer.from(bytes).toString())).toEqual(keys);
      await store.delete(keys);
      expect(await keysOf(store, "")).toEqual([]);
    });
  });
}

// A folder sorts by its name with the slash: "a.b" < "a/b" < "a0"; and UTF-8 differs from UTF-16 past U+FFFF.
const UNSORTED = ["a0", "a/c/d", "B", "a/b.c", "\u{1f600}", "a.b", "\uffee", "a/b", "é/x", "z/y/x/w"];
const SORTED = ["B", "a.b", "a/b", "a/b.c", "a/c/d", "a0", "z/y/x/w", "é/x", "\uffee", "\u{1f600}"];

/** What means something in URLs, XML, HTTP headers, signatures or shells, and is allowed in keys. */
const SPECIAL_KEYS = [
  "a b",
  "a+b",
  "a%20b",
  "a%2Fb",
  "100%",
  "q?x=1&y=2#z",
  "<&amp;>'\"`",
  "*!()$;:@=,~^|{}[]",
  "back\\slash",
  "tail ",
  "-dash/_under/x.y.",
  "e\u0301/\u00e9",
  "\u2028/日本/\u{1f600}",
];

function text(value: string): Uint8Array {
  return Buffer.from(value);
}

/** A file's name never is a folder's here: no key is a prefix folder of another. */
function randomKey(random: Random): string {
  const letter = () => "ab-.0z"[Math.floor(random.next() * 6)] ?? "a";
  const folders = Array.from({ length: Math.floor(random.next() * 3) }, () => `d${letter()}${letter()}/`);
  return `${folders.join("")}f${letter()}${letter()}`;
}

function bytewise(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

async function putAll(store: ObjectStore, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => store.put(key, text(key))));
}

async function keysOf(store: ObjectStore, prefix: string, startAfter?: string): Promise<string[]> {
  const infos = await Array.fromAsync(store.list(prefix, startAfter === undefined ? {} : { startAfter }));
  return infos.map((info) => info.key);
}
