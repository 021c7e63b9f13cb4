import { z } from "zod";

/** Values with units, as profiles write them. Each schema's message is the end of a sentence: what the key takes. */

const BYTES = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;
const MILLISECONDS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 } as const;
const RATE = /^(\d+(?:\.\d+)?) ?\/s$/;

/** Parses to whole bytes. */
export const size = quantity(BYTES, 'a size above 0 with its unit, such as "1 MiB"').transform(Math.round);

/** Parses to milliseconds. */
export const duration = quantity(MILLISECONDS, 'a time above 0 with its unit, such as "30 s"');

/**
 * How much is sent: so many requests a second whatever the server does (the open loop), as many as the search for the
 * saturation finds, or the next one of each client when its last is answered (`closed`).
 */
export type Rate = { perSecond: number } | "saturation" | "closed";

const RATE_TEXT = 'takes a rate above 0 such as "200/s", or "saturation", or "closed"';

export const rate = z.string(RATE_TEXT).transform((text, context): Rate => {
  if (text === "saturation" || text === "closed") return text;
  const perSecond = Number(RATE.exec(text)?.[1]);
  if (perSecond > 0) return { perSecond };
  context.addIssue({ code: "custom", message: RATE_TEXT });
  return z.NEVER;
});

function quantity(units: Readonly<Record<string, number>>, what: string) {
  const message = `takes ${what}`;
  return z.string(message).transform((text, context): number => {
    const [, count, unit = ""] = /^(\d+(?:\.\d+)?) ?([A-Za-z]+)$/.exec(text) ?? [];
    const value = Number(count) * (Object.hasOwn(units, unit) ? (units[unit] ?? Number.NaN) : Number.NaN);
    if (value > 0) return value;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}
