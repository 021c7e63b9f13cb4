import { claimText, providerUrl } from "../../auth/option-kinds.ts";
import { bearerToken } from "../../config/kinds.ts";
import { option, optional } from "../../config/option.ts";

const NO_APP = "`engine deploy init` does not ask for an identity provider";

/** The options by which `engine deploy init` reaches the management API of an identity provider. */
export const IDP_OPTIONS = {
  idpApiBase: option({
    env: "ENGINE_IDP_API_BASE",
    toml: "deploy.idp_api_base",
    kind: providerUrl,
    default: "https://api.supabase.com",
    side: "C",
    doc: "Base address of the identity provider's management API (Supabase's, or one of the same shape), which `engine deploy init` uses.",
  }),
  idpOAuthClientId: optional({
    env: "ENGINE_IDP_OAUTH_CLIENT_ID",
    toml: "deploy.idp_oauth_client_id",
    kind: claimText,
    whenUnset: NO_APP,
    side: "C",
    doc: "Id of the OAuth app by which `engine deploy init` signs in to the management API. The app is registered with the redirect addresses `http://127.0.0.1:7791/callback`, `:7792/callback` and `:7793/callback`.",
  }),
  idpOAuthClientSecret: optional({
    env: "ENGINE_IDP_OAUTH_CLIENT_SECRET",
    toml: "deploy.idp_oauth_client_secret",
    kind: { ...bearerToken, label: "client secret" },
    whenUnset: NO_APP,
    side: "C",
    secret: true,
    doc: "Secret of that app.",
  }),
} as const;
