import { CREDENTIALS_OPTIONS } from "../src/credentials/options.ts";
import { valuesOf } from "../src/config/option.ts";
import type { Config } from "../src/config/options.ts";
import { keyringOf, type Keyring } from "../src/auth/sealing/keyring.ts";

/** The operator's keys; undefined where there is none. */
export function keyringIn(config: Config): Keyring | undefined {
  const { secretKey, secretKeysFormer } = valuesOf(CREDENTIALS_OPTIONS, config);
  return secretKey === undefined ? undefined : keyringOf(secretKey, secretKeysFormer);
}
