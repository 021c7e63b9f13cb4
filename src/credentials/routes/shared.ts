import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { secret } from "../../server/origin.ts";
import type { ConnectionDeps } from "./deps.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** What the routes of connected accounts have in common. */

export const BASE_PATH = "/api/v1/oauth";

export const providerPath = z.object({
  provider: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "is no name of a provider")
    .describe("A name of `oauth.providers`."),
});

export const connection = z.object({ credential_id: z.string(), provider: z.string() });

nameSchemas({ Connection: connection });

export function connected(credentialId: string, provider: string): HttpResponse {
  return secret(200, { credential_id: credentialId, provider });
}

/** Throws `not_found` for a name that the operator has not described. */
export function checkIsListed({ listed }: ConnectionDeps, provider: string): void {
  if (!listed.has(provider)) throw new EngineError("not_found", `there is no provider ${provider} in oauth.providers`);
}

/** What the provider's code means for the one who wanted to connect. */
export function refusal(code: string): EngineError {
  if (code === "access_denied") return new EngineError("oauth_denied", "the owner of the account said no");
  return new EngineError("oauth_failed", `the account was not connected: ${code}`);
}
