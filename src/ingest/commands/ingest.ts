import { INGEST_OPTIONS } from "../options.ts";
import { valuesOf } from "../../config/option.ts";
import { Option, type Command } from "commander";
import { LIMITS } from "../../core/limits.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { checkName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { openClient, type EngineClient } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { registerPositions } from "./positions.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { dryRun } from "./push/dry-run.ts";
import { findInputs, STDIN, type FoundInputs } from "./push/input-files.ts";
import { INPUT_FORMATS, type InputFormat, type RowOptions } from "./push/open-rows.ts";
import { pushFiles } from "./push/push-files.ts";
import type { PushTarget } from "./push/send-batch.ts";
import { tableColumns } from "./push/table-columns.ts";
import { resolveTarget } from "../../client/target.ts";

type Options = {
  table: string;
  db: string;
  format?: InputFormat;
  delimiter?: string;
  dryRun?: true;
  inferTypes: boolean;
  idempotencyKey?: string;
  server?: string;
  token?: string;
  json?: true;
};

/** Rows of a slow producer (`tail -f`) are sent after this long. */
const MAX_AGE_MS = 1_000;
/** Room for `-` and the number of the request. */
const KEY_CHARS = LIMITS.idempotencyKeyChars - 15;

export const register: RegisterCommand = (program, context) => {
  const group = program.command("ingest").description("Send events to an engine.");
  registerPush(group, context);
  registerPositions(group, context);
};

function registerPush(group: Command, context: CliContext): void {
  const command = group
    .command("push")
    .description(
      "Send NDJSON, CSV or Parquet to a table, in requests of up to 8 MiB. Missing tables and columns are created. What " +
        "a lost connection leaves open is sent again and never stored twice, nor is a file that is pushed again within " +
        "24 hours: it is known by its path and content.",
    )
    .argument("[files...]", "files, folders, or patterns in quotes; - (the default) is standard input")
    .requiredOption("--table <name>", "table")
    .option("--db <name>", "database", "default")
    .addOption(
      new Option(
        "--format <format>",
        "what the input is; by its content otherwise, and CSV by its name (.csv, .tsv); .gz and .zst need no word",
      ).choices(INPUT_FORMATS),
    )
    .option("--delimiter <char>", "what separates the fields of CSV (a comma; in .tsv a tab), one character or tab")
    .option("--no-infer-types", "make every new column a string, instead of giving it the type that its values have")
    .option("--dry-run", "show the columns that there would be and the first rows, and send nothing")
    .option(
      "--idempotency-key <key>",
      "makes the whole push repeatable: the same input with the same key is stored once; files are known by the paths " +
        "given, wherever they are by then",
    )
    .option("--server <url>", "server to send to (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)")
    .option("--json", "print a summary as JSON");
  withExamples(command, [
    "engine ingest push --table events events.ndjson more/*.ndjson.gz",
    "engine ingest push --table orders --dry-run orders.csv",
    "engine ingest push --table raw --no-infer-types dump.ndjson",
    "engine ingest push --table trips 'data/**/*.parquet'",
    "tail -f app.log.ndjson | engine ingest push --table logs",
    "engine ingest push --db backup --table events --idempotency-key dump-1 < dump.ndjson.zst",
  ]).action(context.action((files: string[], options: Options) => ingestPush(context, files, options)));
}

async function ingestPush(context: CliContext, files: readonly string[], options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const table = checkName("table", options.table);
  const givenKey = options.idempotencyKey === undefined ? undefined : checkKey(options.idempotencyKey);
  const delimiter = options.delimiter === undefined ? undefined : checkDelimiter(options.delimiter);
  const inputs: FoundInputs =
    files.length === 0 ? { files: [STDIN], skipped: 0, failures: [] } : await findInputs(files);
  if (inputs.files.length === 0 && inputs.failures.length === 0) {
    throw new CliError("no file there has the name of NDJSON, CSV or Parquet; nothing was sent", EXIT.usage);
  }
  const loaded = await context.loadConfig({ serverUrl: options.server, token: options.token });
  const target = await resolveTarget(context, loaded);
  if (inputs.files.includes(STDIN) && context.deps.stdin.isTTY === true) {
    context.note("reading NDJSON from the terminal; end it with Ctrl-D");
  }
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const place: PushTarget = { ...target, database, table, inferTypes: options.inferTypes };
    const run = {
      inputs,
      givenKey,
      delimiter,
      options,
      isVerbose: valuesOf(INGEST_OPTIONS, loaded.config).ingestVerbose,
    };
    await (options.dryRun === true ? showPush : sendPush)(context, client, place, run);
    return EXIT.ok;
  } finally {
    await client.close();
  }
}

type Run = {
  inputs: FoundInputs;
  givenKey: string | undefined;
  delimiter: string | undefined;
  options: Options;
  isVerbose: boolean;
};

async function sendPush(context: CliContext, client: EngineClient, target: PushTarget, run: Run): Promise<void> {
  const { clock, random } = context.deps;
  const { inputs, givenKey, options, isVerbose } = run;
  const onRetry = (reason: string, delayMs: number) =>
    context.warn(`${reason}; trying again in ${(delayMs / 1_000).toFixed(1)} s`);
  let columns: Promise<readonly ColumnSpec[]> | undefined;
  const knownColumns = async () => (await tableColumns(client, target)) ?? [];
  await pushFiles(context, {
    inputs,
    sender: { client, target, clock, random, onRetry, reached: false },
    rows: rowOptions(context, run, () => (columns ??= knownColumns())),
    givenKey,
    runId: uuidV7Source(clock, random)(),
    json: options.json === true,
    isVerbose,
  });
}

async function showPush(context: CliContext, client: EngineClient, target: PushTarget, run: Run): Promise<void> {
  const { database, table, inferTypes } = target;
  const existing = await tableColumns(client, target).catch((error: unknown) => {
    if (!(error instanceof CliError) || error.exitCode === EXIT.auth) throw error;
    context.warn(`${error.message}; what follows is that of a table that does not exist`);
    return undefined;
  });
  const rows = rowOptions(context, run, () => Promise.resolve(existing ?? []));
  const json = run.options.json === true;
  await dryRun(context, { inputs: run.inputs, rows, database, table, existing, inferTypes, json });
}

function rowOptions(
  context: CliContext,
  { givenKey, delimiter, options }: Run,
  columns: RowOptions["columns"],
): RowOptions {
  const { clock, stdin } = context.deps;
  return {
    stdin,
    columns,
    // Under a key of the user's own the cuts must not depend on time (see `Batcher`).
    read: givenKey === undefined ? { clock, maxAgeMs: MAX_AGE_MS } : { clock },
    ...(options.format === undefined ? {} : { format: options.format }),
    ...(delimiter === undefined ? {} : { delimiter }),
  };
}

function checkKey(key: string): string {
  if (key.length <= KEY_CHARS && /^[\x21-\x7e]+$/.test(key)) return key;
  throw new CliError(
    `--idempotency-key is not accepted; expected 1 to ${KEY_CHARS} visible ASCII characters`,
    EXIT.usage,
  );
}

function checkDelimiter(text: string): string {
  const delimiter = text === "tab" || text === "\\t" ? "\t" : text;
  if (/^[\t\x20\x21\x23-\x7e]$/.test(delimiter)) return delimiter;
  throw new CliError("--delimiter is one character of ASCII but no quote, or the word tab", EXIT.usage);
}
