import { z } from "zod";
import type { FeatureDeps } from "../../feature/feature.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { deleted, deletedResponse, timeOf } from "../../server/schemas.ts";
import { WORKBENCH_LIMITS } from "../limits.ts";
import { QueryHistory, type HistoryEntry } from "../query-history.ts";
import { databaseName, idPath, language, queryText, searched } from "./fields.ts";

const body = z.object({
  id: z.string(),
  ran_at: z.string(),
  language,
  text: z.string(),
  database: z.string().describe("In lower case."),
  outcome: z.string(),
  rows: z.int().nullable(),
  elapsed_ms: z.int().nullable(),
});

nameSchemas({ QueryHistoryEntry: body });

const PATH = "/v1/query-history";
const DAYS = WORKBENCH_LIMITS.historyMs / 86_400_000;
const common = {
  role: "read",
  tag: "Workbench",
  description: `Of the caller's own queries, the last ${WORKBENCH_LIMITS.historyEntries} of ${DAYS} days.`,
} as const;

const outcome = z.string().regex(/^[a-z_]{1,64}$/, "accepted are `ok` and codes of errors");
const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional();

const listRoute = defineRoute({
  ...common,
  method: "GET",
  path: PATH,
  summary: "Queries that the caller has run",
  query: z.object({ search: searched, limit: pageLimit(WORKBENCH_LIMITS.listed), before: pageBefore }),
  responses: [
    {
      status: 200,
      description: "The newest first.",
      type: "application/json",
      schema: z.object({ queries: z.array(body) }),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler: (deps: FeatureDeps) => {
    const history = new QueryHistory(deps);
    return async ({ caller, request, query: { limit: most, ...filter } }) => {
      const { items, headers } = await pageOf(request, most, (limit) => history.list({ ...filter, limit }, caller));
      return jsonResponse(200, { queries: items.map(bodyOf) }, headers);
    };
  },
});

const addRoute = defineRoute({
  ...common,
  method: "POST",
  path: PATH,
  summary: "Keep that the caller has run a query",
  json: z.strictObject({
    language: language.default("sql"),
    text: queryText,
    database: databaseName.default("default"),
    outcome: outcome.default("ok"),
    rows: count,
    elapsed_ms: count,
  }),
  responses: [{ status: 201, description: "Kept.", type: "application/json", schema: body }],
  errors: ["insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const history = new QueryHistory(deps);
    return async ({ caller, json: { elapsed_ms: elapsedMs, rows, ...ran } }) =>
      jsonResponse(201, bodyOf(await history.add({ ...ran, rows, elapsedMs }, caller)));
  },
});

const forgetRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: `${PATH}/{id}`,
  summary: "Forget one query of the caller's own history",
  params: idPath,
  responses: [deletedResponse],
  errors: ["invalid_parameter", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const history = new QueryHistory(deps);
    return async ({ caller, params }) => {
      await history.forget(caller, params.id);
      return deleted();
    };
  },
});

const forgetAllRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: PATH,
  summary: "Forget the caller's whole history",
  responses: [deletedResponse],
  errors: ["insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const history = new QueryHistory(deps);
    return async ({ caller }) => {
      await history.forget(caller);
      return deleted();
    };
  },
});

export const HISTORY_ROUTES = [listRoute, addRoute, forgetRoute, forgetAllRoute];

function bodyOf({ ranAtMs, rows, elapsedMs, ...entry }: HistoryEntry): z.input<typeof body> {
  return { ...entry, ran_at: timeOf(ranAtMs), rows: rows ?? null, elapsed_ms: elapsedMs ?? null };
}
