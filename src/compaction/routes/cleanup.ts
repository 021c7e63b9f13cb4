import { z } from "zod";
import { existingTable } from "../../auth/existing-table.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { rfc3339ToNs } from "../../format/time-text.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { cleanup } from "../cleanup.ts";

/** What freeing the bytes of deleted extents works with. */
export type CleanupDeps = { catalog: Catalog; store: ObjectStore };

const cleanupResult = z.object({
  extents_deleted: z.int(),
  rows_freed: z.int(),
  bytes_freed: z.int(),
});

nameSchemas({ CleanupResult: cleanupResult });

export const cleanupTableRoute = defineRoute({
  method: "POST",
  path: "/v1/database/{db}/table/{table}/cleanup",
  role: "write",
  tag: "Tables",
  summary: "Delete soft-deleted extents for good",
  description: "Deletes the bytes of extents whose soft deletion happened strictly before `before`.",
  params: z.object({ db: z.string(), table: z.string() }),
  query: z.object({
    before: z
      .string()
      .refine((text) => rfc3339ToNs(text) !== undefined, "accepted is an RFC 3339 time")
      .describe("RFC 3339 time."),
  }),
  responses: [{ status: 200, description: "What was freed.", type: "application/json", schema: cleanupResult }],
  errors: ["table_not_found", "invalid_parameter"],
  handler:
    (deps: CleanupDeps) =>
    async ({ params, query, caller }) => {
      const table = await existingTable(deps.catalog, caller, params.db, params.table);
      const beforeNs = rfc3339ToNs(query.before) ?? 0n;
      // The catalog keeps milliseconds: an instant is strictly before T if it is before T rounded up.
      const beforeMs = Number((beforeNs + 999_999n) / 1_000_000n);
      const freed = await cleanup(deps, table.id, beforeMs);
      return jsonResponse(200, {
        extents_deleted: freed.extents,
        rows_freed: freed.rows,
        bytes_freed: freed.sizeBytes,
      });
    },
});
