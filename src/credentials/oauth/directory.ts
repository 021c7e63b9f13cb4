import { z } from "zod";
import { fetchJson } from "../../auth/jwt/fetch-json.ts";
import { isSafeKeyUrl } from "../../auth/option-kinds.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { appOptionsOf, wholeApp, type OAuthApps } from "./grant.ts";
import type { Provider } from "./providers.ts";
import type { OAuthApp, TokenClientOptions } from "./token-client.ts";

/** A provider, of which an endpoint may be what its issuer publishes (OpenID Connect Discovery). */
export type ProviderEntry = Omit<Provider, "authorizationEndpoint" | "tokenEndpoint"> & {
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
};

export type ProviderDirectoryOptions = {
  providers: Readonly<Record<string, ProviderEntry>>;
  /** The operator's. */
  apps: OAuthApps;
  clock: Clock;
};

/** Endpoints hardly ever move; when they do, nobody has to start the server anew. */
const DISCOVERED_FOR_MS = 3_600_000;

/** The providers that this server can ask, by name, and as whom. */
export class ProviderDirectory {
  readonly #options: ProviderDirectoryOptions;
  readonly #discovered = new Map<string, { provider: Provider; atMs: number }>();

  constructor(options: ProviderDirectoryOptions) {
    this.#options = options;
  }

  /** Throws `not_configured` for a name that stands for none. */
  get(name: string): ProviderEntry {
    const { providers } = this.#options;
    const entry = Object.hasOwn(providers, name) ? providers[name] : undefined;
    if (entry !== undefined) return entry;
    throw new EngineError("not_configured", `there is no provider ${JSON.stringify(name.slice(0, 100))}`);
  }

  /**
   * What it takes to ask the provider, as the operator's app unless another is given. Throws `not_configured` without a
   * provider or an app, `unavailable` when the issuer does not say where it answers.
   */
  async client(name: string, own?: OAuthApp): Promise<TokenClientOptions> {
    const { apps, clock } = this.#options;
    const entry = this.get(name);
    const app = own ?? (Object.hasOwn(apps, name) ? wholeApp(apps[name] ?? {}) : undefined);
    if (app === undefined) {
      throw new EngineError("not_configured", `there is no app for ${entry.title}: it is set by ${appOptionsOf(name)}`);
    }
    return { provider: await this.#complete(name, entry), app, clock };
  }

  async #complete(name: string, entry: ProviderEntry): Promise<Provider> {
    const { clock } = this.#options;
    const { authorizationEndpoint, tokenEndpoint } = entry;
    if (authorizationEndpoint !== undefined && tokenEndpoint !== undefined) {
      return { ...entry, authorizationEndpoint, tokenEndpoint };
    }
    const known = this.#discovered.get(name);
    if (known !== undefined && clock.monotonicMs() - known.atMs < DISCOVERED_FOR_MS) return known.provider;
    const provider = await discovered(entry, clock);
    this.#discovered.set(name, { provider, atMs: clock.monotonicMs() });
    return provider;
  }
}

const endpoint = z.url().refine((url) => isSafeKeyUrl(new URL(url)), "is not https");

const metadata = z.object({
  issuer: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  device_authorization_endpoint: endpoint.optional(),
});

/** What the operator has set stays as it is. */
async function discovered(entry: ProviderEntry, clock: Clock): Promise<Provider> {
  const { title, issuer } = entry;
  if (issuer === undefined) throw new Error(`${title} has neither endpoints nor an issuer`);
  const url = new URL(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const document = await fetchJson(url, clock).catch((error: unknown) => {
    throw unknownEndpoints(title, messageOf(error));
  });
  const published = metadata.safeParse(document);
  if (!published.success) throw unknownEndpoints(title, `${url.href}: ${published.error.issues[0]?.message ?? ""}`);
  const { data } = published;
  // Another's document would send codes and secrets to the other.
  if (data.issuer !== issuer) throw unknownEndpoints(title, `${url.href}: the document is that of another issuer`);
  return {
    ...entry,
    authorizationEndpoint: entry.authorizationEndpoint ?? data.authorization_endpoint,
    tokenEndpoint: entry.tokenEndpoint ?? data.token_endpoint,
    deviceAuthorizationEndpoint: entry.deviceAuthorizationEndpoint ?? data.device_authorization_endpoint,
  };
}

function unknownEndpoints(title: string, reason: string): EngineError {
  return new EngineError("unavailable", `${title} does not say where it answers: ${reason}`);
}
