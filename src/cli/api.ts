import type { Command } from "commander";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  readText,
  type ClientRequest,
  type Target,
} from "./client.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failure.ts";
import { textCell, type Cell } from "./table.ts";
import { resolveTarget } from "./target.ts";

/** Calls of the administrative API: JSON out, JSON in. */
export type ApiFlags = { server?: string; token?: string; json?: true };

export type Json = Readonly<Record<string, unknown>>;

const TIMEOUT_MS = 60_000;

/** Gives a command the flags of one that calls a server. */
export function withApiFlags(command: Command): Command {
  return command
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)")
    .option("--json", "print JSON");
}

/** @throws CliError for every answer but a success. */
export async function callApi(
  context: CliContext,
  flags: ApiFlags,
  method: ClientRequest["method"],
  path: string,
  body?: unknown,
): Promise<Json> {
  const loaded = await context.loadConfig({ serverUrl: flags.server, token: flags.token });
  return await callTarget(context, await resolveTarget(context, loaded), method, path, body);
}

/** As `callApi`, of a server that is known already. */
export async function callTarget(
  context: CliContext,
  target: Target,
  method: ClientRequest["method"],
  path: string,
  body?: unknown,
): Promise<Json> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const sent =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const reply = await client.send({ method, path, ...sent, timeoutMs: TIMEOUT_MS });
    if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
    return objectIn(await readText(reply), target);
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

function objectIn(text: string, { url }: Target): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  throw new CliError(`what answers at ${url} is no engine`);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects of a list in an answer. */
export function listIn(answer: Json, name: string): Json[] {
  const list = answer[name];
  return Array.isArray(list) ? list.filter(isObject) : [];
}

/** A field as a cell; `-` for one without a value. */
export function fieldCell(value: unknown): Cell {
  return textCell(fieldText(value));
}

export function fieldText(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value)) return value.map(fieldText).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
