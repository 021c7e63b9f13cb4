import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Origin } from "../audit.ts";
import type { TokenCache } from "../token-cache.ts";
import { memberOf } from "./claims.ts";
import { judge, type IdpRules } from "./idp-rules.ts";
import type { IdpUsers } from "./idp-users.ts";
import { keptClaims, type IssuedTokens } from "./issued.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { keysUnder } from "./published-keys.ts";
import { createVerifier, isJwt, type Claims } from "./verifier.ts";

export type IdpOptions = {
  /** Base address of the provider's project, without a trailing slash. */
  url: string;
  audience: string;
  /** The secret of HS256, and then no key of the provider is good. */
  jwtSecret: string | undefined;
  rules: IdpRules;
  users: IdpUsers;
  /** Remembers users, so that not every request costs a round trip to the catalog. Tokens are checked each time. */
  cache: TokenCache;
  clock: Clock;
  log: Log;
};

/** Tokens of a hosted identity provider, whose bearers become users of the catalog. */
export function idpTokens({ url, audience, jwtSecret, rules, users, cache, clock, log }: IdpOptions): IssuedTokens {
  const issuer = `${url}/auth/v1`;
  const source = { issuer, clock, log };
  const load = keysUnder(new URL(`${issuer}/.well-known/jwks.json`), source);
  const key = jwtSecret === undefined ? new IssuerKeys({ ...source, load }).key : Buffer.from(jwtSecret);
  const verify = createVerifier({ ...source, audience, key, needed: ["sub"] });
  const callerOf = async (claims: Claims, from: Omit<Origin, "caller">) => {
    const vouched = judge(claims, rules);
    return await cache.through(JSON.stringify(vouched), () => users.signIn(vouched, from));
  };
  return {
    recognizes: isJwt,
    authenticate: async (token, from) => {
      const claims = await verify(token);
      return claims && (await callerOf(claims, from));
    },
    issued: async (token) => {
      const claims = await verify(token);
      return claims && { issuer, ...keptClaims(readable(claims), "sub", READ) };
    },
    callerOf: async (issued, from) => (issued.issuer === issuer ? await callerOf(issued.claims, from) : undefined),
  };
}

/** What `judge` reads. */
const READ = ["sub", "iat", "email", "email_verified", "is_anonymous", "user_metadata", "app_metadata"];

/** Of the objects among the claims the members that `judge` reads: the rest is whatever users and apps keep there. */
function readable(claims: Claims): Claims {
  return {
    ...claims,
    user_metadata: { email_verified: memberOf(claims["user_metadata"], "email_verified") },
    app_metadata: { role: memberOf(claims["app_metadata"], "role") },
  };
}
