import { isUtf8 } from "node:buffer";
import { z } from "zod";

import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import { defineRoute, type Route } from "../route.ts";
import type { EngineDeps } from "./deps.ts";
import { databaseHeader } from "./schemas.ts";

export function queryRoute(deps: EngineDeps): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/query",
    role: "read",
    tag: "Query",
    summary: "Run a query",
    description:
      "The body is the text of one SQL query (DuckDB's dialect; reads only). All tables are read at one snapshot: " +
      "every row that was acknowledged before the request is seen.",
    headers: z.object({ "x-database": databaseHeader }),
    body: {
      types: ["application/sql", "text/plain"],
      description: "The query's text, at most 16 MiB.",
      limitBytes: LIMITS.queryBodyBytes,
      example: "SELECT label, count(*) AS n FROM events GROUP BY label ORDER BY n DESC",
    },
    responses: [
      {
        status: 200,
        description: "NDJSON, one object per row.",
        type: "application/x-ndjson",
        headers: { "X-Engine-Rows": "Total rows returned." },
      },
    ],
    errors: [
      "parse_error",
      "invalid_query",
      "invalid_header",
      "database_not_found",
      "table_not_found",
      "body_too_large",
      "unsupported_media_type",
      "not_acceptable",
      "budget_exceeded",
      "too_many_requests",
      "query_failed",
      "unavailable",
    ],
    handle: async ({ request, requestId, headers }) => {
      const bytes = await readDecodedBody(request, LIMITS.queryBodyBytes);
      if (!isUtf8(bytes)) throw new EngineError("parse_error", "the query text is not valid UTF-8");
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
      if (text.trim() === "") throw new EngineError("parse_error", "the query text is empty");
      const result = await deps.query.run({ database: headers["x-database"], text, requestId, signal: request.signal });
      return {
        status: 200,
        headers: { "Content-Type": "application/x-ndjson; charset=utf-8", "X-Engine-Rows": String(result.rows) },
        body: result.body,
      };
    },
  });
}
