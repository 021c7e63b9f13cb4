import { credentialValue, type CredentialValue } from "../kinds.ts";
import { PROVIDER_NAMES } from "./providers.ts";
import type { OAuthApp, Tokens } from "./token-client.ts";

/** The apps of the operator, by provider. */
export type OAuthApps = Readonly<Record<string, PartialApp>>;
type PartialApp = { readonly [Half in keyof OAuthApp]?: string | undefined };

export type OAuth2Value = Extract<CredentialValue, { kind: "oauth2" }>;

/**
 * The value of a credential that holds these tokens. `app` is the app of the grant where that is not the operator's.
 * Undefined when the provider's tokens are larger than any credential may be.
 */
export function grantOf(provider: string, app: OAuthApp | undefined, tokens: Tokens): OAuth2Value | undefined {
  const { accessToken, refreshToken, scope, expiresAtMs } = tokens;
  const value = credentialValue.safeParse({
    kind: "oauth2",
    provider,
    access_token: accessToken,
    token_type: "bearer",
    ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    ...(scope !== undefined && { scope }),
    ...(expiresAtMs !== undefined && { expires_at: new Date(expiresAtMs).toISOString() }),
    ...(app !== undefined && {
      client_id: app.clientId,
      client_secret: app.clientSecret,
    }),
  });
  return value.success && value.data.kind === "oauth2" ? value.data : undefined;
}

/** What the operator must set for a provider. */
export function appOptionsOf(provider: string): string {
  if (!PROVIDER_NAMES.some((name) => name === provider)) return `oauth.providers.${provider}`;
  const prefix = `ENGINE_OAUTH_${provider.toUpperCase()}`;
  return `${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET`;
}

/** An app of which both halves are there. */
export function wholeApp({ clientId, clientSecret }: PartialApp): OAuthApp | undefined {
  return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret };
}
