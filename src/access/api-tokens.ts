import { z } from "zod";

import type { ApiToken } from "../auth/api-tokens.ts";
import { EngineError } from "../core/errors.ts";
import { checkName } from "../core/names.ts";
import { rfc3339ToNs } from "../format/time-text.ts";
import { defineRoute, jsonResponse } from "../server/route.ts";
import { callerRole } from "../server/schemas.ts";
import { originOf, secret } from "../server/origin.ts";
import type { AccessDeps } from "./deps.ts";
import { deleted, deletedResponse } from "../server/schemas.ts";
import { nameSchemas } from "../server/schema-names.ts";

/** Long-lived tokens for programs. */

const MAX_NAME_CHARS = 200;
const MAX_DATABASES = 100;

const apiToken = z.object({
  id: z.string(),
  name: z.string(),
  preview: z.string().describe("The beginning and the end of the token."),
  owner: z.string(),
  role: callerRole,
  databases: z.array(z.string()).nullable().describe("Those that the token is limited to; null for all."),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable().describe("To the minute."),
});

nameSchemas({ ApiToken: apiToken });

export const createTokenRoute = defineRoute({
  method: "POST",
  path: "/v1/auth/tokens",
  role: "read",
  tag: "Authentication",
  summary: "Make a long-lived token",
  description: "Its role and databases must not pass the caller's own. The token is in this answer and in no other.",
  json: z.strictObject({
    name: z.string().min(1).max(MAX_NAME_CHARS),
    role: callerRole.default("read"),
    databases: z.array(z.string()).min(1).max(MAX_DATABASES).optional(),
    expires_at: z
      .string()
      .refine((text) => rfc3339ToNs(text) !== undefined, "accepted is an RFC 3339 time")
      .optional()
      .describe("RFC 3339 time; without it the token ends when it is revoked."),
  }),
  responses: [
    {
      status: 200,
      description: "Made.",
      type: "application/json",
      schema: apiToken.extend({ token: z.string().describe("Shown this once.") }),
    },
  ],
  errors: ["conflict", "invalid_name", "invalid_parameter", "insufficient_storage"],
  handler:
    ({ apiTokens, clock }: AccessDeps) =>
    async (call) => {
      const { name, role, databases, expires_at: expiresAt } = call.json;
      for (const database of databases ?? []) checkName("database", database);
      const expiresAtMs = expiresAt === undefined ? undefined : Number((rfc3339ToNs(expiresAt) ?? 0n) / 1_000_000n);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.nowMs()) {
        throw new EngineError("invalid_parameter", "expires_at is in the past");
      }
      const made = await apiTokens.create({ name, role, databases, expiresAtMs }, originOf(call));
      return secret(200, { ...bodyOf(made.record), token: made.token });
    },
});

export const listTokensRoute = defineRoute({
  method: "GET",
  path: "/v1/auth/tokens",
  role: "read",
  tag: "Authentication",
  summary: "The caller's long-lived tokens; an administrator sees all",
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.object({ tokens: z.array(apiToken) }),
    },
  ],
  errors: [],
  handler:
    ({ apiTokens }: AccessDeps) =>
    async ({ caller }) =>
      jsonResponse(200, { tokens: (await apiTokens.list(caller)).map(bodyOf) }),
});

export const revokeTokenRoute = defineRoute({
  method: "DELETE",
  path: "/v1/auth/tokens/{id}",
  role: "read",
  tag: "Authentication",
  summary: "Revoke a token of the caller's; an administrator may revoke any",
  params: z.object({ id: z.string() }),
  responses: [deletedResponse],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ apiTokens }: AccessDeps) =>
    async (call) => {
      await apiTokens.revoke(call.params.id, originOf(call));
      return deleted();
    },
});

function bodyOf(token: ApiToken): z.output<typeof apiToken> {
  const { id, name, preview, owner, role, databases } = token;
  return {
    id,
    name,
    preview,
    owner,
    role,
    databases: databases === undefined ? null : [...databases],
    created_at: new Date(token.createdAtMs).toISOString(),
    expires_at: timeOrNull(token.expiresAtMs),
    last_used_at: timeOrNull(token.lastUsedAtMs),
  };
}

function timeOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
