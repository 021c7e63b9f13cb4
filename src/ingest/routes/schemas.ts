import { z } from "zod";
import { clusterProblem } from "../../catalog/cluster-columns.ts";
import { MISFIT_CODES } from "../../format/ndjson/misfits.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { clusterBy, column } from "../../server/schemas.ts";

/** Bodies of ingest and of the administration of tables. */

export const tablePath = z.object({ database: z.string(), table: z.string() });

export const ingestWarning = z.object({
  code: z
    .enum(MISFIT_CODES)
    .describe(
      "`at_unreadable`: rows whose time could not be read have the time of arrival. `kept_in_props`: values that did " +
        "not fit their column are in `props`.",
    ),
  field: z
    .string()
    .optional()
    .describe(
      "Of `kept_in_props`: the column that the values were for. The one entry for all beyond the first 32 lacks it.",
    ),
  type: z.string().optional().describe("The type of that column."),
  count: z.int().describe("Rows or values."),
  first_line: z.int().describe("1-based line of the body that has the first."),
});

export const ingestAck = z.object({
  snapshot_id: z.string().describe("Catalog snapshot at which the rows are visible; empty while they are staged."),
  extent_count: z.int().describe("Extents that hold the rows."),
  rows_ingested: z.int().describe("Rows committed."),
  bytes_written: z.int().describe("This request's share of the encoded bytes."),
  replayed: z.boolean().describe("True when the idempotency key was already applied; then the body is ignored."),
  staged: z.literal(true).optional().describe("The rows are durable and will become visible (staged mode)."),
  warnings: z
    .array(ingestWarning)
    .optional()
    .describe("What did not fit. Absent when everything did, and of a replay."),
});

const openLagSecs = z
  .int()
  .nullable()
  .describe("Seconds after which rows are published for Iceberg clients; null where the server's configuration says.");

/** The body may be empty. */
export const tableToProvision = z
  .strictObject({
    cluster_by: z
      .array(z.string())
      .superRefine((names, context) => {
        const problem = clusterProblem(DEFAULT_SHAPE, names);
        if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
      })
      .optional()
      .describe(
        "Columns of the default shape by which compaction orders rows of one time; none by default, at most four.",
      ),
    open_lag_secs: z
      .int()
      .min(0)
      .max(86_400)
      .optional()
      .describe(
        "Seconds after which rows are published for Iceberg clients; 0 leaves it to compaction's own pace. Without it " +
          "`ENGINE_ICEBERG_MAX_LAG_SECS` holds.",
      ),
  })
  .default({});

export const tableDescription = z.object({
  database: z.string(),
  table: z.string(),
  columns: z.array(column),
  cluster_by: clusterBy,
  open_lag_secs: openLagSecs,
  row_count: z.int(),
  unpublished_rows: z
    .int()
    .describe("Rows of it that other programs (Iceberg clients) cannot read before they are merged."),
  unpublished_bytes: z.int().describe("Bytes of the extents that those are in."),
});

export const provisionedTable = z.object({
  database: z.string(),
  table: z.string(),
  created: z.boolean(),
  columns: z.array(column),
  cluster_by: clusterBy,
  open_lag_secs: openLagSecs,
});

nameSchemas({
  IngestAcknowledgement: ingestAck,
  TableProvision: tableToProvision,
  Table: tableDescription,
  ProvisionedTable: provisionedTable,
});
