import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

/**
 * A hosted identity provider on the wire: `/auth/v1/authorize` sends the browser back with a code, `/auth/v1/token` takes
 * the code with PKCE's verifier, and refresh tokens, each once.
 */
export type HostedIdp = {
  readonly url: string;
  /** Who signs in from here on, with which address and role. */
  account: { id: string; email: string; role?: string };
  readonly closed: Set<string>;
  /** The names of the providers that browsers have chosen. */
  readonly chosen: string[];
  /** The key that was shown with each request for tokens. */
  readonly keys: (string | undefined)[];
  stop(): Promise<void>;
};

export const PUBLIC_KEY = "public-key-of-the-project";

type Account = HostedIdp["account"];

export async function startHostedIdp(): Promise<HostedIdp> {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "one", use: "sig", alg: "ES256" };
  const codes = new Map<string, { challenge: string; account: Account }>();
  const refreshTokens = new Map<string, Account>();
  const json = (response: ServerResponse, status: number, body: unknown) => {
    response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  };
  const tokens = async (response: ServerResponse, account: Account): Promise<void> => {
    const refreshToken = randomBytes(12).toString("base64url");
    refreshTokens.set(refreshToken, account);
    const accessToken = await new SignJWT({
      email: account.email,
      user_metadata: { email_verified: true, favourite: "a secret of the user" },
      app_metadata: { role: account.role },
    })
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(`${idp.url}/auth/v1`)
      .setAudience("authenticated")
      .setSubject(account.id)
      .setIssuedAt()
      .setExpirationTime("1h")
      .sign(privateKey);
    json(response, 200, {
      access_token: accessToken,
      refresh_token: refreshToken,
      token_type: "bearer",
      expires_in: 3_600,
      user: { id: account.id },
      provider_token: "a token of another provider",
    });
  };
  const authorize = (url: URL, response: ServerResponse): void => {
    const asked = (name: string) => url.searchParams.get(name) ?? "";
    idp.chosen.push(asked("provider"));
    const back = new URL(asked("redirect_to"));
    if (asked("code_challenge_method") !== "s256") {
      back.searchParams.set("error", "invalid_request");
    } else {
      const code = randomBytes(12).toString("base64url");
      codes.set(code, { challenge: asked("code_challenge"), account: idp.account });
      back.searchParams.set("code", code);
    }
    response.writeHead(302, { Location: back.href }).end();
  };
  const grant = async (url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    idp.keys.push(request.headers["apikey"]?.toString());
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = JSON.parse(Buffer.concat(pieces).toString()) as Record<string, string>;
    if (url.searchParams.get("grant_type") === "pkce") {
      const found = codes.get(body["auth_code"] ?? "");
      codes.delete(body["auth_code"] ?? "");
      const challenge = createHash("sha256")
        .update(body["code_verifier"] ?? "")
        .digest("base64url");
      if (found?.challenge === challenge) await tokens(response, found.account);
      else json(response, 400, { code: 400, error_code: "bad_code_verifier", msg: "no" });
      return;
    }
    const account = refreshTokens.get(body["refresh_token"] ?? "");
    refreshTokens.delete(body["refresh_token"] ?? "");
    if (account === undefined || idp.closed.has(account.id)) {
      json(response, 400, { code: 400, error_code: "refresh_token_not_found", msg: "no" });
      return;
    }
    // The project may say something else of the account by now.
    await tokens(response, account.id === idp.account.id ? idp.account : account);
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://127.0.0.1");
    if (url.pathname === "/auth/v1/.well-known/jwks.json") json(response, 200, { keys: [jwk] });
    else if (url.pathname === "/auth/v1/authorize") authorize(url, response);
    else if (url.pathname === "/auth/v1/token" && request.method === "POST") void grant(url, request, response);
    else json(response, 404, { msg: "not found" });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const idp: HostedIdp = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    account: { id: "id of ann", email: "ann@x.example" },
    closed: new Set(),
    chosen: [],
    keys: [],
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return idp;
}
