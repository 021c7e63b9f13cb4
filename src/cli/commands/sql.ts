import { Option } from "commander";
import { LIMITS } from "../../core/limits.ts";
import { checkName } from "../../core/names.ts";
import { apiFailure, connectionFailure, openClient, readApiError, type ClientReply, type Target } from "../client.ts";
import type { CliContext } from "../context.ts";
import { withExamples } from "../examples.ts";
import { CliError, EXIT } from "../failure.ts";
import { linesOf } from "../lines.ts";
import type { RegisterCommand } from "../program.ts";
import { showPlace } from "../query-place.ts";
import { createRowWriter, FORMATS, type Format } from "../row-writers.ts";
import { resolveTarget } from "../target.ts";

type Options = { db: string; format?: Format; json?: true; server?: string; token?: string };

/** Longer than the server lets any query run (its option ends at a day), so that it is the server who decides. */
const TIMEOUT_MS = 25 * 3_600_000;

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("sql")
    .description("Run one SQL query and print its rows.")
    .argument("<text>", "the query; - reads it from standard input")
    .option("--db <name>", "database", "default")
    .addOption(
      new Option("--format <format>", "how rows are printed (table on a terminal, else ndjson)").choices(FORMATS),
    )
    .option("--json", "the same as --format json")
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)");
  withExamples(command, [
    "engine sql 'SELECT count(*) FROM events'",
    "engine sql --db logs --format csv 'SELECT * FROM requests LIMIT 10' > requests.csv",
    "engine sql - < report.sql",
  ]).action(context.action((text: string, options: Options) => sql(context, text, options)));
};

async function sql(context: CliContext, argument: string, options: Options): Promise<number> {
  const target = await resolveTarget(
    context,
    await context.loadConfig({ serverUrl: options.server, token: options.token }),
  );
  const database = checkName("database", options.db);
  const text = argument === "-" ? await readQuery(context) : argument;
  const format = options.format ?? (options.json ? "json" : context.deps.stdout.isTTY === true ? "table" : "ndjson");
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const reply = await client.send({
      method: "POST",
      path: "/v1/query",
      headers: { "content-type": "application/sql", "x-database": database },
      body: text,
      timeoutMs: TIMEOUT_MS,
    });
    if (reply.status !== 200) throw await queryFailure(reply, target, text);
    await printRows(context, reply, format, target);
    return EXIT.ok;
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

async function readQuery(context: CliContext): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of context.deps.stdin as AsyncIterable<Uint8Array | string>) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    chunks.push(bytes);
    sizeBytes += bytes.length;
    if (sizeBytes > LIMITS.queryBodyBytes) {
      throw new CliError(`the query has more than ${LIMITS.queryBodyBytes} bytes, which no server takes`, EXIT.usage);
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function queryFailure(reply: ClientReply, target: Target, text: string): Promise<CliError> {
  const error = await readApiError(reply);
  const { line, column } = error;
  const place = line === undefined || typeof column !== "number" ? undefined : showPlace(text, line, column);
  const where = place === undefined || /\bline \d/.test(error.message) ? "" : ` (line ${line}, column ${column})`;
  return apiFailure({ ...error, message: error.message + where }, target, place);
}

async function printRows(context: CliContext, reply: ClientReply, format: Format, target: Target): Promise<void> {
  const writer = createRowWriter(format, context);
  const announced = reply.header("x-engine-rows");
  let rows = 0;
  for await (const line of resultLines(reply, target)) {
    await writer.row(line);
    rows++;
    if (context.readerGone) return;
  }
  await writer.end();
  if (announced !== undefined && Number(announced) !== rows) {
    throw new CliError(`the result is incomplete: ${rows} of ${announced} rows arrived`);
  }
}

/** A connection that breaks midway must not look like the end of the rows. */
async function* resultLines(reply: ClientReply, target: Target): AsyncGenerator<string> {
  try {
    yield* linesOf(reply.body);
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  }
}
