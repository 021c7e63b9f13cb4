import { FABRIC_OPTIONS } from "../src/fabric/options.ts";
import { CREDENTIALS_OPTIONS } from "../src/credentials/options.ts";
import { AUTH_OPTIONS } from "../src/auth/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { ApiTokens } from "../src/auth/api-tokens.ts";
import { AuditLog } from "../src/auth/audit.ts";
import { createAuthenticator, type Authenticator, type TokenBackend } from "../src/auth/authenticator.ts";
import { FailureLimit } from "../src/auth/failure-limit.ts";
import { Ownership } from "../src/auth/ownership.ts";
import { Passwords } from "../src/auth/passwords.ts";
import { Sessions } from "../src/auth/sessions.ts";
import { SignIn } from "../src/auth/sign-in.ts";
import { staticTokens } from "../src/auth/static-tokens.ts";
import { TokenCache } from "../src/auth/token-cache.ts";
import { WebIssuers } from "../src/auth/web/issuers.ts";
import { Renewals } from "../src/auth/web/renewal.ts";
import { WebSessions } from "../src/auth/web/web-sessions.ts";
import { WebSignIn } from "../src/auth/web/web-sign-in.ts";
import { Users } from "../src/auth/users.ts";
import { Workers } from "../src/fabric/workers.ts";
import type { Address } from "../src/config/kinds.ts";
import type { AccessDeps } from "../src/access/deps.ts";
import type { ConnectionDeps } from "../src/credentials/routes/deps.ts";
import { Credentials } from "../src/credentials/credentials.ts";
import { isFullKey } from "../src/auth/sealing/keyring.ts";
import { DeviceFlows } from "../src/credentials/oauth/device-flows.ts";
import { ProviderDirectory } from "../src/credentials/oauth/directory.ts";
import { OAuthFlows, type OAuthFlowsOptions } from "../src/credentials/oauth/flows.ts";
import type { OAuthApps } from "../src/credentials/oauth/grant.ts";
import { appsOf, providersOf } from "../src/credentials/oauth/presets.ts";
import { OAuthTokens, type OAuthTokensOptions } from "../src/credentials/oauth/tokens.ts";
import { checkTokens, refuseWeakUser, weakUserOf } from "./exposure.ts";
import { makeFirstUser, usersOfConfiguration } from "./first-user.ts";
import type { Issuers, IssuersOptions } from "./issuers.ts";
import { keyringIn } from "./keyring.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

export type Auth = {
  authenticator: Authenticator;
  /** See `Exposure`. */
  weakUser: string | undefined;
  /** Undefined where there is no catalog. */
  access: (AccessDeps & ConnectionDeps) | undefined;
  /** Undefined where there is no catalog. */
  workers: Workers | undefined;
};

/** Who may call this process, as the configuration says. */
export async function createAuth(parts: Parts, storage: Storage | undefined, listen: Address): Promise<Auth> {
  const { clock, log } = parts;
  const config = valuesOf(AUTH_OPTIONS, parts.config);
  checkTokens(config, listen, log);
  const configured = staticTokens(config.authTokens);
  const apiKeys = staticTokens(config.securityApiKeys, { judges: "its own" });
  const isOn = config.authBackend !== "env" || config.authTokens.length > 0 || config.securityApiKeys.length > 0;
  const failures = new FailureLimit({ clock });
  if (storage === undefined) {
    const authenticator = createAuthenticator({ isOn, backends: [apiKeys, configured], failures });
    return { authenticator, weakUser: undefined, access: undefined, workers: undefined };
  }
  const { records } = storage;
  // In a file of this machine a look-up takes microseconds, and a revocation holds at once.
  const freshMs = config.catalogUrl.kind === "sqlite" ? 0 : undefined;
  const cache = new TokenCache({ clock, ...(freshMs !== undefined && { freshMs }) });
  // Pages show nothing while the catalog is away, and an issuer that is away must not be taken for it.
  const webCache = new TokenCache({ clock, staleMs: 0, ...(freshMs !== undefined && { freshMs }) });
  const onRevoked = () => {
    cache.clear();
    webCache.clear();
  };
  const audit = new AuditLog(records, parts.newId);
  const workers = new Workers({
    ...parts,
    records,
    audit,
    offlineMs: valuesOf(FABRIC_OPTIONS, config).fabricOfflineSecs * 1_000,
  });
  const passwords = new Passwords();
  const users = new Users({ ...parts, records, passwords, audit, onRevoked });
  const sessions = new Sessions({
    ...parts,
    records,
    audit,
    onRevoked,
    accessTtlMs: config.accessTtlSecs * 1_000,
    refreshTtlMs: config.refreshTtlSecs * 1_000,
  });
  const apiTokens = new ApiTokens({
    ...parts,
    records,
    audit,
    onRevoked,
    isOn,
    staticCallers: [...configured.callers, ...apiKeys.callers],
  });
  const issuers = await issuersOf(parts, { records, audit, cache });
  const keyring = keyringIn(config);
  const webIssuers = issuers?.web ?? new WebIssuers();
  const webSessions = new WebSessions({
    ...parts,
    records,
    audit,
    onRevoked,
    apiTokens,
    // Those of the configuration count while the backend lets them in.
    staticTokens: config.authBackend === "env" ? [apiKeys, configured] : [apiKeys],
    issuers: webIssuers,
    renewals: new Renewals({ ...parts, records, audit, keyring, issuers: webIssuers }),
    idleMs: config.refreshTtlSecs * 1_000,
  });
  await makeFirstUser(parts, { users, isOn, listen });
  // While no token is asked for, no password keeps anybody out.
  const weakUser = isOn ? await weakUserOf(usersOfConfiguration(parts), { users, passwords }) : undefined;
  if (weakUser !== undefined && parts.isLocal) refuseWeakUser(weakUser, listen);
  warnOfShortKey(parts);
  const credentials = new Credentials({ ...parts, records, audit, keyring });
  const backends: TokenBackend[] = [apiKeys, cache.before(apiTokens), cache.before(sessions)];
  if (config.internalBearer !== undefined) {
    backends.unshift(
      staticTokens([{ token: config.internalBearer, role: "admin" }], { kind: "internal", judges: "its own" }),
    );
  }
  if (config.authBackend === "env") backends.push(configured);
  if (issuers !== undefined) backends.push(...issuers.backends);
  const authenticator = createAuthenticator({
    isOn,
    backends,
    webSessions: webCache.before(webSessions),
    workers,
    failures,
  });
  const signIn = new SignIn({ users, sessions, webSessions, passwords, audit, clock });
  return {
    authenticator,
    workers,
    weakUser,
    access: {
      users,
      sessions,
      apiTokens,
      audit,
      ownership: new Ownership({ records, audit }),
      clock,
      ...connectionsOf(parts, { ...storage, audit, credentials, keyring }),
      signIn,
      webSessions,
      webSignIn: new WebSignIn({ ...parts, signIn, webSessions, authenticator, issuers: webIssuers, audit }),
      publicOrigin: publicOriginOf(parts),
      authConfig: {
        backend: config.authBackend,
        enabled: isOn,
        password_login: true,
        identity_provider: issuers?.identity_provider ?? null,
        issuers: issuers?.issuers ?? [],
        ways: webIssuers.ways.map(({ provider, title }) => ({ provider, title })),
      },
    },
  };
}

