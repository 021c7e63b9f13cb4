import { closeSync, openSync, rmSync, writevSync } from "node:fs";

/** What a query answers: few bytes as they are, others in a file that the reader deletes. */
export type Spooled = { bytes: Uint8Array } | { file: string };

/** An answer up to this size needs no file: opening, reading and deleting one takes longer than most small queries. */
const MAX_MEMORY_BYTES = 256 * 1024;

/** Takes the bytes of an answer, in memory while they are few, then in a file. Blocks: for a query process. */
export class Spool {
  readonly #path: string;
  /** Not written yet. */
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #fd: number | undefined;

  /** The file is made when it is needed; there must be none. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Takes pieces that are only good until it returns. */
  write(...pieces: readonly Uint8Array[]): void {
    const sizeBytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (this.#keptBytes + sizeBytes > MAX_MEMORY_BYTES) this.#flush(pieces);
    else {
      this.#kept.push(Buffer.concat(pieces));
      this.#keptBytes += sizeBytes;
    }
  }

  end(): Spooled {
    if (this.#fd === undefined) return { bytes: Buffer.concat(this.#kept) };
    this.#flush([]);
    closeSync(this.#fd);
    return { file: this.#path };
  }

  /** Leaves nothing behind. */
  discard(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    rmSync(this.#path, { force: true });
  }

  #flush(last: readonly Uint8Array[]): void {
    this.#fd ??= openSync(this.#path, "wx", 0o600);
    const pieces = [...this.#kept, ...last].filter(({ byteLength }) => byteLength > 0);
    this.#kept = [];
    this.#keptBytes = 0;
    // A file at its size limit takes a part; the next call says why.
    while (pieces.length > 0) dropWritten(pieces, writevSync(this.#fd, pieces));
  }
}

/** Takes so many bytes away from the beginning. */
function dropWritten(pieces: Uint8Array[], sizeBytes: number): void {
  let left = sizeBytes;
  let whole = 0;
  while (whole < pieces.length && left >= (pieces[whole]?.byteLength ?? 0)) left -= pieces[whole++]?.byteLength ?? 0;
  pieces.splice(0, whole);
  const [first] = pieces;
  if (first !== undefined && left > 0) pieces[0] = first.subarray(left);
}
