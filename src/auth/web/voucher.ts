import type { Issued } from "../jwt/issued.ts";
import { hashToken } from "../tokens.ts";

/**
 * What vouches for a browser's session. A session has no rights of its own: at each request the one who vouches is looked
 * at again, and whoever lost a right there, or is no more, has lost it here by then.
 *
 * | kind | who vouches | the session ends with |
 * |---|---|---|
 * | `password` | a user, by the password of that moment | another password, the user |
 * | `static` | a token of the configuration, by its hash | the token's leaving the configuration |
 * | `api_token` | a token that a caller made | its revocation or its end, or its owner's |
 * | `issuer` | what an issuer's token said | the token; or, with a refresh token, the account there |
 *
 * Kept of a password and of a static token is a hash, of an API token its id, of an issuer's token the claims by which
 * rights are judged. A refresh token is sealed with the operator's key, and the issuer is asked with it once an hour
 * (`renewal.ts`): its answer says who the bearer is by then, and a refusal ends the session. Where there is none, be it
 * for want of a key or of an issuer that gives one, the session ends after `WITHOUT_REFRESH_MS`, however busy it is.
 */
export type Voucher =
  | { kind: "password"; userId: string; version: string }
  | { kind: "static"; hash: string }
  | { kind: "api_token"; tokenId: string }
  | { kind: "issuer"; issued: Issued; refreshToken: string | undefined; lasts: "as the token" | "as the account" };

export type VoucherKind = Voucher["kind"];

export const WITHOUT_REFRESH_MS = 8 * 3_600_000;

/** Names one password of a user: its hash has a salt, so no two are alike, and this says nothing about it. */
export function passwordVersion(passwordHash: string): string {
  return hashToken(passwordHash);
}
