/** The frames that the node and `helper.pl` exchange; the head of that file says what each means. */
export type FrameLetter = "Q" | "D" | "F" | "C" | "X";

export const FRAME_HEAD_BYTES = 5;
/** The most that one frame of data may carry. */
export const MAX_PIECE_BYTES = 1024 * 1024;
/** The most that an answer of the helper may have: a listing of as many long names as there may be. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export function frameHead(letter: FrameLetter, sizeBytes: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
  head.write(letter, 0, 1, "latin1");
  head.writeUInt32BE(sizeBytes, 1);
  return head;
}

/** Each field with its length before it. */
export function encodeFields(fields: readonly (string | Uint8Array)[]): Buffer {
  const parts = fields.flatMap((field) => {
    const bytes = typeof field === "string" ? Buffer.from(field, "utf8") : field;
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return Buffer.concat(parts);
}

/** Throws when the lengths do not add up. */
export function decodeFields(payload: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  let at = 0;
  while (at < payload.length) {
    const end = at + 4 + payload.readUInt32BE(at);
    if (end > payload.length) throw new RangeError("a field is longer than its frame");
    fields.push(payload.subarray(at + 4, end));
    at = end;
  }
  return fields;
}
