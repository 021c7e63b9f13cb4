import { changesRoute, exportRoute, importRoute } from "./exchange.ts";
import { eraseNodeRoute, getNodeRoute, invalidateNodeRoute, restoreNodeRoute } from "./nodes.ts";
import { changeSettingsRoute, overviewRoute, settingsRoute } from "./overview.ts";
import { recallRoute } from "./query.ts";

export const MEMORY_ROUTES = [
  recallRoute,
  overviewRoute,
  settingsRoute,
  changeSettingsRoute,
  exportRoute,
  importRoute,
  changesRoute,
  getNodeRoute,
  invalidateNodeRoute,
  restoreNodeRoute,
  eraseNodeRoute,
];
