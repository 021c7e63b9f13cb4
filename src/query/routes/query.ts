import { z } from "zod";

import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { LIMITS } from "../../core/limits.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import { askedBudget, budgetHeaders, type BudgetHeaders } from "../budgets/budget-headers.ts";
import { formatOf, RESULT_FORMATS, type ResultFormat } from "../stream/formats.ts";
import { preferredType } from "../../server/negotiate.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { defineRoute, type Call, type RouteResponse } from "../../server/route.ts";
import { QUERY_LANGUAGES } from "../contract/query.ts";
import { RENDER_HEADER, renderHeader } from "../stream/render.ts";
import type { QueryDeps } from "./deps.ts";
import { jsonInput, paramsField, queryInput, textInput, type QueryInput } from "./query-input.ts";
import { checkMaySend } from "../engines/remote-queries.ts";
import { isImpliedDatabase } from "../resolve/resolve-tables.ts";
import { databaseNotFound } from "../../auth/name-not-found.ts";
import { QUERY_ID_HEADER, queryIdHeader } from "./query-id.ts";
import { SQL_ERRORS } from "./sql-errors.ts";
import { databaseHeader } from "../../server/schemas.ts";

const MEDIA_TYPES = Object.values(RESULT_FORMATS).map(({ mediaType }) => mediaType);

function answer(format: ResultFormat, description: string): RouteResponse {
  const headers = {
    [QUERY_ID_HEADER]: "The query's id: the request's, or one that was made for it. Errors have it, too.",
    "X-Engine-Rows": "Total rows returned.",
    "X-Engine-Truncated": "`true` where `X-Engine-Row-Limit` left out rows; absent where it left out none.",
    "X-Engine-Render":
      "How a KQL query with `render` wants its rows drawn: `{kind, properties}` as JSON, percent-encoded.",
  };
  return { status: 200, description, type: RESULT_FORMATS[format].mediaType, headers };
}

const PARAMETERS =
  "Values for `$name`, `$1` and `?` in the text come in headers `X-Engine-Param-<name>`, each like a quoted literal.";

const KQL =
  "As `application/x-kql`, or with the language `kql`, it is one KQL query, which takes no parameters; `explain=true` " +
  "answers with the SQL that it becomes and its plan.";

const explain = z
  .enum(["true", "false"])
  .optional()
  .describe("Of a KQL query the SQL that it becomes, and its plan. For SQL write `EXPLAIN` before the query.");

const common = {
  path: "/v1/query",
  role: "read",
  tag: "Query",
  compress: true,
  responses: [
    answer("ndjson", "NDJSON, one object per row."),
    answer("arrow", "An Arrow IPC stream."),
    answer("csv", "CSV (RFC 4180) with a header row; lines end with LF."),
    answer("parquet", "A Parquet file."),
    answer("json", "A JSON array, one object per row."),
  ],
  errors: [...SQL_ERRORS, "not_acceptable", "conflict", "cancelled", "insufficient_storage"],
} as const;

/** LIMIT takes 64 bits; nobody waits for the rows of a limit that a double does not hold. */
const MAX_ROW_LIMIT = Number.MAX_SAFE_INTEGER - 1;

const rowLimit = {
  "x-engine-row-limit": z
    .string()
    .regex(/^ *[0-9]{1,16} *$/, `accepted are integers from 0 to ${MAX_ROW_LIMIT}`)
    .transform(Number)
    .refine((rows) => rows <= MAX_ROW_LIMIT, `accepted are integers from 0 to ${MAX_ROW_LIMIT}`)
    .optional()
    .describe(
      "Most rows of the answer, in the query's order; `X-Engine-Truncated` says whether there were more. The query ends " +
        "as soon as it has that many. An `EXPLAIN` is whole.",
    ),
};

const runOn = {
  "x-engine-run-on": z
    .string()
    .optional()
    .describe(
      "Name of a query engine, to which the text goes as it is, in that engine's own SQL; names without a schema are of " +
        "the database. For callers of all databases; the answer has at most 64 MiB of text.",
    ),
};

