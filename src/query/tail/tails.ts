import { mayUseDatabase, type Caller } from "../../auth/caller.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { onCommits } from "../../catalog/commit-signals.ts";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { EngineError, messageOf, type ErrorCode } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Signals } from "../../db/signals.ts";
import type { QueryService } from "../contract/query.ts";
import { databaseNotFound } from "../../auth/name-not-found.ts";
import { tableNotFound } from "../resolve/not-found.ts";
import { TailLane } from "./lane.ts";
import { TAIL_METRICS } from "./metrics.ts";
import { afterSnapshot, type TailPosition } from "./position.ts";
import { TailScanner, type TailedTable } from "./scanner.ts";
import { Tail, type TailEnd } from "./tail.ts";

/**
 * Live tails: each row of later commits to a table once, in the order of the commits.
 *
 *     position.ts   where a tail is: a snapshot, and a row of those that its commit brought
 *     slice.ts      what of the extents that commits brought is read next
 *     scanner.ts    rows of a slice, for the filters of several tails at once, by a query
 *     tail.ts       one reader, with what it has not taken yet
 *     lane.ts       tails of one table, which share scans
 *     tails.ts      all of this node: who may have one, what wakes them, what ends them
 *
 * Commits wake the tails of their tables by a signal; a look at the head each second covers signals that were lost.
 */
export type TailsOptions = {
  catalog: Pick<Catalog, "resolve" | "additions" | "head" | "databases" | "tables">;
  query: Pick<QueryService, "run">;
  signals: Pick<Signals, "listen">;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  newId: IdSource;
};

export type TailRequest = {
  caller: Caller;
  /** Who the same request is from now; rejects when it would be refused. */
  authenticateAgain: () => Promise<Caller>;
  /** For the audit log. */
  address: string;
  requestId: string;
  signal: AbortSignal;
  database: string;
  table: string;
  /** An SQL condition. */
  filter: string;
  /** Where it goes on; undefined for what comes from now on. */
  position: TailPosition | undefined;
};

/** Tails of one node, and of one caller among them. */
const MOST_TAILS = 64;
const MOST_PER_CALLER = 16;
/** What it may take to look at a filter, without a row. */
const TRY_WALL_MS = 10_000;
const POLL_MS = 1_000;
/** A tail that shows no rows tells its reader where it is after so many polls, so that coming again is not too late. */
const POLLS_PER_POSITION = 5;
/** After so many polls it is asked whether readers may still read. */
const POLLS_PER_CHECK = 5;

const LEAVING: TailEnd = { code: "unavailable", message: "this server is about to stop", reconnect: true };

export class Tails {
  readonly #options: TailsOptions;
  readonly #metrics: ReturnType<typeof TAIL_METRICS.of>;
  readonly #scanner: TailScanner;
  readonly #lanes = new Map<string, TailLane>();
  readonly #open = new Map<Tail, Open>();
  readonly #stopListening: () => void;
  /** Callers of tails that are open or about to be, one for each. */
  readonly #callers: (string | undefined)[] = [];
  #polls = 0;
  #isPolling = false;
  #timer: TimerHandle | undefined;
  #isClosed = false;

