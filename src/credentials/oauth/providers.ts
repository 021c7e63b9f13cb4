/**
 * The providers that accounts of data sources are connected with, as data: where they answer, what they are asked for,
 * and in which ways they are not what OAuth 2 (RFC 6749) says. With `presets.ts`, which has those of accounts for
 * sandboxes, nothing else in the program knows one provider from another.
 */
export const PROVIDER_NAMES = ["google", "notion", "atlassian", "slack"] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

export type Provider = {
  /** As people call it. */
  readonly title: string;
  /** What the provider calls itself in `iss` (RFC 9207), where it does; undefined where nobody knows. */
  readonly issuer: string | undefined;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  /** Where a flow without a browser begins (RFC 8628); undefined where there are none. */
  readonly deviceAuthorizationEndpoint?: string | undefined;
  /** Further parameters of the authorization request. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Scopes to ask for, by the type of the data source that will read with the grant. */
  readonly scopes: Readonly<Record<string, readonly string[]>>;
  /** Those to ask for where no data source will read with the grant. */
  readonly usualScopes?: readonly string[];
  /** Asked for whatever the caller asks for; without them there is no refresh token. */
  readonly constantScopes: readonly string[];
  /** How scopes travel; undefined where a grant has none, and covers what its owner picks on the provider's page. */
  readonly scopeStyle: { readonly parameter: string; readonly separator: " " | "," } | undefined;
  /** How the client shows its secret at the token endpoint (RFC 6749 §2.3.1). */
  readonly clientAuthentication: "basic" | "post";
  /** Whether it knows PKCE (RFC 7636), or at least does not mind it. */
  readonly pkce: boolean;
  /** How the body of a token request is written: OAuth 2 has forms. */
  readonly requestBody: "form" | "json";
  /** Brings an answer of the token endpoint into the form of RFC 6749 §5, where it has another. */
  readonly standardized?: (answer: TokenAnswer) => TokenAnswer;
};

/** An answer of a token endpoint. */
export type TokenAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

export const PROVIDERS: Readonly<Record<ProviderName, Provider>> = {
  google: {
    title: "Google",
    issuer: "https://accounts.google.com",
    authorizationEndpoint: "https://accounts.google.com/o/oauth2/v2/auth",
    tokenEndpoint: "https://oauth2.googleapis.com/token",
    deviceAuthorizationEndpoint: "https://oauth2.googleapis.com/device/code",
    // A refresh token comes with `offline` only, and after the first grant only when consent is asked for again.
    parameters: { access_type: "offline", prompt: "consent" },
    scopes: {
      drive: ["https://www.googleapis.com/auth/drive.readonly"],
      mail: ["https://www.googleapis.com/auth/gmail.readonly"],
    },
    usualScopes: ["openid", "email", "profile"],
    constantScopes: [],
    scopeStyle: { parameter: "scope", separator: " " },
    clientAuthentication: "post",
    pkce: true,
    requestBody: "form",
  },
  notion: {
    title: "Notion",
    issuer: "https://api.notion.com",
    authorizationEndpoint: "https://api.notion.com/v1/oauth/authorize",
    tokenEndpoint: "https://api.notion.com/v1/oauth/token",
    parameters: { owner: "user" },
    scopes: { notes: [] },
    constantScopes: [],
    scopeStyle: undefined,
    clientAuthentication: "basic",
    // A token request with a member that the API does not know is refused.
    pkce: false,
    requestBody: "json",
  },
  atlassian: {
    title: "Atlassian",
    issuer: "https://auth.atlassian.com",
    authorizationEndpoint: "https://auth.atlassian.com/authorize",
    tokenEndpoint: "https://auth.atlassian.com/oauth/token",
    parameters: { audience: "api.atlassian.com", prompt: "consent" },
    scopes: {
      tracker: ["read:jira-work", "read:jira-user"],
      wiki: ["read:confluence-content.all", "read:confluence-space.summary", "search:confluence"],
    },
    constantScopes: ["offline_access"],
    scopeStyle: { parameter: "scope", separator: " " },
    clientAuthentication: "post",
    pkce: true,
    requestBody: "form",
    standardized: standardAtlassian,
  },
  slack: {
    title: "Slack",
    issuer: "https://slack.com",
    authorizationEndpoint: "https://slack.com/oauth/v2/authorize",
    tokenEndpoint: "https://slack.com/api/oauth.v2.access",
    parameters: {},
    scopes: {
      chat: ["channels:history", "channels:read", "groups:history", "groups:read", "users:read"],
    },
    constantScopes: [],
    // `scope` would be that of a bot; the grant is to read what its owner reads.
    scopeStyle: { parameter: "user_scope", separator: "," },
    clientAuthentication: "post",
    // An app must opt in, and is then no longer asked for its secret.
    pkce: false,
    requestBody: "form",
    standardized: standardSlack,
  },
};

/** What Slack says with `ok: false` where OAuth 2 says `invalid_grant` or `invalid_client`. */
const SLACK_ERRORS: ReadonlyMap<unknown, string> = new Map([
  ...[
    "code_already_used",
    "code_expired",
    "invalid_code",
    "invalid_refresh_token",
    "token_expired",
    "token_revoked",
  ].map((error) => [error, "invalid_grant"] as const),
  ...["bad_client_secret", "invalid_client_id"].map((error) => [error, "invalid_client"] as const),
]);

/** Every answer has the status 200; the grant of a user is a member of its own; its type is not `bearer`. */
function standardSlack({ status, body }: TokenAnswer): TokenAnswer {
  if (body["ok"] === false) return { status: 400, body: { error: SLACK_ERRORS.get(body["error"]) ?? body["error"] } };
  if (body["ok"] !== true) return { status, body };
  const nested = body["authed_user"];
  const hasToken = typeof nested === "object" && nested !== null && "access_token" in nested;
  const grant: Readonly<Record<string, unknown>> = hasToken ? { ...nested } : body;
  const scope = typeof grant["scope"] === "string" ? grant["scope"].replaceAll(",", " ") : undefined;
  return { status, body: { ...grant, token_type: "bearer", scope } };
}

/** A refresh token that ended is `invalid_grant` or `unauthorized_client`, both with the status 403. */
function standardAtlassian({ status, body }: TokenAnswer): TokenAnswer {
  const isEnded = body["error"] === "unauthorized_client" && /refresh_token/.test(String(body["error_description"]));
  return isEnded ? { status: 400, body: { error: "invalid_grant" } } : { status, body };
}
