import { describe, expect, test } from "vitest";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import { seal } from "../seal-thread.ts";
import { crc32 } from "node:zlib";
import { DamagedObject, decodeContainer, encodeContainer, NewerObject } from "./container.ts";
import { compressBody, decodeStaged, decompressBody, encodeStaged, type StagedObject } from "./object.ts";

const ID = "0190a000-0000-7000-8000-000000000001";
const EXPECTED = { id: ID, node: "node-1" };
const encoder = new TextEncoder();

async function anObject(): Promise<StagedObject> {
  const lines = Array.from({ length: 1_200 }, (_, i) => `{"label":"${i % 7}","body":"trace ${i * 7_919}"}`);
  const { extent } = await seal({
    columns: DEFAULT_SHAPE,
    bodies: [{ bytes: encoder.encode(lines.join("\n")), evolve: true, arrivedAtNs: 1n }],
    format: "tlm",
  });
  if (extent === undefined) throw new Error("nothing was sealed");
  const { compressed, sizeBytes } = await compressBody(encoder.encode('{"new":1}\n{"new":2}'));
  const body = { compressed: Uint8Array.from(compressed), sizeBytes };
  const common = { evolve: true, autoCreate: true, arrivedAtNs: -5n };
  const columns = DEFAULT_SHAPE.filter(({ name }) => extent.stats.some((stats) => stats.name === name));
  return {
    ...EXPECTED,
    acknowledgedAtMs: 17,
    database: "default",
    table: "t",
    requests: [
      { ...common, key: "k1", rows: 1_000, place: { kind: "rows", from: 0 } },
      { ...common, rows: 2, place: { kind: "body", body } },
      { ...common, evolve: false, autoCreate: false, key: "k2", rows: 200, place: { kind: "rows", from: 1_000 } },
    ],
    extents: [{ ...extent, columns }],
  };
}

test("a body is read again as its request said, and the table made as it said", async () => {
  const object = await anObject();
  const columns = [...DEFAULT_SHAPE, { name: "n", type: { kind: "long" as const } }];
  const arrivals = BigInt64Array.of(-(2n ** 63n), 0n, 2n ** 63n - 1n);
  const requests = object.requests.map((request) =>
    request.place.kind === "rows"
      ? request
      : { ...request, place: { ...request.place, encoding: "ndjson" as const, arrivals } },
  );
  const read = decodeStaged(encodeStaged({ ...object, columns, requests }), EXPECTED);
  expect(read).toEqual({ ...object, columns, requests });
});

test("what is written is read again", async () => {
  const object = await anObject();
  expect(object.extents[0]?.filters).not.toEqual([]);
  const read = decodeStaged(encodeStaged(object), EXPECTED);
  expect(read).toEqual(object);
  const place = read.requests[1]?.place;
  if (place?.kind !== "body") throw new Error("the body is gone");
  expect(Buffer.from(await decompressBody(place.body)).toString()).toBe('{"new":1}\n{"new":2}');
});

