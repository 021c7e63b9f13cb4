import { z } from "zod";
import { ERROR_CODES, type EngineError } from "../../../core/errors.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import { defineRoute, type RouteFailures } from "../../../server/route.ts";
import { anyJson, databaseHeader } from "../../../server/schemas.ts";
import { eventStreamResponse } from "../../../server/server-sent-events.ts";
import type { McpHttp } from "../http.ts";
import { MCP_LIMITS } from "../limits.ts";

/** What the routes of MCP are answered by. */
export type McpRouteDeps = { mcp: McpHttp };

const JSON_TYPE = "application/json";

const message = z.record(z.string(), anyJson);

/** What a request brings. */
export const mcpBody = z.union([message, z.array(message).min(1).max(MCP_LIMITS.messages)]);

const rpcError = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.null(), z.string(), z.int()]),
  error: z.object({
    code: z.int().describe("Of JSON-RPC: -32700 where the body is not JSON."),
    message: z.string(),
    data: z
      .looseObject({ code: z.string().optional().describe("Of this API.") })
      .optional()
      .describe("Absent where a message is not one of the protocol."),
  }),
});

/** Refusals before a message is looked at; the status says what it is, as for every route. */
const failures: RouteFailures = {
  types: [JSON_TYPE],
  schema: rpcError,
  statusOf: (code) => ERROR_CODES[code].status,
  respond: (_request, error) => rpcFailure(error),
};

/** A refusal as an answer: no message was looked at, so it names none. */
export function rpcFailure(error: EngineError): HttpResponse {
  const { code, message: text, status, details } = error;
  const body = { jsonrpc: "2.0", id: null, error: { code: rpcCodeOf(error), message: text, data: { code } } };
  return { status, headers: { "Content-Type": JSON_TYPE, ...details.headers }, body: JSON.stringify(body) };
}

function rpcCodeOf({ code, status }: EngineError): number {
  if (code === "parse_error") return -32_700;
  if (code === "bad_request_body") return -32_600;
  return status >= 500 ? -32_603 : -32_000;
}

export const mcpPostRoute = defineRoute({
  method: "POST",
  path: "/mcp/v1",
  role: "read",
  unscoped: true,
  runTokens: true,
  tag: "MCP",
  summary: "Model Context Protocol",
  description:
    "Streamable HTTP of the protocols 2026-07-28 and, without sessions, 2025-11-25 and earlier: one JSON-RPC message, or " +
    `a batch of at most ${MCP_LIMITS.messages} where the protocol has such. \`tools/list\` shows the tools that the ` +
    "caller's role allows. Tools work on the database of `X-Database` where their arguments name none. The program " +
    "that answers for a run of the agent shows the token of the run, and has the tools of that run alone. See the page on MCP.",
  headers: z.object({ "x-database": databaseHeader }),
  json: mcpBody,
  jsonErrors: { unreadable: "parse_error", invalid: "bad_request_body" },
  jsonLimitBytes: MCP_LIMITS.bodyBytes,
  failures,
  responses: [
    { status: 200, description: "A JSON-RPC reply.", type: JSON_TYPE, schema: z.looseObject({}) },
    { status: 202, description: "A notification was taken." },
    eventStreamResponse("The replies as events, where there are several."),
  ],
  errors: ["parse_error", "bad_request_body", "body_too_large", "unsupported_media_type", "too_many_requests"],
  handler:
    ({ mcp }: McpRouteDeps) =>
    (call) =>
      mcp.post(call),
});

export const mcpGetRoute = defineRoute({
  method: "GET",
  path: "/mcp/v1",
  role: "read",
  unscoped: true,
  runTokens: true,
  tag: "MCP",
  summary: "Changes to the list of tools",
  description:
    "A stream of `notifications/tools/list_changed` for clients of protocols before 2026-07-28, until one side leaves. " +
    "Later ones ask by `subscriptions/listen`.",
  responses: [eventStreamResponse("JSON-RPC notifications.")],
  failures,
  errors: ["too_many_requests"],
  handler:
    ({ mcp }: McpRouteDeps) =>
    async (call) =>
      mcp.get(call),
});

export const MCP_ROUTES = [mcpPostRoute, mcpGetRoute];
