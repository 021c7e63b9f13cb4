import { createReadStream } from "node:fs";
import { Option, type Command } from "commander";
import { messageOf } from "../../../core/errors.ts";
import { LIMITS } from "../../../core/limits.ts";
import { checkName } from "../../../core/names.ts";
import { openClient } from "../../../client/client.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { FORMATS, isBinary, type Format } from "../../../client/row-writers.ts";
import { resolveTarget } from "../../../client/target.ts";
import { visible } from "../../../client/text.ts";
import type { QueryRun } from "./run-query.ts";

/** What the commands have in common that run queries: `engine sql` and `engine kql`. */
export type QueryOptions = {
  db: string;
  file?: string;
  output?: Format;
  format?: Format;
  json?: true;
  timeout?: string;
  server?: string;
  token?: string;
};

export function addQueryOptions(command: Command): Command {
  return command
    .option("-f, --file <file>", "read the text from a file; - is standard input")
    .option("--db <name>", "database", "default")
    .addOption(
      new Option("-o, --output <format>", "how rows are printed (table on a terminal, else ndjson)").choices(FORMATS),
    )
    .addOption(new Option("--format <format>", "the same as --output").choices(FORMATS))
    .option("--json", "the same as --output json")
    .option("--timeout <seconds>", "most time that a query may take, where that is less than the server's limit")
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)");
}

/** What was asked for; `text` is undefined where a terminal has a shell. */
export type QueryCommand = { run: QueryRun; text: string | undefined; home: string };

/** Reads the options and the text, and connects for as long as `task` takes. */
export async function withQueryCommand(
  context: CliContext,
  asked: { command: string; argument: string | undefined; options: QueryOptions; hasShell: boolean },
  task: (command: QueryCommand) => Promise<number>,
): Promise<number> {
  const { command, argument, options, hasShell } = asked;
  const { stdin, stdout, version } = context.deps;
  if (argument !== undefined && options.file !== undefined) {
    throw new CliError("a text and --file are two sources of queries; give one", EXIT.usage);
  }
  const loaded = await context.loadConfig({ serverUrl: options.server, token: options.token });
  const target = await resolveTarget(context, loaded);
  const database = checkName("database", options.db);
  const isShell = hasShell && argument === undefined && options.file === undefined && stdin.isTTY === true;
  const format = formatOf(options, stdout.isTTY === true);
  if (isBinary(format) && (isShell || stdout.isTTY === true)) {
    const example = `engine ${command} … > rows.${format}`;
    throw new CliError(`${format} is not for a terminal; send it to a file: ${example}`, EXIT.usage);
  }
  const wallMs = options.timeout === undefined ? undefined : wallMsOf(options.timeout);
  const text = isShell ? undefined : await readText(context, argument, options.file ?? "-");
  const client = await openClient(target, `engine/${version}`);
  try {
    const run: QueryRun = { client, target, database, format, ...(wallMs === undefined ? {} : { wallMs }) };
    return await task({ run, text, home: loaded.config.home });
  } finally {
    await client.close();
  }
}

function formatOf({ output, format, json }: QueryOptions, isTerminal: boolean): Format {
  return output ?? format ?? (json === true ? "json" : isTerminal ? "table" : "ndjson");
}

/** The least and the most that servers take. */
const [MIN_WALL_MS, MAX_WALL_MS] = [10, 24 * 3_600_000];

function wallMsOf(seconds: string): number {
  const wallMs = /^[0-9]+(\.[0-9]+)?$/.test(seconds) ? Math.round(Number(seconds) * 1_000) : Number.NaN;
  if (wallMs >= MIN_WALL_MS && wallMs <= MAX_WALL_MS) return wallMs;
  throw new CliError("--timeout is a number of seconds, from 0.01 to 86400", EXIT.usage);
}

async function readText(context: CliContext, argument: string | undefined, file: string): Promise<string> {
  if (argument !== undefined && argument !== "-") return argument;
  const input = file === "-" ? context.deps.stdin : createReadStream(file);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of input as AsyncIterable<Uint8Array | string>) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      chunks.push(bytes);
      sizeBytes += bytes.length;
      if (sizeBytes > LIMITS.queryBodyBytes) throw tooLong();
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    const from = file === "-" ? "standard input" : visible(file);
    throw new CliError(`cannot read ${from}: ${visible(messageOf(error))}`, EXIT.failed, { cause: error });
  }
  return Buffer.concat(chunks).toString("utf8");
}

function tooLong(): CliError {
  return new CliError(`the query has more than ${LIMITS.queryBodyBytes} bytes, which no server takes`, EXIT.usage);
}
