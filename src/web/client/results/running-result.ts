import { errorOf, unreachable, ApiError } from "../base/api-error.ts";
import { renewSession } from "../base/api.ts";
import { clock } from "../base/clock.ts";
import { scriptUrl } from "../base/trusted-types.ts";
// oxlint-disable-next-line import/default -- Vite makes it: see worker-address.d.ts
import workerAddress from "./result-worker.ts?worker&url";
import type { Answers, Ask, ResultHead, RunRequest, Told } from "./result-protocol.ts";
import type { CellRange, CopyFormat, ResultColumn, ShownCell } from "./result-store.ts";

export type ResultState = "waiting" | "receiving" | "done" | "stopped" | "failed";

/** Without `ask`, which is counted here. */
type Question = Ask extends infer A ? (A extends { ask: number } ? Omit<A, "ask"> : never) : never;

/**
 * One query and its rows, in a worker of its own. `onChange` is called when there is something new to draw; the worker and
 * all that it holds end with `close`.
 */
export class RunningResult {
  state: ResultState = "waiting";
  head: ResultHead | undefined;
  columns: readonly ResultColumn[] = [];
  /** Rows that are shown: all, or those that a filter leaves. */
  rows = 0;
  /** Rows that have come. */
  received = 0;
  bytes = 0;
  error: ApiError | undefined;
  startedMs = clock.monotonicMs();
  /** From the start to the end, or to the error; undefined while it runs. */
  elapsedMs: number | undefined;
  /** Grows when what a window shows may have changed: rows came, or have another order. */
  version = 0;
  /** Grows when the rows that were here may be in another order. Until then a window of them stays as it is. */
  arrangement = 0;
  isFiltered = false;
  /** The first rows in the order in which they came; undefined once there is another order. */
  #first: readonly ShownCell[][] | undefined = [];

  readonly #worker: Worker;
  readonly #request: RunRequest;
  /** Aborted where nothing more is wanted of the server. */
  readonly #ending = new AbortController();
  #isRenewed = false;
  readonly #onChange: () => void;
  readonly #waiting = new Map<number, (value: never) => void>();
  #asked = 0;

  constructor(request: RunRequest, onChange: () => void) {
    this.#request = request;
    this.#onChange = onChange;
    this.#worker = new Worker(scriptUrl(new URL(workerAddress, location.href)), { type: "module" });
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Told>) => void this.#hear(data));
    this.#worker.addEventListener("error", ({ message }) => {
      this.#fail(
        new ApiError(0, { code: "worker", message: message || "the part of the page that reads rows has failed" }),
      );
    });
    this.#tell({ kind: "run", request });
  }

  get isRunning(): boolean {
    return this.state === "waiting" || this.state === "receiving";
  }

  /** Ends it; the rows that have come stay. */
  stop(): void {
    if (!this.isRunning) return;
    this.#ending.abort();
    this.#tell({ kind: "stop" });
    this.#end("stopped");
  }

  /** Frees everything. */
  close(): void {
    this.#ending.abort();
    this.#worker.terminate();
    this.#waiting.clear();
  }

  /** Cells of the rows `[from, to)`; the first rows are there at once. */
  async window(from: number, to: number, columns: readonly number[]): Promise<ShownCell[][]> {
    const end = Math.min(to, this.rows);
    if (from >= end) return [];
    if (this.#first === undefined || end > this.#first.length)
      return await this.#ask<"window">({ kind: "window", from, to, columns });
    return this.#first.slice(from, end).map((row) => columns.map((column) => row[column] ?? null));
  }

  cell(row: number, column: number): Promise<Answers["cell"]> {
    return this.#ask<"cell">({ kind: "cell", row, column });
  }

  rowJson(row: number): Promise<string> {
    return this.#ask<"row">({ kind: "row", row });
  }

  copy(range: CellRange, format: CopyFormat): Promise<string> {
    return this.#ask<"copy">({ kind: "copy", range, format });
  }

  numbers(columns: readonly number[], most: number): Promise<(number | null)[][]> {
    return this.#ask<"numbers">({ kind: "numbers", columns, most });
  }

  async sort(column: number | undefined, isDescending: boolean): Promise<void> {
    this.#first = undefined;
    this.#reordered(await this.#ask<"sort">({ kind: "sort", column, isDescending }));
  }

  async filter(text: string): Promise<void> {
    this.isFiltered = text !== "";
    this.#first = undefined;
    this.#reordered(await this.#ask<"filter">({ kind: "filter", text }));
  }

  #reordered(rows: number): void {
    this.rows = rows;
    this.arrangement++;
    this.#changed();
  }

  #ask<K extends keyof Answers>(question: Question): Promise<Answers[K]> {
    const ask = ++this.#asked;
    return new Promise((resolve) => {
      this.#waiting.set(ask, resolve);
      this.#tell({ ...question, ask });
    });
  }

  #tell(ask: Ask): void {
    this.#worker.postMessage(ask);
  }

  async #hear(told: Told): Promise<void> {
    switch (told.kind) {
      case "head":
        this.head = told.head;
        if (this.isRunning) this.state = "receiving";
        break;
      case "columns":
        this.columns = told.columns;
        break;
      case "progress":
        this.received = told.received;
        this.rows = told.shown;
        this.bytes = told.bytes;
        if (told.first !== undefined && this.#first !== undefined) this.#first = told.first;
        break;
      case "end":
        this.#end("done");
        return;
      case "failed": {
        const response = new Response(told.text, {
          status: told.status,
          headers: told.headers.map(([a, b]) => [a, b]),
        });
        const error = await errorOf(response);
        if (error.status === 401 && !this.#isRenewed) await this.#runAgain(error);
        else this.#fail(error);
        return;
      }
      case "broken":
        this.#fail(this.head === undefined ? unreachable(told.message) : brokenOff(told.message));
        return;
      case "answer": {
        const resolve = this.#waiting.get(told.ask);
        this.#waiting.delete(told.ask);
        resolve?.(told.value as never);
        return;
      }
    }
    this.#changed();
  }

  /** The session has ended: the user signs in over the page, and the query is sent again. */
  async #runAgain(ended: ApiError): Promise<void> {
    this.#isRenewed = true;
    try {
      await renewSession(ended, this.#ending.signal);
    } catch (error) {
      if (!this.#ending.signal.aborted) this.#fail(error instanceof ApiError ? error : ended);
      return;
    }
    if (!this.#ending.signal.aborted) this.#tell({ kind: "run", request: this.#request });
  }

  #fail(error: ApiError): void {
    this.error = error;
    this.#end("failed");
  }

  #end(state: ResultState): void {
    if (!this.isRunning) return;
    this.state = state;
    // Rows that came after a sort or a search have found their places.
    this.arrangement++;
    this.elapsedMs = clock.monotonicMs() - this.startedMs;
    this.#changed();
  }

  #changed(): void {
    this.version++;
    this.#onChange();
  }
}

function brokenOff(cause: string): ApiError {
  const message = `the response was cut off: ${cause}. The rows received so far are below; run the query again for the rest`;
  return new ApiError(0, { code: "broken_off", message });
}
