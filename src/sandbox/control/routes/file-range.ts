/** Bytes as the call `files.get` wants them: `end` inclusive, a `start` below 0 means the last so many. */
export type FileRange = { start?: number; end?: number };

/**
 * One range of bytes (RFC 9110 §14.1.2). Undefined for what is no such thing, several ranges among it: then the whole is
 * the answer, as the RFC allows.
 */
export function parseRange(header: string | undefined): FileRange | undefined {
  const [, first = "", last = ""] = /^\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  // The last 0 bytes are in no file.
  if (first === "") return { start: Number(last) === 0 ? Number.MAX_SAFE_INTEGER : -Number(last) };
  if (last === "") return { start: Number(first) };
  return Number(first) > Number(last) ? undefined : { start: Number(first), end: Number(last) };
}
