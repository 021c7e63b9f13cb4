/**
 * An Arrow IPC stream cut into its messages as they arrive (Arrow columnar format, "Encapsulated message format"): the
 * prefix `0xFFFFFFFF`, the length of the metadata, the metadata, and a body whose length the metadata says. The library that
 * reads them (flechette) has no reader for streams: give it the schema's message and one batch's at a time.
 */
export type ArrowMessage = {
  /** The whole message, as it was sent. */
  bytes: Uint8Array;
  /** `schema`, `dictionary` or `batch`. */
  kind: "schema" | "dictionary" | "batch" | "other";
};

/** Throws where the stream ends inside of a message, or is not one of messages. */
export async function* readArrowMessages(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ArrowMessage, void, undefined> {
  const pieces = new Pieces(body);
  try {
    for (;;) {
      const prefix = await pieces.peek(PREFIX_BYTES);
      if (prefix === undefined) {
        if (pieces.length > 0) throw new Error("the response ended in the middle of a message");
        return;
      }
      const head = view(prefix);
      if (head.getUint32(0, true) !== CONTINUATION) throw new Error("the answer is not an Arrow IPC stream");
      const metadataBytes = head.getInt32(4, true);
      // The end of a stream is said by an empty message.
      if (metadataBytes === 0) return;
      const start = await pieces.peek(PREFIX_BYTES + metadataBytes);
      if (metadataBytes < 0 || start === undefined) throw new Error("the response ended in the middle of a message");
      const { kind, bodyBytes } = readMetadata(start.subarray(PREFIX_BYTES));
      const bytes = await pieces.take(PREFIX_BYTES + metadataBytes + bodyBytes);
      if (bytes === undefined) throw new Error("the response ended in the middle of a message");
      yield { bytes, kind };
    }
  } finally {
    await pieces.cancel();
  }
}

const PREFIX_BYTES = 8;
const CONTINUATION = 0xffffffff;
const KINDS = ["other", "schema", "dictionary", "batch"] as const;

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Of the flatbuffer `Message`: field 1 is the type of the header, field 3 the length of the body. */
function readMetadata(metadata: Uint8Array): { kind: ArrowMessage["kind"]; bodyBytes: number } {
  const buffer = view(metadata);
  const table = buffer.getInt32(0, true);
  const offsets = table - buffer.getInt32(table, true);
  const offsetsBytes = buffer.getUint16(offsets, true);
  const place = (field: number) => {
    const at = 4 + field * 2;
    const offset = at < offsetsBytes ? buffer.getUint16(offsets + at, true) : 0;
    return offset === 0 ? undefined : table + offset;
  };
  const [type, length] = [place(1), place(3)];
  return {
    kind: KINDS[type === undefined ? 0 : buffer.getUint8(type)] ?? "other",
    bodyBytes: length === undefined ? 0 : Number(buffer.getBigInt64(length, true)),
  };
}

/** Bytes of a stream, taken in lengths of our choice. */
class Pieces {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #pieces: Uint8Array[] = [];
  length = 0;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The next bytes, which stay; undefined where the stream has fewer. */
  async peek(length: number): Promise<Uint8Array | undefined> {
    while (this.length < length) {
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#pieces.push(value);
      this.length += value.length;
    }
    const [first] = this.#pieces;
    if (first === undefined || first.length < length) this.#join();
    return this.#pieces[0]?.subarray(0, length);
  }

  async take(length: number): Promise<Uint8Array | undefined> {
    const taken = await this.peek(length);
    const [first] = this.#pieces;
    if (taken === undefined || first === undefined) return undefined;
    this.length -= length;
    if (first.length === length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(length);
    return taken;
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }

  #join(): void {
    const joined = new Uint8Array(this.length);
    let at = 0;
    for (const piece of this.#pieces) {
      joined.set(piece, at);
      at += piece.length;
    }
    this.#pieces = [joined];
  }
}
