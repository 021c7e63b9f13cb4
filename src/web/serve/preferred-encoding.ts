import { weightsIn } from "../../server/compress.ts";
import type { WebFile } from "./files.ts";

export type Encoding = keyof WebFile["bodies"];

/** Smallest first: what a client likes equally is decided by that. */
const ENCODINGS: readonly Encoding[] = ["br", "gzip", "identity"];

/**
 * The form of a file to send (RFC 9110 §12.5.3): the one that the client weighs most, among equals the smallest. A client
 * that says nothing, or takes none of them, gets the file as it is.
 */
export function preferredEncoding(accepted: string | undefined, bodies: WebFile["bodies"]): Encoding {
  if (accepted === undefined) return "identity";
  const weights = weightsIn(accepted);
  let best: { encoding: Encoding; weight: number } = { encoding: "identity", weight: 0 };
  for (const encoding of ENCODINGS.filter((one) => bodies[one] !== undefined)) {
    const weight = weightFor(encoding, weights);
    if (weight > best.weight) best = { encoding, weight };
  }
  return best.encoding;
}

/** What is not named is taken as `*`; `identity` is good unless it is refused, and never better than what is named. */
function weightFor(encoding: Encoding, weights: ReadonlyMap<string, number>): number {
  const named = weights.get(encoding) ?? (encoding === "gzip" ? weights.get("x-gzip") : undefined);
  if (named !== undefined) return named;
  return encoding === "identity" ? (weights.get("*") ?? LEAST_WEIGHT) : (weights.get("*") ?? 0);
}

const LEAST_WEIGHT = 0.000_1;
