import { decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyResult } from "jose";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { headerProblem } from "./header.ts";

/** What a token says, by claim. */
export type Claims = JWTPayload;

/** Resolves to what a token says when it is good; undefined otherwise. */
export type Verify = (token: string) => Promise<Claims | undefined>;

/** Public keys only: which of these fit is then up to the type of the key (RSA, EC, OKP), never to the token. */
const PUBLIC_KEY_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** How far clocks may be apart. */
const SKEW_SECS = 60;
const MAX_TOKEN_CHARS = 16 * 1024;
/** RFC 9068 and those before it. Other types (logout tokens, proofs) are signed with the same keys and grant nothing. */
const TYPES = new Set<unknown>([undefined, "jwt", "application/jwt", "at+jwt", "application/at+jwt"]);

export type VerifierOptions = {
  issuer: string;
  audience: string;
  /** Public keys by what a token names, or the one secret of HS256. */
  key: JWTVerifyGetKey | Uint8Array;
  /** Claims that must be there, besides `iss`, `aud` and `exp`. */
  needed: readonly string[];
  clock: Clock;
  log: Log;
};

/**
 * A verifier of one issuer's tokens (RFC 7519, RFC 8725). A key that a token brings along (`jwk`, `jku`, `x5c`, `x5u`)
 * means nothing, and one that calls extensions critical (`crit`) is refused. It rejects when `key` does.
 */
export function createVerifier({ issuer, audience, key, needed, clock, log }: VerifierOptions): Verify {
  const options = {
    issuer,
    audience,
    algorithms: key instanceof Uint8Array ? ["HS256"] : PUBLIC_KEY_ALGORITHMS,
    requiredClaims: ["exp", ...needed],
    clockTolerance: SKEW_SECS,
  };
  return async (token) => {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const odd = headerProblem(token);
    if (odd !== undefined) {
      log.debug({ issuer, reason: odd }, "a token was refused");
      return undefined;
    }
    const now = { currentDate: new Date(clock.nowMs()) };
    try {
      // Two calls, for jose tells a key from a function by its type.
      const verified =
        key instanceof Uint8Array
          ? await jwtVerify(token, key, { ...options, ...now })
          : await jwtVerify(token, key, { ...options, ...now });
      const reason = oddityOf(verified, clock);
      if (reason === undefined) return verified.payload;
      log.debug({ issuer, reason }, "a token was refused");
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      log.debug({ issuer, reason: error.code, claim: claimOf(error) }, "a token was refused");
    }
    return undefined;
  };
}

/** What is wrong with a token that is signed and meant for us, and that jose leaves to us. */
function oddityOf({ protectedHeader: { typ }, payload: { iat } }: JWTVerifyResult, clock: Clock): string | undefined {
  if (!TYPES.has(typeof typ === "string" ? typ.toLowerCase() : typ)) return "it is of another type";
  if (iat !== undefined && iat > clock.nowMs() / 1_000 + SKEW_SECS) return "it was issued in the future";
  return undefined;
}

/** Whether a text has the form of a signed token: three parts of base64url (RFC 7515 §7.1), the last maybe empty. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]*\.[\w-]*$/.test(token);
}

/** Who a token says has issued it: good for choosing who checks that, and for nothing else. */
export function claimedIssuer(token: string): string | undefined {
  if (token.length > MAX_TOKEN_CHARS) return undefined;
  try {
    const { iss } = decodeJwt(token);
    return typeof iss === "string" ? iss : undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

function claimOf(error: errors.JOSEError): string | undefined {
  return "claim" in error && typeof error.claim === "string" ? error.claim : undefined;
}
