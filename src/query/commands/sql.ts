import { createReadStream } from "node:fs";
import { Option } from "commander";
import { messageOf } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { checkName } from "../../core/names.ts";
import { openClient } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { FORMATS, isBinary, type Format } from "../../client/row-writers.ts";
import { runQuery, type QueryRun } from "./sql/run-query.ts";
import { inPlace, splitStatements } from "./sql/statements.ts";
import { resolveTarget } from "../../client/target.ts";
import { visible } from "../../client/text.ts";

type Options = {
  db: string;
  file?: string;
  output?: Format;
  format?: Format;
  json?: true;
  timeout?: string;
  server?: string;
  token?: string;
};

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("sql")
    .description(
      "Run SQL queries and print their rows. Without a text, on a terminal, a shell: with history, completion by Tab, " +
        "statements of many lines, and commands that \\? lists; Ctrl-C cancels a query.",
    )
    .argument("[text]", "the query, or several with ; between; - reads them from standard input")
    .option("-f, --file <file>", "read the queries from a file; - is standard input")
    .option("--db <name>", "database", "default")
    .addOption(
      new Option("-o, --output <format>", "how rows are printed (table on a terminal, else ndjson)").choices(FORMATS),
    )
    .addOption(new Option("--format <format>", "the same as --output").choices(FORMATS))
    .option("--json", "the same as --output json")
    .option("--timeout <seconds>", "most time that a query may take, where that is less than the server's limit")
    .option("--server <url>", "server to ask (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)");
  withExamples(command, [
    "engine sql",
    "engine sql 'SELECT count(*) FROM events'",
    "engine sql --db logs -o csv 'SELECT * FROM requests LIMIT 10' > requests.csv",
    "engine sql --timeout 5 -o parquet -f report.sql > report.parquet",
  ]).action(context.action((text: string | undefined, options: Options) => sql(context, text, options)));
};

async function sql(context: CliContext, argument: string | undefined, options: Options): Promise<number> {
  const { stdin, stdout, version } = context.deps;
  if (argument !== undefined && options.file !== undefined) {
    throw new CliError("a text and --file are two sources of queries; give one", EXIT.usage);
  }
  const loaded = await context.loadConfig({ serverUrl: options.server, token: options.token });
  const target = await resolveTarget(context, loaded);
  const database = checkName("database", options.db);
  const isShell = argument === undefined && options.file === undefined && stdin.isTTY === true;
  const format = formatOf(options, stdout.isTTY === true);
  if (isBinary(format) && (isShell || stdout.isTTY === true)) {
    throw new CliError(`${format} is not for a terminal; send it to a file: engine sql … > rows.${format}`, EXIT.usage);
  }
  const wallMs = options.timeout === undefined ? undefined : wallMsOf(options.timeout);
  const texts = isShell ? undefined : await readQueries(context, argument, options.file ?? "-");
  const client = await openClient(target, `engine/${version}`);
  try {
    const run = { client, target, database, format, ...(wallMs === undefined ? {} : { wallMs }) };
    if (texts === undefined) return await (await import("./sql/shell.ts")).runShell(context, run, loaded.config.home);
    return await runAll(context, run, texts);
  } finally {
    await client.close();
  }
}

/** The first that fails is the last. */
async function runAll(context: CliContext, run: QueryRun, text: string): Promise<number> {
  const { statements, rest } = splitStatements(text);
  const all = rest === undefined ? statements : [...statements, rest];
  if (all.length > 1 && isBinary(run.format)) {
    throw new CliError(`${run.format} takes the rows of one query, and these are ${all.length}`, EXIT.usage);
  }
  // What is wrong with a text that has no statement the server says.
  if (all.length === 0) await runQuery(context, run, text);
  for (const statement of all) {
    await runQuery(context, run, inPlace(text, statement));
    if (context.readerGone) break;
  }
  return EXIT.ok;
}

function formatOf({ output, format, json }: Options, isTerminal: boolean): Format {
  return output ?? format ?? (json === true ? "json" : isTerminal ? "table" : "ndjson");
}

/** The least and the most that servers take. */
const [MIN_WALL_MS, MAX_WALL_MS] = [10, 24 * 3_600_000];

function wallMsOf(seconds: string): number {
  const wallMs = /^[0-9]+(\.[0-9]+)?$/.test(seconds) ? Math.round(Number(seconds) * 1_000) : Number.NaN;
  if (wallMs >= MIN_WALL_MS && wallMs <= MAX_WALL_MS) return wallMs;
  throw new CliError("--timeout is a number of seconds, from 0.01 to 86400", EXIT.usage);
}

async function readQueries(context: CliContext, argument: string | undefined, file: string): Promise<string> {
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
