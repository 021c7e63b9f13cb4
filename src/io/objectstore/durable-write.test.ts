import { randomFillSync } from "node:crypto";
import { constants } from "node:fs";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { takePageAligned } from "../../core/buffer-pool.ts";
import { DurableWriter } from "./durable-write.ts";

const KIB = 1024;
/** `open` refuses this one together with O_CREAT on every file system, as one without direct writes refuses O_DIRECT. */
const REFUSED_FLAG = 0o20000000 | (constants.O_DIRECTORY ?? 0);

function someBytes(sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(takePageAligned(sizeBytes), 0, sizeBytes);
  bytes.set(randomFillSync(Buffer.alloc(sizeBytes)));
  return bytes;
}

describe("durable write", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "engine-write-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  for (const sizeBytes of [0, 1, 128 * KIB - 1, 128 * KIB, 128 * KIB + 1, 700_001, 17 * KIB * KIB + 3]) {
    it(`writes ${sizeBytes} bytes as they are, and no more`, async () => {
      const bytes = someBytes(sizeBytes);
      const path = join(folder, "x");
      await new DurableWriter().write(path, bytes, undefined);
      expect(Buffer.compare(await readFile(path), bytes)).toBe(0);
    });
  }

  it("writes bytes that start on no page", async () => {
    const bytes = new Uint8Array(Buffer.from(someBytes(300 * KIB))).subarray(3);
    await new DurableWriter().write(join(folder, "x"), bytes, undefined);
    expect(Buffer.compare(await readFile(join(folder, "x")), bytes)).toBe(0);
  });

  it.runIf(process.platform === "linux")("writes as usual where direct writes are refused", async () => {
    const writer = new DurableWriter(REFUSED_FLAG);
    const bytes = someBytes(300 * KIB);
    for (const name of ["x", "y"]) {
      await writer.write(join(folder, name), bytes, undefined);
      expect(Buffer.compare(await readFile(join(folder, name)), bytes)).toBe(0);
    }
    expect(await readdir(folder)).toEqual(["x", "y"]);
  });

  it("never writes over a file", async () => {
    const write = () => new DurableWriter().write(join(folder, "x"), someBytes(300 * KIB), undefined);
    await write();
    await expect(write()).rejects.toMatchObject({ code: "EEXIST" });
  });
});
