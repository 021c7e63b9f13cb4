/** Input whose beginning can be looked at before it is read. */
export class PeekedInput implements AsyncIterableIterator<Uint8Array> {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Uint8Array[] = [];

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The input's first bytes: `enough` of them at least, unless it has fewer, and no more than have come by then. */
  async head(enough: number): Promise<Buffer> {
    let sizeBytes = this.#held.reduce((sum, chunk) => sum + chunk.length, 0);
    while (sizeBytes < enough) {
      const next = await this.#chunks.next();
      if (next.done === true) break;
      this.#held.push(next.value);
      sizeBytes += next.value.length;
    }
    const joined = Buffer.concat(this.#held);
    this.#held = joined.length === 0 ? [] : [joined];
    return joined;
  }

  /** Leaves out the first bytes, which `head` has shown. */
  skip(bytes: number): void {
    this.#held = this.#held.map((chunk, i) => (i === 0 ? chunk.subarray(bytes) : chunk));
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const held = this.#held.shift();
    return held === undefined ? this.#chunks.next() : { done: false, value: held };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
