const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAX_FRAMES = 10_000;

/**
 * Cuts zstd data into its frames (RFC 8878 §3) without decoding it. Returns what is wrong with it when it isn't a
 * sequence of complete frames, or one of more than 10,000 (every frame costs a turn on a thread). Skippable frames are
 * left out.
 */
export function zstdFrames(data: Uint8Array): Uint8Array[] | string {
  const frames: Uint8Array[] = [];
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0, count = 0; at < data.length; count++) {
    if (count === MAX_FRAMES) return `it has more than ${MAX_FRAMES} frames`;
    if (at + 8 > data.length) return "it is cut off";
    const magic = view.getUint32(at, true);
    const skippable = (magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC;
    if (!skippable && magic !== FRAME_MAGIC) return at === 0 ? "it doesn't start like it" : "garbage follows a frame";
    const end = skippable ? at + 8 + view.getUint32(at + 4, true) : endOfFrame(view, at);
    if (end > data.length) return "it is cut off";
    if (!skippable) frames.push(data.subarray(at, end));
    at = end;
  }
  return frames;
}

/** Where the frame at `at` ends; infinite when its data ends before it does. */
function endOfFrame(view: DataView, at: number): number {
  const descriptor = view.getUint8(at + 4);
  const singleSegment = (descriptor >> 5) & 1;
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const contentSizeBytes = [singleSegment, 2, 4, 8][descriptor >> 6] ?? 0;
  const checksumBytes = (descriptor >> 2) & 1 ? 4 : 0;
  let next = at + 5 + (1 - singleSegment) + dictionaryIdBytes + contentSizeBytes;
  for (let last = false; !last;) {
    if (next + 3 > view.byteLength) return Infinity;
    const header = view.getUint16(next, true) | (view.getUint8(next + 2) << 16);
    last = (header & 1) === 1;
    // A block of type 1 is one byte, to be repeated; its size is that of the result.
    next += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3);
  }
  return next + checksumBytes;
}
