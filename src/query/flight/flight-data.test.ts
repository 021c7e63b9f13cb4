import { fromBinary } from "@bufbuild/protobuf";
import { Table, tableFromIPC, tableToIPC, vectorFromArray } from "apache-arrow";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { FlightDataMessages } from "./flight-data.ts";
import { FlightDataSchema, joinFlightData, type FlightDataFields } from "./flight-proto.test-kit.ts";

const TABLE = new Table({
  number: vectorFromArray(Int32Array.from({ length: 1_000 }, (_, i) => i)),
  text: vectorFromArray(Array.from({ length: 1_000 }, (_, i) => (i % 3 === 0 ? null : `text ${i % 7}`))),
});
const STREAM = Buffer.from(tableToIPC(TABLE, "stream"));

async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, i = 0; at < bytes.byteLength; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function messagesOf(bytes: Uint8Array, sizes: readonly number[] = [256 * 1024]): Promise<FlightDataFields[]> {
  const messages: FlightDataFields[] = [];
  for await (const message of new FlightDataMessages(pieces(bytes, sizes))) {
    messages.push(fromBinary(FlightDataSchema, message) as unknown as FlightDataFields);
  }
  return messages;
}

describe("an Arrow stream as messages", () => {
  test("is one message for each of its own: schema, dictionary, batch", async () => {
    const messages = await messagesOf(STREAM);
    expect(messages.length).toBe(3);
    expect(messages[0]?.dataBody.byteLength).toBe(0);
    expect(messages.every(({ dataHeader }) => dataHeader.byteLength % 8 === 0)).toBe(true);
    expect(tableFromIPC(joinFlightData(messages)).toArray().map(String)).toEqual(TABLE.toArray().map(String));
  });

  test("is the same however it comes in pieces", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 10 }), async (sizes) => {
        expect(joinFlightData(await messagesOf(STREAM, sizes)).equals(STREAM)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test("may end without its end mark only at a fault", async () => {
    const cut = STREAM.subarray(0, -8);
    await expect(messagesOf(cut)).rejects.toMatchObject({ code: "query_failed" });
    await expect(messagesOf(new Uint8Array())).rejects.toMatchObject({ code: "query_failed" });
    for (const length of [1, 7, 9, 100, STREAM.byteLength - 9]) {
      await expect(messagesOf(STREAM.subarray(0, length))).rejects.toMatchObject({ code: "query_failed" });
    }
  });

  test("is given up with its messages", async () => {
    let isGivenUp = false;
    const stream = (async function* () {
      try {
        yield* pieces(STREAM, [100]);
      } finally {
        isGivenUp = true;
      }
    })();
    for await (const _ of new FlightDataMessages(stream)) break;
    expect(isGivenUp).toBe(true);
  });
});

/** Whether the messages of a damaged stream hold what it holds, or it is refused. */
async function isRight(damaged: Buffer): Promise<boolean> {
  let messages: FlightDataFields[];
  try {
    messages = await messagesOf(damaged, [64, 4_096]);
  } catch (error) {
    return error instanceof EngineError && error.code === "query_failed";
  }
  const joined = joinFlightData(messages).subarray(0, -8);
  return damaged.subarray(0, joined.byteLength).equals(joined);
}

test("fuzz: damaged streams end with an error or with what they say, and ask for no more than they may", async () => {
  const changes = fc.array(fc.tuple(fc.nat(STREAM.byteLength - 1), fc.nat(255)), { minLength: 1, maxLength: 6 });
  const check = fc.asyncProperty(changes, fc.nat(STREAM.byteLength), async (bytes, length) => {
    const damaged = Buffer.from(STREAM.subarray(0, length));
    for (const [at, byte] of bytes) if (at < damaged.length) damaged[at] = byte;
    expect(await isRight(damaged)).toBe(true);
  });
  await fc.assert(check, { numRuns: 2_000 });
});