  constructor(options: TailsOptions) {
    this.#options = options;
    this.#metrics = TAIL_METRICS.of(options.metrics);
    this.#metrics.tails.watch({}, () => this.#open.size);
    this.#scanner = new TailScanner({
      ...options,
      onScan: ({ rows, isShared }) => {
        this.#metrics.rows.inc(rows);
        this.#metrics.scans.inc({ kind: isShared ? "shared" : "alone" });
      },
    });
    this.#stopListening = onCommits(options.signals, (tableIds) => this.#heard(tableIds));
  }

  /**
   * Begins a tail. `return` must be called when it is given up. Rejects with `EngineError`: `too_many_requests`,
   * `unavailable`, what a query of the table with the filter would be refused for, `snapshot_expired` when not all can be
   * shown that came after the position, `invalid_parameter` for one that is yet to come.
   */
  async open(request: TailRequest): Promise<{ tail: Tail; position: TailPosition }> {
    if (this.#isClosed) throw new EngineError("unavailable", LEAVING.message, { headers: { "Retry-After": "1" } });
    const leave = this.#enter(callerOf(request));
    try {
      const { table, position } = await this.#checked(request);
      return { tail: this.#begin(request, { table, position, leave }), position };
    } catch (error) {
      leave();
      throw error;
    }
  }

  #enter(caller: string | undefined): () => void {
    if (this.#callers.length >= MOST_TAILS) throw tooMany(`this server has ${MOST_TAILS} live tails already`);
    if (caller !== undefined && this.#callers.filter((one) => one === caller).length >= MOST_PER_CALLER) {
      throw tooMany(`this server has ${MOST_PER_CALLER} live tails of yours already`);
    }
    this.#callers.push(caller);
    return () => void this.#callers.splice(this.#callers.indexOf(caller), 1);
  }

  /** Ends all tails: their readers are to come again, elsewhere. */
  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    for (const tail of this.#open.keys()) tail.end(LEAVING);
  }

  /** The table, and the position to begin at, when the request can be answered. */
  async #checked(request: TailRequest): Promise<{ table: TailedTable; position: TailPosition }> {
    const { catalog } = this.#options;
    const { caller, database, table: name } = request;
    if (!mayUseDatabase(caller, database)) throw await databaseNotFound(catalog, request, { refused: true });
    const resolution = await catalog.resolve(database, [name]);
    if (resolution === undefined) throw await databaseNotFound(catalog, request);
    const { head } = resolution;
    const [found] = resolution.tables;
    if (found === undefined) throw await tableNotFound(catalog, database, { name, mentions: [] });
    const table = { database, table: name, tableId: found.id };
    await this.#tryFilter(request, table);
    const { position = afterSnapshot(head.id) } = request;
    if (position.snapshot > head.id + 1) {
      const message = `snapshot ${position.snapshot} is yet to come; the newest is ${head.id}`;
      throw new EngineError("invalid_parameter", message);
    }
    await catalog.additions({ tableId: found.id, from: position.snapshot, upTo: head.id, limit: 1 });
    return { table, position };
  }

  /** The filter meets the gate and the table's columns, and no rows. */
  async #tryFilter(request: TailRequest, { table, tableId }: TailedTable): Promise<void> {
    const { caller, address, requestId, signal, database, filter } = request;
    const selection = { table, rows: "tailed", more: [], limit: 1 } as const;
    const tailing = { selection, tableId, extents: [], from: 0 };
    const asked = { caller, address, requestId, signal, database, text: filter };
    const { body } = await this.#options.query.run({ ...asked, tailing, budget: { wallMs: TRY_WALL_MS } });
    await body[Symbol.asyncIterator]().return?.();
  }

  #begin(
    request: TailRequest,
    { table, position, leave }: { table: TailedTable; position: TailPosition; leave: () => void },
  ): Tail {
    const lane = this.#laneOf(String(table.tableId), table);
    const tail: Tail = new Tail({
      filter: request.filter,
      position,
      onDrained: () => this.#open.get(tail)?.lane.drained(tail),
      onEnd: (last) => this.#forget(tail, last),
    });
    this.#open.set(tail, { request, lane, leave });
    lane.add(tail);
    if (this.#isClosed) tail.end(LEAVING);
    this.#timer ??= this.#options.clock.every(POLL_MS, () => void this.#poll());
    lane.wake();
    return tail;
  }

  #laneOf(key: string, table: TailedTable): TailLane {
    const { catalog, log } = this.#options;
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const lane: TailLane = new TailLane(key, table, {
      catalog,
      log,
      scanner: this.#scanner,
      onSlow: (tail) => this.#setApart(tail),
    });
    this.#lanes.set(key, lane);
    return lane;
  }

  /** From here on its filter has scans of its own. */
  #setApart(tail: Tail): void {
    const open = this.#open.get(tail);
    if (open === undefined) return;
    const { table } = open.lane;
    const own = this.#laneOf(`${table.tableId} ${tail.filter}`, table);
    if (own === open.lane) return;
    this.#leave(tail, open.lane);
    open.lane = own;
    own.add(tail);
    own.wake();
  }

  #forget(tail: Tail, last: TailEnd | undefined): void {
    const open = this.#open.get(tail);
    if (open === undefined) return;
    if (last !== undefined) this.#tellOfEnd(last, open.request);
    this.#open.delete(tail);
    open.leave();
    this.#leave(tail, open.lane);
    if (this.#open.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #tellOfEnd({ code, message }: TailEnd, { requestId, caller, database, table }: TailRequest): void {
    this.#metrics.ended.inc({ code });
    const { subject } = caller;
    this.#options.log.info({ requestId, subject, database, table, code, reason: message }, "a live tail was ended");
  }

  #leave(tail: Tail, lane: TailLane): void {
    lane.remove(tail);
    if (lane.tails.size === 0) this.#lanes.delete(lane.key);
  }

  #heard(tableIds: ReadonlySet<number> | undefined): void {
    for (const lane of this.#lanes.values()) {
      if (tableIds === undefined || tableIds.has(lane.table.tableId)) lane.wake();
    }
  }

  /** One at a time: a catalog that does not answer is not asked again meanwhile. */
  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    const polls = ++this.#polls;
    if (polls % POLLS_PER_POSITION === 0) for (const tail of this.#open.keys()) tail.tellPosition();
    try {
      const head = await this.#options.catalog.head();
      for (const lane of this.#lanes.values()) if (lane.isBehind(head.id)) lane.wake();
      if (polls % POLLS_PER_CHECK === 0)
        await Promise.all([...this.#open].map(([tail, open]) => this.#check(tail, open)));
    } catch (error) {
      this.#options.log.debug({ reason: messageOf(error) }, "the head could not be looked at for live tails");
    } finally {
      this.#isPolling = false;
    }
  }

  /** Ends the tail of a reader that may not read any more. What cannot be known now is asked again. */
  async #check(tail: Tail, { request }: Open): Promise<void> {
    try {
      const caller = await request.authenticateAgain();
      if (mayUseDatabase(caller, request.database)) return;
      tail.end({ code: "forbidden", message: "the token may not read this database any more", reconnect: false });
    } catch (error) {
      if (!(error instanceof EngineError) || !REFUSALS.has(error.code)) return;
      tail.end({ code: error.code, message: error.message, reconnect: false });
    }
  }
}

/** What an open tail is about. */
type Open = { request: TailRequest; lane: TailLane; leave: () => void };

/** Who is to have no more than a share; undefined where authentication is off, and nobody can be told from others. */
function callerOf({ caller: { kind, subject } }: TailRequest): string | undefined {
  return kind === "anonymous" ? undefined : subject;
}

function tooMany(message: string): EngineError {
  return new EngineError("too_many_requests", message, { headers: { "Retry-After": "5" } });
}

const REFUSALS = new Set<ErrorCode>(["unauthorized", "forbidden"]);
