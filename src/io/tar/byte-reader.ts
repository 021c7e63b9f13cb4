import { ArchiveError } from "./archive-error.ts";
import { padding } from "./tar-format.ts";

/** Reads a stream of bytes by counts. Throws `ArchiveError` where it ends too early. */
export class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#pieces = source[Symbol.asyncIterator]();
  }

  async take(count: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const piece of this.pieces(count)) pieces.push(piece);
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }

  /** That many bytes, as they come. */
  async *pieces(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0;) {
      if (this.#rest.length === 0) await this.#fill();
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** What follows that many bytes up to the next whole block. */
  async skipPadding(sizeBytes: number): Promise<void> {
    await this.take(padding(sizeBytes).length);
  }

  /** Rejects when there is more. Reads the source to its end, so that all of it was seen. */
  async expectEnd(): Promise<void> {
    if (this.#rest.length > 0 || (await this.#next()) !== undefined) {
      throw new ArchiveError("the archive goes on after its end");
    }
  }

  /**
   * Reads the source to its end, so that all of it was seen. Zeroes may be left, with which archives are filled up to whole
   * records; rejects where there is anything else, or more than that many.
   */
  async expectFilling(mostBytes: number): Promise<void> {
    for (let left = mostBytes; ;) {
      if (this.#rest.length > left || this.#rest.some((byte) => byte !== 0)) {
        throw new ArchiveError("the archive goes on after its end");
      }
      const piece = await this.#next();
      if (piece === undefined) return;
      left -= this.#rest.length;
      this.#rest = piece;
    }
  }

  async #fill(): Promise<void> {
    const piece = await this.#next();
    if (piece === undefined) throw new ArchiveError("the archive ends too early");
    this.#rest = piece;
  }

  async #next(): Promise<Buffer | undefined> {
    for (;;) {
      const { done, value } = await this.#pieces.next();
      if (done === true) return undefined;
      if (value.byteLength > 0) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  }
}
