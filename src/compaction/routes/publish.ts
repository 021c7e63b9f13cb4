import { z } from "zod";
import { existingTable } from "../../auth/existing-table.ts";
import type { FeatureDeps } from "../../feature/feature.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { publishNow } from "../publish-now.ts";
import { PublishRequests } from "../publish-requests.ts";

const publishedBody = z.object({
  snapshot_id: z.string().describe("The newest snapshot that other programs see: it has the rows."),
  rows_published: z.int().describe("Rows that waited when it was asked for."),
  pending_rows: z
    .int()
    .describe("Rows that wait now: they came since, or are in finished files of an earlier version."),
});

nameSchemas({ Published: publishedBody });

export const publishRoute = defineRoute({
  method: "POST",
  path: "/v1/admin/databases/{database}/tables/{table}/publish",
  role: "write",
  tag: "Tables",
  summary: "Publish the rows of a table to Iceberg clients now",
  description:
    "Has merged, ahead of everything else, what the table has at the time of the request that other programs cannot read " +
    "yet, and answers when that is done. After 45 seconds it answers 503, and merging goes on; it answers 503 at once where " +
    "extents cannot be merged, and after ten seconds where no server merges.",
  params: z.object({ database: z.string(), table: z.string() }),
  responses: [{ status: 200, description: "The rows are published.", type: "application/json", schema: publishedBody }],
  errors: ["table_not_found", "insufficient_storage"],
  handler: (deps: FeatureDeps) => {
    const requests = new PublishRequests(deps);
    return async ({ caller, params, request }) => {
      const table = await existingTable(deps.catalog, caller, params.database, params.table);
      const done = await publishNow({ ...deps, requests }, table, request.signal);
      return jsonResponse(200, {
        snapshot_id: String(done.snapshotId),
        rows_published: done.rowsPublished,
        pending_rows: done.pendingRows,
      });
    };
  },
});
