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
  return await callTarget(context, await targetOf(context, flags), method, path, body);
}

/** As `callApi`, of a server that is known already. */
export async function callTarget(
  context: CliContext,
  target: Target,
  method: ClientRequest["method"],
  path: string,
  body?: unknown,
): Promise<Json> {
  return objectIn(await answerOf(context, target, { method, path, body }), target);
}

/** A call about one database. @throws CliError for every answer but a success. */
export async function callDatabase(
  context: CliContext,
  target: Target,
  database: string,
  call: Pick<ApiCall, "method" | "path" | "body">,
): Promise<Json> {
  return objectIn(await answerOf(context, target, { ...call, database }), target);
}

/** A call that answers with an array of objects. @throws CliError for every answer but a success. */
async function listFrom(context: CliContext, target: Target, path: string): Promise<Json[]> {
  const value = jsonIn(await answerOf(context, target, { method: "GET", path }), target);
  if (Array.isArray(value)) return value.filter(isObject);
  throw noEngine(target);
}

/**
 * All pages of a list whose route takes `limit` and `before` (an id), in the order in which it has them.
 *
 * @param page the most that the route answers with at once
 * @param under the field of the answer that holds the list; without it the answer is the list
 * @throws CliError
 */
export async function listAllFrom(
  context: CliContext,
  target: Target,
  path: string,
  { filter, page, under }: { filter: Readonly<Record<string, string>>; page: number; under?: string },
): Promise<Json[]> {
  const all: Json[] = [];
  for (;;) {
    const last = all.at(-1);
    const after = last === undefined ? {} : { before: fieldText(last["id"]) };
    const query = new URLSearchParams({ ...filter, limit: String(page), ...after });
    const pagePath = `${path}?${query.toString()}`;
    const found =
      under === undefined
        ? await listFrom(context, target, pagePath)
        : listIn(await callTarget(context, target, "GET", pagePath), under);
    all.push(...found);
    if (found.length < page) return all;
  }
}

/** A call that answers with nothing. @throws CliError for every answer but a success. */
export async function deleteAt(context: CliContext, target: Target, path: string): Promise<void> {
  await answerOf(context, target, { method: "DELETE", path });
}

/** A call that takes text, where there is any, and answers with text. @throws CliError for every answer but a success. */
export async function sendText(
  context: CliContext,
  target: Target,
  call: { method: ClientRequest["method"]; path: string; text?: string },
): Promise<string> {
  return await answerOf(context, target, call);
}

/** The server that the flags or the configuration name. */
export async function targetOf(context: CliContext, flags: ApiFlags): Promise<Target> {
  return resolveTarget(context, await context.loadConfig({ serverUrl: flags.server, token: flags.token }));
}

type ApiCall = { method: ClientRequest["method"]; path: string; body?: unknown; text?: string; database?: string };

/** The thing at a path; undefined where there is none. @throws CliError for every other answer but a success. */
export async function findAt(context: CliContext, target: Target, path: string): Promise<Json | undefined> {
  const answer = await exchange(context, target, { method: "GET", path });
  return "missing" in answer ? undefined : objectIn(answer.text, target);
}

async function answerOf(context: CliContext, target: Target, call: ApiCall): Promise<string> {
  const answer = await exchange(context, target, call);
  if ("missing" in answer) throw answer.missing;
  return answer.text;
}

/** What a server answers, or why that is 404. */
type Exchanged = { text: string } | { missing: CliError };

/** Answers are documents of some MiB at most. */
const ANSWER_LIMIT_BYTES = 4 * 1_048_576;

async function exchange(context: CliContext, target: Target, call: ApiCall): Promise<Exchanged> {
  const { method, path } = call;
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const reply = await client.send({ method, path, ...sentWith(call), timeoutMs: TIMEOUT_MS });
    if (reply.status < 200 || reply.status > 299) {
      const failure = apiFailure(await readApiError(reply), target);
      if (reply.status === 404) return { missing: failure };
      throw failure;
    }
    return { text: await readText(reply, ANSWER_LIMIT_BYTES) };
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

function sentWith({ body, text, database }: ApiCall): Pick<ClientRequest, "body" | "headers"> {
  const about = database === undefined ? {} : { "x-database": database };
  if (text !== undefined) return { body: text, headers: { ...about, "content-type": "text/plain; charset=utf-8" } };
  if (body === undefined) return { headers: about };
  return { body: JSON.stringify(body), headers: { ...about, "content-type": "application/json" } };
}

function objectIn(text: string, target: Target): Json {
  const value = jsonIn(text, target);
  if (isObject(value)) return value;
  throw noEngine(target);
}

function jsonIn(text: string, target: Target): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw noEngine(target);
  }
}

function noEngine({ url }: Target): CliError {
  return new CliError(`what answers at ${url} is no engine`);
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

/** `1 row`, `2 rows`; the number as the server said it. */
export function countText(count: unknown, noun: string): string {
  return `${fieldText(count)} ${noun}${Number(count) === 1 ? "" : "s"}`;
}

export function fieldText(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value)) return value.map(fieldText).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