describe("an object of a newer version", () => {
  test("is told from damage by its intact head: another version of the container", async () => {
    const bytes = Buffer.from(encodeStaged(await anObject()));
    bytes[7] = 2;
    expect(() => decodeStaged(bytes, EXPECTED)).toThrow(DamagedObject);
    const headEnd = 16 + 8 * bytes.readUInt32LE(12);
    const manifest = bytes.subarray(headEnd + 4, headEnd + 4 + bytes.readUInt32LE(8));
    bytes.writeUInt32LE(crc32(manifest, crc32(bytes.subarray(0, headEnd))), headEnd);
    expect(() => decodeStaged(bytes, EXPECTED)).toThrow(NewerObject);
    expect(() => decodeStaged(bytes, EXPECTED)).toThrow("version 2 of the container, where this one knows 1");
  });

  test.each([
    ["itself", /^\{/, '{"more":1,'],
    ["a request", /"evolve":/, '"more":1,"evolve":'],
    ["a place", /"from":/, '"more":1,"from":'],
    ["an extent", /"minAtNs":/, '"more":1,"minAtNs":'],
    ["a column", /"type":"timestamp"/, '"more":1,"type":"timestamp"'],
  ])("has a field more in %s", async (_where, from, to) => {
    const { manifest, parts } = decodeContainer(encodeStaged(await anObject()));
    const text = JSON.stringify(manifest).replace(from, to);
    expect(text).toContain('"more":1');
    const bytes = encodeContainer({ manifest: JSON.parse(text), parts });
    expect(() => decodeStaged(bytes, EXPECTED)).toThrow(NewerObject);
    const wrong = encodeContainer({ manifest: JSON.parse(text.replace(/"rows":1000/, '"rows":"x"')), parts });
    expect(() => decodeStaged(wrong, EXPECTED)).toThrow(DamagedObject);
  });
});

describe("damage", () => {
  /** What reading the bytes fails with; undefined when they are read. */
  function damageOf(bytes: Uint8Array): string | undefined {
    try {
      decodeStaged(bytes, EXPECTED);
      return undefined;
    } catch (error) {
      if (error instanceof DamagedObject) return error.message;
      throw error;
    }
  }

  test("no changed byte goes unnoticed, wherever it is", async () => {
    const bytes = encodeStaged(await anObject());
    const random = drawnRandom();
    // Every byte of head and manifest, then some of the parts.
    for (let at = 0; at < bytes.length; at += at < 6_000 ? 1 : 1 + Math.floor(random.next() * 40)) {
      const was = bytes[at] ?? 0;
      bytes[at] = was ^ (1 + Math.floor(random.next() * 255));
      expect(damageOf(bytes), `byte ${at}`).toBeTypeOf("string");
      bytes[at] = was;
    }
    expect(damageOf(bytes)).toBeUndefined();
  });

  test("no cut, no appended byte, no shuffled stretch", async () => {
    const bytes = encodeStaged(await anObject());
    const random = drawnRandom();
    const place = () => Math.floor(random.next() * bytes.length);
    for (const length of [0, 1, 7, 8, 15, 19, 20, 21, bytes.length - 1, ...Array.from({ length: 200 }, place)]) {
      expect(damageOf(bytes.subarray(0, length)), `${length} bytes`).toBeTypeOf("string");
    }
    expect(damageOf(Buffer.concat([bytes, Buffer.alloc(1)]))).toContain("follow its last part");
    for (let round = 0; round < 300; round++) {
      const mutated = Uint8Array.from(bytes);
      mutated.copyWithin(place(), place(), place());
      // Where the stretch met itself, nothing has changed.
      const isSame = Buffer.compare(mutated, bytes) === 0;
      expect(damageOf(mutated) === undefined).toBe(isSame);
    }
    for (let round = 0; round < 300; round++) {
      expect(damageOf(random.fill(new Uint8Array(Math.floor(random.next() * 200))))).toBeTypeOf("string");
    }
  });

  test("a manifest that is intact and says what cannot be", async () => {
    const { manifest, parts } = decodeContainer(encodeStaged(await anObject()));
    const text = JSON.stringify(manifest);
    const change = (from: string | RegExp, to: string) => {
      const changed = text.replace(from, to);
      expect(changed).not.toBe(text);
      return damageOf(encodeContainer({ manifest: JSON.parse(changed), parts }));
    };
    expect(damageOf(encodeContainer({ manifest: JSON.parse(text), parts }))).toBeUndefined();
    expect(change(ID, ID.replace("1", "2"))).toContain("it is object");
    expect(change("node-1", "node-2")).toContain("of node node-2");
    expect(change('"default"', '"_staged"')).toContain("its manifest is not one");
    expect(change('"rows":1000', '"rows":999')).toContain("leave out rows");
    expect(change('"rows":200', '"rows":201')).toContain("its extents have 1200 rows, its requests 1201");
    expect(change('"k2"', '"k1"')).toContain("same idempotency key");
    expect(change('"part":0', '"part":9')).toContain("names part 9 twice, or there is none");
    expect(change('"part":0', '"part":1')).toContain("part 1 twice");
    expect(change(/"filters":\[.*?\]/, '"filters":[]')).toContain("does not name");
    expect(change('"type":"timestamp"', '"type":"time"')).toContain("no column type: time");
    expect(change(/crc32:[0-9a-f]{8}/, "crc32:00000000")).toContain("the checksum of an extent");
    for (const [name] of Object.entries(JSON.parse(text) as object)) {
      const without = { ...(JSON.parse(text) as object), [name]: undefined };
      expect(damageOf(encodeContainer({ manifest: without, parts })), `without ${name}`).toContain(
        "its manifest is not one",
      );
    }
    for (const value of [null, 1, "x", [], {}])
      expect(damageOf(encodeContainer({ manifest: value, parts }))).toBeDefined();
  });

  test("a body that is not what its manifest says", async () => {
    const body = await compressBody(encoder.encode("{}\n{}"));
    for (const wrong of [
      { ...body, sizeBytes: body.sizeBytes - 1 },
      { ...body, sizeBytes: body.sizeBytes + 1 },
      { ...body, compressed: body.compressed.subarray(0, -1) },
      { ...body, compressed: new Uint8Array(0) },
    ]) {
      await expect(decompressBody(wrong)).rejects.toThrow(DamagedObject);
    }
  });

  test("what could not be read is not written", async () => {
    const object = await anObject();
    const [first, ...rest] = object.requests;
    if (first === undefined) throw new Error("no request");
    for (const requests of [[], rest, [{ ...first, key: "zero \u0000" }, ...rest]]) {
      expect(() => encodeStaged({ ...object, requests })).toThrow(DamagedObject);
    }
  });
});
