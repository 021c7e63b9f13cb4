import { checkQueryRoute } from "./check.ts";
import { cancelExportRoute, createExportRoute, downloadExportRoute, getExportRoute } from "./exports.ts";
import { endQueryRoute, getQueryRoute, listQueriesRoute } from "./queries.ts";
import { exploreRoute } from "./explore.ts";
import { queryByAddressRoute, queryRoute } from "./query.ts";
import {
  addQueryEngineRoute,
  listQueryEnginesRoute,
  removeQueryEngineRoute,
  testQueryEngineRoute,
} from "./query-engines.ts";
import { schemaRoute } from "./schema.ts";
import { tailRoute } from "./tail.ts";

export const QUERY_ROUTES = [
  queryRoute,
  queryByAddressRoute,
  checkQueryRoute,
  listQueriesRoute,
  getQueryRoute,
  endQueryRoute,
  tailRoute,
  schemaRoute,
  exploreRoute,
];

export const QUERY_ENGINE_ROUTES = [
  addQueryEngineRoute,
  listQueryEnginesRoute,
  testQueryEngineRoute,
  removeQueryEngineRoute,
];

export const EXPORT_ROUTES = [createExportRoute, getExportRoute, cancelExportRoute, downloadExportRoute];
