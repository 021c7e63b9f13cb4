import { randomBytes } from "node:crypto";
import { constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { readDecodedBody } from "./decode.ts";
import type { HttpRequest } from "./http.ts";

const MIB = 1024 * 1024;
const ROWS = Buffer.from(Array.from({ length: 20_000 }, (_, i) => `{"n":${i},"s":${Math.sin(i)}}\n`).join(""));

/** A request with that body; what a driver does with limits is the contract's to test. */
function request(coding: string | undefined, encoded: Uint8Array): HttpRequest {
  return {
    scheme: "http",
    method: "POST",
    path: "/",
    query: "",
    remoteAddress: "",
    signal: new AbortController().signal,
    webSocket: undefined,
    header: (name) => (name === "content-encoding" ? coding : undefined),
    headerNames: () => (coding === undefined ? [] : ["content-encoding"]),
    body: async (limitBytes) => {
      if (encoded.length > limitBytes) throw new EngineError("body_too_large", "encoded");
      return new Uint8Array(encoded);
    },
    stream: () => {
      throw new Error("not used");
    },
  };
}

const decode = (coding: string | undefined, encoded: Uint8Array, limitBytes = 64 * MIB) =>
  readDecodedBody(request(coding, encoded), limitBytes);

/** What `onGrow` was told. */
async function growth(coding: string | undefined, encoded: Uint8Array, mostBytes = Infinity): Promise<number[]> {
  const told: number[] = [];
  await readDecodedBody(request(coding, encoded), 64 * MIB, {
    onGrow: (sizeBytes) => {
      told.push(sizeBytes);
      if (sizeBytes > mostBytes) throw new EngineError("too_many_requests", "full");
    },
  });
  return told;
}

/** Compressing takes most of these tests, and what is decoded does not depend on how well it was done. */
const FAST = { level: 1 };
const MEMBERS = [
  ["gzip", (data: Uint8Array) => gzipSync(data, FAST)],
  ["zstd", (data: Uint8Array) => zstdCompressSync(data)],
] as const;
const DEFLATE = [
  ["deflate", (data: Uint8Array) => deflateSync(data, FAST)],
  ["deflate", (data: Uint8Array) => deflateRawSync(data, FAST)],
] as const;
const CODINGS = [...MEMBERS, ...DEFLATE];

test.each([undefined, "", "identity", " Identity "])("leaves %j alone", async (coding) => {
  expect(await decode(coding, ROWS)).toEqual(new Uint8Array(ROWS));
});

test.each(["br", "gzip, gzip", "deflate, gzip", "gzip,identity", "x-deflate", "*"])(
  "refuses %s and says what it takes",
  async (coding) => {
    await expect(decode(coding, ROWS)).rejects.toMatchObject({
      code: "unsupported_media_type",
      status: 415,
      details: { headers: { "Accept-Encoding": "gzip, zstd, deflate" } },
    });
  },
);

const frame = (params: Record<number, number>, data = ROWS) => zstdCompressSync(data, { params });

describe.each(CODINGS)("%s", (coding, encode) => {
  test.each([1, 100, 16_383, 16_384, 16_385, MIB, 9 * MIB])("decodes %i bytes", async (sizeBytes) => {
    for (const data of [Buffer.alloc(sizeBytes, ROWS), Buffer.alloc(sizeBytes), randomBytes(sizeBytes)]) {
      const decoded = await decode(coding.toUpperCase(), encode(data));
      expect(Buffer.from(decoded.buffer, decoded.byteOffset, decoded.length).equals(data)).toBe(true);
    }
  });

  test("gives a buffer that may be transferred", async () => {
    for (const data of [ROWS, Buffer.from("x"), Buffer.alloc(5 * MIB)]) {
      const decoded = await decode(coding, encode(data));
      structuredClone(decoded, { transfer: [decoded.buffer as ArrayBuffer] });
      expect(decoded.length).toBe(0);
      expect(Buffer.from("still there").toString()).toBe("still there");
    }
  });

  test("takes the limit and refuses one byte more", async () => {
    for (const data of [Buffer.alloc(MIB), randomBytes(MIB)]) {
      expect((await decode(coding, encode(data), MIB)).length).toBe(MIB);
      await expect(decode(coding, encode(data), MIB - 1)).rejects.toMatchObject({ code: "body_too_large" });
    }
    await expect(decode(coding, encode(randomBytes(2 * MIB)), MIB)).rejects.toMatchObject({ code: "body_too_large" });
  });

  test("stops a bomb at the limit", async () => {
    const bomb = Buffer.concat(Array<Uint8Array>(32).fill(encode(Buffer.alloc(16 * MIB))));
    const beforeBytes = process.memoryUsage().arrayBuffers;
    const startedMs = performance.now();
    await expect(decode(coding, bomb, 4 * MIB)).rejects.toMatchObject({ code: "body_too_large" });
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    expect(process.memoryUsage().arrayBuffers - beforeBytes).toBeLessThan(64 * MIB);
  });

  test("decodes while this thread does something else", async () => {
    const encoded = encode(Buffer.alloc(32 * MIB, randomBytes(99_991)));
    let turns = 0;
    const counting = setInterval(() => turns++, 1);
    await decode(coding, encoded);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(3);
  });

  test("refuses data that is cut off anywhere", async () => {
    const whole = encode(Buffer.from("some text, some more text"));
    for (let length = 1; length < whole.length; length++) {
      await expect(decode(coding, whole.subarray(0, length)), `${length} bytes`).rejects.toMatchObject({
        code: "bad_request_body",
        status: 400,
      });
    }
    const long = encode(ROWS);
    await expect(decode(coding, long.subarray(0, long.length / 2))).rejects.toMatchObject({ code: "bad_request_body" });
  });

  test.each(["x", "xyz", "\0", "\0\0\0\0", "\0more", "a longer text that is garbage"])(
    "refuses %j after the end",
    async (garbage) => {
      const encoded = Buffer.concat([encode(ROWS), Buffer.from(garbage)]);
      await expect(decode(coding, encoded)).rejects.toMatchObject({ code: "bad_request_body" });
    },
  );

  test("refuses what is something else", async () => {
    for (const data of [ROWS, Buffer.from("{}"), randomBytes(1000)]) {
      await expect(decode(coding, data)).rejects.toMatchObject({ code: "bad_request_body" });
    }
  });
});

describe.each(MEMBERS)("%s of several parts", (coding, encode) => {
  test("joins members and frames, and takes empty ones", async () => {
    const parts = [ROWS, Buffer.alloc(0), Buffer.from("end"), Buffer.alloc(0)];
    const decoded = await decode(coding, Buffer.concat(parts.map((part) => encode(part))));
    expect(Buffer.from(decoded).equals(Buffer.concat(parts))).toBe(true);
    expect(await decode(coding, encode(Buffer.alloc(0)))).toEqual(new Uint8Array(0));
    expect(await decode(coding, new Uint8Array(0))).toEqual(new Uint8Array(0));
  });

  test("is refused where it is cut off", async () => {
    const whole = encode(Buffer.from("some text, some more text"));
    const two = Buffer.concat([whole, whole]);
    for (let length = whole.length + 1; length < two.length; length++) {
      await expect(decode(coding, two.subarray(0, length)), `${length} bytes`).rejects.toMatchObject({
        code: "bad_request_body",
      });
    }
  });
});

describe("deflate", () => {
  const LEVELS = [0, 1, 6, 9].map((level) => ({ level }));

  test("is the zlib format or a bare stream, at every level, window and strategy", async () => {
    const datas = [ROWS, Buffer.alloc(0), Buffer.from("x"), randomBytes(70_000), Buffer.alloc(MIB)];
    const strategies = [constants.Z_FIXED, constants.Z_RLE, constants.Z_HUFFMAN_ONLY].map((strategy) => ({ strategy }));
    for (const options of [...LEVELS, ...strategies, { windowBits: 9 }, { memLevel: 1 }]) {
      for (const data of datas) {
        for (const encode of [deflateSync, deflateRawSync]) {
          const decoded = await decode("Deflate", encode(data, options));
          expect(Buffer.from(decoded).equals(data), `${encode.name} ${JSON.stringify(options)}`).toBe(true);
        }
      }
    }
  });

  test("refuses a damaged checksum, a dictionary and a second stream", async () => {
    const damaged = deflateSync(ROWS);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
    const withDictionary = deflateSync(ROWS, { dictionary: ROWS.subarray(0, 100) });
    const twice = [deflateSync, deflateRawSync].map((encode) => Buffer.concat([encode(ROWS), encode(ROWS)]));
    for (const encoded of [damaged, withDictionary, ...twice]) {
      await expect(decode("deflate", encoded)).rejects.toMatchObject({ code: "bad_request_body", status: 400 });
    }
  });

  test("takes random bytes or blames the client for them", async () => {
    for (let round = 0; round < 2_000; round++) {
      const bytes = randomBytes(1 + (round % 40));
      const outcome = await decode("deflate", bytes).then(
        () => "bad_request_body",
        (error: unknown) => (error instanceof EngineError ? error.code : error),
      );
      expect(outcome).toBe("bad_request_body");
    }
  });
});

describe("gzip", () => {
  test("refuses damaged data", async () => {
    const damaged = gzipSync(ROWS);
    damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 0x55;
    expect(await decode("gzip", damaged).catch((error: unknown) => error)).toMatchObject({ code: "bad_request_body" });
  });

  test("has an alias, and a length field that is not believed", async () => {
    expect((await decode("x-gzip", gzipSync(ROWS))).length).toBe(ROWS.length);
    const lying = gzipSync(Buffer.from("short"));
    lying.writeUInt32LE(0xffff_fff0, lying.length - 4);
    await expect(decode("gzip", lying)).rejects.toMatchObject({ code: "bad_request_body" });
  });
});

describe("zstd", () => {
  test("reads every form of a frame's head, checksums and skippable frames", async () => {
    const skippable = Buffer.concat([Buffer.from([0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0]), Buffer.from("notes")]);
    const frames = [
      skippable,
      frame({ [constants.ZSTD_c_checksumFlag]: 1 }),
      frame({ [constants.ZSTD_c_contentSizeFlag]: 0 }),
      frame({ [constants.ZSTD_c_windowLog]: 20 }, Buffer.alloc(3 * MIB)),
      skippable,
    ];
    const decoded = await decode("zstd", Buffer.concat(frames));
    expect(decoded.length).toBe(2 * ROWS.length + 3 * MIB);
  });

  test("refuses a damaged checksum, a huge window and too many frames", async () => {
    const checked = frame({ [constants.ZSTD_c_checksumFlag]: 1 });
    checked[checked.length - 1] = (checked.at(-1) ?? 0) ^ 1;
    const noSize = { [constants.ZSTD_c_contentSizeFlag]: 0 };
    const wide = frame({ ...noSize, [constants.ZSTD_c_windowLog]: 27 }, Buffer.alloc(300 * MIB));
    const many = Buffer.concat(Array.from({ length: 10_001 }, () => zstdCompressSync(Buffer.from("x"))));
    for (const encoded of [checked, wide, many]) {
      await expect(decode("zstd", encoded, 400 * MIB)).rejects.toMatchObject({ code: "bad_request_body" });
    }
  });
});

describe.each(CODINGS)("memory taken for %s", (coding, encode) => {
  const encoded = encode(Buffer.alloc(32 * MIB, ROWS));

  test("is told as it grows: the body as it came, and what is decoded of it", async () => {
    const told = await growth(coding, encoded);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBe(encoded.length + 32 * MIB);
  });

  test("is not taken beyond what may be, and the reason reaches the caller", async () => {
    const full = expect.objectContaining({ code: "too_many_requests" }) as Error;
    await expect(growth(coding, encoded, encoded.length + MIB)).rejects.toThrow(full);
  });
});
