import type { Keyring } from "../../auth/sealing/keyring.ts";
import { EngineError } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";

const SECRET_BYTES = 32;

/** 256 random bits in characters that a PKCE verifier may have too. */
export function newSecret(random: Random): string {
  return Buffer.from(random.fill(new Uint8Array(SECRET_BYTES))).toString("base64url");
}

/** Whether it has the form of such a secret. */
export function isSecret(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** Throws `not_configured` without one. */
export function neededKeyring(keyring: Keyring | undefined): Keyring {
  if (keyring !== undefined) return keyring;
  throw new EngineError("not_configured", "credentials need ENGINE_SECRET_KEY: 32 random bytes in base64");
}
