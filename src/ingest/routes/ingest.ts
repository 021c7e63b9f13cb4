import { z } from "zod";

import { LIMITS } from "../../core/limits.ts";
import type { Misfit } from "../../format/ndjson/misfits.ts";
import type { IngestAck } from "../ingest.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { idempotencyKey, withBody } from "./body.ts";
import type { IngestDeps } from "./deps.ts";
import { databaseHeader, flagHeader, optionalFlagHeader } from "../../server/schemas.ts";
import { ingestAck, type ingestWarning } from "./schemas.ts";

const headers = z.object({
  "x-database": databaseHeader,
  "x-table": z.string().describe("Table."),
  "x-idempotency-key": idempotencyKey,
  "x-auto-create": flagHeader(true, "Create a missing database or table, with the default shape."),
  "x-schema-evolve": flagHeader(true, "Add unknown fields as columns (at most 32 per request); false drops them."),
  "x-engine-infer-types": optionalFlagHeader(
    "Give these columns types by their values: `true` or `false`. By default the table says, or the server's " +
      "`ENGINE_INGEST_INFER_TYPES`.",
  ),
});

export const ingestRoute = defineRoute({
  method: "POST",
  path: "/v1/ingest",
  role: "write",
  tag: "Ingest",
  summary: "Store NDJSON rows",
  description:
    "One JSON object per line; blank lines are tolerated. The answer comes when the rows are durable and visible. " +
    "A line that does not parse rejects the whole body: nothing of it is stored, and neither a table nor a column is " +
    "made for it. `warnings` tell of rows that got the time of arrival because theirs could not be read, and of values " +
    "that went to `props` because they did not fit their column.",
  headers,
  body: {
    types: ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/json", "text/plain"],
    description: "NDJSON, optionally with `Content-Encoding: gzip`, `zstd` or `deflate`; at most 64 MiB decoded.",
    limitBytes: LIMITS.ingestBodyBytes,
    example: '{"at":"2026-01-01T00:00:00Z","label":"login","body":"signed in"}\n',
  },
  responses: [{ status: 200, description: "Durable and visible.", type: "application/json", schema: ingestAck }],
  errors: [
    "bad_request_body",
    "missing_header",
    "invalid_header",
    "invalid_name",
    "table_not_found",
    "body_too_large",
    "unsupported_media_type",
    "too_many_requests",
    "ingest_failed",
    "unavailable",
    "insufficient_storage",
  ],
  handler:
    (deps: IngestDeps) =>
    async ({ request, caller, headers }) => {
      const key = headers["x-idempotency-key"];
      const inferTypes = headers["x-engine-infer-types"];
      const ack = await withBody(request, (body) =>
        deps.ingest.ingest({
          ...body,
          caller,
          database: headers["x-database"],
          table: headers["x-table"],
          autoCreate: headers["x-auto-create"],
          evolve: headers["x-schema-evolve"],
          ...(inferTypes === undefined ? {} : { inferTypes }),
          ...(key === undefined ? {} : { idempotencyKey: key }),
        }),
      );
      return jsonResponse(200, ackBody(ack));
    },
});

function ackBody(ack: IngestAck): z.output<typeof ingestAck> {
  return {
    // A staged request has no snapshot yet, and its clients expect a text.
    snapshot_id: ack.snapshotId === undefined ? "" : String(ack.snapshotId),
    extent_count: ack.extentCount,
    rows_ingested: ack.rows,
    bytes_written: ack.sizeBytes,
    replayed: ack.replayed,
    ...(ack.staged === true ? { staged: ack.staged } : {}),
    ...(ack.warnings === undefined ? {} : { warnings: ack.warnings.map(warningBody) }),
  };
}

function warningBody({ code, field, type, count, firstLine }: Misfit): z.output<typeof ingestWarning> {
  const column = field === undefined || type === undefined ? {} : { field, type };
  return { code, ...column, count, first_line: firstLine };
}
