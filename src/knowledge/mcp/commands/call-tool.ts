import type { Command } from "commander";
import { callDatabase, fieldText, targetOf, withApiFlags, type ApiFlags, type Json } from "../../../client/api.ts";
import { apiFailure } from "../../../client/client.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { ERROR_CODES, type ErrorCode } from "../../../core/errors.ts";
import { checkName } from "../../../core/names.ts";

/** Flags of a command that calls a tool. */
export type ToolFlags = ApiFlags & { db: string };

/** Gives a command the flags of one that calls a tool. */
export function withToolFlags(command: Command): Command {
  return withApiFlags(command.option("--db <name>", "database whose memory it is", "default"));
}

/**
 * Calls a tool of the server that the flags or the configuration name, by MCP over HTTP. Arguments that are undefined are
 * not sent.
 * @throws CliError with what the tool answers where that is an error
 */
export async function callTool(
  context: CliContext,
  flags: ToolFlags,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Json> {
  const target = await targetOf(context, flags);
  const answer = await callDatabase(context, target, checkName("database", flags.db), {
    method: "POST",
    path: "/mcp/v1",
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
  });
  const { result, error } = answer;
  if (isJson(error)) throw new CliError(visible(fieldText(error["message"])));
  if (!isJson(result)) throw new CliError(`what answers at ${target.url} is no MCP server of an engine`);
  if (result["isError"] === true) throw apiFailure(refusalIn(result), target);
  if (isJson(result["structuredContent"])) return result["structuredContent"];
  throw new CliError(`${name} answered without a result; is the server at ${target.url} of another version?`);
}

/** Tools tell errors as `{"error": {code, message, …}}`, with the codes of the HTTP API. */
function refusalIn({ content }: Json): { status: number; message: string; requestId?: string } {
  const text = textOf(content);
  const { code, message, request_id: requestId } = errorIn(text);
  return {
    status: isErrorCode(code) ? ERROR_CODES[code].status : 500,
    message: visible(typeof message === "string" ? message : text),
    ...(typeof requestId === "string" && { requestId: visible(requestId) }),
  };
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_CODES, code);
}

function textOf(content: unknown): string {
  const [first] = Array.isArray(content) ? (content as unknown[]) : [];
  return isJson(first) ? fieldText(first["text"]) : "the tool failed";
}

function errorIn(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isJson(value) && isJson(value["error"]) ? value["error"] : {};
  } catch {
    // A sentence of the library.
    return {};
  }
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
