import type { PresetProvider, ProviderSetting, ProviderSettings } from "./option-kinds.ts";
import type { ProviderEntry } from "./directory.ts";
import type { OAuthApps } from "./grant.ts";
import { PROVIDERS, type Provider, type TokenAnswer } from "./providers.ts";

/** The providers that need no more than an app: those of data sources, and those of what sandboxes work with. */
const PRESETS: Readonly<Record<PresetProvider, Provider>> = {
  ...PROVIDERS,
  github: {
    title: "GitHub",
    issuer: "https://github.com/login/oauth",
    authorizationEndpoint: "https://github.com/login/oauth/authorize",
    tokenEndpoint: "https://github.com/login/oauth/access_token",
    deviceAuthorizationEndpoint: "https://github.com/login/device/code",
    parameters: {},
    scopes: {},
    usualScopes: ["repo"],
    constantScopes: [],
    scopeStyle: { parameter: "scope", separator: " " },
    clientAuthentication: "post",
    pkce: true,
    requestBody: "form",
    standardized: standardGitHub,
  },
  microsoft: {
    title: "Microsoft",
    // It is the tenant's, which is only known when somebody has signed in.
    issuer: undefined,
    authorizationEndpoint: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    tokenEndpoint: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    deviceAuthorizationEndpoint: "https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
    parameters: {},
    scopes: {},
    usualScopes: ["openid", "email", "profile", "offline_access"],
    constantScopes: [],
    scopeStyle: { parameter: "scope", separator: " " },
    clientAuthentication: "post",
    pkce: true,
    requestBody: "form",
  },
};

/** What GitHub says where OAuth 2 says `invalid_grant` or `invalid_client`. */
const GITHUB_ERRORS: ReadonlyMap<unknown, string> = new Map([
  ["bad_verification_code", "invalid_grant"],
  ["bad_refresh_token", "invalid_grant"],
  ["incorrect_client_credentials", "invalid_client"],
]);

/** Scopes come separated by commas. */
function standardGitHub({ status, body }: TokenAnswer): TokenAnswer {
  const { error, scope } = body;
  if (error !== undefined) return { status, body: { error: GITHUB_ERRORS.get(error) ?? error } };
  return { status, body: { ...body, scope: typeof scope === "string" ? scope.replaceAll(",", " ") : undefined } };
}

/** All providers by name: those of data sources, and those that the operator describes, over a preset if there is one. */
export function providersOf(settings: ProviderSettings): Readonly<Record<string, ProviderEntry>> {
  const described = Object.entries(settings).map(([name, setting]) => [name, entryOf(name, setting)] as const);
  return { ...PROVIDERS, ...Object.fromEntries(described) };
}

/** The operator's apps with the providers that are described so. */
export function appsOf(settings: ProviderSettings): OAuthApps {
  const apps = Object.entries(settings).map(([name, { client_id: clientId, client_secret: clientSecret }]) => {
    return [name, { clientId, clientSecret }] as const;
  });
  return Object.fromEntries(apps);
}

const GENERAL: Omit<ProviderEntry, "title"> = {
  issuer: undefined,
  authorizationEndpoint: undefined,
  tokenEndpoint: undefined,
  parameters: {},
  scopes: {},
  usualScopes: [],
  constantScopes: [],
  scopeStyle: { parameter: "scope", separator: " " },
  clientAuthentication: "post",
  pkce: true,
  requestBody: "form",
};

function entryOf(name: string, setting: ProviderSetting): ProviderEntry {
  const preset = presetOf(name);
  const base: ProviderEntry = preset === undefined ? { ...GENERAL, title: name } : preset;
  const { issuer, title, scopes, parameters, client_authentication: clientAuthentication, pkce } = setting;
  // Another issuer, as of a company's own GitHub, has other endpoints.
  const known = issuer === undefined ? base : undefined;
  return {
    ...base,
    title: title ?? base.title,
    issuer: issuer ?? issuerOf(base, setting),
    authorizationEndpoint: setting.authorize_url ?? known?.authorizationEndpoint,
    tokenEndpoint: setting.token_url ?? known?.tokenEndpoint,
    deviceAuthorizationEndpoint: setting.device_authorization_url ?? known?.deviceAuthorizationEndpoint,
    usualScopes: scopes ?? base.usualScopes ?? [],
    parameters: parameters ?? base.parameters,
    clientAuthentication: clientAuthentication ?? base.clientAuthentication,
    pkce: pkce ?? base.pkce,
  };
}

/** Whoever authorizes elsewhere than the preset is another issuer. */
function issuerOf(base: ProviderEntry, { authorize_url: url }: ProviderSetting): string | undefined {
  return url === undefined || url === base.authorizationEndpoint ? base.issuer : undefined;
}

function presetOf(name: string): Provider | undefined {
  const presets: Readonly<Record<string, Provider>> = PRESETS;
  return Object.hasOwn(presets, name) ? presets[name] : undefined;
}
