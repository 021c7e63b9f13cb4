import * as authKinds from "./auth-kinds.ts";
import * as kinds from "./kinds.ts";
import { providerSettings, redirectUris } from "./oauth-kinds.ts";
import { option, optional } from "./option.ts";

const NO_APP = "callers bring their own app";

function clientId(provider: string, title: string) {
  return optional({
    env: `ENGINE_OAUTH_${provider.toUpperCase()}_CLIENT_ID`,
    toml: `oauth.${provider}_client_id`,
    kind: authKinds.claimText,
    whenUnset: NO_APP,
    side: "S",
    doc: `Id of the app at ${title} with which accounts are connected. One that a caller sends is taken before it.`,
  });
}

function clientSecret(provider: string, title: string) {
  return optional({
    env: `ENGINE_OAUTH_${provider.toUpperCase()}_CLIENT_SECRET`,
    toml: `oauth.${provider}_client_secret`,
    kind: authKinds.clientSecret,
    whenUnset: NO_APP,
    side: "S",
    secret: true,
    doc: `Secret of that app at ${title}.`,
  });
}

/** Rows of the table of options: how accounts are connected. */
export const OAUTH_OPTIONS = {
  oauthRedirectBase: option({
    env: "ENGINE_OAUTH_REDIRECT_BASE",
    toml: "oauth.redirect_base",
    kind: authKinds.publicOrigin,
    default: "http://localhost:8080",
    side: "S",
    doc: "Origin under which browsers reach this server. Providers send them back to `<origin>/v1/oauth/<provider>/callback`, which is what an app is registered with.",
  }),
  oauthUiReturnBase: optional({
    env: "ENGINE_OAUTH_UI_RETURN_BASE",
    toml: "oauth.ui_return_base",
    kind: kinds.baseUrl,
    whenUnset: "ENGINE_OAUTH_REDIRECT_BASE",
    side: "S",
    doc: "Address of the user interface: its window is told of the result, and no other, and the page of the result links to it.",
  }),
  oauthProviders: option({
    env: "ENGINE_OAUTH_PROVIDERS",
    toml: "oauth.providers",
    kind: providerSettings,
    default: {},
    side: "S",
    secret: true,
    doc:
      "Providers with which accounts are connected by `/api/v1/oauth/<name>/…`, one table each: `client_id`, " +
      "`client_secret`, and where it is no preset or is to differ from it: `title`, `issuer` (which is asked for the " +
      "endpoints), `authorize_url`, `token_url`, `device_authorization_url`, `scopes`, `parameters`, " +
      "`client_authentication` (`post` or `basic`), `pkce`.",
  }),
  oauthRedirectUris: optional({
    env: "ENGINE_OAUTH_REDIRECT_URIS",
    toml: "oauth.redirect_uris",
    kind: redirectUris,
    whenUnset: "the server's own callback only",
    side: "S",
    doc: "What `redirect_uri` of `/api/v1/oauth/<name>/authorize` may be, besides the server's own callback: one of these, letter by letter.",
  }),
  oauthGoogleClientId: clientId("google", "Google"),
  oauthGoogleClientSecret: clientSecret("google", "Google"),
  oauthNotionClientId: clientId("notion", "Notion"),
  oauthNotionClientSecret: clientSecret("notion", "Notion"),
  oauthAtlassianClientId: clientId("atlassian", "Atlassian"),
  oauthAtlassianClientSecret: clientSecret("atlassian", "Atlassian"),
  oauthSlackClientId: clientId("slack", "Slack"),
  oauthSlackClientSecret: clientSecret("slack", "Slack"),
} as const;
