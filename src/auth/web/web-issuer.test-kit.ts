import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";
import { consent } from "../../core/oidc-consent.test-kit.ts";

/** A real OpenID provider in this process that browsers sign in with. Whoever comes is `account`, and agrees to everything. */
export type WebIssuer = {
  readonly issuer: string;
  /** Who signs in from here on, and what ID tokens say of them. */
  account: string;
  claims: Record<string, unknown>;
  /** Whether the issuer gives refresh tokens. */
  givesRefreshTokens: boolean;
  /** Of accounts that were closed, which get no token any more. */
  readonly closed: Set<string>;
  /** The bodies of requests to the token endpoint, in order. */
  readonly tokenRequests: URLSearchParams[];
  /** What the token endpoint answers from here on, instead of the provider; undefined: the provider. */
  answerTokensWith: ((response: ServerResponse) => void) | undefined;
  stop(): Promise<void>;
};

export const WEB_CLIENT = { id: "engine-web", secret: "canary-secret-of-the-client" };

export async function startWebIssuer(redirectUris: readonly string[]): Promise<WebIssuer> {
  let handle: (request: IncomingMessage, response: ServerResponse) => Promise<void> = () => Promise.resolve();
  const server = createServer((request, response) => {
    if (request.method !== "POST" || request.url !== "/token") void handle(request, response);
    else void takeTokenRequest(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer: WebIssuer = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    account: "ann",
    claims: { engine_role: "write" },
    givesRefreshTokens: true,
    closed: new Set(),
    tokenRequests: [],
    answerTokensWith: undefined,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const takeTokenRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    issuer.tokenRequests.push(new URLSearchParams(body.toString()));
    if (issuer.answerTokensWith !== undefined) issuer.answerTokensWith(response);
    // oidc-provider takes a body that somebody has read from there.
    else
      await handle(
        Object.assign(request, { body: Object.fromEntries(new URLSearchParams(body.toString())) }),
        response,
      );
  };
  const provider = new Provider(issuer.issuer, configurationOf(issuer, redirectUris));
  const answer = provider.callback();
  handle = (request, response) =>
    request.url?.startsWith("/interaction/") === true
      ? consent(provider, issuer.account, request, response)
      : answer(request, response);
  return issuer;
}

const DAY_SECS = 86_400;

function configurationOf(issuer: WebIssuer, redirectUris: readonly string[]) {
  return {
    clients: [
      {
        client_id: WEB_CLIENT.id,
        client_secret: WEB_CLIENT.secret,
        redirect_uris: redirectUris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
      },
    ],
    claims: { openid: ["sub", "engine_role", "engine_databases"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["a key of the test"] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context: unknown, id: string) =>
      issuer.closed.has(id) ? undefined : { accountId: id, claims: () => ({ sub: id, ...issuer.claims }) },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => issuer.givesRefreshTokens,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    // Tests move the clock.
    ttl: {
      AccessToken: 600,
      Grant: 30 * DAY_SECS,
      IdToken: 30 * DAY_SECS,
      Interaction: 600,
      RefreshToken: 30 * DAY_SECS,
      Session: 1,
    },
  };
}
