import type { Command } from "commander";
import { LIMITS } from "../../core/limits.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { checkName } from "../../core/names.ts";
import { openClient, type EngineClient } from "../client.ts";
import type { CliContext } from "../context.ts";
import { withExamples } from "../examples.ts";
import { CliError, EXIT } from "../failure.ts";
import type { RegisterCommand } from "../program.ts";
import { describeTotals, ProgressLine } from "../push/progress.ts";
import { push, type Acknowledged, type PushTotals } from "../push/push.ts";
import type { PushTarget } from "../push/send-batch.ts";
import { resolveTarget } from "../target.ts";

type Options = {
  table: string;
  db: string;
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
};

function registerPush(group: Command, context: CliContext): void {
  const command = group
    .command("push")
    .description(
      "Send the NDJSON on standard input to a table, in requests of up to 8 MiB. Missing tables and columns are " +
        "created. What a lost connection leaves open is sent again and never stored twice.",
    )
    .requiredOption("--table <name>", "table")
    .option("--db <name>", "database", "default")
    .option(
      "--idempotency-key <key>",
      "makes the whole push repeatable: the same input with the same key is stored once",
    )
    .option("--server <url>", "server to send to (ENGINE_SERVER_URL)")
    .option("--token <token>", "bearer token (ENGINE_TOKEN)")
    .option("--json", "print a summary as JSON");
  withExamples(command, [
    "engine ingest push --table events < events.ndjson",
    "tail -f app.log.ndjson | engine ingest push --table logs",
    "zstdcat dump.zst | engine ingest push --db backup --table events --idempotency-key dump-1",
  ]).action(context.action((options: Options) => ingestPush(context, options)));
}

async function ingestPush(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const table = checkName("table", options.table);
  const keyPrefix = options.idempotencyKey === undefined ? newRunId(context) : checkKey(options.idempotencyKey);
  const loaded = await context.loadConfig({ serverUrl: options.server, token: options.token });
  const target = await resolveTarget(context, loaded);
  if (context.deps.stdin.isTTY === true) context.note("reading NDJSON from the terminal; end it with Ctrl-D");
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const settings = { ...options, isVerbose: loaded.config.ingestVerbose };
    return await run(context, client, { ...target, database, table }, keyPrefix, settings);
  } finally {
    await client.close();
  }
}

async function run(
  context: CliContext,
  client: EngineClient,
  target: PushTarget,
  keyPrefix: string,
  options: Options & { isVerbose: boolean },
): Promise<number> {
  const { clock, random, stdin } = context.deps;
  const progress = new ProgressLine(context);
  const onRetry = (reason: string, delayMs: number) => {
    progress.clear();
    context.warn(`${reason}; trying again in ${(delayMs / 1_000).toFixed(1)} s`);
  };
  const common = {
    input: stdin,
    sender: { client, target, clock, random, onRetry, reached: false },
    keyPrefix,
    onProgress: (totals: PushTotals) => progress.update(totals),
    onAck: options.isVerbose
      ? (request: Acknowledged) => {
          progress.clear();
          context.note(describeRequest(request));
        }
      : undefined,
  };
  try {
    // Under a key of the user's own the cuts must not depend on time (see `Batcher`).
    const totals = await push(options.idempotencyKey === undefined ? { ...common, maxAgeMs: MAX_AGE_MS } : common);
    progress.clear();
    if (totals.requests === 0) throw emptyInput(options.table);
    for (const text of totals.warnings.texts) context.warn(text);
    await report(context, totals, progress.elapsedMs, keyPrefix, options.json === true);
    return EXIT.ok;
  } finally {
    progress.clear();
  }
}

function newRunId(context: CliContext): string {
  return uuidV7Source(context.deps.clock, context.deps.random)();
}

function checkKey(key: string): string {
  if (key.length <= KEY_CHARS && /^[\x21-\x7e]+$/.test(key)) return key;
  throw new CliError(
    `--idempotency-key is not accepted; expected 1 to ${KEY_CHARS} visible ASCII characters`,
    EXIT.usage,
  );
}

function emptyInput(table: string): CliError {
  const example = `echo '{"body":"hello"}' | engine ingest push --table ${table}`;
  return new CliError(`standard input has no rows, nothing was sent; pipe NDJSON into it: ${example}`);
}

/** What `ENGINE_INGEST_VERBOSE` says of each request. */
function describeRequest({ number, batch, ack, elapsedMs }: Acknowledged): string {
  const { firstLine, lines, body } = batch;
  const where = ack.snapshotId === "" ? "staged" : `snapshot ${ack.snapshotId}`;
  const replayed = ack.replayed ? ", stored before" : "";
  return (
    `request ${number}: lines ${firstLine} to ${firstLine + lines - 1}, ${body.length} bytes, ${ack.rows} rows, ` +
    `${where}${replayed}, ${Math.round(elapsedMs)} ms`
  );
}

async function report(
  context: CliContext,
  totals: PushTotals,
  elapsedMs: number,
  keyPrefix: string,
  json: boolean,
): Promise<void> {
  if (!json) {
    const requests = `${totals.requests} ${totals.requests === 1 ? "request" : "requests"}`;
    const replayed = totals.replayedRows === 0 ? "" : `; ${totals.replayedRows} of the rows were stored before`;
    await context.writeLine(
      `${describeTotals(totals, elapsedMs)}, ${requests}, snapshot ${totals.snapshotId}${replayed}`,
    );
    return;
  }
  const seconds = Math.max(elapsedMs, 1) / 1_000;
  const warnings = totals.warnings.all.map(({ firstLine, ...warning }) => ({ ...warning, first_line: firstLine }));
  await context.writeJson({
    rows: totals.rows,
    replayed_rows: totals.replayedRows,
    requests: totals.requests,
    replayed_requests: totals.replayedRequests,
    input_bytes: totals.inputBytes,
    elapsed_ms: Math.round(elapsedMs),
    rows_per_second: Math.round(totals.rows / seconds),
    mb_per_second: Number((totals.inputBytes / 1e6 / seconds).toFixed(2)),
    snapshot_id: totals.snapshotId ?? null,
    idempotency_key: keyPrefix,
    ...(warnings.length > 0 && { warnings }),
  });
}
