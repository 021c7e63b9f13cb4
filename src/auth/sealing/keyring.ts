import { createHash } from "node:crypto";

/**
 * The operator's keys. The first seals; all open, so that records sealed with an older one can be read until
 * `engine credentials rotate` has sealed them anew. A key is known by an id that is a hash of it: the id says nothing
 * about the key and is the same on every node.
 */
export type Keyring = {
  readonly current: SecretKey;
  /** The key of that id; undefined for one that the operator no longer names. */
  byId(id: string): SecretKey | undefined;
};

export type SecretKey = { readonly id: string; readonly bytes: Uint8Array };

export const KEY_BYTES = 32;

/** The texts as the configuration has them: 32 bytes in base64. Any other text is hashed, which is for development. */
export function keyringOf(current: string, former: readonly string[]): Keyring {
  const keys = [current, ...former].map(keyOf);
  const [first = keyOf(current)] = keys;
  return { current: first, byId: (id) => keys.find((key) => key.id === id) };
}

/** Whether it is a key of full strength, in base64 of either alphabet. */
export function isFullKey(text: string): boolean {
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(text) && Buffer.from(text, "base64").length === KEY_BYTES;
}

function keyOf(text: string): SecretKey {
  const bytes = isFullKey(text) ? Buffer.from(text, "base64") : createHash("sha256").update(text).digest();
  const id = createHash("sha256").update("engine secret key id\0").update(bytes).digest("hex").slice(0, 16);
  return { id, bytes };
}
