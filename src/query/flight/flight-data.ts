import { EngineError } from "../../core/errors.ts";
import { messageBodyBytes, NotAnArrowFile } from "../../format/arrow-file.ts";

/**
 * An Arrow IPC stream as messages `FlightData` of Arrow Flight, without decoding it: each IPC message becomes one, its flat
 * buffer the `data_header` and what follows the `data_body`. The bytes are copied once.
 *
 * Layouts: https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format and Flight.proto of
 * https://arrow.apache.org/docs/format/Flight.html.
 */
export class FlightDataMessages implements AsyncIterableIterator<Uint8Array> {
  readonly #stream: AsyncIterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array();
  /** How much of the piece is taken. */
  #at = 0;
  #isOver = false;

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#stream = stream[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isOver) return { done: true, value: undefined };
    const prefix = await this.#read(new Uint8Array(PREFIX_BYTES), 0);
    const headerBytes = lengthIn(prefix);
    if (headerBytes === 0) {
      await this.return();
      return { done: true, value: undefined };
    }
    const header = await this.#read(new Uint8Array(headerBytes), 0);
    const bodyBytes = bodyLength(header);
    const headerStart = fieldStart(DATA_HEADER, headerBytes);
    const bodyStart = bodyBytes === 0 ? [] : fieldStart(DATA_BODY, bodyBytes);
    const bodyAt = headerStart.length + headerBytes + bodyStart.length;
    const message = Buffer.allocUnsafe(bodyAt + bodyBytes);
    message.set(headerStart);
    message.set(header, headerStart.length);
    message.set(bodyStart, headerStart.length + headerBytes);
    return { done: false, value: await this.#read(message, bodyAt) };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#isOver = true;
    await this.#stream.return?.();
    return { done: true, value: undefined };
  }

  /** Fills the bytes from there to their end. */
  async #read<T extends Uint8Array>(bytes: T, from: number): Promise<T> {
    for (let to = from; to < bytes.byteLength;) {
      if (this.#at === this.#piece.byteLength) await this.#nextPiece();
      const part = this.#piece.subarray(this.#at, this.#at + bytes.byteLength - to);
      bytes.set(part, to);
      to += part.byteLength;
      this.#at += part.byteLength;
    }
    return bytes;
  }

  async #nextPiece(): Promise<void> {
    const step = await this.#stream.next();
    if (step.done === true) throw notAStream();
    this.#piece = step.value;
    this.#at = 0;
  }
}

/** `ff ff ff ff`, and the length of the flat buffer. */
const PREFIX_BYTES = 8;
const CONTINUATION = 0xffff_ffff;

/** A process that does not write what it should is not believed: a table has 2,000 columns, a row 1 GiB at most. */
const MAX_HEADER_BYTES = 16 * 1024 * 1024;
const MAX_BODY_BYTES = 1024 * 1024 * 1024;

function lengthIn(prefix: Uint8Array): number {
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const length = view.getUint32(4, true);
  if (view.getUint32(0, true) !== CONTINUATION || length > MAX_HEADER_BYTES) throw notAStream();
  return length;
}

function bodyLength(header: Uint8Array): number {
  try {
    const length = messageBodyBytes(header);
    if (length <= MAX_BODY_BYTES) return length;
  } catch (error) {
    if (!(error instanceof NotAnArrowFile)) throw error;
  }
  throw notAStream();
}

/** Of bytes: the number of the field with the wire type 2, as a varint. */
const DATA_HEADER = [0x12];
const DATA_BODY = [0xc2, 0x3e];

function fieldStart(tag: readonly number[], sizeBytes: number): number[] {
  const bytes = [...tag];
  let rest = sizeBytes;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  bytes.push(rest);
  return bytes;
}

function notAStream(): EngineError {
  return new EngineError("query_failed", "the query process did not write an Arrow stream");
}
