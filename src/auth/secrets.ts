import type { Random } from "../core/random.ts";

/** Secrets of one sign-in or one flow: what ties an answer to the one who asked. Tokens have a form of their own. */
const SECRET_BYTES = 32;

/** 256 random bits in characters that a PKCE verifier may have too. */
export function newSecret(random: Random): string {
  return Buffer.from(random.fill(new Uint8Array(SECRET_BYTES))).toString("base64url");
}

/** Whether it has the form of such a secret. */
export function isSecret(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}
