import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Random } from "../../core/random.ts";
import { KEY_BYTES, type Keyring } from "./keyring.ts";

/**
 * Envelope encryption: each record has a random key of its own, which seals the record with AES-256-GCM, and is sealed
 * itself with the operator's key. Sealing anew for another operator's key touches no record, and a random nonce per
 * record key never repeats under one key. What a sealed text belongs to is authenticated with it (associated data), so
 * one that is moved to another record, or taken for the other part of its own, does not open.
 *
 * Form of a sealed text: base64 of nonce (12 bytes), ciphertext, tag (16 bytes).
 */
export type Envelope = { keyId: string; sealedKey: string; sealedValue: string };

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Seals a text that belongs to `subject`: what it is, and of which record. */
export function seal(keyring: Keyring, random: Random, subject: string, text: string): Envelope {
  const dataKey = random.fill(new Uint8Array(KEY_BYTES));
  const { id, bytes } = keyring.current;
  const envelope = {
    keyId: id,
    sealedKey: encrypt(bytes, random, `${subject} key`, dataKey),
    sealedValue: encrypt(dataKey, random, `${subject} value`, Buffer.from(text, "utf8")),
  };
  dataKey.fill(0);
  return envelope;
}

/** Opens what was sealed for that subject. Throws `CannotOpen`. */
export function open(keyring: Keyring, subject: string, envelope: Envelope): string {
  const dataKey = openKey(keyring, subject, envelope);
  const text = decrypt(dataKey, `${subject} value`, envelope.sealedValue).toString("utf8");
  dataKey.fill(0);
  return text;
}

/** The same envelope under the current key. Throws `CannotOpen`. */
export function sealAnew(keyring: Keyring, random: Random, subject: string, envelope: Envelope): Envelope {
  const dataKey = openKey(keyring, subject, envelope);
  const { id, bytes } = keyring.current;
  const sealedKey = encrypt(bytes, random, `${subject} key`, dataKey);
  dataKey.fill(0);
  return { ...envelope, keyId: id, sealedKey };
}

/** Why a sealed text does not open: never with any part of it. */
export class CannotOpen extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CannotOpen";
  }
}

function openKey(keyring: Keyring, subject: string, { keyId, sealedKey }: Envelope): Buffer {
  const key = keyring.byId(keyId);
  if (key === undefined) throw new CannotOpen(`it is sealed with the key ${keyId}, which is not configured`);
  return decrypt(key.bytes, `${subject} key`, sealedKey);
}

function encrypt(key: Uint8Array, random: Random, associated: string, plain: Uint8Array): string {
  const nonce = random.fill(new Uint8Array(NONCE_BYTES));
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(associated, "utf8"));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString("base64");
}

function decrypt(key: Uint8Array, associated: string, sealed: string): Buffer {
  const bytes = Buffer.from(sealed, "base64");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new CannotOpen("it is damaged");
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(associated, "utf8"));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    // OpenSSL says no more than that, and what it was given must not travel with an error.
    throw new CannotOpen("it is damaged, or was sealed for another record");
  }
}
