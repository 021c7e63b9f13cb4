import { EngineError } from "../../../core/errors.ts";

/**
 * What goes both ways in the bodies of a call `shell`, one after the other: a byte that says what it is, its length in
 * four bytes (big-endian), and so many bytes. `0`: what the terminal shows, or what is typed. `1`: JSON, to the machine
 * `{resize: {columns, rows}}`, from it `{exit: {exit_code, signal, timed_out}}`, which comes last.
 */
export type ShellFrame = { type: "bytes"; bytes: Uint8Array } | { type: "control"; control: unknown };

const BYTES = 0;
const CONTROL = 1;
const HEAD_BYTES = 5;
const MOST_BYTES = 1024 * 1024;

export function encodeShellFrame(frame: ShellFrame): Uint8Array {
  const payload = frame.type === "bytes" ? frame.bytes : Buffer.from(JSON.stringify(frame.control));
  const encoded = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  encoded.writeUInt8(frame.type === "bytes" ? BYTES : CONTROL, 0);
  encoded.writeUInt32BE(payload.length, 1);
  encoded.set(payload, HEAD_BYTES);
  return encoded;
}

/** The frames of a body. Throws `bad_request` for what is none, and where the body ends within one. */
export async function* shellFramesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<ShellFrame> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of body) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (;;) {
      const endsAt = endOf(rest);
      if (endsAt === undefined || rest.length < endsAt) break;
      yield toFrame(rest.readUInt8(0), rest.subarray(HEAD_BYTES, endsAt));
      rest = rest.subarray(endsAt);
    }
  }
  if (rest.length > 0) throw new EngineError("bad_request", "a frame of a shell is not complete");
}

/** Where the first frame ends; undefined where that is not known yet. */
function endOf(bytes: Buffer): number | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const length = bytes.readUInt32BE(1);
  if (length > MOST_BYTES) throw new EngineError("bad_request", "a frame of a shell is too large");
  return HEAD_BYTES + length;
}

function toFrame(type: number, payload: Buffer): ShellFrame {
  if (type === BYTES) return { type: "bytes", bytes: payload };
  if (type !== CONTROL) throw new EngineError("bad_request", "a frame of a shell is of no known type");
  try {
    return { type: "control", control: JSON.parse(payload.toString("utf8")) };
  } catch (error) {
    throw new EngineError("bad_request", "a frame of a shell is not JSON", { cause: error });
  }
}
