import type { Config } from "../src/config/options.ts";
import { keyringOf, type Keyring } from "../src/auth/sealing/keyring.ts";

/** The operator's keys; undefined where there is none. */
export function keyringIn({ secretKey, secretKeysFormer }: Config): Keyring | undefined {
  return secretKey === undefined ? undefined : keyringOf(secretKey, secretKeysFormer);
}
