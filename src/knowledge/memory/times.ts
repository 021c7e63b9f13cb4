import { nsToRfc3339, rfc3339ToNs } from "../../format/time-text.ts";

/** µs since 1970 of an RFC 3339 time, of which further digits are cut; undefined for other text, and far from today. */
export function textToUs(text: string): number | undefined {
  const ns = rfc3339ToNs(text);
  if (ns === undefined) return undefined;
  const us = Number((ns - (((ns % 1_000n) + 1_000n) % 1_000n)) / 1_000n);
  return Number.isSafeInteger(us) ? us : undefined;
}

/** In UTC, with six digits of fraction. */
export function usToText(us: number): string {
  return `${nsToRfc3339(BigInt(us) * 1_000n).slice(0, -4)}Z`;
}

export function usToTextOrNull(us: number | undefined): string | null {
  return us === undefined ? null : usToText(us);
}
