import { z } from "zod";

import type { Asker } from "../../auth/owner.ts";
import { mayChange, type Credential } from "../credentials.ts";
import { credentialValue } from "../kinds.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { originOf } from "../../server/origin.ts";
import { deleted, deletedResponse } from "../../server/schemas.ts";
import type { CredentialDeps } from "./deps.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** Typed secrets: stored by these routes, and given back by none. */

const MAX_LABEL_CHARS = 200;
const MAX_METADATA_BYTES = 16 * 1024;

const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= MAX_METADATA_BYTES, `has more than ${MAX_METADATA_BYTES} bytes`);

const credential = z.object({
  id: z.string(),
  label: z.string(),
  kind: z.string(),
  preview: z.string().describe("Enough to know it again, and no secret. Not of one that somebody else shares."),
  metadata: z.record(z.string(), z.unknown()).describe("Empty of one that somebody else shares."),
  shared: z.boolean().describe("Others may use it. They are not shown its secret, and do not change it."),
  databases: z.array(z.string()).nullable().describe("Those of the caller who made it; null for all."),
  status: z
    .enum(["ok", "refresh_failed"])
    .describe("`refresh_failed`: the provider would not renew it; connect again."),
  status_detail: z.string().nullable(),
  created_by: z.string(),
  owned_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  expires_at: z.string().nullable(),
});

nameSchemas({ Credential: credential });

const common = { role: "write", tag: "Credentials" } as const;
const idPath = z.object({ id: z.string() });

export const createCredentialRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/credentials",
  summary: "Store a credential, sealed with the operator's key",
  description: "The fields of `value` depend on its `kind`. `metadata` is shown as it is: no secrets there.",
  json: z.strictObject({
    label: z.string().min(1).max(MAX_LABEL_CHARS),
    value: credentialValue,
    metadata: metadata.optional(),
    shared: z.boolean().optional(),
  }),
  responses: [{ status: 200, description: "Stored.", type: "application/json", schema: credential }],
  errors: ["not_configured", "insufficient_storage"],
  handler:
    ({ credentials }: CredentialDeps) =>
    async (call) =>
      jsonResponse(200, bodyOf(await credentials.create(call.json, originOf(call)), call.caller)),
});

export const listCredentialsRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/credentials",
  summary: "The credentials that the caller may use",
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.object({ credentials: z.array(credential) }),
    },
  ],
  errors: ["not_configured"],
  handler:
    ({ credentials }: CredentialDeps) =>
    async ({ caller }) => {
      const found = await credentials.list(caller);
      return jsonResponse(200, { credentials: found.map((one) => bodyOf(one, caller)) });
    },
});

export const getCredentialRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/credentials/{id}",
  summary: "One credential, without its secret",
  params: idPath,
  responses: [{ status: 200, description: "As it is now.", type: "application/json", schema: credential }],
  errors: ["not_found", "not_configured"],
  handler:
    ({ credentials }: CredentialDeps) =>
    async ({ caller, params }) =>
      jsonResponse(200, bodyOf(await credentials.get(params.id, caller), caller)),
});

export const shareCredentialRoute = defineRoute({
  ...common,
  method: "PATCH",
  path: "/v1/credentials/{id}",
  summary: "Say whether others may use a credential",
  description: "For its owner and admins. Jobs of others may name it; they are not shown its secret.",
  params: idPath,
  json: z.strictObject({ shared: z.boolean() }),
  responses: [{ status: 200, description: "As it is now.", type: "application/json", schema: credential }],
  errors: ["not_found", "not_configured", "insufficient_storage"],
  handler:
    ({ credentials }: CredentialDeps) =>
    async (call) => {
      const found = await credentials.share(call.params.id, call.json.shared, originOf(call));
      return jsonResponse(200, bodyOf(found, call.caller));
    },
});

export const deleteCredentialRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/credentials/{id}",
  summary: "Delete a credential",
  params: idPath,
  responses: [deletedResponse],
  errors: ["not_found", "not_configured", "insufficient_storage"],
  handler:
    ({ credentials }: CredentialDeps) =>
    async (call) => {
      await credentials.remove(call.params.id, originOf(call));
      return deleted();
    },
});

function bodyOf(found: Credential, caller: Asker): z.output<typeof credential> {
  const { id, label, kind, status, shared, databases, expiresAtMs } = found;
  const isTheirs = mayChange(caller, found);
  return {
    id,
    label,
    kind,
    preview: isTheirs ? found.preview : "••••",
    status,
    metadata: isTheirs ? { ...found.metadata } : {},
    shared,
    databases: databases === undefined ? null : [...databases],
    status_detail: found.statusDetail ?? null,
    created_by: found.createdBy,
    owned_by: found.owner,
    created_at: new Date(found.createdAtMs).toISOString(),
    updated_at: new Date(found.updatedAtMs).toISOString(),
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
  };
}
