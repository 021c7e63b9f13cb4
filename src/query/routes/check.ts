import { z } from "zod";
import { LIMITS } from "../../core/limits.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";
import { QUERY_LANGUAGES } from "../contract/query.ts";
import type { QueryDeps } from "./deps.ts";
import { checkInput, paramsField } from "./query-input.ts";
import { SQL_ERRORS } from "./sql-errors.ts";

const place = z.object({
  line: z.int().describe("From 1."),
  column: z.int().describe("From 1, in characters."),
  offset: z.int().describe("From 0, in UTF-16 units, as JavaScript counts."),
});

const diagnostic = z.object({
  severity: z.enum(["error"]),
  code: z.string().describe("That the query would fail with."),
  message: z.string(),
  from: place,
  to: place.describe("After the last character."),
  suggestion: z.string().optional().describe("What may have been meant."),
  hint: z.string().optional(),
});

const checkBody = z.object({
  ok: z.boolean().describe("Whether there is no error."),
  diagnostics: z.array(diagnostic),
  columns: z
    .array(z.object({ name: z.string(), type: z.string().describe("As `engine.type` of an Arrow answer.") }))
    .nullable()
    .describe("Of the answer; null where rows decide which there are, and where there is an error."),
  tables: z
    .array(
      z.object({
        database: z.string(),
        table: z.string(),
        snapshot: z.int().describe("That it would be read at."),
        extents: z.int().describe("That would be read."),
        extents_total: z.int(),
        rows: z.int().describe("In the extents that would be read."),
        bytes: z.int().describe("Of these; of Parquet no more than the columns in question is read."),
      }),
    )
    .describe("Of the query as it was planned; system tables are not among them."),
});

nameSchemas({ QueryCheck: checkBody });

export const checkQueryRoute = defineRoute({
  role: "read",
  tag: "Query",
  method: "POST",
  path: "/v1/query/check",
  summary: "What is wrong with a query, its columns, and what it would read",
  description:
    "For editors: the query is parsed, resolved, planned and bound, and not run. What is wrong with its text is a " +
    "diagnostic with its range in an answer of 200; parsers stop at the first mistake. It takes a place among running " +
    "queries like a small one, ten seconds at most, and the memory of a query.",
  body: {
    types: ["application/json"],
    description: "The query, at most 16 MiB.",
    limitBytes: LIMITS.queryBodyBytes,
    jsonSchema: z.strictObject({
      query: z.string().describe("The text of one query."),
      language: z.enum(QUERY_LANGUAGES).optional().describe("`sql` unless given."),
      database: z.string().optional().describe("`default` unless given."),
      params: paramsField.describe("As of `POST /v1/query`."),
    }),
  },
  responses: [{ status: 200, description: "What was found.", type: "application/json", schema: checkBody }],
  errors: [...SQL_ERRORS, "bad_request_body", "body_too_large", "unsupported_media_type", "cancelled"],
  handler: (deps: QueryDeps) => async (call) => {
    const { request, caller, requestId } = call;
    const { database, text, language, parameters } = checkInput(
      request,
      await readDecodedBody(request, LIMITS.queryBodyBytes),
    );
    const asked = { caller, database, text, language, requestId, signal: request.signal };
    const check = await deps.checker.check({ ...asked, ...(parameters.size > 0 && { parameters }) });
    const { diagnostics, columns = null, tables } = check;
    return jsonResponse(200, {
      ok: diagnostics.length === 0,
      diagnostics,
      columns,
      tables: tables.map(({ database: of, table, snapshot, extents, extentsTotal, rows, bytes }) => {
        return { database: of, table, snapshot, extents, extents_total: extentsTotal, rows, bytes };
      }),
    });
  },
});
