import { z } from "zod";
import type { FeatureDeps } from "../../feature/feature.ts";
import { defineRoute } from "../../server/route.ts";
import { OPEN_TABLES_METRICS } from "../metrics.ts";
import { common, TABLE, tablePath, visibleTable } from "./catalog.ts";
import { clientOf } from "./clients.ts";

/** Tables that have a line of their own in the metric. */
const MOST_TABLES = 100;

/** Clients tell what a scan planned to read. It is counted, and else of no use here. */
export const reportRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${TABLE}/metrics`,
  summary: "Report on a scan",
  params: tablePath,
  json: z.looseObject({ "report-type": z.string().max(100) }),
  responses: [{ status: 204, description: "It is counted." }],
  errors: ["table_not_found", "bad_request_body"],
  handler: ({ catalog, metrics }: FeatureDeps) => {
    const { reports } = OPEN_TABLES_METRICS.of(metrics);
    const known = new Set<string>();
    return async ({ caller, params, request }) => {
      const { database, name } = await visibleTable(catalog, caller, params);
      const table = `${database}.${name}`;
      if (known.size < MOST_TABLES) known.add(table);
      reports.inc({ client: clientOf(request), table: known.has(table) ? table : "other" });
      return { status: 204, headers: {} };
    };
  },
});
