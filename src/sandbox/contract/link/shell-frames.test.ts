import { type Arbitrary, array, assert, asyncProperty, integer, nat, oneof, record, uint8Array } from "fast-check";
import { expect, it } from "vitest";
import { encodeShellFrame, shellFramesOf, type ShellFrame } from "./shell-frames.ts";

async function* chunksOf(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
async function read(body: AsyncIterable<Uint8Array>): Promise<ShellFrame[]> {
  const frames: ShellFrame[] = [];
  for await (const frame of shellFramesOf(body)) frames.push(frame);
  return frames;
}

it("frames arrive whole and in order, however their bytes fall into chunks", async () => {
  const frame: Arbitrary<ShellFrame> = oneof(
    uint8Array({ maxLength: 50 }).map((bytes) => ({ type: "bytes" as const, bytes: Buffer.from(bytes) })),
    record({ columns: nat(500), rows: nat(500) }).map((resize) => ({ type: "control" as const, control: { resize } })),
  );
  await assert(
    asyncProperty(array(frame), array(integer({ min: 1, max: 20 }), { minLength: 1 }), async (frames, sizes) => {
      const bytes = Buffer.concat(frames.map(encodeShellFrame));
      expect(await read(chunksOf(bytes, sizes))).toEqual(frames);
    }),
  );
});

it("what is no frame is refused", async () => {
  const whole = encodeShellFrame({ type: "bytes", bytes: Buffer.from("abc") });
  const cases = [whole.subarray(0, 6), Buffer.from([2, 0, 0, 0, 0]), Buffer.from([1, 0, 0, 0, 1, 0x7b])];
  for (const bytes of [...cases, Buffer.from([0, 0xff, 0, 0, 0])]) {
    await expect(read(chunksOf(bytes, [1_000]))).rejects.toMatchObject({ code: "bad_request" });
  }
});
