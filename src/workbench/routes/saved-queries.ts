import { z } from "zod";
import { mayReach } from "../../auth/owner.ts";
import type { Caller } from "../../auth/caller.ts";
import type { FeatureDeps } from "../../feature/feature.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { deleted, deletedResponse, keptText, shortText, timeOf } from "../../server/schemas.ts";
import { WORKBENCH_LIMITS } from "../limits.ts";
import { SavedQueries, type SavedQuery } from "../saved-queries.ts";
import { databaseName, idPath, language, queryText, searched } from "./fields.ts";

const body = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  language,
  text: z.string(),
  database: z.string().describe("In lower case."),
  shared: z.boolean().describe("Others who may use the database read it."),
  is_own: z.boolean().describe("Whether the caller may change it."),
  owned_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});

nameSchemas({ SavedQuery: body });

const PATH = "/v1/saved-queries";
const common = { role: "read", tag: "Workbench" } as const;
const one = (status: number, description: string) => ({ status, description, type: "application/json", schema: body });

const fields = {
  name: shortText(WORKBENCH_LIMITS.nameChars),
  description: keptText(WORKBENCH_LIMITS.descriptionChars),
  language,
  text: queryText,
  database: databaseName,
  shared: z.boolean(),
};

const listRoute = defineRoute({
  ...common,
  method: "GET",
  path: PATH,
  summary: "Saved queries",
  description: "The caller's own and those that others share, of databases that the caller may use.",
  query: z.object({ search: searched, limit: pageLimit(WORKBENCH_LIMITS.listed), before: pageBefore }),
  responses: [
    {
      status: 200,
      description: "The newest first.",
      type: "application/json",
      schema: z.object({ saved_queries: z.array(body) }),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler: (deps: FeatureDeps) => {
    const saved = new SavedQueries(deps);
    return async ({ caller, request, query: { limit: most, ...filter } }) => {
      const { items, headers } = await pageOf(request, most, (limit) => saved.list({ ...filter, limit }, caller));
      return jsonResponse(200, { saved_queries: items.map((found) => bodyOf(found, caller)) }, headers);
    };
  },
});

const createRoute = defineRoute({
  ...common,
  method: "POST",
  path: PATH,
  summary: "Save a query",
  description: "For everybody who may run it: it is the caller's own.",
  json: z.strictObject({
    ...fields,
    description: fields.description.default(""),
    language: language.default("sql"),
    database: databaseName.default("default"),
    shared: z.boolean().default(false),
  }),
  responses: [one(201, "Saved.")],
  errors: ["database_not_found", "conflict", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const saved = new SavedQueries(deps);
    return async ({ caller, json }) => jsonResponse(201, bodyOf(await saved.create(json, caller), caller));
  },
});

const getRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${PATH}/{id}`,
  summary: "A saved query",
  params: idPath,
  responses: [one(200, "As it is now.")],
  errors: ["invalid_parameter", "not_found"],
  handler: (deps: FeatureDeps) => {
    const saved = new SavedQueries(deps);
    return async ({ caller, params }) => jsonResponse(200, bodyOf(await saved.get(params.id, caller), caller));
  },
});

const changeRoute = defineRoute({
  ...common,
  method: "PATCH",
  path: `${PATH}/{id}`,
  summary: "Change a saved query",
  description: "For its owner, and admins of all databases. What is not given stays as it is.",
  params: idPath,
  json: z.strictObject(fields).partial(),
  responses: [one(200, "As it is then.")],
  errors: ["invalid_parameter", "not_found", "database_not_found", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const saved = new SavedQueries(deps);
    return async ({ caller, params, json }) => {
      const given = Object.fromEntries(Object.entries(json).filter(([, value]) => value !== undefined));
      return jsonResponse(200, bodyOf(await saved.change(params.id, given, caller), caller));
    };
  },
});

const removeRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: `${PATH}/{id}`,
  summary: "Delete a saved query",
  params: idPath,
  responses: [deletedResponse],
  errors: ["invalid_parameter", "not_found", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const saved = new SavedQueries(deps);
    return async ({ caller, params }) => {
      await saved.remove(params.id, caller);
      return deleted();
    };
  },
});

export const SAVED_QUERY_ROUTES = [listRoute, createRoute, getRoute, changeRoute, removeRoute];

function bodyOf(found: SavedQuery, caller: Caller): z.input<typeof body> {
  const { id, name, description, language: spoken, text, database, shared, owner } = found;
  return {
    id,
    name,
    description,
    language: spoken,
    text,
    database,
    shared,
    is_own: mayReach(caller, owner),
    owned_by: owner,
    created_at: timeOf(found.createdAtMs),
    updated_at: timeOf(found.updatedAtMs),
  };
}
