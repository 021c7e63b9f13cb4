import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { BodyDiscarded } from "./http.ts";
import { RequestBody } from "./request-body.ts";

const MIB = 1024 * 1024;
const SOURCE = { pause: () => undefined, resume: () => undefined, settled: () => undefined };

describe("a body in pieces", () => {
  const bytes = (text: string) => Buffer.from(text);

  it.each([
    ["is not all there", false],
    ["is complete, and was not read to its end", true],
  ])(
    "fails for its reader when it is discarded while it %s: a part is not taken for the whole",
    async (_when, last) => {
      const body = new RequestBody(SOURCE, systemClock, undefined);
      const pieces = body.stream(MIB)[Symbol.asyncIterator]();
      body.push(bytes("one"), false);
      body.push(bytes("two"), last);
      expect((await pieces.next()).value).toEqual(new Uint8Array(bytes("one")));
      body.discard();
      await expect(pieces.next()).rejects.toBeInstanceOf(BodyDiscarded);
    },
  );

  it("fails for a reader that waits when it is discarded", async () => {
    const body = new RequestBody(SOURCE, systemClock, 10);
    const next = body.stream(MIB)[Symbol.asyncIterator]().next();
    body.discard();
    await expect(next).rejects.toBeInstanceOf(BodyDiscarded);
  });

  it("ends for a reader that was given all, and for one that wants no more", async () => {
    const body = new RequestBody(SOURCE, systemClock, undefined);
    const pieces = body.stream(MIB)[Symbol.asyncIterator]();
    body.push(bytes("one"), true);
    await pieces.next();
    body.discard();
    expect((await pieces.next()).done).toBe(true);
    const other = new RequestBody(SOURCE, systemClock, undefined);
    const given = other.stream(MIB)[Symbol.asyncIterator]();
    await given.return?.();
    expect((await given.next()).done).toBe(true);
  });
});

/** A body that comes faster than it is taken, from a source that does not heed `pause`. */
describe("the body of a flood", () => {
  let parent: string;
  let folder: string;
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), "engine-body-"));
    folder = join(parent, "bodies");
  });
  afterEach(() => rmSync(parent, { recursive: true }));

  function flood(body: RequestBody, pieces: number, { from = 0, isLast = true } = {}): void {
    // As a driver does: the buffer is used again.
    const piece = new Uint8Array(MIB / 2);
    for (let n = from; n < from + pieces; n++) {
      piece.fill(n);
      body.push(piece, isLast && n === from + pieces - 1);
    }
  }

  it("is kept in a file but for its beginning, and comes whole and in order", async () => {
    const body = new RequestBody(SOURCE, systemClock, undefined, folder);
    const before = process.memoryUsage().arrayBuffers;
    flood(body, 200);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * MIB);
    // It has no name.
    expect(readdirSync(folder)).toEqual([]);
    expect(overflows(folder)).toBe(1);
    let at = 0;
    for await (const piece of body.stream(Infinity)) {
      expect(piece.every((byte, i) => byte === (Math.floor((at + i) / (MIB / 2)) & 255))).toBe(true);
      at += piece.length;
    }
    expect(at).toBe(100 * MIB);
    expect(overflows(folder)).toBe(0);
  });

  it("goes on when it was caught up with", async () => {
    const random = drawnRandom();
    const body = new RequestBody(SOURCE, systemClock, undefined, folder);
    const pieces = body.stream(Infinity)[Symbol.asyncIterator]();
    let [pushed, taken] = [0, 0];
    for (let round = 0; round < 12; round++) {
      const more = Math.floor(random.next() * 80);
      flood(body, more, { from: pushed, isLast: false });
      pushed += more;
      const upTo = round % 3 === 0 ? pushed : taken + Math.floor(random.next() * (pushed - taken));
      while (taken < upTo) {
        const { value } = await pieces.next();
        expect([value.length, value[0], value.at(-1)]).toEqual([MIB / 2, taken & 255, taken & 255]);
        taken++;
      }
    }
    flood(body, 1, { from: pushed });
    let last: Uint8Array | undefined;
    for (let step = await pieces.next(); step.done !== true; step = await pieces.next()) last = step.value;
    expect(last?.[0]).toBe(pushed & 255);
  });

  it("is put together for who takes it whole", async () => {
    const body = new RequestBody(SOURCE, systemClock, undefined, folder);
    flood(body, 100, { isLast: false });
    const whole = body.whole(100 * MIB);
    flood(body, 20, { from: 100 });
    const bytes = await whole;
    expect(bytes.length).toBe(60 * MIB);
    expect(bytes.every((byte, i) => byte === Math.floor(i / (MIB / 2)))).toBe(true);
    const complete = new RequestBody(SOURCE, systemClock, undefined, folder);
    flood(complete, 100);
    expect((await complete.whole(100 * MIB)).length).toBe(50 * MIB);
    const announced = new RequestBody(SOURCE, systemClock, 50 * MIB, folder);
    flood(announced, 100);
    const shared = await announced.whole(100 * MIB, { shared: true });
    expect([shared.length, shared[0], shared.at(-1)]).toEqual([50 * MIB, 0, 99]);
    expect(shared.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(overflows(folder)).toBe(0);
  });

  it("leaves nothing when nobody wants it any more", async () => {
    const body = new RequestBody(SOURCE, systemClock, undefined, folder);
    flood(body, 100, { isLast: false });
    const pieces = body.stream(Infinity)[Symbol.asyncIterator]();
    // Past what is in memory: a piece is being read from the file when the rest is dropped.
    for (let n = 0; n < 34; n++) await pieces.next();
    const reading = pieces.next();
    body.fail(new Error("the client left"));
    await reading;
    await expect(pieces.next()).rejects.toThrow("the client left");
    expect(overflows(folder)).toBe(0);
  });

  it("fails where there is no room for it", async () => {
    writeFileSync(folder, "");
    const body = new RequestBody(SOURCE, systemClock, undefined, folder);
    flood(body, 100);
    await expect(body.stream(Infinity)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "insufficient_storage",
    });
  });
});

/** How many files this process has open that were in the folder. */
function overflows(folder: string): number {
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(join("/proc/self/fd", fd));
    } catch {
      return "";
    }
  });
  return targets.filter((target) => target.startsWith(folder)).length;
}
