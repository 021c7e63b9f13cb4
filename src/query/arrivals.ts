import type { Caller } from "../auth/caller.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { linesOf } from "../core/lines.ts";
import { quoteIdentifier } from "../io/duckdb/duckdb.ts";
import type { QueryRequest, QueryService } from "./contract/query.ts";
import { afterSnapshot } from "./tail/position.ts";
import { splitLine } from "./tail/scanner.ts";
import { sliceOf } from "./tail/slice.ts";

/**
 * The rows that came to a table, in the order in which they came, each once, for programs of this system that work through
 * a table in pages and remember where they were.
 *
 * A position is a place among what commits brought, as that of a live tail. A merge or a deletion may have replaced those
 * extents, once their snapshots cannot be read any more: then the reader catches up by the rows' own times, up to the head,
 * and goes on from there by commits. Only rows that came after a page of a catch-up, with a time before it, are missed.
 */
export type ArrivalPosition = {
  tableId: number;
  /** The newest time among the rows before it, in the words of the answer; undefined where there are none. */
  newestAt: string | undefined;
  /** By commits; or by time, and how many rows of that time were read. */
  next: { snapshot: number; row: number } | { at: string; skip: number };
};

export type ArrivedRow = {
  /** Tells the rows of a table apart. */
  id: string;
  /** A JSON object. */
  text: string;
};

export type ArrivalsRequest = {
  caller: Caller;
  database: string;
  table: string;
  /** Where the last page ended; undefined for the first row there is. */
  position: ArrivalPosition | undefined;
  /** Most rows; and bytes, with one row more. */
  rows: number;
  bytes: number;
  signal: AbortSignal;
};

export type ArrivalsPage = {
  rows: ArrivedRow[];
  /** Undefined where there is no such table. */
  position: ArrivalPosition | undefined;
  /** Whether that is all there is now. */
  isEnd: boolean;
};

export type ArrivalsOptions = {
  query: () => Promise<Pick<QueryService, "run">>;
  catalog: Pick<Catalog, "resolve" | "additions">;
  newId: IdSource;
  nowMs: () => number;
};

const SLICE = { extents: 64, sizeBytes: 64 * 1024 * 1024 } as const;
const PAGE_WALL_MS = 60_000;
const MAX_LINE_BYTES = 64 * 1024 * 1024;

type Head = { tableId: number; snapshot: number };

