import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { TokenBackend } from "../authenticator.ts";
import type { TokenCache } from "../token-cache.ts";
import { judge, type IdpRules } from "./idp-rules.ts";
import type { IdpUsers } from "./idp-users.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { keysUnder } from "./published-keys.ts";
import { createVerifier, isJwt } from "./verifier.ts";

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
export function idpTokens({ url, audience, jwtSecret, rules, users, cache, clock, log }: IdpOptions): TokenBackend {
  const issuer = `${url}/auth/v1`;
  const source = { issuer, clock, log };
  const load = keysUnder(new URL(`${issuer}/.well-known/jwks.json`), source);
  const key = jwtSecret === undefined ? new IssuerKeys({ ...source, load }).key : Buffer.from(jwtSecret);
  const verify = createVerifier({ ...source, audience, key, needed: ["sub"] });
  return {
    recognizes: isJwt,
    authenticate: async (token, from) => {
      const claims = await verify(token);
      if (claims === undefined) return undefined;
      const vouched = judge(claims, rules);
      return await cache.through(JSON.stringify(vouched), () => users.signIn(vouched, from));
    },
  };
}
