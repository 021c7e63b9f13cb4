import type { ObjectInfo } from "../../../io/objectstore/objectstore.ts";
import type { DropRecord } from "./drop-records.ts";

/** A file and what is known of it; either may be missing, not both. */
export type Surveyed = { info: ObjectInfo; record: DropRecord | undefined } | { info: undefined; record: DropRecord };

/**
 * Puts what the store lists and what is known side by side, by key. Both come in the order of the bytes of their keys,
 * so neither is ever in memory as a whole. Nothing is said of known files whose key `isHidden` when the listing has come
 * past it.
 */
export async function* survey(
  listing: AsyncIterable<ObjectInfo>,
  records: AsyncIterable<DropRecord>,
  isHidden: (key: string) => boolean = () => false,
): AsyncGenerator<Surveyed> {
  const known = records[Symbol.asyncIterator]();
  let record = await nextOf(known);
  for await (const info of listing) {
    for (; record !== undefined && isBefore(record.key, info.key); record = await nextOf(known)) {
      if (!isHidden(record.key)) yield { info: undefined, record };
    }
    if (record?.key === info.key) {
      yield { info, record };
      record = await nextOf(known);
    } else yield { info, record: undefined };
  }
  for (; record !== undefined; record = await nextOf(known)) {
    if (!isHidden(record.key)) yield { info: undefined, record };
  }
}

async function nextOf(records: AsyncIterator<DropRecord>): Promise<DropRecord | undefined> {
  const next = await records.next();
  return next.done === true ? undefined : next.value;
}

function isBefore(one: string, other: string): boolean {
  return one !== other && Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
