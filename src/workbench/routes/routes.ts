import { HISTORY_ROUTES } from "./query-history.ts";
import { SAVED_QUERY_ROUTES } from "./saved-queries.ts";
import { SETTINGS_ROUTES } from "./user-settings.ts";

export const WORKBENCH_ROUTES = [...SAVED_QUERY_ROUTES, ...HISTORY_ROUTES, ...SETTINGS_ROUTES];
