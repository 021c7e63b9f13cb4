import {
  apiFailure,
  connectionFailure,
  readApiError,
  type ClientReply,
  type EngineClient,
  type Target,
} from "../../../client/client.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError } from "../../../client/failure.ts";
import { linesOf } from "../../../client/lines.ts";
import {
  createRowWriter,
  isBinary,
  isServerFormat,
  MEDIA_TYPES,
  type Format,
  type RowFormat,
} from "../../../client/row-writers.ts";
import { harmless } from "../../../client/text.ts";
import { showPlace } from "./query-place.ts";

/** Longer than the server lets any query run (its option ends at a day), so that it is the server who decides. */
const TIMEOUT_MS = 25 * 3_600_000;
/** What an answer may take beyond the time that the query has. */
const GRACE_MS = 10_000;

export type QueryRun = {
  client: EngineClient;
  target: Target;
  database: string;
  /** SQL unless given. */
  language?: "sql" | "kql";
  /** Of KQL: what it becomes, and its plan. */
  explain?: true;
  /** The query engine that it is sent to. */
  engine?: string;
  format: Format;
  /** Most time that the query may take; the server's own limit unless given. */
  wallMs?: number;
};

/** The query was given up, because somebody asked for that. */
export class QueryCancelled extends CliError {
  constructor() {
    super("cancelled");
  }
}

/**
 * Runs a query and prints its rows. When the signal aborts, the connection ends, by which the server ends the query.
 * @throws CliError
 */
export async function runQuery(context: CliContext, run: QueryRun, text: string, signal?: AbortSignal): Promise<void> {
  const { target, format } = run;
  try {
    const reply = await ask(run, text, signal);
    if (isServerFormat(format)) await printBytes(context, reply, format, target);
    else await printRows(context, reply, format, target);
  } catch (error) {
    if (signal?.aborted === true) throw new QueryCancelled();
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}

/** Prints what a query in KQL becomes, and its plan, as they are.  @throws CliError */
export async function explainQuery(context: CliContext, run: QueryRun, text: string): Promise<void> {
  const { target } = run;
  try {
    const reply = await ask({ ...run, format: "ndjson", explain: true }, text);
    for await (const line of named(linesOf(reply.body), target)) {
      const { explain_value: part } = JSON.parse(line) as { explain_value: string };
      await context.writeLine(context.deps.stdout.isTTY === true ? harmless(part.trimEnd()) : part.trimEnd());
      if (context.readerGone) return;
    }
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}

async function ask(run: QueryRun, text: string, signal?: AbortSignal): Promise<ClientReply> {
  const { client, target, database, language = "sql", explain = false, format, wallMs, engine } = run;
  const reply = await client.send({
    method: "POST",
    path: explain ? "/v1/query?explain=true" : "/v1/query",
    headers: {
      "content-type": language === "kql" ? "application/x-kql" : "application/sql",
      "x-database": database,
      accept: MEDIA_TYPES[format],
      ...(engine !== undefined && { "x-engine-run-on": engine }),
      ...(wallMs === undefined ? {} : { "x-engine-max-wall-clock-ms": String(wallMs) }),
    },
    body: text,
    timeoutMs: wallMs === undefined ? TIMEOUT_MS : wallMs + GRACE_MS,
    ...(signal === undefined ? {} : { signal }),
  });
  if (reply.status !== 200) throw await queryFailure(reply, target, text);
  return reply;
}

async function queryFailure(reply: ClientReply, target: Target, text: string): Promise<CliError> {
  const error = await readApiError(reply);
  const { line, column } = error;
  const place = line === undefined || typeof column !== "number" ? undefined : showPlace(text, line, column);
  const where = place === undefined || /\bline \d/.test(error.message) ? "" : ` (line ${line}, column ${column})`;
  return apiFailure({ ...error, message: error.message + where }, target, place);
}

async function printRows(context: CliContext, reply: ClientReply, format: RowFormat, target: Target): Promise<void> {
  const writer = createRowWriter(format, context);
  const announced = reply.header("x-engine-rows");
  let rows = 0;
  for await (const line of named(linesOf(reply.body), target)) {
    await writer.row(line);
    rows++;
    if (context.readerGone) return;
  }
  await writer.end();
  if (announced !== undefined && Number(announced) !== rows) {
    throw new CliError(`the result is incomplete: ${rows} of ${announced} rows arrived`);
  }
}

async function printBytes(context: CliContext, reply: ClientReply, format: Format, target: Target): Promise<void> {
  const isShown = context.deps.stdout.isTTY === true && !isBinary(format);
  const decoder = new TextDecoder();
  for await (const chunk of named(reply.body, target)) {
    await context.write(isShown ? harmless(decoder.decode(chunk, { stream: true })) : chunk);
    if (context.readerGone) return;
  }
}

/** A connection that breaks midway must not look like the end of the rows. */
async function* named<T>(parts: AsyncIterable<T>, target: Target): AsyncGenerator<T> {
  try {
    yield* parts;
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}