export class Arrivals {
  readonly #options: ArrivalsOptions;

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  /** Rejects as queries do. */
  async read(request: ArrivalsRequest): Promise<ArrivalsPage> {
    const { catalog } = this.#options;
    const resolution = await catalog.resolve(request.database, [request.table]);
    const table = resolution?.tables[0];
    if (resolution === undefined || table === undefined) return { rows: [], position: undefined, isEnd: true };
    const head = { tableId: table.id, snapshot: resolution.head.id };
    // A table that was made anew under the name is another one.
    const position = request.position?.tableId === table.id ? request.position : undefined;
    const next = position?.next ?? { snapshot: 1, row: 0 };
    if ("at" in next) return await this.#byTime(request, head, next);
    if (next.snapshot > head.snapshot) return { rows: [], position, isEnd: true };
    try {
      return await this.#byCommit(request, head, { ...next, newestAt: position?.newestAt });
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "snapshot_expired") throw error;
      const newestAt = position?.newestAt;
      return await this.#byTime(
        request,
        head,
        newestAt === undefined ? undefined : { at: newestAt, skip: 0 },
        newestAt,
      );
    }
  }

  async #byCommit(
    request: ArrivalsRequest,
    { tableId, snapshot: upTo }: Head,
    { newestAt, ...from }: { snapshot: number; row: number; newestAt: string | undefined },
  ): Promise<ArrivalsPage> {
    const additions = await this.#options.catalog.additions({
      tableId,
      from: from.snapshot,
      upTo,
      limit: SLICE.extents,
    });
    const slice = sliceOf(additions, from, { ...SLICE, rows: request.rows });
    const rows: ArrivedRow[] = [];
    let next = slice.end;
    if (slice.extents.length > 0) {
      const { table, rows: limit } = request;
      const selection = { table, rows: "tailed", more: [], limit } as const;
      const tailing = { selection, tableId, extents: slice.extents, from: slice.from };
      const { isCut, lines } = await this.#lines(request, { text: "true", tailing });
      for (const line of lines) {
        const { place, text } = splitLine(line);
        const at = slice.after(place);
        rows.push({ id: `${at.snapshot}.${at.row}`, text });
        if (isCut) next = at;
      }
    }
    const isEnd = next.snapshot > upTo;
    return { rows, position: { tableId, newestAt: newestOf(rows, newestAt, this.#options.nowMs()), next }, isEnd };
  }

  /** From a time on, the oldest first; `isAfter` the rows of which are known. */
  async #byTime(
    request: ArrivalsRequest,
    { tableId, snapshot }: Head,
    from: { at: string; skip: number } | undefined,
    isAfter?: string,
  ): Promise<ArrivalsPage> {
    const table = quoteIdentifier(request.table);
    const since = from === undefined ? "" : ` WHERE at ${isAfter === undefined ? ">=" : ">"} $at::TIMESTAMP_NS`;
    const { skip } = from ?? { skip: 0 };
    const text =
      `SELECT * FROM ${table} AS t AT (VERSION => ${snapshot})${since} ORDER BY at, to_json(t)::VARCHAR ` +
      `LIMIT ${request.rows} OFFSET ${skip}`;
    const parameters = from === undefined ? {} : { parameters: new Map([["at", from.at]]) };
    const { isCut, lines } = await this.#lines(request, { text, ...parameters });
    const ofTime = { at: from?.at ?? "", skip };
    const rows = lines.map((line): ArrivedRow => {
      const at = timeOf(line);
      if (at === ofTime.at) ofTime.skip++;
      else Object.assign(ofTime, { at, skip: 1 });
      return { id: `${at}/${ofTime.skip}`, text: line };
    });
    const newestAt = newestOf(rows, isAfter ?? from?.at, this.#options.nowMs());
    const next = isCut ? { ...ofTime } : afterSnapshot(snapshot);
    return { rows, position: { tableId, newestAt, next }, isEnd: !isCut };
  }

  /** `isCut`: there may be more rows than these. */
  async #lines(
    { caller, database, rows: most, bytes, signal }: ArrivalsRequest,
    asked: Pick<QueryRequest, "text" | "tailing" | "parameters">,
  ): Promise<{ isCut: boolean; lines: string[] }> {
    const { query, newId } = this.#options;
    const service = await query();
    const budget = { wallMs: PAGE_WALL_MS };
    const requestId = `arrivals-${newId()}`;
    const { rows, body } = await service.run({ caller, database, ...asked, requestId, signal, budget });
    const lines: string[] = [];
    let sizeBytes = 0;
    for await (const line of linesOf(body, { maxLineBytes: MAX_LINE_BYTES, tooLong })) {
      lines.push(line);
      sizeBytes += Buffer.byteLength(line);
      if (sizeBytes > bytes) break;
    }
    return { isCut: rows >= most || lines.length < rows, lines };
  }
}

function tooLong(): EngineError {
  return new EngineError("execution_error", `a row has more than ${MAX_LINE_BYTES} bytes`);
}

function timeOf(text: string): string {
  return String((JSON.parse(text) as Record<string, unknown>)["at"]);
}

/** Rows dated into the future say nothing of how far one is. */
function newestOf(rows: readonly ArrivedRow[], before: string | undefined, nowMs: number): string | undefined {
  let newest = before;
  for (const { text } of rows) {
    const at = timeOf(text);
    if (Date.parse(at) <= nowMs && (newest === undefined || at > newest)) newest = at;
  }
  return newest;
}
