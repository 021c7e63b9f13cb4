import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider as OidcProvider } from "oidc-provider";
import type { Clock } from "../../core/clock.ts";
import { ProviderDirectory } from "./directory.ts";
import type { OAuthApps } from "./grant.ts";
import { PROVIDERS, type Provider } from "./providers.ts";
import type { OAuthApp } from "./token-client.ts";
import { consent } from "../../core/oidc-consent.test-kit.ts";

/** A real authorization server in this process, whose only user grants everything that is asked for. */
export type TestProvider = {
  readonly url: string;
  /** Requests to the token endpoint. */
  readonly tokenRequests: () => number;
  /** How long access tokens last that are made from here on. */
  setTokenTtl(ttlSecs: number): void;
  /** What the token endpoint answers from here on, instead of the server; undefined: the server. */
  answerTokensWith(handler: ((response: ServerResponse) => void) | undefined): void;
  close(): Promise<void>;
};

export const APP: OAuthApp = { clientId: "app-1", clientSecret: "canary-operator-secret" };
export const TENANT_APP: OAuthApp = { clientId: "app-2", clientSecret: "canary-tenant-secret" };

/** A provider as configured, but for where it is. */
export function at(url: string, provider: Provider = PROVIDERS.google): Provider {
  return {
    ...provider,
    issuer: url,
    authorizationEndpoint: `${url}/auth`,
    tokenEndpoint: `${url}/token`,
    deviceAuthorizationEndpoint: `${url}/device/auth`,
    scopes: { drive: ["openid"] },
    constantScopes: ["offline_access"],
  };
}

/** The providers as the program knows them, but for those that are given. */
export function directoryOf(clock: Clock, providers: Readonly<Record<string, Provider>>, apps: OAuthApps) {
  return new ProviderDirectory({ providers: { ...PROVIDERS, ...providers }, apps, clock });
}

export async function startProvider(redirectUris: readonly string[]): Promise<TestProvider> {
  let [requests, ttlSecs] = [0, 3_600];
  let scripted: ((response: ServerResponse) => void) | undefined;
  let respond: (request: IncomingMessage, response: ServerResponse) => Promise<void> = () => Promise.resolve();
  const server = createServer((request, response) => {
    if (request.url === "/token") {
      requests++;
      if (scripted !== undefined) {
        request.resume();
        scripted(response);
        return;
      }
    }
    void respond(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new OidcProvider(
    url,
    configurationOf(redirectUris, () => ttlSecs),
  );
  const handle = provider.callback();
  respond = (request, response) =>
    request.url?.startsWith("/interaction/") === true
      ? consent(provider, "owner", request, response)
      : handle(request, response);
  return {
    url,
    tokenRequests: () => requests,
    setTokenTtl: (seconds) => (ttlSecs = seconds),
    answerTokensWith: (handler) => (scripted = handler),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function configurationOf(redirectUris: readonly string[], ttlSecs: () => number) {
  return {
    clients: [APP, TENANT_APP].map(({ clientId, clientSecret }) => ({
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: redirectUris,
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_post",
    })),
    cookies: { keys: ["a key of the test"] },
    features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true } },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    ttl: {
      AccessToken: ttlSecs,
      DeviceCode: 600,
      Grant: 86_400,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 600,
      IdToken: 600,
    },
  };
}

/** The owner of the account enters the code on the provider's page, and says yes or no there. */
export async function decideOnDevice(url: string, userCode: string, decision: "yes" | "no"): Promise<void> {
  const browser = new TestBrowser();
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const xsrfIn = (page: string) => /name="xsrf" value="([^"]+)"/.exec(page)?.[1] ?? "";
  let page = await (await browser.open(`${url}/device`)).text();
  const send = async (more: Record<string, string>) => {
    const body = new URLSearchParams({ xsrf: xsrfIn(page), user_code: userCode, ...more }).toString();
    return await browser.open(`${url}/device`, { method: "POST", headers, body });
  };
  page = await (await send({})).text();
  const answer = await send(decision === "yes" ? { confirm: "yes" } : { abort: "yes" });
  const next = answer.headers.get("location");
  await answer.body?.cancel();
  if (next !== null) await browser.walkToEnd(new URL(next, url).href);
}

const MAX_HOPS = 20;

/** A browser with a jar of cookies, which is told where to stop following redirects. */
export class TestBrowser {
  readonly #jar = new Map<string, string>();

  /** Keeps the cookies of an answer from that address, as a page's own `fetch` does. */
  keep(url: string, response: Response): void {
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = cookie.split(";").map((part) => part.trim());
      const end = pair.indexOf("=");
      const value = pair.slice(end + 1);
      const key = `${new URL(url).origin} ${pair.slice(0, end)}`;
      if (attributes.includes("Max-Age=0")) this.#jar.delete(key);
      else this.#jar.set(key, value);
    }
  }

  cookies(url: string): string {
    const prefix = `${new URL(url).origin} `;
    const own = [...this.#jar].filter(([key]) => key.startsWith(prefix));
    return own.map(([key, value]) => `${key.slice(prefix.length)}=${value}`).join("; ");
  }

  async open(url: string, init: RequestInit = {}): Promise<Response> {
    const headers = { Accept: "text/html", Cookie: this.cookies(url), ...(init.headers as Record<string, string>) };
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    this.keep(url, response);
    return response;
  }

  /** Follows redirects from there to an address that begins so, which is not opened. */
  async walk(from: string, until: string): Promise<string> {
    let url = from;
    for (let hop = 0; hop < MAX_HOPS; hop++) {
      if (url.startsWith(until)) return url;
      const response = await this.open(url);
      const location = response.headers.get("location");
      if (location === null) throw new Error(`${url} does not lead on: ${response.status} ${await response.text()}`);
      await response.body?.cancel();
      url = new URL(location, url).href;
    }
    throw new Error("too many redirects");
  }

  /** Follows redirects from there to a page. */
  async walkToEnd(from: string): Promise<void> {
    let url = from;
    for (let hop = 0; hop < MAX_HOPS; hop++) {
      const response = await this.open(url);
      const location = response.headers.get("location");
      await response.body?.cancel();
      if (location === null) return;
      url = new URL(location, url).href;
    }
    throw new Error("too many redirects");
  }
}
