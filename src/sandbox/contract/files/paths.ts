import { isUtf8 } from "node:buffer";
import { EngineError } from "../../../core/errors.ts";

/**
 * Paths of a sandbox as text. A name on Linux is bytes; those that are not UTF-8 are kept as lone surrogates U+DC80 to
 * U+DCFF, one for each byte (the way of Python's `surrogateescape`), so that every name has one text, and every text of
 * a name leads back to it, also through JSON.
 */
const MAX_PATH_BYTES = 4_095;
const ESCAPE = 0xdc00;

export function textOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes[at] ?? 0);
    const sequence = bytes.subarray(at, at + length);
    if (sequence.length === length && isUtf8(sequence)) {
      text += sequence.toString("utf8");
      at += length;
    } else {
      text += String.fromCharCode(ESCAPE + (bytes[at] ?? 0));
      at += 1;
    }
  }
  return text;
}

export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  // With the flag `u`, halves of real pairs do not match. What it is split at stands on odd places.
  const parts = text.split(/([\udc80-\udcff])/u).map((part, i) => {
    return i % 2 === 1 ? Buffer.of(part.charCodeAt(0) - ESCAPE) : Buffer.from(part, "utf8");
  });
  return Buffer.concat(parts);
}

/** The bytes of an absolute path. Throws `invalid_parameter` for what can't be one. */
export function bytesOfPath(path: string): Buffer {
  if (!path.startsWith("/")) throw new EngineError("invalid_parameter", "the path does not begin with /");
  if (!path.replaceAll(/[\udc80-\udcff]/gu, "").isWellFormed()) {
    throw new EngineError("invalid_parameter", "the path has half a surrogate pair");
  }
  const bytes = bytesOfText(path);
  if (bytes.includes(0)) throw new EngineError("invalid_parameter", "a path can't have a NUL");
  if (bytes.length > MAX_PATH_BYTES) {
    throw new EngineError("invalid_parameter", `the path has more than ${MAX_PATH_BYTES} bytes`);
  }
  return bytes;
}

/** As it is shown to people: bytes that are no text become U+FFFD. */
export function shownPath(path: string): string {
  return path.toWellFormed();
}

/** As it stands in a URL, `/` left alone; leads back to the very bytes. */
export function percentEncodedPath(path: string): string {
  if (path.isWellFormed()) return path.split("/").map(encodeURIComponent).join("/");
  let encoded = "";
  for (const byte of bytesOfText(path)) {
    const char = String.fromCharCode(byte);
    encoded += /[\w./~-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/** Undoes percent-encoding of any bytes; undefined where a `%` is not followed by two hex digits. */
export function percentDecodedPath(encoded: string): string | undefined {
  if (/%(?![0-9a-f]{2})/i.test(encoded)) return undefined;
  const parts = encoded.split(/((?:%[0-9a-f]{2})+)/i).map((part, i) => {
    return i % 2 === 1 ? Buffer.from(part.replaceAll("%", ""), "hex") : Buffer.from(part, "utf8");
  });
  return textOfBytes(Buffer.concat(parts));
}

/** How many bytes the character has that begins so. */
function sequenceLength(lead: number): number {
  if (lead < 0xc0) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}
