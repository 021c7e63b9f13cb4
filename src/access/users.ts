import { z } from "zod";

import type { AuditEntry } from "../auth/audit.ts";
import type { User } from "../auth/users.ts";
import { defineRoute, jsonResponse } from "../server/route.ts";
import { callerRole } from "../server/schemas.ts";
import { originOf } from "../server/origin.ts";
import { deleted, deletedResponse } from "../server/schemas.ts";
import type { AccessDeps } from "./deps.ts";
import { nameSchemas } from "../server/schema-names.ts";

/** Users and the audit log: for administrators whose token is not limited to databases. */

const user = z.object({
  username: z.string(),
  role: callerRole,
  source: z
    .enum(["local", "idp"])
    .describe("`idp`: an identity provider vouches for them; they have no password here."),
  created_at: z.string(),
  updated_at: z.string(),
});

const userPath = z.object({ username: z.string() });
const password = z.string().describe("At least 8 characters.");

const common = { role: "admin", tag: "Users", unscoped: true } as const;

export const listUsersRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/admin/users",
  summary: "All users",
  responses: [
    { status: 200, description: "By name.", type: "application/json", schema: z.object({ users: z.array(user) }) },
  ],
  errors: [],
  handler:
    ({ users }: AccessDeps) =>
    async () =>
      jsonResponse(200, { users: (await users.list()).map(bodyOf) }),
});

export const createUserRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/admin/users",
  summary: "Create a user with a password",
  json: z.strictObject({ username: z.string(), password, role: callerRole.default("read") }),
  responses: [{ status: 200, description: "Created.", type: "application/json", schema: user }],
  errors: ["conflict", "invalid_parameter", "insufficient_storage"],
  handler:
    ({ users }: AccessDeps) =>
    async (call) => {
      const { username: name, password: chosen, role } = call.json;
      return jsonResponse(200, bodyOf(await users.create({ name, password: chosen, role }, originOf(call))));
    },
});

export const changeRoleRoute = defineRoute({
  ...common,
  method: "PATCH",
  path: "/v1/admin/users/{username}",
  summary: "Change the role of a user",
  description: "Their sessions and tokens have the new role from the next request on. The last admin stays one.",
  params: userPath,
  json: z.strictObject({ role: callerRole }),
  responses: [{ status: 200, description: "Changed.", type: "application/json", schema: user }],
  errors: ["not_found", "conflict", "insufficient_storage"],
  handler:
    ({ users }: AccessDeps) =>
    async (call) =>
      jsonResponse(200, bodyOf(await users.setRole(call.params.username, call.json.role, originOf(call)))),
});

export const resetPasswordRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/admin/users/{username}/password",
  summary: "Set the password of a user, and end their sessions",
  params: userPath,
  json: z.strictObject({ password }),
  responses: [{ status: 200, description: "Set.", type: "application/json", schema: user }],
  errors: ["not_found", "conflict", "invalid_parameter", "insufficient_storage"],
  handler:
    ({ users }: AccessDeps) =>
    async (call) => {
      const { username } = call.params;
      return jsonResponse(200, bodyOf(await users.setPassword(username, call.json.password, originOf(call))));
    },
});

export const deleteUserRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/admin/users/{username}",
  summary: "Delete a user, with their sessions and tokens",
  params: userPath,
  responses: [deletedResponse],
  errors: ["not_found", "conflict", "insufficient_storage"],
  handler:
    ({ users }: AccessDeps) =>
    async (call) => {
      await users.remove(call.params.username, originOf(call));
      return deleted();
    },
});

const auditEntry = z.object({
  id: z.string(),
  at: z.string(),
  actor: z.string(),
  actor_kind: z.string(),
  action: z.string(),
  target: z.string(),
  outcome: z.string(),
  address: z.string(),
  request_id: z.string(),
  details: z.unknown(),
});

nameSchemas({ User: user, AuditEntry: auditEntry });

const MAX_ENTRIES = 1_000;
const DEFAULT_ENTRIES = 100;

export const auditRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/admin/audit",
  summary: "Who changed rights, credentials or data sources",
  query: z.object({
    limit: z
      .string()
      .regex(/^[0-9]{1,4}$/, `accepted are integers from 1 to ${MAX_ENTRIES}`)
      .transform(Number)
      .refine((value) => value >= 1 && value <= MAX_ENTRIES, `accepted are integers from 1 to ${MAX_ENTRIES}`)
      .default(DEFAULT_ENTRIES),
    before: z.string().optional().describe("Only entries older than the one of this id: the last of the page before."),
    actor: z.string().optional(),
    action: z.string().optional(),
    target: z.string().optional(),
  }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.object({ entries: z.array(auditEntry) }),
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ audit }: AccessDeps) =>
    async ({ query }) => {
      const entries = await audit.list(query);
      return jsonResponse(200, { entries: entries.map(entryOf) });
    },
});

function entryOf(entry: AuditEntry): z.output<typeof auditEntry> {
  const { id, actor, action, target, outcome, address, details } = entry;
  return {
    id,
    at: new Date(entry.atMs).toISOString(),
    actor,
    actor_kind: entry.actorKind,
    action,
    target,
    outcome,
    address,
    request_id: entry.requestId,
    details,
  };
}

function bodyOf({ name, role, source, createdAtMs, updatedAtMs }: User): z.output<typeof user> {
  const [created, updated] = [new Date(createdAtMs).toISOString(), new Date(updatedAtMs).toISOString()];
  return { username: name, role, source, created_at: created, updated_at: updated };
}
