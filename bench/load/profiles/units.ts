import { z } from "zod";
import { parseBytes, parsePerSecond, parseSeconds } from "../../../src/capacity/units.ts";

/** Values with units, as profiles write them. Each schema's message is the end of a sentence: what the key takes. */

/** Parses to whole bytes. */
export const size = above0(parseBytes, 'takes a size above 0 with its unit, such as "1 MiB"').transform(Math.round);

/** Parses to milliseconds. */
export const duration = above0(parseSeconds, 'takes a time above 0 with its unit, such as "30 s"').transform(
  (seconds) => seconds * 1_000,
);

/**
 * How much is sent: so many requests a second whatever the server does (the open loop), as many as the search for the
 * saturation finds, or the next one of each client when its last is answered (`closed`).
 */
export type Rate = { perSecond: number } | "saturation" | "closed";

const RATE_TEXT = 'takes a rate above 0 such as "200/s", or "saturation", or "closed"';

export const rate = z.union(
  [z.enum(["saturation", "closed"]), above0(parsePerSecond, RATE_TEXT).transform((perSecond) => ({ perSecond }))],
  RATE_TEXT,
) satisfies z.ZodType<Rate>;

function above0(parse: (text: string) => number, message: string) {
  return z.string(message).transform((text, context): number => {
    const value = valueIn(parse, text);
    if (value !== undefined && value > 0) return value;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

/** Undefined for a text that the parser refuses, whose sentence is not ours. */
function valueIn(parse: (text: string) => number, text: string): number | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
