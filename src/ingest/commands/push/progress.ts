import type { Clock } from "../../../core/clock.ts";
import type { CliContext } from "../../../client/context.ts";
import { cutToWidth } from "../../../client/text.ts";
import type { PushTotals } from "./push.ts";

type Amount = Pick<PushTotals, "rows" | "inputBytes">;

const PERIOD_MS = 100;
const DEFAULT_WIDTH = 80;
const CLEAR_LINE = "\r\u001b[K";

/** `12,345 rows, 4.2 MB, 21.0 MB/s`; rates are over the whole run. */
export function describeTotals({ rows, inputBytes }: Amount, elapsedMs: number): string {
  const seconds = Math.max(elapsedMs, 1) / 1_000;
  const rowsPerSecond = Math.round(rows / seconds).toLocaleString("en-US");
  return (
    `${rows.toLocaleString("en-US")} ${rows === 1 ? "row" : "rows"}, ${amount(inputBytes)} in ${seconds.toFixed(1)} s ` +
    `(${rowsPerSecond} rows/s, ${amount(inputBytes / seconds)}/s)`
  );
}

function amount(sizeBytes: number): string {
  if (sizeBytes < 1e3) return `${Math.round(sizeBytes)} B`;
  return sizeBytes < 1e6 ? `${(sizeBytes / 1e3).toFixed(1)} kB` : `${(sizeBytes / 1e6).toFixed(1)} MB`;
}

/** A line on a terminal's standard error that is drawn over and over; nothing at all elsewhere. */
export class ProgressLine {
  readonly #context: CliContext;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #on: boolean;
  #drawnMs = Number.NEGATIVE_INFINITY;

  constructor(context: CliContext) {
    this.#context = context;
    this.#clock = context.deps.clock;
    this.#startedMs = this.#clock.monotonicMs();
    this.#on = context.deps.stderr.isTTY === true && context.deps.env["TERM"] !== "dumb";
  }

  get elapsedMs(): number {
    return this.#clock.monotonicMs() - this.#startedMs;
  }

  /** `of` says what the line is about, where that is not all there is. */
  update(totals: Amount, of = ""): void {
    const nowMs = this.#clock.monotonicMs();
    if (!this.#on || nowMs - this.#drawnMs < PERIOD_MS) return;
    this.#drawnMs = nowMs;
    // A line that wraps could not be taken away again.
    const width = this.#context.deps.stderr.columns || DEFAULT_WIDTH;
    this.#context.deps.stderr.write(
      `${CLEAR_LINE}${cutToWidth(`${of}${describeTotals(totals, this.elapsedMs)}`, width)}`,
    );
  }

  /** Takes the line away, so that something else can be printed. */
  clear(): void {
    if (this.#on && this.#drawnMs > 0) this.#context.deps.stderr.write(CLEAR_LINE);
  }
}
