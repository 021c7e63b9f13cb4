import { z } from "zod";
import { checkProvider, createFields, createRequest, isLabel } from "../requests/create-request.ts";
import { SANDBOX_STATES } from "../../contract/states.ts";
import { originOf } from "../../../server/origin.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { createdOf, createdSandbox, infoOf, itemOf, sandboxInfo, sandboxItem, sandboxPath } from "./bodies.ts";
import { nameSchemas } from "../../../server/schema-names.ts";
import type { SandboxDeps } from "./deps.ts";

/** Isolated machines for coding agents: making, finding and deleting them. */

nameSchemas({ SandboxCreate: createFields });

const MAX_LISTED = 1_000;
const common = { tag: "Sandboxes" } as const;

/** As much as all provisioning scripts together may be, in JSON. */
const MOST_REQUEST_BYTES = 16 * 1024 * 1024;

export const createSandboxRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: "/api/v1/sandboxes",
  summary: "Create a sandbox",
  description:
    "It is made after the answer: its events say how far it is. It is the caller's: others, but for admins, do not " +
    "see it.",
  json: createRequest,
  jsonLimitBytes: MOST_REQUEST_BYTES,
  jsonErrors: { unreadable: "config_error", invalid: "config_validation_error" },
  responses: [{ status: 202, description: "It will be made.", type: "application/json", schema: createdSandbox }],
  errors: [
    "agent_provider_not_found",
    "credential_not_found",
    "sandbox_already_exists",
    "rate_limited",
    "not_configured",
    "insufficient_storage",
    "unavailable",
  ],
  handler:
    ({ sandboxes }: SandboxDeps) =>
    async (call) => {
      checkProvider(call.json);
      const made = await sandboxes.create({ spec: call.json, owner: call.caller, origin: originOf(call) });
      return jsonResponse(202, createdOf(made));
    },
});

export const labelFilters = z
  .string()
  .transform((text, context) => {
    const pairs = text.split(",").map((part): [string, string] => {
      const [name = "", ...value] = part.split("=");
      return [name, value.join("=")];
    });
    if (text.split(",").every((part) => part.includes("=")) && pairs.every(isLabel)) return pairs;
    context.addIssue({ code: "custom", message: "accepted are name=value pairs, separated by commas" });
    return z.NEVER;
  })
  .describe("`name=value` pairs, separated by commas: all of them are to be there.");

export const listSandboxesRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes",
  summary: "List sandboxes",
  description: "The caller's own; admins see all.",
  query: z.object({
    state: z.enum(SANDBOX_STATES).optional(),
    provider: z.string().optional().describe("Those of this agent provider."),
    labels: labelFilters.optional(),
    limit: pageLimit(MAX_LISTED),
    before: pageBefore,
  }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.array(sandboxItem),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ sandboxes }: SandboxDeps) =>
    async ({ caller, request, query }) => {
      const { labels = [], limit: most, ...filter } = query;
      const list = (limit: number) => sandboxes.list({ ...filter, labels, limit }, caller);
      const { items, headers } = await pageOf(request, most, list);
      return jsonResponse(200, items.map(itemOf), headers);
    },
});

export const getSandboxRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes/{id}",
  summary: "Everything about one sandbox",
  params: sandboxPath,
  responses: [{ status: 200, description: "The sandbox.", type: "application/json", schema: sandboxInfo }],
  errors: ["sandbox_not_found"],
  handler:
    ({ sandboxes }: SandboxDeps) =>
    async ({ caller, params }) => {
      const sandbox = await sandboxes.get(params.id, caller);
      // Environment variables may be secrets.
      return jsonResponse(200, infoOf(sandbox, sandboxes.env(sandbox)), { "Cache-Control": "no-store" });
    },
});

export const deleteSandboxRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: "/api/v1/sandboxes/{id}",
  summary: "Delete a sandbox",
  description: "In every state, and for ever. Its volumes stay.",
  params: sandboxPath,
  responses: [{ status: 204, description: "It is gone; its node puts away what is left of it." }],
  errors: ["sandbox_not_found", "insufficient_storage"],
  handler:
    ({ sandboxes }: SandboxDeps) =>
    async (call) => {
      await sandboxes.act(call.params.id, { action: "delete", caller: call.caller, origin: originOf(call) });
      return { status: 204, headers: {} };
    },
});
