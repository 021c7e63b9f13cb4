const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;

/** Bytes of one frame; after one that ends it the next piece begins another. */
export type ZstdPiece = { bytes: Uint8Array; endsFrame: boolean };

/** What is read whole before it says what follows, and how long it is. */
const FIELDS = { "frame start": 5, "block header": 3, "skippable size": 3 } as const;
type Field = keyof typeof FIELDS;
/** What is passed on, or left out, as it comes. */
type Run = "frame header" | "block" | "checksum" | "skippable";

/**
 * Cuts a stream of zstd data into its frames (RFC 8878 §3) without decoding it, whatever pieces it comes in: Node's
 * decoder ignores all frames behind the first, and says nothing of a last one that is cut off. Skippable frames are
 * left out.
 */
export class ZstdCutter {
  #state: Field | Run = "frame start";
  #missing: number = FIELDS["frame start"];
  readonly #field = Buffer.alloc(8);
  #fieldBytes = 0;
  #isLastBlock = false;
  #hasChecksum = false;
  /** What is due of the frame. */
  #parts: Uint8Array[] = [];

  /** Whether the data may end here. */
  get isBetweenFrames(): boolean {
    return this.#state === "frame start" && this.#fieldBytes === 0;
  }

  /** @throws Error when the data is no sequence of frames. */
  *cut(data: Uint8Array): Generator<ZstdPiece> {
    for (let at = 0; at < data.length;) {
      const taken = data.subarray(at, at + this.#missing);
      at += taken.length;
      this.#missing -= taken.length;
      if (this.#state in FIELDS) {
        this.#field.set(taken, this.#fieldBytes);
        this.#fieldBytes += taken.length;
      } else if (this.#state !== "skippable") this.#parts.push(taken);
      // What has no bytes (an empty block, an empty skippable frame) is over at once.
      while (this.#missing === 0) {
        if (!this.#advance()) continue;
        yield { bytes: this.#takeParts(), endsFrame: true };
      }
    }
    if (this.#parts.length > 0) yield { bytes: this.#takeParts(), endsFrame: false };
  }

  /** Goes on to what follows; true when that ended a frame. */
  #advance(): boolean {
    switch (this.#state) {
      case "frame start":
        this.#startFrame();
        return false;
      case "skippable size":
        // The first byte of the size was read with the magic number.
        this.#enter("skippable", this.#field.readUInt32LE(4));
        return false;
      case "skippable":
        this.#enterField("frame start");
        return false;
      case "frame header":
        this.#enterField("block header");
        return false;
      case "block header":
        this.#startBlock();
        return false;
      case "block":
        if (!this.#isLastBlock) this.#enterField("block header");
        else if (this.#hasChecksum) this.#enter("checksum", 4);
        else return this.#endFrame();
        return false;
      case "checksum":
        return this.#endFrame();
    }
  }

  #startFrame(): void {
    const magic = this.#field.readUInt32LE(0);
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      this.#state = "skippable size";
      this.#missing = FIELDS["skippable size"];
      return;
    }
    if (magic !== FRAME_MAGIC) throw new Error("something else follows a frame");
    const descriptor = this.#field.readUInt8(4);
    const isSingleSegment = ((descriptor >> 5) & 1) === 1;
    const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
    const contentSizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
    this.#hasChecksum = ((descriptor >> 2) & 1) === 1;
    this.#parts.push(this.#takeField());
    this.#enter("frame header", (isSingleSegment ? 0 : 1) + dictionaryIdBytes + contentSizeBytes);
  }

  #startBlock(): void {
    const header = this.#field.readUIntLE(0, 3);
    this.#isLastBlock = (header & 1) === 1;
    this.#parts.push(this.#takeField());
    // A block of type 1 is one byte, to be repeated; its size is that of the result.
    this.#enter("block", ((header >> 1) & 3) === 1 ? 1 : header >> 3);
  }

  #endFrame(): true {
    this.#enterField("frame start");
    return true;
  }

  #enterField(field: Field): void {
    this.#fieldBytes = 0;
    this.#enter(field, FIELDS[field]);
  }

  #enter(state: Field | Run, bytes: number): void {
    this.#state = state;
    this.#missing = bytes;
  }

  #takeField(): Uint8Array {
    return Uint8Array.from(this.#field.subarray(0, this.#fieldBytes));
  }

  #takeParts(): Uint8Array {
    const [only] = this.#parts;
    const bytes = only !== undefined && this.#parts.length === 1 ? only : Buffer.concat(this.#parts);
    this.#parts = [];
    return bytes;
  }
}
