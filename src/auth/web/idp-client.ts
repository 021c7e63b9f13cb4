import { createHash } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { reasonOf, textOf } from "../jwt/fetch-json.ts";
import type { IssuedTokens } from "../jwt/issued.ts";
import { boundedCode, fetchWithin } from "./fetch-within.ts";
import type { CodeAnswer, GrantOutcome, SignInClient, SignInRequest } from "./sign-in-client.ts";
import { jsonIn } from "../../core/json-text.ts";

export type IdpClientOptions = {
  /** Base address of the provider's project, without a trailing slash. */
  url: string;
  /** The project's public key, which it asks programs for. */
  publicKey: string | undefined;
  tokens: Pick<IssuedTokens, "issued">;
  clock: Clock;
};

const granted = z.object({ access_token: z.string(), refresh_token: z.string().optional() });
const refused = z.object({ error_code: z.string().optional(), error: z.string().optional() });

/** The statuses of a no that speaks of the grant. 401 speaks of the project's key, and others of what is on the way. */
const FINAL = new Set([400, 403, 404, 422]);

/**
 * Signs in with a hosted identity provider, which itself signs in with others (`provider`). Its flow is that of codes with
 * PKCE, and has no parameter `state` for the program: what the address to come back to has behind its `?` is kept, so
 * the state goes there. Nor has it a nonce; that a code is of this browser's own flow is what the verifier proves.
 */
export class IdpClient implements SignInClient {
  readonly issuer: string;
  readonly #options: IdpClientOptions;

  constructor(options: IdpClientOptions) {
    this.#options = options;
    this.issuer = `${options.url}/auth/v1`;
  }

  authorizationUrl({ provider, redirectUri, state, verifier }: SignInRequest): Promise<string> {
    const back = new URL(redirectUri);
    back.searchParams.set("state", state);
    const asked = {
      provider,
      redirect_to: back.href,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "s256",
    };
    return Promise.resolve(`${this.issuer}/authorize?${new URLSearchParams(asked).toString()}`);
  }

  exchange({ code }: CodeAnswer, { verifier }: SignInRequest): Promise<GrantOutcome> {
    return this.#grant("pkce", { auth_code: code, code_verifier: verifier });
  }

  refresh(refreshToken: string): Promise<GrantOutcome> {
    return this.#grant("refresh_token", { refresh_token: refreshToken });
  }

  issued(token: string) {
    return this.#options.tokens.issued(token);
  }

  async #grant(type: string, body: Readonly<Record<string, string>>): Promise<GrantOutcome> {
    const { clock, publicKey } = this.#options;
    const headers = { "Content-Type": "application/json", ...(publicKey !== undefined && { apikey: publicKey }) };
    const request: RequestInit = { method: "POST", headers, body: JSON.stringify(body), redirect: "manual" };
    try {
      return await fetchWithin(clock, `${this.issuer}/token?grant_type=${type}`, request, outcomeOf);
    } catch (error) {
      return { kind: "unreachable", reason: reasonOf(error) };
    }
  }
}

async function outcomeOf(response: Response): Promise<GrantOutcome> {
  const { status } = response;
  const body = jsonIn(await textOf(response));
  if (status === 200) {
    const found = granted.safeParse(body);
    if (!found.success) return { kind: "invalid", reason: "the answer has no token" };
    return { kind: "granted", token: found.data.access_token, refreshToken: found.data.refresh_token };
  }
  const said = refused.safeParse(body);
  const code = said.data?.error_code ?? said.data?.error;
  if (code === undefined || !FINAL.has(status)) return { kind: "unreachable", reason: `its status is ${status}` };
  return { kind: "refused", error: boundedCode(code) };
}
