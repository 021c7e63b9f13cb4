import type { Keyring } from "../auth/sealing/keyring.ts";
import { EngineError } from "../core/errors.ts";

/** Throws `not_configured` without one. */
export function neededKeyring(keyring: Keyring | undefined): Keyring {
  if (keyring !== undefined) return keyring;
  throw new EngineError("not_configured", "credentials need ENGINE_SECRET_KEY: 32 random bytes in base64");
}
