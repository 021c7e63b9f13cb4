import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Caller } from "../caller.ts";
import { nameIn, roleIn, scopeIn } from "./claims.ts";
import { keptClaims, type IssuedTokens } from "./issued.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { discoveredKeys } from "./published-keys.ts";
import { claimedIssuer, createVerifier, isJwt, type Claims, type Verify } from "./verifier.ts";

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
export function oidcTokens({ issuers, audience, claims, clock, log }: OidcOptions): IssuedTokens {
  const verifiers = new Map(
    issuers.map((issuer) => {
      const source = { issuer, clock, log };
      const { key } = new IssuerKeys({ ...source, load: discoveredKeys(source) });
      const verifierOf = (wanted: string) =>
        createVerifier({ ...source, audience: wanted, key, needed: [claims.subject] });
      return [issuer, audiences(verifierOf)];
    }),
  );
  const read = ["email_verified", claims.subject, claims.role, claims.databases];
  const verified = async (token: string, wanted: string) => {
    const issuer = claimedIssuer(token) ?? "";
    const said = await verifiers.get(issuer)?.(wanted)(token);
    return said && { issuer, said };
  };
  return {
    recognizes: isJwt,
    authenticate: async (token) => {
      const found = await verified(token, audience);
      return found && callerOf(found.said, found.issuer, claims);
    },
    issued: async (token, wanted = audience) => {
      const found = await verified(token, wanted);
      return found && { issuer: found.issuer, ...keptClaims(found.said, claims.subject, read) };
    },
    callerOf: async ({ issuer, claims: said }) => (verifiers.has(issuer) ? callerOf(said, issuer, claims) : undefined),
  };
}

/** A verifier for each audience, made when it is first asked for: there are two at most. */
function audiences(verifierOf: (audience: string) => Verify): (audience: string) => Verify {
  const known = new Map<string, Verify>();
  return (audience) => {
    const verify = known.get(audience) ?? verifierOf(audience);
    known.set(audience, verify);
    return verify;
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