/** Where browsers reach this server, as far as the operator has said so: see `browserAccess`. */
function publicOriginOf({ config, origins }: Parts): string | undefined {
  if (origins["oauthRedirectBase"] === "default") return undefined;
  return new URL(valuesOf(CREDENTIALS_OPTIONS, config).oauthRedirectBase).origin;
}

/** What it takes to check their tokens is loaded where somebody may send some. */
async function issuersOf(parts: Parts, options: IssuersOptions): Promise<Issuers | undefined> {
  const { authBackend } = valuesOf(AUTH_OPTIONS, parts.config);
  if (authBackend !== "idp" && authBackend !== "oidc") return undefined;
  return (await import("./issuers.ts")).createIssuers(parts, options);
}

type OAuthParts = Pick<OAuthFlowsOptions, "records" | "audit" | "credentials" | "keyring"> &
  Pick<OAuthTokensOptions, "catalog">;

function connectionsOf(parts: Parts, options: OAuthParts): ConnectionDeps {
  const config = valuesOf(CREDENTIALS_OPTIONS, parts.config);
  const { oauthRedirectBase: redirectBase, oauthUiReturnBase: oauthReturnBase = redirectBase } = config;
  const providers = new ProviderDirectory({
    ...parts,
    providers: providersOf(config.oauthProviders),
    apps: { ...appsIn(parts), ...appsOf(config.oauthProviders) },
  });
  const common = { ...parts, ...options, providers };
  return {
    oauth: new OAuthFlows({ ...common, redirectBase }),
    oauthReturnBase,
    random: parts.random,
    devices: new DeviceFlows(common),
    tokens: new OAuthTokens(common),
    credentials: options.credentials,
    listed: new Set(Object.keys(config.oauthProviders)),
    redirectUris: config.oauthRedirectUris ?? [],
  };
}

/** Those that have options of their own. */
function appsIn(parts: Parts): OAuthApps {
  const config = valuesOf(CREDENTIALS_OPTIONS, parts.config);
  return {
    google: { clientId: config.oauthGoogleClientId, clientSecret: config.oauthGoogleClientSecret },
    notion: { clientId: config.oauthNotionClientId, clientSecret: config.oauthNotionClientSecret },
    atlassian: { clientId: config.oauthAtlassianClientId, clientSecret: config.oauthAtlassianClientSecret },
    slack: { clientId: config.oauthSlackClientId, clientSecret: config.oauthSlackClientSecret },
  };
}

function warnOfShortKey({ config, log }: Parts): void {
  const { secretKey } = valuesOf(CREDENTIALS_OPTIONS, config);
  if (secretKey === undefined || isFullKey(secretKey)) return;
  log.warn("ENGINE_SECRET_KEY is not 32 bytes in base64 and is hashed: for development only (openssl rand -base64 32)");
}
