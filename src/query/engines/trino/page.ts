import { z } from "zod";

/** An answer of Trino's protocol: a page of rows, or how far the query is. */
const page = z.object({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/),
  nextUri: z.string().optional(),
  columns: z
    .array(
      z.object({
        name: z.string(),
        type: z.string(),
        typeSignature: z.object({ rawType: z.string(), arguments: z.array(z.any()).optional() }),
      }),
    )
    .optional(),
  data: z.array(z.array(z.unknown())).optional(),
  stats: z.object({
    state: z.string(),
    progressPercentage: z.number().optional(),
    processedRows: z.number().optional(),
  }),
  error: z
    .object({ message: z.string().default(""), errorName: z.string().default(""), errorType: z.string().default("") })
    .optional(),
});

export type TrinoPage = z.output<typeof page>;

/** Throws for what is no page. */
export function readPage(text: string): TrinoPage {
  return page.parse(parseExactly(text));
}

/**
 * A number that begins with a run of 16 digits: every integer beyond 2^53 has as many. May be a false positive, never a
 * false negative: in an object of JSON a number follows one of these characters. Doubles seldom begin so: their digits
 * are those of a fraction.
 */
const LONG_NUMBER = /[[,:\s]-?\d{16}/;

/** Integers that JavaScript has no number for come as texts of all their digits. */
function parseExactly(text: string): unknown {
  return LONG_NUMBER.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
}

function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isInexact = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  const { source } = context ?? {};
  return isInexact && source !== undefined && /^-?\d+$/.test(source) ? source : value;
}
