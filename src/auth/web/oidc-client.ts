import type {
  Configuration,
  CustomFetchOptions,
  TokenEndpointResponse,
  TokenEndpointResponseHelpers,
} from "openid-client";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { fetchJson, reasonOf, textOf } from "../jwt/fetch-json.ts";
import type { IssuedTokens } from "../jwt/issued.ts";
import { mayFollow } from "../jwt/published-keys.ts";
import { boundedCode, fetchWithin } from "./fetch-within.ts";
import type { CodeAnswer, GrantOutcome, SignInClient, SignInRequest } from "./sign-in-client.ts";

export type OidcClientOptions = {
  issuer: string;
  clientId: string;
  /** Undefined for a public client, which PKCE alone protects. */
  clientSecret: string | undefined;
  /** Undefined for the usual ones. */
  scopes: readonly string[] | undefined;
  tokens: Pick<IssuedTokens, "issued">;
  clock: Clock;
};

/** `offline_access` brings the refresh token, of issuers that know the word. */
const USUAL_SCOPES = ["openid", "profile", "email"];
const OFFLINE = "offline_access";

const KNOWN_MS = 5 * 60_000;
/** As for all tokens: see `jwt/verifier.ts`. */
const SKEW_SECS = 60;

const texts = z.array(z.string()).optional();
const metadata = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  jwks_uri: z.string().optional(),
  scopes_supported: texts,
  token_endpoint_auth_methods_supported: texts,
  id_token_signing_alg_values_supported: texts,
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

type Metadata = z.output<typeof metadata>;

/** Error codes of a token endpoint that speak of the grant, and not of this program's own request (RFC 6749 §5.2). */
const PASSING = new Set(["server_error", "temporarily_unavailable"]);
const FINAL = new Set(["invalid_grant", "access_denied", "interaction_required", "login_required", "consent_required"]);

/**
 * Signs in with an OpenID Connect issuer: the authorization code flow with PKCE, `state` and `nonce`
 * (OpenID Connect Core 1.0 §3.1, RFC 9700). Who it is says the ID token, which is verified as every token is here, but for
 * the client as its audience.
 */
export class OidcClient implements SignInClient {
  readonly issuer: string;
  readonly #options: OidcClientOptions;
  #known: { metadata: Promise<Metadata>; atMs: number } | undefined;

  constructor(options: OidcClientOptions) {
    this.#options = options;
    this.issuer = options.issuer;
  }

