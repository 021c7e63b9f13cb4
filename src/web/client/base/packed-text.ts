/**
 * Long texts in the fragment of an address, which no server sees: deflated, then base64url. The bytes are those of
 * `deflate-raw`, so that a program can read an address too.
 */
export async function packText(text: string): Promise<string> {
  const packed = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  // In pieces: a call with a hundred thousand arguments is too much for some engines.
  let binary = "";
  for (let at = 0; at < packed.length; at += PIECE) binary += String.fromCharCode(...packed.subarray(at, at + PIECE));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Undefined for what `packText` has not made, or what was cut. */
export async function unpackText(packed: string): Promise<string | undefined> {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const text = await through(bytes, new DecompressionStream("deflate-raw"), MAX_BYTES);
    return new TextDecoder("utf-8", { fatal: true }).decode(text);
  } catch {
    return undefined;
  }
}

const PIECE = 8_192;
/** An address that somebody sends may hold little that becomes much. */
const MAX_BYTES = 8_000_000;

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  // Safari cannot iterate over a stream.
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > maxBytes) throw new RangeError("the text is too long");
      pieces.push(value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  const joined = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
