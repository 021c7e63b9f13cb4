import type { Command } from "commander";
import { callDatabase, fieldText, withApiFlags, type ApiFlags, type Json } from "../../../client/api.ts";
import { apiFailure } from "../../../client/client.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError } from "../../../client/failure.ts";
import { chosenTarget } from "../../../client/target.ts";
import { visible } from "../../../client/text.ts";
import type { LoadedConfig } from "../../../config/load.ts";
import { ERROR_CODES, type ErrorCode } from "../../../core/errors.ts";
import { checkName } from "../../../core/names.ts";
import { onStopSignal } from "../../../core/stop-signal.ts";
import { HomeEngine, type HomeEngineOptions } from "../stdio/home-engine.ts";
import type { Message } from "../stdio/messages.ts";
import { socketPathOf } from "../stdio/socket-path.ts";

/** Flags of a command that calls a tool. */
export type ToolFlags = ApiFlags & { db: string };

/** Gives a command the flags of one that calls a tool. */
export function withToolFlags(command: Command): Command {
  return withApiFlags(command.option("--db <name>", "database whose memory it is", "default"));
}

/**
 * Calls a tool by MCP: of the server that somebody chose, else of the engine of this home. Arguments that are undefined are
 * not sent.
 * @throws CliError with what the tool answers where that is an error
 */
export async function callTool(
  context: CliContext,
  flags: ToolFlags,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Json> {
  const named = { serverUrl: flags.server, token: flags.token };
  const loaded = await context.loadConfig(named);
  const chosen = await chosenTarget(context, loaded);
  const database = checkName("database", flags.db);
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
  const { result, error } =
    chosen === undefined
      ? await askHome(context, loaded, body, { database, isForAgent: false })
      : await callDatabase(context, chosen, database, { method: "POST", path: "/mcp/v1", body });
  const target = chosen ?? { url: socketPathOf(loaded.config.home), origin: "default" };
  if (isJson(error)) throw new CliError(visible(fieldText(error["message"])));
  if (!isJson(result)) throw new CliError(`what answers at ${target.url} is no MCP server of an engine`);
  if (result["isError"] === true) throw apiFailure(refusalIn(result), target);
  if (isJson(result["structuredContent"])) return result["structuredContent"];
  throw new CliError(`${name} answered without a result; is the server at ${target.url} of another version?`);
}

/** Asks the engine of this home, which is open in this process for as long as that takes where it is open nowhere. */
async function askHome(
  context: CliContext,
  loaded: LoadedConfig,
  request: Message,
  options: HomeEngineOptions,
): Promise<Message> {
  const { config, origins } = loaded;
  // Unless somebody asked for it, a command does not log; the warnings of its configuration are told already.
  const logLevel = origins.logLevel === "default" ? "error" : config.logLevel;
  const engine = new HomeEngine(context, { ...loaded, config: { ...config, logLevel }, warnings: [] }, options);
  const stop = new AbortController();
  const off = onStopSignal(() => stop.abort());
  try {
    let answer: Message | undefined;
    const onMessage = async (message: Message) => void (answer = message);
    await engine.ask(request, { signal: stop.signal, onMessage });
    if (answer === undefined) throw new CliError("stopped before the engine had answered");
    return answer;
  } finally {
    off();
    await engine.close();
  }
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
