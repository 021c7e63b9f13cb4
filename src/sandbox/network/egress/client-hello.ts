/**
 * Reads the name of the server (SNI, RFC 6066 §3) from the beginning of a TLS connection (RFC 8446 §4.1.2), without
 * taking part in it.
 */
export type HelloReading =
  /** More bytes are needed. */
  | { kind: "partial" }
  /** A whole ClientHello; `serverName` as sent, undefined where it names none. */
  | { kind: "hello"; serverName: string | undefined }
  | { kind: "invalid"; reason: string };

/** The ClientHellos of the world have 200 bytes to some KiB; those with post-quantum keys are the largest. */
export const MAX_HELLO_BYTES = 64 * 1024;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const MAX_RECORD_BYTES = 16_384;
const RECORD_HEAD_BYTES = 5;

/** `bytes`: all that the client has sent so far. */
export function readClientHello(bytes: Uint8Array): HelloReading {
  const handshake = joinRecords(bytes);
  if (handshake.kind !== "bytes") return handshake;
  try {
    return readHandshake(new Reader(handshake.bytes));
  } catch (error) {
    if (error instanceof Short) return invalid("its lengths are wrong");
    throw error;
  }
}

/** A handshake message may be spread over several records. */
function joinRecords(
  bytes: Uint8Array,
): { kind: "bytes"; bytes: Uint8Array } | Exclude<HelloReading, { kind: "hello" }> {
  const parts: Uint8Array[] = [];
  let [joined, at] = [0, 0];
  for (;;) {
    const needed = neededOf(parts);
    if (needed !== undefined && joined >= needed) {
      return { kind: "bytes", bytes: Buffer.concat(parts).subarray(0, needed) };
    }
    const first = bytes[at];
    if (first !== undefined && first !== HANDSHAKE_RECORD) return invalid("it does not begin with a TLS handshake");
    if (bytes.length - at < RECORD_HEAD_BYTES) return partial(bytes);
    if (bytes[at + 1] !== 3) return invalid("it is of an unknown version of TLS");
    const length = (bytes[at + 3] ?? 0) * 256 + (bytes[at + 4] ?? 0);
    if (length === 0 || length > MAX_RECORD_BYTES) return invalid("a record of it has no possible length");
    if (bytes.length - at - RECORD_HEAD_BYTES < length) return partial(bytes);
    parts.push(bytes.subarray(at + RECORD_HEAD_BYTES, at + RECORD_HEAD_BYTES + length));
    joined += length;
    at += RECORD_HEAD_BYTES + length;
  }
}

/** How long the handshake message is with its head, once that is there. */
function neededOf(parts: readonly Uint8Array[]): number | undefined {
  const head = Buffer.concat(parts.map((part) => part.subarray(0, 4))).subarray(0, 4);
  return head.length < 4 ? undefined : 4 + head.readUIntBE(1, 3);
}

function partial(bytes: Uint8Array): HelloReading & { kind: "partial" | "invalid" } {
  return bytes.length >= MAX_HELLO_BYTES ? invalid("it is too long") : { kind: "partial" };
}

function invalid(reason: string): HelloReading & { kind: "invalid" } {
  return { kind: "invalid", reason };
}

function readHandshake(reader: Reader): HelloReading {
  if (reader.number(1) !== CLIENT_HELLO) return invalid("its first message is no ClientHello");
  const hello = reader.vector(3);
  hello.skip(2 + 32);
  hello.vector(1);
  hello.vector(2);
  hello.vector(1);
  if (hello.isAtEnd) return { kind: "hello", serverName: undefined };
  const extensions = hello.vector(2);
  let serverName: string | undefined;
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const body = extensions.vector(2);
    if (type !== SERVER_NAME) continue;
    if (serverName !== undefined) return invalid("it names the server twice");
    const names = body.vector(2);
    while (!names.isAtEnd) {
      const kind = names.number(1);
      const name = names.vector(2).rest();
      if (kind !== HOST_NAME || serverName !== undefined) return invalid("it names the server in an unknown way");
      serverName = Buffer.from(name).toString("latin1");
    }
  }
  return { kind: "hello", serverName };
}

class Short extends Error {}

/** Numbers and length-prefixed vectors, big endian. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(width: 1 | 2 | 3): number {
    let value = 0;
    for (const byte of this.#take(width)) value = value * 256 + byte;
    return value;
  }

  skip(count: number): void {
    this.#take(count);
  }

  /** A part with its length before it, in so many bytes. */
  vector(width: 1 | 2 | 3): Reader {
    return new Reader(this.#take(this.number(width)));
  }

  rest(): Uint8Array {
    return this.#take(this.#bytes.length - this.#at);
  }

  #take(count: number): Uint8Array {
    if (this.#at + count > this.#bytes.length) throw new Short();
    const part = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += count;
    return part;
  }
}
