import { z } from "zod";

import { clusterProblem } from "../../catalog/cluster-columns.ts";
import { MISFIT_CODES } from "../../format/ndjson/misfits.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { jsonResponse, type RouteResponse } from "../route.ts";
import { nameSchemas } from "../schema-names.ts";

/** Bodies and headers that several routes share. */

export const errorBody = z
  .object({
    error: z.object({
      code: z.string().describe("Stable code."),
      message: z.string().describe("For people; may change."),
      request_id: z.string(),
      line: z.int().optional().describe("1-based line in the body or query."),
      column: z.union([z.int(), z.string()]).optional().describe("Column name (ingest) or character (query)."),
      suggestion: z.string().optional().describe("A name or an expression that may have been meant."),
      hint: z.string().optional().describe("What to write instead; the message ends with it."),
      budget: z
        .object({ name: z.string(), used: z.int(), allowed: z.int() })
        .optional()
        .describe("Of `budget_exceeded`: which budget, what was used of it, and what was allowed."),
    }),
  })
  .describe("Every error has this shape.");

export const databaseHeader = z.string().default("default").describe("Database.");

/** `true` or `false`, as a header spells it. */
export function flagHeader(defaultValue: boolean, doc: string) {
  return z
    .string()
    .regex(/^(true|false)$/i, "accepted are true and false")
    .default(String(defaultValue))
    .transform((text) => text.toLowerCase() === "true")
    .describe(doc);
}

export const tablePath = z.object({ database: z.string(), table: z.string() });

export const ingestWarning = z.object({
  code: z
    .enum(MISFIT_CODES)
    .describe(
      "`at_unreadable`: rows whose time could not be read have the time of arrival. `value_in_props`: values that did " +
        "not fit their column are in `props`.",
    ),
  column: z
    .string()
    .optional()
    .describe("Of `value_in_props`; absent from the one entry for all columns beyond the first 32."),
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

const column = z.object({ name: z.string(), type: z.string() });
const clusterBy = z.array(z.string()).describe("Columns by which compaction orders rows of one time.");

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
  })
  .default({});

export const tableDescription = z.object({
  database: z.string(),
  table: z.string(),
  columns: z.array(column),
  cluster_by: clusterBy,
  row_count: z.int(),
});

export const provisionedTable = z.object({
  database: z.string(),
  table: z.string(),
  created: z.boolean(),
  columns: z.array(column),
  cluster_by: clusterBy,
});

export const schemaTree = z.object({
  databases: z.array(
    z.object({
      name: z.string(),
      tables: z.array(z.object({ name: z.string(), columns: z.array(column), cluster_by: clusterBy })),
    }),
  ),
});

export const cleanupResult = z.object({
  extents_deleted: z.int(),
  rows_freed: z.int(),
  bytes_freed: z.int(),
});

export const health = z.object({
  status: z.enum(["ok", "draining"]),
  version: z.string(),
  query_confinement: z.string().optional(),
});

/** Of a route that deletes one thing. */
export const deletedResponse: RouteResponse = {
  status: 200,
  description: "Deleted.",
  type: "application/json",
  schema: z.object({ deleted: z.literal(true) }),
};

export function deleted(): HttpResponse {
  return jsonResponse(200, { deleted: true });
}

/** What a page needs to offer signing in. */
export const authConfig = z.object({
  backend: z.enum(["env", "session", "idp", "oidc"]),
  enabled: z.boolean().describe("Whether callers must show a token."),
  password_login: z.boolean().describe("Whether `/v1/auth/login` signs anyone in."),
  identity_provider: z
    .object({ url: z.string(), public_key: z.string().nullable(), providers: z.array(z.string()) })
    .nullable(),
  issuers: z.array(z.string()),
});

nameSchemas({
  Error: errorBody,
  IngestAcknowledgement: ingestAck,
  Column: column,
  TableProvision: tableToProvision,
  Table: tableDescription,
  ProvisionedTable: provisionedTable,
  Schema: schemaTree,
  CleanupResult: cleanupResult,
  Health: health,
  AuthConfig: authConfig,
});

export type AuthConfig = z.output<typeof authConfig>;
