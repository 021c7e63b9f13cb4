import { isUtf8 } from "node:buffer";
import { z } from "zod";

import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import { BUDGET_MINIMUMS } from "../../query/budget.ts";
import { formatOf, RESULT_FORMATS, type ResultFormat } from "../../query/formats.ts";
import { preferredType } from "../negotiate.ts";
import { defineRoute, describeRoute, type Route, type RouteResponse } from "../route.ts";
import type { QueryDeps } from "./deps.ts";
import { databaseHeader } from "./schemas.ts";

const MEDIA_TYPES = Object.values(RESULT_FORMATS).map(({ mediaType }) => mediaType);

function answer(format: ResultFormat, description: string): RouteResponse {
  const headers = { "X-Engine-Rows": "Total rows returned." };
  return { status: 200, description, type: RESULT_FORMATS[format].mediaType, headers };
}

/** A budget that the request lowers; one above the server's is the server's. */
function budgetHeader(minimum: number, doc: string) {
  const range = `accepted are integers from ${minimum}`;
  return z
    .string()
    .regex(/^ *[0-9]+ *$/, range)
    .transform(Number)
    .refine((value) => value >= minimum, range)
    .optional()
    .describe(`${doc} At least ${minimum}; may only lower the server's.`);
}

export const queryRow = describeRoute({
  method: "POST",
  path: "/v1/query",
  role: "read",
  tag: "Query",
  summary: "Run a query",
  description:
    "The body is the text of one SQL query (DuckDB's dialect; reads only). All tables are read at one snapshot: " +
    "every row that was acknowledged before the request is seen.",
  headers: z.object({
    "x-database": databaseHeader,
    "x-engine-max-wall-clock-ms": budgetHeader(BUDGET_MINIMUMS.wallMs, "Milliseconds that the query may take."),
    "x-engine-max-memory-bytes": budgetHeader(
      BUDGET_MINIMUMS.memoryBytes,
      "Memory that the query may take; what needs more spills to disk, and fails where it cannot.",
    ),
    "x-engine-max-object-store-bytes": budgetHeader(
      BUDGET_MINIMUMS.objectStoreBytes,
      "Bytes that the query may read from the object store.",
    ),
  }),
  body: {
    types: ["application/sql", "text/plain"],
    description: "The query's text, at most 16 MiB.",
    limitBytes: LIMITS.queryBodyBytes,
    example: "SELECT label, count(*) AS n FROM events GROUP BY label ORDER BY n DESC",
  },
  responses: [
    answer("ndjson", "NDJSON, one object per row."),
    answer("arrow", "An Arrow IPC stream."),
    answer("csv", "CSV (RFC 4180) with a header row; lines end with LF."),
    answer("parquet", "A Parquet file."),
  ],
  errors: [
    "parse_error",
    "invalid_query",
    "invalid_header",
    "database_not_found",
    "table_not_found",
    "snapshot_expired",
    "body_too_large",
    "unsupported_media_type",
    "not_acceptable",
    "budget_exceeded",
    "too_many_requests",
    "query_failed",
    "unavailable",
    "insufficient_storage",
  ],
});

export function queryRoute(deps: QueryDeps): Route {
  return defineRoute({
    ...queryRow,
    handle: async ({ request, requestId, caller, clientAddress, headers }) => {
      const bytes = await readDecodedBody(request, LIMITS.queryBodyBytes);
      if (!isUtf8(bytes)) throw new EngineError("parse_error", "the query text is not valid UTF-8");
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
      if (text.trim() === "") throw new EngineError("parse_error", "the query text is empty");
      const format = formatOf(preferredType(MEDIA_TYPES, request.header("accept")));
      const { rows, body } = await deps.query.run({
        caller,
        address: clientAddress,
        database: headers["x-database"],
        text,
        format,
        budget: {
          wallMs: headers["x-engine-max-wall-clock-ms"],
          memoryBytes: headers["x-engine-max-memory-bytes"],
          objectStoreBytes: headers["x-engine-max-object-store-bytes"],
        },
        requestId,
        signal: request.signal,
      });
      const { contentType } = RESULT_FORMATS[format];
      return { status: 200, headers: { "Content-Type": contentType, "X-Engine-Rows": String(rows) }, body };
    },
  });
}
