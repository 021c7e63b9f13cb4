import { createHash } from "node:crypto";
import type { CliContext } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { lineIn, type Batch } from "../../../io/rows/batcher.ts";
import { FileError } from "./file-error.ts";
import type { FoundInputs, InputFile } from "./input-files.ts";
import { openRows, type InputFormat, type RowOptions, type Rows } from "./open-rows.ts";
import { describeTotals, ProgressLine } from "./progress.ts";
import { noTotals, push, type Acknowledged, type PushTotals } from "./push.ts";
import type { Sender } from "./send-batch.ts";

export type PushFilesOptions = {
  inputs: FoundInputs;
  sender: Sender;
  rows: RowOptions;
  /** What the user says; else keys are made of what a file is called and holds, or of the run for what comes once. */
  givenKey: string | undefined;
  /** Names this run. */
  runId: string;
  json: boolean;
  /** What became of each request is said as well (`ENGINE_INGEST_VERBOSE`). */
  isVerbose: boolean;
};

export type FileResult = {
  shown: string;
  format: InputFormat | undefined;
  totals: PushTotals;
  failure?: CliError;
};

/**
 * Pushes each input, in order, and says what became of it. One that cannot be read, or whose rows are refused, does not
 * keep the others from being sent; a server that is gone, or wants another token, does.
 * @throws CliError when any failed.
 */
export async function pushFiles(context: CliContext, options: PushFilesOptions): Promise<void> {
  const run = new PushRun(context, options);
  const { files, failures } = options.inputs;
  let fatal: CliError | undefined;
  for (const file of files) {
    const result = await run.push(file);
    if (result.failure === undefined || result.failure instanceof FileError) continue;
    fatal = result.failure;
    break;
  }
  await run.report();
  const failed = [...failures, ...run.results.flatMap(({ failure }) => failure ?? [])];
  if (fatal !== undefined) throw fatal;
  const [only] = failed;
  if (only !== undefined && run.isSingle) throw only;
  if (failed.length > 0) throw new CliError(`${failed.length} of ${run.count} inputs failed`, EXIT.failed);
}

class PushRun {
  readonly results: FileResult[] = [];
  readonly #context: CliContext;
  readonly #options: PushFilesOptions;
  readonly #progress: ProgressLine;
  readonly #sum = noTotals();

  constructor(context: CliContext, options: PushFilesOptions) {
    this.#context = context;
    this.#options = options;
    this.#progress = new ProgressLine(context);
    const { onRetry } = options.sender;
    options.sender.onRetry = (reason, delayMs) => {
      this.#progress.clear();
      onRetry(reason, delayMs);
    };
  }

  get count(): number {
    const { files, failures } = this.#options.inputs;
    return files.length + failures.length;
  }

  /** Of one input the result is that of the whole run. */
  get isSingle(): boolean {
    return this.count === 1;
  }

  async push(file: InputFile): Promise<FileResult> {
    const result: FileResult = { shown: file.shown, format: undefined, totals: noTotals() };
    this.results.push(result);
    const startedMs = this.#progress.elapsedMs;
    try {
      await this.#send(file, result);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      result.failure = error;
      // Whoever feeds us (`tail -f`) would otherwise keep the process alive.
      if (file.path === undefined) this.#options.rows.stdin.destroy();
    } finally {
      this.#progress.clear();
    }
    addTotals(this.#sum, result.totals);
    await this.#tell(result, this.#progress.elapsedMs - startedMs);
    return result;
  }

  async #send(file: InputFile, result: FileResult): Promise<void> {
    let aged = false;
    const rowOptions = this.#options.rows;
    const read = { ...rowOptions.read, onAged: () => void (aged = true) };
    const rows = await openRows(file, { ...rowOptions, read });
    result.format = rows.format;
    const { totals } = result;
    await push({
      batches: rows.batches,
      origin: rows.origin,
      sender: this.#options.sender,
      keyOf: this.#keysOf(file, rows),
      resumeHint: () => this.#resumeHint(rows, aged),
      totals,
      onProgress: () => {
        const place = this.isSingle ? "" : `[${this.results.length}/${this.count}] ${file.shown}: `;
        this.#progress.update(totals, place);
      },
      onAck: this.#options.isVerbose ? (acknowledged) => this.#tellOf(acknowledged, file) : undefined,
    });
    if (totals.requests > 0) return;
    // Among others it is a file of a quiet hour.
    if (this.isSingle) throw this.#noRows(file);
    this.#progress.clear();
    this.#context.warn(`${file.shown} has no rows`);
  }