export const queryRoute = defineRoute({
  ...common,
  method: "POST",
  summary: "Run a query",
  description:
    "The body is the text of one SQL query (DuckDB's dialect; reads only). All tables are read at one snapshot: " +
    `every row that was acknowledged before the request is seen. ${PARAMETERS} As \`application/json\` the body is ` +
    '`{"query": "…", "params": {"name": value}}`; values are texts, numbers, booleans, null and arrays of such, and ' +
    `\`params\` may be an array for \`$1\`, \`$2\`. ${KQL}`,
  query: z.object({ explain }),
  headers: z.object({ "x-database": databaseHeader, ...queryIdHeader, ...runOn, ...rowLimit, ...budgetHeaders }),
  body: {
    types: ["application/sql", "application/x-kql", "text/plain", "application/json"],
    description: "The query's text, at most 16 MiB.",
    limitBytes: LIMITS.queryBodyBytes,
    example: "SELECT label, count(*) AS n FROM events GROUP BY label ORDER BY n DESC",
    jsonSchema: z.strictObject({
      query: z.string().describe("The text of one query."),
      language: z.enum(QUERY_LANGUAGES).optional().describe("`sql` unless given."),
      params: paramsField.describe("Values by name, or of `$1`, `$2` and `?`."),
    }),
  },
  errors: [
    ...common.errors,
    "bad_request_body",
    "body_too_large",
    "unsupported_media_type",
    "not_found",
    "engine_failed",
    "not_configured",
  ],
  handler: (deps: QueryDeps) => async (call) => {
    const { request, headers, query, bodyType } = call;
    const bytes = await readDecodedBody(request, LIMITS.queryBodyBytes);
    const language = bodyType === "application/x-kql" ? "kql" : "sql";
    const input = bodyType === "application/json" ? jsonInput(request, bytes) : textInput(request, bytes, language);
    const asked = { ...input, ...query, database: headers["x-database"], ...askedIn(headers) };
    const engine = headers["x-engine-run-on"];
    return await identified(deps, asked, (known) =>
      engine === undefined ? run(deps, call, known) : runOnEngine(deps, call, { ...known, engine }),
    );
  },
});

export const queryByAddressRoute = defineRoute({
  ...common,
  method: "GET",
  summary: "Run a query whose text is in the address",
  description:
    "For links, spreadsheets and tools that can only fetch. The same query by `POST`; the address is a part of the " +
    `request's head, which has a limit of its own. ${PARAMETERS} The answer is not to be cached.`,
  query: z.object({
    q: z.string().describe("The text of one query."),
    language: z.enum(QUERY_LANGUAGES).optional().describe("`sql` unless given."),
    explain,
    database: z.string().optional().describe("Database; `X-Database` says it as well, and `default` is meant without."),
  }),
  headers: z.object({
    "x-database": z.string().optional().describe("Database."),
    ...queryIdHeader,
    ...rowLimit,
    ...budgetHeaders,
  }),
  errors: [...common.errors, "headers_too_large"],
  handler: (deps: QueryDeps) => async (call) => {
    const { request, headers, query } = call;
    const named = headers["x-database"];
    const database = query.database ?? named ?? "default";
    if (named !== undefined && foldName(named) !== foldName(database)) {
      throw new EngineError("invalid_parameter", "query parameter database and header X-Database are not the same");
    }
    const input = queryInput(request, query.q, query.language ?? "sql");
    const asked = { ...input, explain: query.explain, database, ...askedIn(headers) };
    return await identified(deps, asked, (known) => run(deps, call, known));
  },
});

const MAX_REMOTE_BYTES = 64 * 1024 * 1024;

