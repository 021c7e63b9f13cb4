import { createPrivateKey, sign, type JsonWebKey } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CompactSign, exportJWK, generateKeyPair, importJWK, type CompactJWSHeaderParameters, type JWK } from "jose";
import { Provider } from "oidc-provider";

/** A real OpenID provider in this process, whose keys the test has. */
export type TestIssuer = {
  /** As tokens spell it. */
  readonly issuer: string;
  /** Paths that were asked for, but for tokens. */
  readonly asked: string[];
  /** The current public keys, the newest last. */
  readonly publicKeys: JWK[];
  /** A token as the provider itself issues it for a program: its subject is `robot`. */
  grant(): Promise<string>;
  /** A token of these claims, or of any payload, signed as the header says with the newest key of that kind. */
  sign(claims: Claims | string | Uint8Array, header?: Header): Promise<string>;
  /** A token whose header is any text, made of the members that name the key and the algorithm. Signed with RS256. */
  signUnder(claims: Claims, headerOf: (members: string) => string): Promise<string>;
  /** Takes new keys, and keeps the old ones or not. */
  rotate(options?: { keepOld: boolean }): Promise<void>;
  /** Answers nobody until `start`. */
  stop(): Promise<void>;
  start(): Promise<void>;
};

export type TestIssuerOptions = {
  /** Where the issuer is on its host. */
  path?: string;
  /** Where its keys are under that. */
  keysPath?: string;
  /** What tokens that it grants are for, and what else they say. */
  audience?: string;
  claims?: Claims;
};

/** Of each type of key one. */
const ALGORITHMS = ["RS256", "ES256", "Ed25519"] as const;
const CLIENT = { client_id: "robot", client_secret: "a secret of the test" };

type Claims = Record<string, unknown>;
type Header = { alg?: string; kid?: string | undefined; crit?: string[] } & Record<string, unknown>;
type Key = { alg: string; jwk: JWK; privateJwk: JWK };

export async function startIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const { path = "", keysPath = "/jwks", audience = "engine", claims = {} } = options;
  const asked: string[] = [];
  let keys = await newKeys("1");
  let handle: ReturnType<Provider["callback"]>;
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    if (!url.endsWith("/token")) asked.push(url);
    // As one that is mounted under a path.
    Object.assign(request, { originalUrl: url, baseUrl: path, url: url.slice(path.length) });
    void handle(request, response);
  });
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}${path}`;
  const provide = () => {
    handle = new Provider(issuer, configurationOf({ keys, keysPath, audience, claims })).callback();
  };
  provide();
  let generation = 1;
  return {
    issuer,
    asked,
    get publicKeys() {
      return keys.map(({ jwk }) => jwk);
    },
    grant: () => grant(`${issuer}/token`, audience),
    async sign(said, header = {}) {
      const wanted = { RS: "RS256", PS: "RS256", ES: "ES256" }[header.alg?.slice(0, 2) ?? "RS"] ?? "Ed25519";
      const key = keys.findLast(({ alg }) => alg === wanted);
      if (key === undefined) throw new Error(`the issuer has no key for ${wanted}`);
      const { crit: names = [] } = header;
      const all = { alg: key.alg, kid: key.jwk.kid, ...header } as CompactJWSHeaderParameters;
      const payload = said instanceof Uint8Array ? said : Buffer.from(textOf(said));
      const signer = new CompactSign(payload).setProtectedHeader(all);
      // For the tests of tokens that are signed right and mean something else.
      const crit = Object.fromEntries(names.map((name) => [name, true]));
      return await signer.sign(await importJWK(key.privateJwk, all.alg), { crit });
    },
    async signUnder(claims, headerOf) {
      const key = keys.findLast(({ alg }) => alg === "RS256");
      if (key === undefined) throw new Error("the issuer has no key for RS256");
      const header = headerOf(`"alg":"RS256","kid":${JSON.stringify(key.jwk.kid)}`);
      const signed = [header, textOf(claims)].map((part) => Buffer.from(part).toString("base64url")).join(".");
      const privateKey = createPrivateKey({ key: key.privateJwk as JsonWebKey, format: "jwk" });
      return `${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`;
    },
    async rotate({ keepOld } = { keepOld: false }) {
      const added = await newKeys(String(++generation));
      keys = keepOld ? [...keys, ...added] : added;
      provide();
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
    start: () => listen(server, port),
  };
}

function textOf(said: Claims | string): string {
  return typeof said === "string" ? said : JSON.stringify(said);
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

function newKeys(generation: string): Promise<Key[]> {
  return Promise.all(
    ALGORITHMS.map(async (alg) => {
      const pair = await generateKeyPair(alg, { extractable: true });
      const members = { kid: `${alg}-${generation}`, use: "sig" };
      const [jwk, privateJwk] = await Promise.all([exportJWK(pair.publicKey), exportJWK(pair.privateKey)]);
      return { alg, jwk: { ...jwk, ...members }, privateJwk: { ...privateJwk, ...members } };
    }),
  );
}

type ProviderOptions = Required<Omit<TestIssuerOptions, "path">> & { keys: readonly Key[] };

function configurationOf({ keys, keysPath, audience, claims }: ProviderOptions) {
  const resource = { audience, scope: "", accessTokenFormat: "jwt", accessTokenTTL: 600 };
  return {
    clients: [
      {
        ...CLIENT,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys: keys.map(({ privateJwk }) => privateJwk) },
    routes: { jwks: keysPath },
    cookies: { keys: ["a key of the test"] },
    extraTokenClaims: () => claims,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:engine",
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ ...resource, jwt: { sign: { alg: "RS256" } } }),
      },
    },
  };
}

async function grant(url: string, audience: string): Promise<string> {
  const credentials = Buffer.from(`${CLIENT.client_id}:${encodeURIComponent(CLIENT.client_secret)}`);
  const response = await fetch(url, {
    method: "POST",
    headers: { Authorization: `Basic ${credentials.toString("base64")}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: "urn:engine" }),
  });
  const body = (await response.json()) as { access_token?: string };
  if (body.access_token === undefined) throw new Error(`no token for ${audience}: ${JSON.stringify(body)}`);
  return body.access_token;
}
