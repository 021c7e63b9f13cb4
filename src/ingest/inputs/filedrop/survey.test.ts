import { asyncProperty, assert, constantFrom, string, uniqueArray } from "fast-check";
import { expect, test } from "vitest";
import type { DropRecord } from "./drop-records.ts";
import { survey } from "./survey.ts";

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  for (const item of items) yield await Promise.resolve(item);
}

const bytewise = (keys: readonly string[]) => keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

// oxlint-disable-next-line vitest/expect-expect -- within the property
test("every file and every record is met once, side by side, whatever their keys", async () => {
  // Beyond the first plane the order of bytes is not that of UTF-16.
  const key = string({ unit: constantFrom("a", "b", "/", "\u{1f600}", "\uffee", "é"), minLength: 1, maxLength: 4 });
  const keys = uniqueArray(key, { maxLength: 12 });
  await assert(
    asyncProperty(keys, keys, async (listed, known) => {
      const infos = bytewise(listed).map((one) => ({ key: one, sizeBytes: 1, modifiedAtMs: 0, identity: "i" }));
      const records = bytewise(known).map((one): DropRecord => ({
        key: one,
        state: "ingested",
        identity: "i",
        position: undefined,
      }));
      const met = await Array.fromAsync(survey(each(infos), each(records)));
      const expected = bytewise([...new Set([...listed, ...known])]).map((one) => [
        listed.includes(one) ? one : undefined,
        known.includes(one) ? one : undefined,
      ]);
      expect(met.map(({ info, record }) => [info?.key, record?.key])).toEqual(expected);
    }),
  );
});
