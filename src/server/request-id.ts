import { LIMITS } from "../core/limits.ts";

const VISIBLE = /^[\x21-\x7e]+$/;

/** The client's `X-Request-ID` when it is sane (1–128 visible ASCII characters), else a new one. */
export function requestIdOf(header: string | undefined, newId: () => string): string {
  const sane = header !== undefined && header.length <= LIMITS.requestIdChars && VISIBLE.test(header);
  return sane ? header : newId();
}
