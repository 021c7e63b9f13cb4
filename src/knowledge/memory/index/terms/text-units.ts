/**
 * The code units of one text after the other, in an array that is used again. A unit of an array costs a fraction of what
 * `charCodeAt` does, which asks each time how the text is kept; the whole text is copied by one call.
 */
export class TextUnits {
  values = new Uint16Array(0);
  length = 0;
  #bytes = Buffer.alloc(0);

  read(text: string): void {
    const { length } = text;
    if (length > this.values.length) {
      this.values = new Uint16Array(Math.max(length, this.values.length * 2, FIRST_LENGTH));
      this.#bytes = Buffer.from(this.values.buffer);
    }
    // What runs Node has the low byte first, in memory as in this encoding. Halves of pairs are written as they are.
    this.#bytes.write(text, "utf16le");
    this.length = length;
  }
}

const FIRST_LENGTH = 256;
