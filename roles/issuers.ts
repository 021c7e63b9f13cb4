import { AUTH_OPTIONS } from "../src/auth/options.ts";
import { valuesOf } from "../src/config/option.ts";
import type { AuthConfig } from "../src/access/auth-config.ts";
import type { AuditLog } from "../src/auth/audit.ts";
import type { TokenBackend } from "../src/auth/authenticator.ts";
import { IdpUsers } from "../src/auth/jwt/idp-users.ts";
import { idpTokens } from "../src/auth/jwt/idp.ts";
import { oidcTokens } from "../src/auth/jwt/oidc.ts";
import { IdpClient } from "../src/auth/web/idp-client.ts";
import { WebIssuers } from "../src/auth/web/issuers.ts";
import { OidcClient } from "../src/auth/web/oidc-client.ts";
import type { TokenCache } from "../src/auth/token-cache.ts";
import type { RecordStore } from "../src/db/records.ts";
import type { Parts } from "./parts.ts";

export type Issuers = { backends: TokenBackend[]; web: WebIssuers } & Pick<AuthConfig, "identity_provider" | "issuers">;

export type IssuersOptions = { records: RecordStore; audit: AuditLog; cache: TokenCache };

/** Those outside of this program whose tokens are good here, by the backend of the configuration. */
export function createIssuers(parts: Parts, { records, audit, cache }: IssuersOptions): Issuers {
  const { clock, log } = parts;
  const config = valuesOf(AUTH_OPTIONS, parts.config);
  if (config.authBackend === "idp" && config.idpUrl !== undefined) {
    const { idpUrl: url, idpAnonKey, idpProviders, adminEmails, allowedEmailDomains, idpDefaultRole } = config;
    const idp = idpTokens({
      url,
      cache,
      clock,
      log,
      audience: config.idpJwtAud,
      jwtSecret: config.idpJwtSecret,
      rules: { adminEmails, allowedEmailDomains, defaultRole: idpDefaultRole },
      users: new IdpUsers({ ...parts, records, audit }),
    });
    const shown = { url, public_key: idpAnonKey ?? null, providers: [...idpProviders] };
    const client = new IdpClient({ url, publicKey: idpAnonKey, tokens: idp, clock });
    const ways = idpProviders.map((provider) => ({ provider, title: provider, client }));
    return { backends: [idp], web: new WebIssuers(ways, idp), identity_provider: shown, issuers: [] };
  }
  const { oidcIssuers: issuers, oidcRoleClaim, oidcSubjectClaim, oidcDatabasesClaim } = config;
  if (issuers.length === 0) log.warn("ENGINE_OIDC_ISSUERS names no issuer: no token of any issuer is good");
  const oidc = oidcTokens({
    issuers,
    clock,
    log,
    audience: config.oidcAudience,
    claims: { role: oidcRoleClaim, subject: oidcSubjectClaim, databases: oidcDatabasesClaim },
  });
  const { oidcWebClientId: clientId = config.oidcAudience, oidcWebClientSecret, oidcWebScopes } = config;
  const common = { clientId, clientSecret: oidcWebClientSecret, scopes: oidcWebScopes, tokens: oidc, clock };
  const ways = issuers.map((issuer) => {
    // One host may have several, as realms have.
    const title = issuer.replace(/^https?:\/\//, "").replace(/\/$/, "");
    return { provider: issuer, title, client: new OidcClient({ ...common, issuer }) };
  });
  return { backends: [oidc], web: new WebIssuers(ways, oidc), identity_provider: null, issuers: [...issuers] };
}