  async authorizationUrl({ redirectUri, state, nonce, verifier }: SignInRequest): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("openid-client");
    const found = await this.#metadata().catch((error: unknown) => {
      throw new EngineError("unavailable", `the issuer cannot be asked where to sign in: ${messageOf(error)}`, {
        headers: { "Retry-After": "5" },
      });
    });
    const asked = {
      redirect_uri: redirectUri,
      scope: this.#scopes(found).join(" "),
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    };
    return buildAuthorizationUrl(await this.#configuration(found), asked).href;
  }

  async exchange({ code, iss }: CodeAnswer, { redirectUri, state, nonce, verifier }: SignInRequest) {
    const { authorizationCodeGrant } = await import("openid-client");
    const answered = new URL(redirectUri);
    for (const [name, value] of Object.entries({ code, state, iss })) {
      if (value !== undefined) answered.searchParams.set(name, value);
    }
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    return await this.#grant((configuration) => authorizationCodeGrant(configuration, answered, checks));
  }

  async refresh(refreshToken: string): Promise<GrantOutcome> {
    const { refreshTokenGrant } = await import("openid-client");
    return await this.#grant((configuration) => refreshTokenGrant(configuration, refreshToken));
  }

  issued(token: string) {
    return this.#options.tokens.issued(token, this.#options.clientId);
  }

  async #grant(
    ask: (configuration: Configuration) => Promise<TokenEndpointResponse & TokenEndpointResponseHelpers>,
  ): Promise<GrantOutcome> {
    const { ClientError, ResponseBodyError } = await import("openid-client");
    try {
      const { id_token: token, refresh_token: refreshToken } = await ask(
        await this.#configuration(await this.#metadata()),
      );
      return { kind: "granted", token, refreshToken };
    } catch (error) {
      if (error instanceof ResponseBodyError) {
        const code = boundedCode(error.error);
        if (FINAL.has(code)) return { kind: "refused", error: code };
        return { kind: PASSING.has(code) ? "unreachable" : "invalid", reason: code };
      }
      if (error instanceof NoAnswer) return { kind: "unreachable", reason: error.message };
      if (!(error instanceof ClientError)) throw error;
      const { cause } = error;
      if (cause instanceof NoAnswer) return { kind: "unreachable", reason: cause.message };
      // Its messages hold nothing that the issuer sent, and those of what it was caused by may.
      return { kind: "invalid", reason: error.message };
    }
  }

  #scopes({ scopes_supported: supported }: Metadata): readonly string[] {
    const { scopes } = this.#options;
    if (scopes !== undefined) return scopes.includes("openid") ? scopes : ["openid", ...scopes];
    // Some issuers refuse a request with a scope that they do not know.
    return supported?.includes(OFFLINE) === true ? [...USUAL_SCOPES, OFFLINE] : USUAL_SCOPES;
  }

  /** What the issuer publishes, asked for when somebody signs in and again after a while. Rejects with `NoAnswer`. */
  async #metadata(): Promise<Metadata> {
    const { clock } = this.#options;
    if (this.#known === undefined || clock.monotonicMs() - this.#known.atMs >= KNOWN_MS) {
      this.#known = { metadata: this.#discovered(), atMs: clock.monotonicMs() };
    }
    const { metadata: known } = this.#known;
    try {
      return await known;
    } catch (error) {
      if (this.#known?.metadata === known) this.#known = undefined;
      throw error;
    }
  }

  async #discovered(): Promise<Metadata> {
    const { issuer, clock } = this.#options;
    const url = new URL(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
    const text = await fetchJson(url, clock).catch((error: unknown) => {
      throw new NoAnswer(messageOf(error));
    });
    const found = metadata.safeParse(text);
    if (!found.success || found.data.issuer !== issuer) {
      throw new NoAnswer(`${url.href} is no configuration of the issuer ${issuer} that names where to sign in`);
    }
    const { authorization_endpoint: authorization, token_endpoint: token } = found.data;
    for (const endpoint of [authorization, token]) {
      const parsed = URL.parse(endpoint);
      if (parsed === null || !mayFollow(new URL(issuer), parsed)) {
        throw new NoAnswer(`${url.href} names an endpoint that is not https`);
      }
    }
    return found.data;
  }

  async #configuration(server: Metadata): Promise<Configuration> {
    const openid = await import("openid-client");
    const { clientId, clientSecret, issuer, clock } = this.#options;
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const secretAuth = methods.includes("client_secret_post") ? openid.ClientSecretPost : openid.ClientSecretBasic;
    const authentication = clientSecret === undefined ? openid.None() : secretAuth(clientSecret);
    const client = { [openid.clockTolerance]: SKEW_SECS };
    const configuration = new openid.Configuration(definedOf(server), clientId, client, authentication);
    configuration[openid.customFetch] = (url, request) => fetchGrant(clock, url, request);
    // `fetchWithin` has a limit by the clock that is passed in.
    configuration.timeout = 0;
    // An issuer on this machine; all others are https.
    if (issuer.startsWith("http://")) openid.allowInsecureRequests(configuration);
    return configuration;
  }
}

/** Messages hold nothing that the issuer sent. */
class NoAnswer extends Error {}

/** Without what the issuer does not say. */
function definedOf({ issuer, authorization_endpoint, token_endpoint, ...rest }: Metadata) {
  const said = Object.entries(rest).filter(([, value]) => value !== undefined);
  return { issuer, authorization_endpoint, token_endpoint, ...(Object.fromEntries(said) as Record<string, string[]>) };
}

async function fetchGrant(clock: Clock, url: string, { body, headers, method }: CustomFetchOptions): Promise<Response> {
  if (!(body instanceof URLSearchParams)) throw new Error("a token request is a form");
  return await fetchWithin(clock, url, { method, headers, body, redirect: "manual" }, async (response) => {
    const text = await textOf(response);
    return new Response(text, { status: response.status, headers: { "content-type": "application/json" } });
  }).catch((error: unknown) => {
    throw new NoAnswer(reasonOf(error));
  });
}
