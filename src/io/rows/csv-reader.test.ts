import { array, assert, asyncProperty, constantFrom, integer, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { delay } from "../../core/waiting.test-kit.ts";
import { lineIn } from "./batcher.ts";
import { readCsv } from "./csv-reader.ts";
import { csvRows } from "./csv-rows.ts";

/** CSV that is parsed in a process is what it would be here, and what goes wrong there is told. */

const LIMITS = {
  signal: new AbortController().signal,
  dataBytes: 1_536 * 2 ** 20,
  silence: { clock: systemClock, mostMs: 60_000 },
};

async function* chunksOf(data: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield await Promise.resolve(data.subarray(at, at + size));
}

type Read = { rows: string[]; lines: number[]; failure: string | undefined };

async function inProcess(data: Buffer, { size = 1_000, batchBytes = 50 } = {}): Promise<Read> {
  const read: Read = { rows: [], lines: [], failure: undefined };
  try {
    for await (const batch of readCsv(chunksOf(data, size), { shown: "x.csv", columns: [], batchBytes }, LIMITS)) {
      const rows = batch.body.toString().trimEnd().split("\n");
      read.rows.push(...rows);
      read.lines.push(...rows.map((_, i) => lineIn(batch, i + 1)));
    }
  } catch (error) {
    read.failure = (error as Error).message;
  }
  return read;
}

async function here(data: Buffer): Promise<Read> {
  const read: Read = { rows: [], lines: [], failure: undefined };
  try {
    const options = { origin: { shown: "x.csv", unit: "line" }, delimiter: ",", columns: [] } as const;
    for await (const rows of csvRows(chunksOf(data, 1_000), options)) {
      for (const { json, line } of rows) {
        read.rows.push(json);
        read.lines.push(line);
      }
    }
  } catch (error) {
    read.failure = (error as Error).message;
  }
  return read;
}

/** How many rows come before a failure depends on the pieces in which the input does. */
function wholeOf(read: Read): Partial<Read> {
  return read.failure === undefined ? read : { failure: read.failure };
}

test("the rows, their lines and the failure are those of the parser itself", { timeout: 120_000 }, async () => {
  const field = constantFrom("a", "", '"q"', '"two\nlines"', '"a ""b"""', 'b"ad', "ü", "7");
  const text = array(
    array(field, { minLength: 1, maxLength: 3 }).map((fields) => fields.join(",")),
    { maxLength: 12 },
  );
  const input = text.map((lines) => Buffer.from(["h1,h2", ...lines].join("\n")));
  await assert(
    asyncProperty(input, integer({ min: 1, max: 40 }), async (data, size) => {
      expect(wholeOf(await inProcess(data, { size }))).toEqual(wholeOf(await here(data)));
    }),
    { numRuns: 15 },
  );
});

test("bytes of any kind end in rows or in a reason", { timeout: 120_000 }, async () => {
  await assert(
    asyncProperty(string({ unit: "binary", maxLength: 300 }), async (text) => {
      const { failure = "line 1 of x.csv" } = await inProcess(Buffer.from(text, "latin1"));
      expect(failure).toMatch(/^(line \d+ of x\.csv|x\.csv is not UTF-8)/);
    }),
    { numRuns: 10 },
  );
});

describe("the process", () => {
  test("is fed no faster than it reads, and a failure of the input is the reader's", async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a\n1\n");
      throw new Error("the disk is on fire");
    }
    const reading = Array.fromAsync(readCsv(failing(), { shown: "x.csv", columns: [], batchBytes: 10 }, LIMITS));
    await expect(reading).rejects.toThrow("the disk is on fire");
  });

  test("ends when nobody reads it any more, and when it is told to", async () => {
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a\n");
      for (;;) yield await Promise.resolve(Buffer.from("1\n".repeat(10_000)));
    };
    for await (const batch of readCsv(endless(), { shown: "x.csv", columns: [], batchBytes: 100 }, LIMITS)) {
      expect(batch.lines).toBeGreaterThan(0);
      break;
    }
    const stop = new AbortController();
    const limits = { ...LIMITS, signal: stop.signal };
    const reading = (async () => {
      for await (const _ of readCsv(endless(), { shown: "x.csv", columns: [], batchBytes: 100 }, limits)) {
        stop.abort(new Error("told to stop"));
      }
    })();
    await expect(reading).rejects.toThrow("told to stop");
  });

  test("that says nothing for too long is ended", async () => {
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a\n");
      // The reader ends when its source has.
      await delay(400);
    }
    const limits = { ...LIMITS, silence: { clock: systemClock, mostMs: 200 } };
    const reading = Array.fromAsync(readCsv(silent(), { shown: "x.csv", columns: [], batchBytes: 100 }, limits));
    await expect(reading).rejects.toMatchObject({ name: "UnreadableRows", isCrash: true });
  });
});
