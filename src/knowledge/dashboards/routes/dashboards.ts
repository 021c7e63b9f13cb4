import { z } from "zod";
import { matchesWeakly } from "../../../core/etags.ts";
import type { FeatureDeps } from "../../../feature/feature.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import { originOf } from "../../../server/origin.ts";
import { PAGE_HEADERS, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse, type RouteResponse } from "../../../server/route.ts";
import { nameSchemas } from "../../../server/schema-names.ts";
import { deleted, deletedResponse, timeOf } from "../../../server/schemas.ts";
import { Dashboards, etagOf } from "../dashboards.ts";
import {
  dashboardChange,
  dashboardId,
  dashboardName,
  dashboardPanel,
  dashboardQuery,
  dashboardVariable,
  documentFields,
  newDashboard,
} from "../document.ts";
import { DASHBOARD_LIMITS } from "../limits.ts";
import type { Dashboard, DashboardHead, DashboardVersion } from "../store.ts";

const BASE = "/v1/dashboards";

const ABOUT =
  "A dashboard belongs to all who may use every database that its queries run in; to others it does not exist.";

const who = z.string().describe("Who did it, as the owner of a record is called.");
const head = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  version: z.int().describe("Grows by one with every change; the entity tag is this number in quotes."),
  databases: z.array(z.string()).describe("Where its queries run, in lower case."),
  created_at: z.string(),
  created_by: who,
  updated_at: z.string(),
  updated_by: who,
});
const listed = head.extend({ panel_count: z.int() });
const whole = head.extend({ panels: documentFields.panels, settings: documentFields.settings });
const version = z.object({
  version: z.int(),
  saved_at: z.string(),
  saved_by: who,
  databases: z.array(z.string()).describe("Where the queries of that version run."),
});
const wholeVersion = version.extend(documentFields);

nameSchemas({
  Dashboard: whole,
  DashboardHead: listed,
  DashboardVersion: version,
  DashboardDocument: wholeVersion,
  DashboardPanel: dashboardPanel,
  DashboardQuery: dashboardQuery,
  DashboardVariable: dashboardVariable,
  DashboardCreate: newDashboard,
  DashboardChange: dashboardChange,
});

const common = { tag: "Dashboards", description: ABOUT } as const;
const params = z.object({ id: dashboardId });
const versionParams = params.extend({
  version: z
    .string()
    .regex(/^[1-9][0-9]{0,14}$/, "accepted is the number of a version")
    .transform(Number),
});
const ifMatch = z.object({
  "if-match": z
    .string()
    .max(1_000)
    .optional()
    .describe("Entity tags: `precondition_failed` unless the dashboard has one of these."),
});

const tagged = (status: number, description: string): RouteResponse => ({
  status,
  description,
  type: "application/json",
  schema: whole,
  headers: { ETag: "The version, in quotes." },
});
const notFound = ["invalid_parameter", "not_found"] as const;
const changing = [...notFound, "invalid_header", "precondition_failed", "conflict", "insufficient_storage"] as const;

const listRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: BASE,
  summary: "Dashboards",
  query: z.object({
    name: dashboardName.optional().describe("Only those of this name."),
    limit: pageLimit(DASHBOARD_LIMITS.listed),
    before: dashboardId.optional().describe("Only those before this one: the last of the page before."),
  }),
  responses: [
    {
      status: 200,
      description: "Those that the caller may see, the newest first.",
      type: "application/json",
      schema: z.object({ dashboards: z.array(listed) }),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, request, query: { limit: most, ...filter } }) => {
      const list = (limit: number) => dashboards.list({ ...filter, limit }, caller);
      const { items, headers } = await pageOf(request, most, list);
      return jsonResponse(200, { dashboards: items.map(listedBody) }, headers);
    };
  },
});

const createRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: BASE,
  summary: "Create a dashboard",
  json: newDashboard,
  jsonLimitBytes: DASHBOARD_LIMITS.bodyBytes,
  responses: [tagged(201, "The dashboard, at version 1.")],
  errors: ["database_not_found", "conflict", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, json }) => answer(201, await dashboards.create(json, caller));
  },
});

const getRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}`,
  summary: "A dashboard with its panels",
  params,
  headers: z.object({
    "if-none-match": z.string().max(1_000).optional().describe("Entity tags: `304` where it has one of these."),
  }),
  responses: [tagged(200, "The dashboard."), { status: 304, description: "It has not changed." }],
  errors: [...notFound, "invalid_header"],
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, params: { id }, headers: { "if-none-match": known } }) => {
      const found = await dashboards.get(id, caller);
      if (known !== undefined && matchesWeakly(known, etagOf(found))) return { status: 304, headers: headersOf(found) };
      return answer(200, found);
    };
  },
});

const changeRoute = defineRoute({
  ...common,
  role: "write",
  method: "PATCH",
  path: `${BASE}/{id}`,
  summary: "Change a dashboard",
  description: `What is not given stays as it is. What changes nothing makes no version. ${ABOUT}`,
  params,
  headers: ifMatch,
  json: dashboardChange,
  jsonLimitBytes: DASHBOARD_LIMITS.bodyBytes,
  responses: [tagged(200, "As it is then.")],
  errors: [...changing, "database_not_found"],
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, params: { id }, headers, json }) =>
      answer(200, await dashboards.change(id, json, { caller, ifMatch: headers["if-match"] }));
  },
});

const removeRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: `${BASE}/{id}`,
  summary: "Delete a dashboard, with its panels and all its versions",
  params,
  headers: ifMatch,
  responses: [deletedResponse],
  errors: changing,
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async (call) => {
      await dashboards.remove(call.params.id, { origin: originOf(call), ifMatch: call.headers["if-match"] });
      return deleted();
    };
  },
});

const versionsRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}/versions`,
  summary: "Versions of a dashboard",
  description: `The last ${DASHBOARD_LIMITS.versions} are kept, the current one among them. ${ABOUT}`,
  params,
  responses: [
    {
      status: 200,
      description: "The newest first, without those that the caller may not see.",
      type: "application/json",
      schema: z.object({ versions: z.array(version) }),
    },
  ],
  errors: notFound,
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, params: { id } }) =>
      jsonResponse(200, { versions: (await dashboards.versions(id, caller)).map(versionBody) });
  },
});

const versionRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: `${BASE}/{id}/versions/{version}`,
  summary: "A version of a dashboard, with its panels",
  params: versionParams,
  responses: [{ status: 200, description: "As it was saved.", type: "application/json", schema: wholeVersion }],
  errors: notFound,
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, params: wanted }) => {
      const found = await dashboards.version(wanted.id, wanted.version, caller);
      const { panels, ...document } = found.document;
      const body: z.input<typeof wholeVersion> = { ...versionBody(found), ...document, panels: [...panels] };
      return jsonResponse(200, body, PRIVATE);
    };
  },
});

const restoreRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: `${BASE}/{id}/versions/{version}/restore`,
  summary: "Make a version of a dashboard the current one",
  description: `It becomes a new version; those between stay. ${ABOUT}`,
  params: versionParams,
  headers: ifMatch,
  responses: [tagged(200, "As it is then.")],
  errors: changing,
  handler: (deps: FeatureDeps) => {
    const dashboards = new Dashboards(deps);
    return async ({ caller, params: wanted, headers }) => {
      const how = { caller, ifMatch: headers["if-match"] };
      return answer(200, await dashboards.restore(wanted.id, wanted.version, how));
    };
  },
});

export const DASHBOARD_ROUTES = [
  listRoute,
  createRoute,
  getRoute,
  changeRoute,
  removeRoute,
  versionsRoute,
  versionRoute,
  restoreRoute,
];

/** A browser may keep it for its user, and asks whether it has changed. */
const PRIVATE = { "Cache-Control": "private, no-cache" };

function headersOf(dashboard: Dashboard): Record<string, string> {
  return { ...PRIVATE, ETag: etagOf(dashboard) };
}

function answer(status: number, dashboard: Dashboard): HttpResponse {
  const { panels, settings } = dashboard.document;
  const body: z.input<typeof whole> = { ...headBody(dashboard), panels: [...panels], settings };
  return jsonResponse(status, body, headersOf(dashboard));
}

function listedBody(found: DashboardHead): z.input<typeof listed> {
  return { ...headBody(found), panel_count: found.panelCount };
}

function headBody(found: DashboardHead): z.input<typeof head> {
  return {
    id: found.id,
    name: found.name,
    description: found.description,
    version: found.version,
    databases: [...found.databases],
    created_at: timeOf(found.createdAtMs),
    created_by: found.createdBy,
    updated_at: timeOf(found.updatedAtMs),
    updated_by: found.updatedBy,
  };
}

function versionBody(found: DashboardVersion): z.input<typeof version> {
  return {
    version: found.version,
    saved_at: timeOf(found.savedAtMs),
    saved_by: found.savedBy,
    databases: [...found.databases],
  };
}
