import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Makes ids: UUIDs of version 7 (RFC 9562 §5.7), so that ids sort by the time they were made. */
export type IdSource = () => string;

/** When an id was made, in ms since 1970, by the clock of its maker. `id` must be a UUID of version 7. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const LAST_MS = 2 ** 48 - 1;

/** Sorts after all UUIDs of version 7 that were made before the time, and before those of then and later. */
export function startOfIds(atMs: number): string {
  const ms = Math.min(Math.max(0, Math.ceil(atMs)), LAST_MS);
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

export function uuidV7Source(clock: Clock, random: Random): IdSource {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const bytes = random.fill(new Uint8Array(16));
    // Within one millisecond a 12-bit counter keeps ids of this process in order (RFC 9562 §6.2, method 1);
    // a clock that steps back, or a counter that runs out, borrows from the next millisecond.
    let ms = clock.nowMs();
    if (ms <= lastMs) {
      ms = lastMs;
      counter++;
      if (counter > 0xfff) {
        ms++;
        counter = 0;
      }
    } else {
      counter = ((bytes[6] ?? 0) & 0x07) << 8;
    }
    lastMs = ms;
    const view = new DataView(bytes.buffer);
    view.setUint32(0, Math.floor(ms / 0x1_0000));
    view.setUint16(4, ms % 0x1_0000);
    view.setUint16(6, 0x7000 | counter);
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
    const hex = Buffer.from(bytes.buffer).toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
}
