import { createHash, createPrivateKey, createPublicKey, sign as signBytes, verify as verifyBytes } from "node:crypto";

/**
 * Signatures in the format of minisign (https://jedisct1.github.io/minisign/), so that anybody can check a release
 * without this program: Ed25519 over the BLAKE2b-512 of the message (`ED`), and over that signature with the trusted
 * comment behind it. Keys are in minisign's files; secret ones without a password (`minisign -G -W`).
 */

/** A signature, or a key, is not good; the message completes "the signature …" or names the key. */
export class SignatureError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SignatureError";
  }
}

export type Verified = {
  /** What the signer says about the message; it is signed too. */
  trustedComment: string;
};

const ALGORITHM = "ED";
const KEY_ALGORITHM = "Ed";
const KEY_ID_BYTES = 8;
const PUBLIC_KEY_BYTES = 2 + KEY_ID_BYTES + 32;
const SIGNATURE_BYTES = 2 + KEY_ID_BYTES + 64;
const UNTRUSTED = "untrusted comment: ";
const TRUSTED = "trusted comment: ";

/** DER before the raw 32 bytes of an Ed25519 key (RFC 8410): SubjectPublicKeyInfo, and PKCS #8. */
const PUBLIC_DER = Buffer.from("302a300506032b6570032100", "hex");
const PRIVATE_DER = Buffer.from("302e020100300506032b657004220420", "hex");

/**
 * Checks that one of the keys has signed the message.
 *
 * @param signatureText the `.minisig` file
 * @param publicKeys each as minisign prints it: base64 of 42 bytes
 * @throws SignatureError
 */
export function verify(message: Uint8Array, signatureText: string, publicKeys: readonly string[]): Verified {
  const lines = signatureText.replace(/\r?\n$/, "").split(/\r?\n/);
  const [untrusted = "", signature64 = "", trusted = "", global64 = ""] = lines;
  if (lines.length !== 4 || !untrusted.startsWith(UNTRUSTED) || !trusted.startsWith(TRUSTED)) {
    throw new SignatureError("is not one of minisign");
  }
  const signature = bytesOf(signature64, SIGNATURE_BYTES);
  const global = bytesOf(global64, 64);
  if (signature === undefined || global === undefined) throw new SignatureError("is not one of minisign");
  if (signature.toString("latin1", 0, 2) !== ALGORITHM) throw new SignatureError("is not over a hash of the file");
  const [id, bare] = [signature.subarray(2, 2 + KEY_ID_BYTES), signature.subarray(2 + KEY_ID_BYTES)];
  const key = publicKeys.map(parsePublicKey).find((one) => one.id.equals(id));
  if (key === undefined) throw new SignatureError("is by a key that this program does not trust");
  const trustedComment = trusted.slice(TRUSTED.length);
  const isGood =
    verifyBytes(null, digestOf(message), key.key, bare) &&
    verifyBytes(null, Buffer.concat([bare, Buffer.from(trustedComment)]), key.key, global);
  if (!isGood) throw new SignatureError("does not fit the file");
  return { trustedComment };
}

/**
 * Signs a message: the text of its `.minisig` file.
 *
 * @param secretKeyText minisign's file with a secret key
 * @param trustedComment one line that is signed too
 * @throws SignatureError for a key that is damaged or has a password
 */
export function sign(message: Uint8Array, secretKeyText: string, trustedComment: string): string {
  if (/[\r\n]/.test(trustedComment)) throw new SignatureError("the trusted comment must be one line");
  const { id, seed } = parseSecretKey(secretKeyText);
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_DER, seed]), format: "der", type: "pkcs8" });
  const bare = signBytes(null, digestOf(message), key);
  const global = signBytes(null, Buffer.concat([bare, Buffer.from(trustedComment)]), key);
  const signature = Buffer.concat([Buffer.from(ALGORITHM), id, bare]);
  return [
    `${UNTRUSTED}signature of an engine release`,
    signature.toString("base64"),
    `${TRUSTED}${trustedComment}`,
    `${global.toString("base64")}\n`,
  ].join("\n");
}

function digestOf(message: Uint8Array): Buffer {
  return createHash("blake2b512").update(message).digest();
}

function parsePublicKey(text: string) {
  const bytes = bytesOf(text, PUBLIC_KEY_BYTES);
  if (bytes === undefined || bytes.toString("latin1", 0, 2) !== KEY_ALGORITHM) {
    throw new SignatureError(`${text} is not a public key of minisign`);
  }
  const raw = bytes.subarray(2 + KEY_ID_BYTES);
  const key = createPublicKey({ key: Buffer.concat([PUBLIC_DER, raw]), format: "der", type: "spki" });
  return { id: bytes.subarray(2, 2 + KEY_ID_BYTES), key };
}

/** Algorithms of signature, password and checksum, salt and two limits of the password; id, seed, public key, checksum. */
const SECRET_HEAD_BYTES = 2 + 2 + 2 + 32 + 8 + 8;
const SECRET_KEY_BYTES = SECRET_HEAD_BYTES + KEY_ID_BYTES + 32 + 32 + 32;

function parseSecretKey(text: string): { id: Buffer; seed: Buffer } {
  const [comment = "", line = ""] = text.split(/\r?\n/);
  const bytes = comment.startsWith(UNTRUSTED) ? bytesOf(line, SECRET_KEY_BYTES) : undefined;
  if (bytes === undefined || bytes.toString("latin1", 0, 2) !== KEY_ALGORITHM) {
    throw new SignatureError("the secret key is not in a file of minisign");
  }
  if (bytes.readUInt16LE(2) !== 0) {
    throw new SignatureError(
      "the secret key has a password: make one without (minisign -G -W), or sign with minisign itself",
    );
  }
  const [idAt, seedAt] = [SECRET_HEAD_BYTES, SECRET_HEAD_BYTES + KEY_ID_BYTES];
  return { id: bytes.subarray(idAt, seedAt), seed: bytes.subarray(seedAt, seedAt + 32) };
}

/** So many bytes in base64 as minisign writes it: `Buffer.from` alone skips what is none. */
function bytesOf(text: string, size: number): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === size && bytes.toString("base64") === text ? bytes : undefined;
}
