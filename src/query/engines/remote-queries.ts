import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Caller } from "../../auth/caller.ts";
import { withTimeLimit, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { budgetError, type AskedBudget } from "../budgets/budget.ts";
import type { Converted, EngineProgress, QueryEngines, RowConverter } from "../contract/engines.ts";
import type { ResultFormat } from "../stream/formats.ts";
import { ForeignSpool } from "./foreign-spool.ts";

export type RemoteQueriesOptions = {
  engines: QueryEngines;
  /** Made when the first answer needs it. */
  converter: () => Promise<RowConverter>;
  clock: Clock;
  newId: IdSource;
  /** A folder for this alone, in the file system of the query service's. */
  tempDir: string;
  /** Most time that a query may take whose client waits for it. */
  wallMs: number;
};

export type RemoteRequest = {
  /** Name of the engine. */
  engine: string;
  /** In that engine's own language. */
  text: string;
  database: string;
  caller: Pick<Caller, "subject" | "kind" | "databases">;
  address?: string | undefined;
  requestId: string;
  format: ResultFormat;
  /** See `QueryRequest`: the query there is ended as soon as it has given one row more. */
  maxRows?: number | undefined;
  /** See `QueryRequest`. */
  saveTo?: string | undefined;
  /** `wallMs` is of the whole, and of nothing when it is not there: the engine has bounds of its own. */
  budget: AskedBudget;
  /** Most bytes of text that the answer may have. */
  maxBytes: number;
  /** Told once the engine has the query, before anything else happens. */
  onBegun?: (queryId: string) => Promise<void>;
  onProgress?: (progress: EngineProgress & { rows: number }) => void;
  signal: AbortSignal;
};

/**
 * Has a query engine of somebody else's run a text, and gives the answer as any query's: its values as our types have
 * them, in each of our formats.
 */
export class RemoteQueries {
  readonly #options: RemoteQueriesOptions;
  #cleaned: Promise<void> | undefined;

  constructor(options: RemoteQueriesOptions) {
    this.#options = options;
  }

  /** Most time that a query may take whose client waits for it. */
  get wallMs(): number {
    return this.#options.wallMs;
  }

  /** Rejects with `EngineError`; the query there is ended then. The caller must drain or close `body`. */
  async run(request: RemoteRequest): Promise<Converted> {
    checkMaySend(request.caller);
    const { clock, newId, tempDir } = this.#options;
    // What a process that was killed has left there.
    this.#cleaned ??= rm(tempDir, { recursive: true, force: true });
    await this.#cleaned;
    const folder = join(tempDir, newId());
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { wallMs } = request.budget;
    try {
      if (wallMs === undefined) return await this.#run(folder, request);
      const startedMs = clock.monotonicMs();
      const late = (): Error => budgetError("wall_clock_ms", clock.monotonicMs() - startedMs, wallMs);
      const { signal } = request;
      return await withTimeLimit(clock, { ms: wallMs, late, signal }, (inTime) =>
        this.#run(folder, { ...request, signal: inTime }),
      );
    } catch (error) {
      if (request.signal.aborted) throw new EngineError("cancelled", "the client left", { cause: error });
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Ends a query that another process began. */
  async cancel(engine: string, queryId: string): Promise<void> {
    await this.#options.engines.cancel(engine, queryId);
  }

  async #run(folder: string, request: RemoteRequest): Promise<Converted> {
    const { engines, converter } = this.#options;
    const { address = "", maxBytes, maxRows = Infinity, onBegun, onProgress, ...rest } = request;
    const { queryId, pages } = await engines.begin({ ...rest, address });
    const spool = new ForeignSpool(folder, maxBytes);
    let isTold = false;
    // Leaving the loop early ends the query there, also when it cannot be told. The first page is there at once.
    for await (const page of pages) {
      if (!isTold) await onBegun?.(queryId);
      isTold = true;
      await spool.add(page);
      onProgress?.({ ...page.progress, rows: spool.rows });
      if (spool.rows > maxRows) break;
    }
    const rows = await spool.end();
    if (rows === undefined || rows.columns.length === 0) {
      throw new EngineError("invalid_query", "the text has no rows for an answer: only queries are sent to an engine");
    }
    return await (await converter()).convert({ ...rest, rows, maxRows: request.maxRows });
  }
}

/** Throws `forbidden`. */
export function checkMaySend({ databases }: Pick<Caller, "databases">): void {
  if (databases === undefined) return;
  throw new EngineError(
    "forbidden",
    "query engines read with their own credential: use a token that is not limited to databases",
  );
}
