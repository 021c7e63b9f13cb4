import type { Origin } from "../audit.ts";
import type { TokenBackend } from "../authenticator.ts";
import type { Caller } from "../caller.ts";
import type { Claims } from "./verifier.ts";

/** What an issuer said of somebody: as much of a token that was good as their rights depend on. */
export type Issued = {
  /** As its tokens spell it. */
  issuer: string;
  /** Whom it is about, among those of the issuer. */
  subject: string;
  claims: Claims;
  /** When the token ends that said so. */
  expiresAtMs: number;
};

/**
 * Tokens of issuers, in two steps besides the one of a `TokenBackend`: what a token says is verified once and kept, and
 * whom that makes of its bearer is judged as often as somebody asks, by the rules that hold then.
 */
export interface IssuedTokens extends TokenBackend {
  /** What a good token says; undefined for one that is not good. `audience` is whom it must be for, the API by default. */
  issued(token: string, audience?: string): Promise<Issued | undefined>;
  /** Undefined for an issuer whose word does not count here; rejects as `authenticate` does. */
  callerOf(issued: Pick<Issued, "issuer" | "claims">, from: Omit<Origin, "caller">): Promise<Caller | undefined>;
}

/** Of a verified token the claims of those names; it has an end, as every good token does. */
export function keptClaims(said: Claims, subject: string, names: readonly string[]): Omit<Issued, "issuer"> {
  const entries = names.flatMap((name) => (said[name] === undefined ? [] : [[name, said[name]] as const]));
  return {
    subject: String(said[subject]),
    claims: Object.fromEntries(entries),
    expiresAtMs: (said.exp ?? 0) * 1_000,
  };
}
