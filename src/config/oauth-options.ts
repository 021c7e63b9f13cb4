import * as authKinds from "./auth-kinds.ts";
import * as kinds from "./kinds.ts";
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
  oauthGoogleClientId: clientId("google", "Google"),
  oauthGoogleClientSecret: clientSecret("google", "Google"),
  oauthNotionClientId: clientId("notion", "Notion"),
  oauthNotionClientSecret: clientSecret("notion", "Notion"),
  oauthAtlassianClientId: clientId("atlassian", "Atlassian"),
  oauthAtlassianClientSecret: clientSecret("atlassian", "Atlassian"),
  oauthSlackClientId: clientId("slack", "Slack"),
  oauthSlackClientSecret: clientSecret("slack", "Slack"),
} as const;
