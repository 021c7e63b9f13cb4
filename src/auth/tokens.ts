import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Random } from "../core/random.ts";

/**
 * The tokens that this program makes: `engine_<kind>_<secret><checksum>`, as GitHub's are built
 * (https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/). The prefix lets a scanner of
 * repositories and logs find one that leaked; the checksum tells a token from a text that only looks like one, here too,
 * before a database is asked. 256 random bits need no slow hash: what is kept is SHA-256 of the whole.
 */
const KINDS = { access: "at", refresh: "rt", api: "pat", worker: "wt", run: "run", web: "ws" } as const;

export type TokenKind = keyof typeof KINDS;

const SECRET_BYTES = 32;
const SECRET_CHARS = 43;
const CHECKSUM_CHARS = 6;
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export function newToken(kind: TokenKind, random: Random): string {
  const secret = Buffer.from(random.fill(new Uint8Array(SECRET_BYTES)));
  const body = `engine_${KINDS[kind]}_${base62(BigInt(`0x${secret.toString("hex")}`), SECRET_CHARS)}`;
  return body + checksumOf(body);
}

/** Whether it is a token of that kind, as far as can be told without asking anyone. */
export function isToken(kind: TokenKind, text: string): boolean {
  const prefix = `engine_${KINDS[kind]}_`;
  if (text.length !== prefix.length + SECRET_CHARS + CHECKSUM_CHARS || !text.startsWith(prefix)) return false;
  return text.slice(-CHECKSUM_CHARS) === checksumOf(text.slice(0, -CHECKSUM_CHARS));
}

/** What is kept of a token, and looked up. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** What may be shown of a token, so that its owner knows it again. */
export function previewOf(token: string): string {
  return `${token.slice(0, token.lastIndexOf("_") + 1)}…${token.slice(-4)}`;
}

function checksumOf(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_CHARS);
}

function base62(value: bigint, chars: number): string {
  let text = "";
  for (let rest = value; text.length < chars; rest /= 62n) text = (DIGITS[Number(rest % 62n)] ?? "") + text;
  return text;
}
