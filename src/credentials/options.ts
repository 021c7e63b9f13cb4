import { claimText } from "../auth/option-kinds.ts";
import * as kinds from "../config/kinds.ts";
import { option, optional } from "../config/option.ts";
import { clientSecretText, providerSettings, publicOrigin, redirectUris } from "./oauth/option-kinds.ts";

const NO_APP = "callers bring their own app";

function clientId(provider: string, title: string) {
  return optional({
    env: `ENGINE_OAUTH_${provider.toUpperCase()}_CLIENT_ID`,
    toml: `oauth.${provider}_client_id`,
    kind: claimText,
    whenUnset: NO_APP,
    relation: (_id, { values, originOf }) =>
      Object.hasOwn(values["oauthProviders"] as object, provider)
        ? `${originOf(`oauth${title}ClientId`)} and ${provider} in ${originOf("oauthProviders")} both say which app it is: ` +
          "set one of them"
        : undefined,
    side: "S",
    doc: `Id of the app at ${title} with which accounts are connected. One that a caller sends is taken before it.`,
  });
}

function clientSecret(provider: string, title: string) {
  return optional({
    env: `ENGINE_OAUTH_${provider.toUpperCase()}_CLIENT_SECRET`,
    toml: `oauth.${provider}_client_secret`,
    kind: clientSecretText,
    whenUnset: NO_APP,
    side: "S",
    secret: true,
    doc: `Secret of that app at ${title}.`,
  });
}

/** The options of stored credentials, and of accounts that are connected by OAuth. */
export const CREDENTIALS_OPTIONS = {
  secretKey: optional({
    env: "ENGINE_SECRET_KEY",
    toml: "credentials.secret_key",
    kind: kinds.secretKey,
    whenUnset: "credentials cannot be stored, and variables of sandboxes are stored as they are",
    side: "S",
    secret: true,
    doc: "Key that seals credentials and environment variables of sandboxes: 32 random bytes in base64 (`openssl rand -base64 32`), the same on all nodes. Anything shorter is hashed, with a warning: for development only.",
  }),
  secretKeysFormer: option({
    env: "ENGINE_SECRET_KEYS_FORMER",
    toml: "credentials.secret_keys_former",
    kind: kinds.secretKeys,
    default: [],
    side: "S",
    secret: true,
    doc: "Keys that those may still be sealed with, until `engine credentials rotate` has sealed them for ENGINE_SECRET_KEY.",
  }),
  oauthRedirectBase: option({
    env: "ENGINE_OAUTH_REDIRECT_BASE",
    toml: "oauth.redirect_base",
    kind: publicOrigin,
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
