import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { TokenBackend } from "../authenticator.ts";
import type { Caller } from "../caller.ts";
import { nameIn, roleIn, scopeIn } from "./claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { discoveredKeys } from "./published-keys.ts";
import { claimedIssuer, createVerifier, isJwt, type Claims } from "./verifier.ts";

export type OidcOptions = {
  /** As tokens spell them. */
  issuers: readonly string[];
  audience: string;
  /** Names of claims. */
  claims: { role: string; subject: string; databases: string };
  clock: Clock;
  log: Log;
};

/**
 * Tokens of OpenID Connect issuers. Callers exist only while they show a token; nothing of them is stored. A caller is
 * called `<issuer>#<subject>`: no issuer has a `#` in its address and no user of the catalog a `:` in the name, so nobody
 * else is called so.
 *
 * `authenticate` rejects with `forbidden` for a good token whose claims give no role, or a limit that cannot be read.
 */
export function oidcTokens({ issuers, audience, claims, clock, log }: OidcOptions): TokenBackend {
  const verifiers = new Map(
    issuers.map((issuer) => {
      const source = { issuer, clock, log };
      const { key } = new IssuerKeys({ ...source, load: discoveredKeys(source) });
      return [issuer, createVerifier({ ...source, audience, key, needed: [claims.subject] })];
    }),
  );
  return {
    recognizes: isJwt,
    authenticate: async (token) => {
      const issuer = claimedIssuer(token) ?? "";
      const said = await verifiers.get(issuer)?.(token);
      return said === undefined ? undefined : callerOf(said, issuer, claims);
    },
  };
}

function callerOf(said: Claims, issuer: string, claims: OidcOptions["claims"]): Caller | undefined {
  const subject = nameIn(said[claims.subject]);
  if (subject === undefined) return undefined;
  if (claims.subject === "email" && said["email_verified"] === false) {
    throw new EngineError("forbidden", "the e-mail address of the token is not verified");
  }
  const role = roleIn(said[claims.role]);
  if (role === undefined) {
    throw new EngineError("forbidden", `the token is valid, but its claim ${claims.role} names no role of this server`);
  }
  const databases = scopeIn(said[claims.databases]);
  if (databases === "malformed") {
    throw new EngineError("forbidden", `the claim ${claims.databases} of the token is no list of databases`);
  }
  return { subject: `${issuer}#${subject}`, kind: "oidc", role, databases };
}
