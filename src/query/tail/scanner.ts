import type { Caller } from "../../auth/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { Semaphore } from "../../core/concurrency.ts";
import { EngineError, type ErrorCode } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { linesOf } from "../../core/lines.ts";
import type { QueryService } from "../contract/query.ts";
import { TAG_COLUMN } from "../parse/row-condition.ts";
import type { TailPosition } from "./position.ts";
import type { Slice } from "./slice.ts";
import type { ReadRow } from "./tail.ts";

/** A table as its tails know it. */
export type TailedTable = { database: string; table: string; tableId: number };

/** What a slice has for one filter: its rows up to a position, or why the filter cannot go on. */
export type FilterRead = { rows: ReadRow[]; position: TailPosition; isSlow: boolean } | { failure: EngineError };

export type TailScannerOptions = {
  query: Pick<QueryService, "run">;
  clock: Pick<Clock, "monotonicMs">;
  newId: IdSource;
  onScan: (scan: { rows: number; isShared: boolean }) => void;
};

/** Rows that one scan gives, and so what a reader holds at most: with a row more, so many bytes. */
const ROWS_PER_SCAN = 10_000;
const BYTES_PER_SCAN = 2 * 1024 * 1024;
/** Scans of this node under way at a time, so that queries find processes free. */
const SCANS_AT_ONCE = 2;
/** What filters that share a scan may take together before each is tried alone. */
const SHARED_WALL_MS = 5_000;
/** What a filter may take alone: no more than two scans run at a time, so one that hangs must not hold them up. */
const ALONE_WALL_MS = 30_000;
/** A filter that takes so long alone does not share scans any more. */
const SLOW_MS = 2_000;
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** Filters that fail with these fail for what they say, and would again. */
const OF_FILTER = new Set<ErrorCode>(["parse_error", "invalid_query", "execution_error", "budget_exceeded"]);

/** Scans are the node's own: whoever tails was checked when the tail began. */
const SCANNER: Caller = { subject: "tail", kind: "internal", role: "read", databases: undefined };

/**
 * Reads slices of tables for tails: one query per slice, in a query process as any, with the filters of all tails that
 * are equally far. A filter that fails on a value, passes a budget or kills its process must not take the others with it:
 * then each is tried alone, and only the one whose fault it is fails.
 */
export class TailScanner {
  readonly #options: TailScannerOptions;
  readonly #turns = new Semaphore(SCANS_AT_ONCE);

  constructor(options: TailScannerOptions) {
    this.#options = options;
  }

  /** What the slice has for each filter. Rejects for what is no filter's fault. */
  async read(
    table: TailedTable,
    slice: Slice,
    filters: readonly string[],
    signal: AbortSignal,
  ): Promise<Map<string, FilterRead>> {
    if (slice.extents.length === 0) {
      return new Map(filters.map((filter) => [filter, { rows: [], position: slice.end, isSlow: false }]));
    }
    if (filters.length > 1) {
      try {
        return await this.#scan(table, slice, filters, { signal, wallMs: SHARED_WALL_MS });
      } catch (error) {
        if (!isOfFilter(error) && !isDeath(error)) throw error;
      }
    }
    const reads = new Map<string, FilterRead>();
    for (const filter of filters) reads.set(filter, await this.#readAlone(table, slice, filter, signal));
    return reads;
  }

  async #readAlone(table: TailedTable, slice: Slice, filter: string, signal: AbortSignal): Promise<FilterRead> {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      const read = (await this.#scanTwice(table, slice, filter, signal)).get(filter);
      if (read === undefined) throw new Error("a scan has nothing for its only filter");
      return "failure" in read ? read : { ...read, isSlow: clock.monotonicMs() - startedMs > SLOW_MS };
    } catch (error) {
      if (isOfFilter(error) || isDeath(error)) return { failure: error };
      throw error;
    }
  }

  /** A process may die for a reason of its own; one that dies twice in a row of one filter alone dies of that. */
  async #scanTwice(
    ...[table, slice, filter, signal]: [TailedTable, Slice, string, AbortSignal]
  ): Promise<Map<string, FilterRead>> {
    const limits = { signal, wallMs: ALONE_WALL_MS };
    try {
      return await this.#scan(table, slice, [filter], limits);
    } catch (error) {
      if (!isDeath(error)) throw error;
      return await this.#scan(table, slice, [filter], limits);
    }
  }

  async #scan(
    { database, table, tableId }: TailedTable,
    slice: Slice,
    filters: readonly string[],
    { signal, wallMs }: { signal: AbortSignal; wallMs: number },
  ): Promise<Map<string, FilterRead>> {
    const { query, newId, onScan } = this.#options;
    const [text = "true", ...more] = filters;
    const { extents, from } = slice;
    return await this.#turns.run(async () => {
      const { rows, body } = await query.run({
        caller: SCANNER,
        database,
        text,
        tailing: { selection: { table, rows: "tailed", more, limit: ROWS_PER_SCAN }, tableId, extents, from },
        requestId: `tail-${newId()}`,
        signal,
        budget: { wallMs },
      });
      onScan({ rows, isShared: filters.length > 1 });
      return await collect(body, { slice, filters, isCut: rows >= ROWS_PER_SCAN });
    });
  }
}

function isOfFilter(error: unknown): error is EngineError {
  return error instanceof EngineError && OF_FILTER.has(error.code);
}

/** The query process ended, or was ended, before it answered. */
function isDeath(error: unknown): error is EngineError {
  return error instanceof EngineError && error.code === "query_failed";
}

/** Each filter's rows, as far as they are not too many together. */
async function collect(
  body: AsyncIterable<Uint8Array>,
  { slice, filters, isCut }: { slice: Slice; filters: readonly string[]; isCut: boolean },
): Promise<Map<string, FilterRead>> {
  const rows = filters.map((): ReadRow[] => []);
  let sizeBytes = 0;
  let position = slice.end;
  for await (const line of linesOf(body, { maxLineBytes: MAX_LINE_BYTES, tooLong })) {
    const { place, matched, text } = splitLine(line);
    const at = slice.after(place);
    for (const filter of matched) rows[filter]?.push({ position: at, text });
    // Of a text in memory a character has two bytes where one of them needs them.
    sizeBytes += Buffer.byteLength(text);
    if (isCut || sizeBytes > BYTES_PER_SCAN) position = at;
    if (sizeBytes > BYTES_PER_SCAN) break;
  }
  return new Map(filters.map((filter, i) => [filter, { rows: rows[i] ?? [], position, isSlow: false }]));
}

function tooLong(): EngineError {
  return new EngineError("execution_error", `a row has more than ${MAX_LINE_BYTES} bytes`);
}

const PREFIX = `{"${TAG_COLUMN}":"`;

/** Takes the tag (see `TailSelection`) out of a line, as it is the first member, without parsing what follows. */
export function splitLine(line: string): { place: number; matched: readonly number[]; text: string } {
  const end = line.indexOf('"', PREFIX.length);
  if (!line.startsWith(PREFIX) || end === -1) throw new EngineError("query_failed", "a row of a tail has no tag");
  const [place, ...matched] = line.slice(PREFIX.length, end).split(" ").map(Number);
  const text = `{${line.slice(line[end + 1] === "," ? end + 2 : end + 1)}`;
  return { place: place ?? 0, matched: matched.length === 0 ? [0] : matched, text };
}
