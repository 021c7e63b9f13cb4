import { StringDecoder } from "node:string_decoder";

/** A longer line becomes several. */
const LINE_CHARS = 16 * 1024;

/** Cuts a stream of bytes into lines of text, however its pieces fall. */
export class Lines {
  readonly #decoder = new StringDecoder("utf8");
  readonly #take: (line: string) => void;
  #rest = "";

  constructor(take: (line: string) => void) {
    this.#take = take;
  }

  push(bytes: Uint8Array): void {
    this.#cut(this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
  }

  /** What came after the last line break is a line too. */
  end(): void {
    this.#cut(this.#decoder.end());
    if (this.#rest !== "") this.#take(this.#rest);
    this.#rest = "";
  }

  #cut(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#takeLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    while (this.#rest.length > LINE_CHARS) {
      this.#take(this.#rest.slice(0, LINE_CHARS));
      this.#rest = this.#rest.slice(LINE_CHARS);
    }
  }

  #takeLine(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += LINE_CHARS) this.#take(line.slice(at, at + LINE_CHARS));
  }
}