  /**
   * A file is known by its path and by the bytes of each of its requests: sent again, by this command or another, it is
   * stored once. Of two files with the same rows both are stored: a row too many can be found, one that is missing cannot.
   * A file that has changed is another from the first changed request on, whose old rows are stored again. With a key of
   * the user's the path is the one that was given, so that the files may lie in another folder by then.
   */
  #keysOf({ shown }: InputFile, { realPath }: Rows): (batch: Batch, number: number) => string {
    const { givenKey, runId } = this.#options;
    if (realPath === undefined) return (_, number) => `${givenKey ?? runId}-${number}`;
    const name = givenKey === undefined ? ["path", realPath] : ["key", givenKey, shown];
    const identity = `${JSON.stringify(name)}\n`;
    return ({ body }, number) => {
      const hash = createHash("sha256").update(identity).update(`${number}\n`).update(body).digest("hex");
      return `file-${hash.slice(0, 48)}`;
    };
  }

  #tellOf(acknowledged: Acknowledged, { shown }: InputFile): void {
    this.#progress.clear();
    this.#context.note(`${this.isSingle ? "" : `${shown}: `}${describeRequest(acknowledged)}`);
  }

  #resumeHint({ realPath }: Rows, aged: boolean): string | undefined {
    if (realPath !== undefined) return "the same command goes on without storing them twice";
    const { givenKey, runId } = this.#options;
    return aged
      ? undefined
      : `the same input with --idempotency-key ${givenKey ?? runId} goes on without storing them twice`;
  }

  #noRows({ path, shown }: InputFile): FileError {
    if (path !== undefined) return new FileError(`${shown} has no rows, nothing was sent`);
    const example = `echo '{"body":"hello"}' | engine ingest push --table ${this.#options.sender.target.table}`;
    return new FileError(`standard input has no rows, nothing was sent; pipe NDJSON into it: ${example}`);
  }

  /** What became of one of several inputs. */
  async #tell(result: FileResult, elapsedMs: number): Promise<void> {
    const { shown, format, totals, failure } = result;
    const unit = format === "parquet" ? "row" : "line";
    for (const text of totals.warnings.textsFor({ shown, unit })) this.#context.warn(text);
    if (this.isSingle) return;
    if (failure instanceof FileError) this.#context.error(failure.message);
    if (failure === undefined && totals.requests > 0 && !this.#options.json) {
      await this.#context.writeLine(`${shown}: ${describeTotals(totals, elapsedMs)}${replayedText(totals)}`);
    }
  }

  async report(): Promise<void> {
    const { inputs, json } = this.#options;
    for (const { message } of this.isSingle ? [] : inputs.failures) this.#context.error(message);
    if (inputs.skipped > 0) {
      const files = inputs.skipped === 1 ? "1 file was" : `${inputs.skipped} files were`;
      this.#context.warn(
        `${files} left out: the name says nothing of NDJSON, CSV or Parquet, or it is a link out of the folder`,
      );
    }
    const elapsedMs = this.#progress.elapsedMs;
    if (json) await this.#context.writeJson(this.#json(elapsedMs));
    else if (this.#sum.requests > 0 && (!this.isSingle || this.results[0]?.failure === undefined)) {
      const requests = `${this.#sum.requests} ${this.#sum.requests === 1 ? "request" : "requests"}`;
      const total = this.isSingle ? "" : "together ";
      const snapshot = `snapshot ${this.#sum.snapshotId}`;
      const text = describeTotals(this.#sum, elapsedMs);
      await this.#context.writeLine(`${total}${text}, ${requests}, ${snapshot}${replayedText(this.#sum)}`);
    }
  }

  #json(elapsedMs: number) {
    const seconds = Math.max(elapsedMs, 1) / 1_000;
    const { givenKey, runId } = this.#options;
    const hasKey = givenKey !== undefined || this.results.some(({ shown }) => shown === "standard input");
    return {
      ...totalsJson(this.#sum),
      elapsed_ms: Math.round(elapsedMs),
      rows_per_second: Math.round(this.#sum.rows / seconds),
      mb_per_second: Number((this.#sum.inputBytes / 1e6 / seconds).toFixed(2)),
      idempotency_key: hasKey ? (givenKey ?? runId) : null,
      files: this.results.map(({ shown, format, totals, failure }) => ({
        file: shown,
        format: format ?? null,
        ...totalsJson(totals),
        warnings: totals.warnings.all.map(({ firstLine, ...warning }) => ({ ...warning, first_line: firstLine })),
        error: failure?.message ?? null,
      })),
    };
  }
}

function totalsJson(totals: PushTotals) {
  return {
    rows: totals.rows,
    replayed_rows: totals.replayedRows,
    requests: totals.requests,
    replayed_requests: totals.replayedRequests,
    input_bytes: totals.inputBytes,
    snapshot_id: totals.snapshotId ?? null,
  };
}

function addTotals(
  sum: PushTotals,
  { rows, replayedRows, requests, replayedRequests, inputBytes, snapshotId }: PushTotals,
) {
  sum.rows += rows;
  sum.replayedRows += replayedRows;
  sum.requests += requests;
  sum.replayedRequests += replayedRequests;
  sum.inputBytes += inputBytes;
  sum.snapshotId = snapshotId ?? sum.snapshotId;
}

function replayedText({ replayedRows }: PushTotals): string {
  return replayedRows === 0 ? "" : `; ${replayedRows} of the rows were stored before`;
}

/** What `ENGINE_INGEST_VERBOSE` says of each request. */
function describeRequest({ number, batch, ack, elapsedMs }: Acknowledged): string {
  const { lines, body } = batch;
  const where = ack.snapshotId === "" ? "staged" : `snapshot ${ack.snapshotId}`;
  const replayed = ack.replayed ? ", stored before" : "";
  return (
    `request ${number}: lines ${lineIn(batch, 1)} to ${lineIn(batch, lines)}, ${body.length} bytes, ${ack.rows} rows, ` +
    `${where}${replayed}, ${Math.round(elapsedMs)} ms`
  );
}
