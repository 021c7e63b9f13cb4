const [NEWLINE, RETURN] = [0x0a, 0x0d];

/**
 * Knows the line with which each row begins, from the bytes and where in them the rows end. It keeps the bytes of rows
 * that have not ended.
 */
export class LineCounter {
  #chunks: Uint8Array[] = [];
  /** Bytes before the first chunk. */
  #dropped = 0;
  /** Where the row that comes next begins, or blank lines before it. */
  #at = 0;
  #line = 1;

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  /** The line with which the next row begins, as far as it is known. */
  next(): number {
    this.#skipBlank();
    return this.#line;
  }

  /** The line with which the next row begins, which ends before the byte `end` of the input. */
  take(end: number): number {
    const line = this.next();
    while (this.#at < end) {
      const [chunk] = this.#chunks;
      if (chunk === undefined) break;
      const part = chunk.subarray(this.#at - this.#dropped, end - this.#dropped);
      for (let at = part.indexOf(NEWLINE); at >= 0; at = part.indexOf(NEWLINE, at + 1)) this.#line++;
      this.#advance(part.length);
    }
    return line;
  }

  #skipBlank(): void {
    for (;;) {
      const byte = this.#chunks[0]?.[this.#at - this.#dropped];
      if (byte !== NEWLINE && byte !== RETURN) return;
      if (byte === NEWLINE) this.#line++;
      this.#advance(1);
    }
  }

  #advance(bytes: number): void {
    this.#at += bytes;
    const [chunk] = this.#chunks;
    if (chunk === undefined || this.#at - this.#dropped < chunk.length) return;
    this.#dropped += chunk.length;
    this.#chunks.shift();
  }
}
