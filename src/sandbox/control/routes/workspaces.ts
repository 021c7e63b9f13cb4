import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { readDecodedBody } from "../../../io/http/decode.ts";
import { labelRecord } from "../requests/create-request.ts";
import { workspaceChange, workspaceFields } from "../workspaces/fields.ts";
import { workspaceOfToml, workspaceToToml } from "../workspaces/toml.ts";
import type { Workspace } from "../workspaces/workspace.ts";
import { originOf } from "../../../server/origin.ts";
import { timeOf } from "../../../server/schemas.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { labelFilters } from "./sandboxes.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** Reusable definitions of environments, which are launched into sandboxes. */

type WorkspaceDeps = Pick<SandboxDeps, "workspaces">;

const BASE = "/api/v1/workspaces";
/** Of a workspace as JSON and as TOML. */
const MOST_BYTES = 256 * 1024;
/** So many may be sent in one answer. */
const MAX_LISTED = 100;
/** Ids of sandboxes. */
const MAX_LAUNCHED = 1_000;

const common = { tag: "Workspaces" } as const;
const jsonErrors = { unreadable: "config_error", invalid: "config_validation_error" } as const;
const path = z.object({ id: z.string() });

const workspaceBody = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  spec: z.record(z.string(), z.unknown()).describe("What it says of its sandboxes, with every value."),
  labels: z.record(z.string(), z.string()),
  created_at: z.string(),
  updated_at: z.string(),
});

const answer = (status: number, description: string) => ({
  status,
  description,
  type: "application/json",
  schema: workspaceBody,
});

const createRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: BASE,
  summary: "Create a workspace",
  description: "It is the caller's: others, but for admins, do not see it.",
  json: workspaceFields,
  jsonLimitBytes: MOST_BYTES,
  jsonErrors,
  responses: [answer(201, "The workspace.")],
  errors: ["agent_provider_not_found", "rate_limited", "insufficient_storage"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async (call) =>
      sent(201, await workspaces.create(call.json, { ...call, origin: originOf(call) })),
});

const listRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: BASE,
  summary: "List workspaces",
  description: "The caller's own; admins see all.",
  query: z.object({
    name: z.string().optional().describe("A part of the name."),
    labels: labelFilters.optional(),
    limit: pageLimit(MAX_LISTED),
    before: pageBefore,
  }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.array(workspaceBody),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async ({ caller, request, query: { labels = [], limit: most, ...filter } }) => {
      const list = (limit: number) => workspaces.list({ ...filter, labels, limit }, caller);
      const { items, headers } = await pageOf(request, most, list);
      return jsonResponse(200, items.map(bodyOf), { ...NO_STORE, ...headers });
    },
});

const getRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}`,
  summary: "Everything about one workspace",
  params: path,
  responses: [answer(200, "The workspace.")],
  errors: ["workspace_not_found"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async ({ caller, params }) =>
      sent(200, await workspaces.get(params.id, caller)),
});

const changeRoute = defineRoute({
  ...common,
  role: "write",
  method: "PUT",
  path: `${BASE}/{id}`,
  summary: "Change a workspace",
  description: "What is not given stays as it is; a spec that is given takes the place of the whole spec.",
  params: path,
  json: workspaceChange,
  jsonLimitBytes: MOST_BYTES,
  jsonErrors,
  responses: [answer(200, "As it is then. Sandboxes that were launched from it stay as they are.")],
  errors: ["workspace_not_found", "agent_provider_not_found", "insufficient_storage"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async (call) => {
      const by = { caller: call.caller, origin: originOf(call) };
      return sent(200, await workspaces.change(call.params.id, call.json, by));
    },
});

const removeRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: `${BASE}/{id}`,
  summary: "Delete a workspace",
  params: path,
  responses: [{ status: 204, description: "It is gone. Sandboxes that were launched from it stay." }],
  errors: ["workspace_not_found", "insufficient_storage"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async (call) => {
      await workspaces.remove(call.params.id, { caller: call.caller, origin: originOf(call) });
      return { status: 204, headers: {} };
    },
});

const launched = z.object({ sandbox_id: z.string(), workspace_id: z.string(), status: z.literal("provisioning") });

nameSchemas({
  Workspace: workspaceBody,
  LaunchedWorkspace: launched,
  WorkspaceCreate: workspaceFields,
  WorkspaceChange: workspaceChange,
});

const launchRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: `${BASE}/{id}/launch`,
  summary: "Make a sandbox from a workspace",
  description: "The sandbox is the caller's. It is made after the answer: its events say how far it is.",
  params: path,
  json: z
    .strictObject({
      name: z.string().optional().describe("What the sandbox is called; nothing by default."),
      labels: labelRecord.optional().describe("Of the sandbox, beside those of the workspace, and before them."),
    })
    .optional(),
  jsonErrors,
  responses: [{ status: 202, description: "It will be made.", type: "application/json", schema: launched }],
  errors: [
    "workspace_not_found",
    "credential_not_found",
    "sandbox_already_exists",
    "rate_limited",
    "not_configured",
    "insufficient_storage",
    "unavailable",
  ],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async (call) => {
      const id = call.params.id;
      const by = { caller: call.caller, origin: originOf(call) };
      const sandbox = await workspaces.launch(id, call.json ?? {}, by);
      return jsonResponse(202, { sandbox_id: sandbox.id, workspace_id: id, status: "provisioning" });
    },
});

const sandboxesRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}/sandboxes`,
  summary: "Sandboxes that were launched from a workspace",
  params: path,
  query: z.object({ limit: pageLimit(MAX_LAUNCHED), before: pageBefore }),
  responses: [
    {
      status: 200,
      description: "Ids of those that are there, newest first.",
      type: "application/json",
      schema: z.array(z.string()),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["workspace_not_found", "invalid_parameter"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async ({ caller, request, params, query: { limit: most, before } }) => {
      const list = async (limit: number) => await workspaces.sandboxes(params.id, { limit, before }, caller);
      const { items, headers } = await pageOf(request, most, list);
      return jsonResponse(
        200,
        items.map(({ id }) => id),
        headers,
      );
    },
});

const TOML = "application/toml";

const exportRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}/export`,
  summary: "A workspace as TOML",
  description: "With its environment variables, which may be secrets.",
  params: path,
  responses: [{ status: 200, description: "What can be imported again.", type: TOML, schema: z.string() }],
  errors: ["workspace_not_found", "unavailable"],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async ({ caller, params }) => {
      const workspace = await workspaces.get(params.id, caller);
      const { closedEnv } = workspace;
      // A file without them would make another workspace.
      if (closedEnv !== undefined) throw new EngineError("unavailable", `its variables cannot be opened: ${closedEnv}`);
      return {
        status: 200,
        headers: { "Content-Type": `${TOML}; charset=utf-8`, ...NO_STORE },
        body: workspaceToToml(workspace),
      };
    },
});

const importRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: `${BASE}/import`,
  summary: "Create a workspace from TOML",
  body: {
    types: ["text/plain", TOML],
    description: "The table `[workspace]`: `name`, `description`, `labels`, and the fields of the spec.",
    limitBytes: MOST_BYTES,
    example: '[workspace]\nname = "app"\n\n[workspace.agent]\nprovider = "codex"\n',
  },
  responses: [answer(201, "The workspace.")],
  errors: [
    "config_validation_error",
    "agent_provider_not_found",
    "unsupported_media_type",
    "body_too_large",
    "rate_limited",
    "insufficient_storage",
  ],
  handler:
    ({ workspaces }: WorkspaceDeps) =>
    async (call) => {
      const bytes = await readDecodedBody(call.request, MOST_BYTES);
      if (!isUtf8(bytes)) throw new EngineError("config_validation_error", "the body is not valid UTF-8");
      const content = workspaceOfToml(Buffer.from(bytes).toString("utf8"));
      return sent(201, await workspaces.create(content, { caller: call.caller, origin: originOf(call) }));
    },
});

export const WORKSPACE_ROUTES = [
  createRoute,
  listRoute,
  getRoute,
  changeRoute,
  removeRoute,
  launchRoute,
  sandboxesRoute,
  exportRoute,
  importRoute,
];

/** Environment variables may be secrets. */
const NO_STORE = { "Cache-Control": "no-store" };

function sent(status: number, workspace: Workspace) {
  return jsonResponse(status, bodyOf(workspace), NO_STORE);
}

/** Variables that cannot be opened are null. */
function bodyOf(workspace: Workspace): z.output<typeof workspaceBody> {
  const { id, name, description = null, spec, labels, closedEnv, createdAtMs, updatedAtMs } = workspace;
  return {
    id,
    name,
    description,
    spec: closedEnv === undefined ? spec : { ...spec, environment: null },
    labels: { ...labels },
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
  };
}
