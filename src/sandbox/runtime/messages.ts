/**
 * Messages between this program and supervisors: a 32-bit length in network order, then as many bytes of fields; a field
 * is a 32-bit length and its bytes.
 */
export function encodeMessage(...fields: readonly (string | Uint8Array)[]): Buffer {
  const parts = fields.flatMap((field) => {
    const bytes = typeof field === "string" ? Buffer.from(field) : field;
    return [lengthOf(bytes.length), bytes];
  });
  const sizeBytes = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([lengthOf(sizeBytes), ...parts]);
}

function lengthOf(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Puts messages together from the pieces in which they arrive. */
export class MessageReader {
  #pieces: Buffer[] = [];
  #sizeBytes = 0;

  push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
  }

  /** The next whole message, if there is one. */
  next(): Buffer[] | undefined {
    if (this.#sizeBytes < 4) return undefined;
    const length = this.#head(4).readUInt32BE(0);
    if (this.#sizeBytes < 4 + length) return undefined;
    const head = this.#head(4 + length);
    const message = head.subarray(4, 4 + length);
    this.#pieces[0] = head.subarray(4 + length);
    this.#sizeBytes -= 4 + length;
    return fieldsOf(message);
  }

  /** Bytes that have come after the last message. */
  rest(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  /** The first piece, after it has been made at least so long. */
  #head(sizeBytes: number): Buffer {
    const [first = Buffer.alloc(0)] = this.#pieces;
    if (first.length >= sizeBytes) return first;
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }
}

function fieldsOf(message: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 0; at < message.length;) {
    const end = at + 4 + message.readUInt32BE(at);
    fields.push(message.subarray(at + 4, end));
    at = end;
  }
  return fields;
}