async function runOnEngine(
  { remote, catalog, running }: QueryDeps,
  call: Call,
  { engine, text, language, parameters, database, budget, explain, maxRows, queryId }: Known & { engine: string },
): Promise<HttpResponse> {
  const { request, requestId, caller, clientAddress: address } = call;
  const isAsItIs = language === "sql" && parameters.size === 0 && explain === undefined;
  if (!isAsItIs) {
    const message = "a query engine is sent the text as it is: without parameters, KQL or explain";
    throw new EngineError("invalid_parameter", message);
  }
  checkMaySend(caller);
  const isKnown = isImpliedDatabase(database) || (await catalog.database(database)) !== undefined;
  if (!isKnown) throw await databaseNotFound(catalog, { caller, database });
  const format = formatOf(preferredType(MEDIA_TYPES, request.header("accept")));
  const { wallMs, memoryBytes } = askedBudget(budget);
  const followed = { caller, address, queryId, requestId, database, text, signal: request.signal };
  const answer = await running.follow(followed, ({ signal, onProgress }) =>
    remote.run({
      engine,
      text,
      database,
      caller,
      address,
      requestId,
      format,
      maxRows,
      budget: { wallMs: Math.min(wallMs ?? Infinity, remote.wallMs), memoryBytes },
      maxBytes: MAX_REMOTE_BYTES,
      onProgress: ({ percent }) => percent !== undefined && onProgress(percent),
      signal,
    }),
  );
  return { status: 200, headers: headersOf(format, answer), body: answer.body };
}

type Asked = QueryInput & {
  database: string;
  budget: BudgetHeaders;
  explain?: "true" | "false" | undefined;
  maxRows: number | undefined;
  queryId: string | undefined;
};

/** One that has an id, the client's or not. */
type Known = Asked & { queryId: string };

function askedIn(
  headers: BudgetHeaders & { "x-engine-row-limit"?: number | undefined; "x-engine-query-id"?: string | undefined },
): Pick<Asked, "budget" | "maxRows" | "queryId"> {
  return { budget: headers, maxRows: headers["x-engine-row-limit"], queryId: headers["x-engine-query-id"] };
}

/** Says the id of the query with its answer, and with its failure. */
async function identified<A extends Asked>(
  { newId }: QueryDeps,
  asked: A,
  work: (known: A & Known) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const queryId = asked.queryId ?? newId();
  const own = { [QUERY_ID_HEADER]: queryId };
  try {
    const response = await work({ ...asked, queryId });
    return { ...response, headers: { ...response.headers, ...own } };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { code, details, withheld } = error;
    const headers = { ...details.headers, ...own };
    throw new EngineError(code, withheld ?? error.message, { ...details, headers, cause: details.cause ?? error });
  }
}

function headersOf(
  format: ResultFormat,
  { rows, isTruncated }: { rows: number; isTruncated: boolean },
): Record<string, string> {
  return {
    "Content-Type": RESULT_FORMATS[format].contentType,
    "X-Engine-Rows": String(rows),
    ...(isTruncated && { "X-Engine-Truncated": "true" }),
    Vary: "Accept",
  };
}

async function run(
  deps: QueryDeps,
  call: Call,
  { text, language, parameters, database, budget, explain, maxRows, queryId }: Known,
): Promise<HttpResponse> {
  const { request, requestId, caller, clientAddress } = call;
  if (explain === "true" && language !== "kql") {
    throw new EngineError("invalid_parameter", "explain is for queries in KQL: write EXPLAIN before the SQL");
  }
  const format = formatOf(preferredType(MEDIA_TYPES, request.header("accept")));
  const { body, render, ...answer } = await deps.query.run({
    caller,
    address: clientAddress,
    database,
    text,
    language,
    explain: explain === "true",
    ...(parameters.size === 0 ? {} : { parameters }),
    format,
    maxRows,
    budget: askedBudget(budget),
    requestId,
    queryId,
    runOnBy: request.method === "POST" ? "X-Engine-Run-On" : undefined,
    signal: request.signal,
  });
  const headers: Record<string, string> = {
    ...headersOf(format, answer),
    ...(render !== undefined && { [RENDER_HEADER]: renderHeader(render) }),
  };
  // Nobody keeps the answer to a POST.
  if (request.method !== "POST") headers["Cache-Control"] = "no-store";
  return { status: 200, headers, body };
}
