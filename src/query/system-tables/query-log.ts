import { QUERY_LOG_METRICS } from "./metrics.ts";
import { mayUseDatabase } from "../../auth/caller.ts";
import { mayReachWithin, ownerFilterWithin, ownerOf, type Asker } from "../../auth/owner.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import { foldName } from "../../core/names.ts";

/**
 * What became of every query of this node: a record per query, from its start on, for the table `system.queries` and
 * for the slow-query log. Held in memory and gone with the process; bounded by records per database, by databases, and
 * by the bytes of all texts together. Queries turned away by admission are counted in the metrics only, so that a
 * flood of them cannot push out the records that would explain it.
 */
export type QueryRecord = {
  /** The client's, or one that was made for it. */
  readonly id: string;
  readonly requestId: string;
  readonly database: string;
  /** Who asked: see `auth/owner.ts`. */
  readonly owner: string;
  /** The same for people. */
  readonly subject: string;
  readonly startedAtMs: number;
  /** The first `MAX_TEXT_BYTES` of the query, as it was sent. */
  readonly text: string;
  readonly language: string;
  /** `running`, `ok`, or the code of the error. */
  outcome: string;
  /** Who ended it by its id; undefined where nobody did. */
  endedBy?: string;
  /** Milliseconds in each stage that is over. */
  readonly stagesMs: Partial<Record<QueryStage, number>>;
  /** From the start until the answer could begin; undefined while it runs. */
  totalMs?: number;
} & QueryFigures;

/**
 * `queue` waits for admission and a process; `translate` is KQL's way to SQL, with the wait for the translator; `fetch` brings data to this machine; `scan` is DuckDB's run until all
 * rows are known; `stream` is as long as the client takes to read them.
 */
export type QueryStage = "queue" | "translate" | "parse" | "plan" | "fetch" | "scan" | "stream";

/** What is known of a query's work; each is absent as long as nobody said, or where it died before anybody could. */
export type QueryFigures = {
  rows?: number;
  resultBytes?: number;
  extentsTotal?: number;
  extentsRead?: number;
  rowsRead?: number;
  /** Of the extents that the plan reads, and of those among them that are on this machine by now. */
  bytesPlanned?: number;
  bytesReady?: number;
  /** Requested from the object store. */
  bytesRead?: number;
  cacheHits?: number;
  /** CPU time of the query process, all threads. */
  cpuMs?: number;
  /** The most that its process has grown by for it, as seen from outside. */
  memoryBytes?: number;
  /** The most that was spilled to disk at one time, as sampled. */
  spillBytes?: number;
  /** Of the scan, 0 to 100, where DuckDB knows it. */
  percent?: number;
};

/** A query as it is at the moment. */
export type QueryState = {
  record: Readonly<QueryRecord>;
  /** Until the client has the answer. */
  isRunning: boolean;
  /** Of one that runs. */
  stage: QueryStage | undefined;
  /** From the start until now, or until the answer could begin. */
  elapsedMs: number;
};

/** Follows one query through its stages. */
export type QueryTrace = {
  /** Names of databases that do not exist are anybody's to invent, so nothing is kept before this is called. */
  databaseExists(): void;
  /** Ends the stage before. */
  enter(stage: QueryStage): void;
  add(figures: QueryFigures): void;
  /** Has figures that change asked for, as long as the query runs, whenever somebody looks. */
  follow(figures: () => QueryFigures): void;
  /** The answer can begin, or there is none; says so in the slow-query log where it took long. */
  end(error?: unknown): void;
  /** The client has read the answer, or left; or somebody ended the query, and why. */
  streamed(error?: unknown): void;
};

export type QueryLogOptions = {
  clock: Clock;
  log: Log;
  /** Queries that take at least this long are logged; 0 for none. */
  slowMs: number;
  metrics: Metrics;
  newId: IdSource;
};

/** Records kept per database. */
export const QUERY_LOG_RECORDS = 1_000;
const MAX_DATABASES = 256;
const MAX_TEXT_BYTES = 4 * 1024;
const MAX_LOGGED_BYTES = 1024;
/** Of all texts together. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** What is told of a query when it begins. */
type LoggedQuery = {
  queryId?: string | undefined;
  requestId: string;
  database: string;
  text: string;
  language?: string;
  caller: Asker;
  tailing?: unknown;
};

/** Has a query end early, with that error. */
type End = (reason: EngineError) => void;

type Running = { trace: Trace; end: End };

type Held = { records: QueryRecord[]; bytes: number };

export class QueryLog {
  readonly #options: QueryLogOptions;
  /** By folded name, the one used last at the end. */
  readonly #databases = new Map<string, Held>();
  /** By owner and id: a caller's ids mean queries of that caller, so nobody can take or try those of others. */
  readonly #running = new Map<string, Running>();
  #bytes = 0;

  constructor(options: QueryLogOptions) {
    this.#options = options;
  }

  /**
   * Begins a record, in the stage `queue`; it is in the list once the query has a process, or failed without. One for live
   * tails is not: they are many, and nobody's own. Throws `conflict` while another query of the caller has the id, on
   * this node: nodes do not wait for each other to begin a query.
   */
  start(query: LoggedQuery, end: End = () => {}): QueryTrace {
    const owner = ownerOf(query.caller);
    const id = query.queryId ?? this.#options.newId();
    const key = keyOf(owner, id);
    if (this.#running.has(key)) {
      throw new EngineError("conflict", `your query ${id} is still running: end it, or give this one another id`);
    }
    const record: QueryRecord = {
      id,
      requestId: query.requestId,
      database: query.database,
      owner,
      subject: query.caller.subject,
      startedAtMs: this.#options.clock.nowMs(),
      text: firstBytes(query.text, MAX_TEXT_BYTES),
      language: query.language ?? "sql",
      outcome: "running",
      stagesMs: {},
    };
    if (query.tailing !== undefined) return new Trace(this.#options, record, { keep: () => {}, gone: () => {} });
    const gone = (): void => void this.#running.delete(key);
    const trace = new Trace(this.#options, record, { keep: () => this.#keep(record), gone });
    this.#running.set(key, { trace, end });
    return trace;
  }

  /** The queries that the asker may see: those that run, the oldest first, then those that are over, the newest first. */
  states(asker: Asker): QueryState[] {
    const running = Array.from(this.#running.values(), ({ trace }) => trace);
    const isRunning = new Set(running.map(({ record }) => record));
    const seen = running.filter(({ record }) => maySee(asker, record));
    const over = Array.from(this.#databases.values(), ({ records }) => records)
      .flat()
      .filter((record) => !isRunning.has(record) && maySee(asker, record))
      .sort((a, b) => b.startedAtMs - a.startedAtMs);
    return [...seen.map((trace) => trace.state()), ...over.map(stateOfEnded)];
  }

  /**
   * The query of that id: the caller's own, or else one of somebody whose queries the caller may see; one that runs, or
   * else the last one.
   */
  state(asker: Asker, id: string): QueryState | undefined {
    const own = ownerOf(asker);
    const running = this.#running.get(keyOf(own, id))?.trace;
    if (running !== undefined && maySee(asker, running.record)) return running.state();
    const known = this.states(asker).filter(({ record }) => record.id === id);
    return known.find(({ record }) => record.owner === own) ?? known[0];
  }

  /** Ends the query of that id that `state` shows; undefined where it does not run. */
  end(asker: Asker, id: string, reason: EngineError): QueryRecord | undefined {
    const state = this.state(asker, id);
    if (state === undefined || !state.isRunning) return undefined;
    const running = this.#running.get(keyOf(state.record.owner, id));
    if (running !== undefined) running.trace.ender ??= asker.subject;
    running?.end(reason);
    return state.record;
  }

  /** Whether there are records of a database. */
  knows(database: string): boolean {
    return this.#databases.has(foldName(database));
  }

  /**
   * The records of a database that the asker may see, oldest first: texts hold what somebody looks for, so they are for
   * whoever asked and for admins.
   */
  of(database: string, asker: Asker): readonly QueryRecord[] {
    const records = this.#databases.get(foldName(database))?.records ?? [];
    const only = ownerFilterWithin(asker);
    return records.filter(({ owner }) => only === undefined || owner === only);
  }

  #keep(record: QueryRecord): void {
    const name = foldName(record.database);
    const held = this.#databases.get(name) ?? { records: [], bytes: 0 };
    this.#databases.delete(name);
    this.#databases.set(name, held);
    held.records.push(record);
    held.bytes += sizeOf(record);
    this.#bytes += sizeOf(record);
    if (held.records.length > QUERY_LOG_RECORDS) this.#dropOldest(held);
    if (this.#databases.size > MAX_DATABASES) this.#dropDatabase();
    while (this.#bytes > MAX_HELD_BYTES) this.#dropOldest(this.#largest(held));
  }

  #dropOldest(held: Held): void {
    const size = sizeOf(held.records.shift());
    held.bytes -= size;
    this.#bytes -= size;
  }

  #dropDatabase(): void {
    for (const [name, { bytes }] of this.#databases) {
      this.#databases.delete(name);
      this.#bytes -= bytes;
      return;
    }
  }

  #largest(held: Held): Held {
    let largest = held;
    for (const other of this.#databases.values()) if (other.bytes > largest.bytes) largest = other;
    return largest;
  }
}

function keyOf(owner: string, id: string): string {
  return `${owner}\0${id}`;
}

/** As in `system.queries`: callers see their own, admins those of everybody, all of them of databases that they may use. */
function maySee(asker: Asker, { owner, database }: QueryRecord): boolean {
  return mayUseDatabase(asker, database) && mayReachWithin(asker, owner);
}

function stateOfEnded(record: QueryRecord): QueryState {
  return { record, isRunning: false, stage: undefined, elapsedMs: record.totalMs ?? 0 };
}

/** What happens to the record besides. */
type Fate = {
  /** It goes into the list. */
  keep: () => void;
  /** The query is over, and its client has the answer. */
  gone: () => void;
};

class Trace implements QueryTrace {
  readonly #options: QueryLogOptions;
  readonly record: QueryRecord;
  /** Who has asked for its end. */
  ender: string | undefined;
  readonly #fate: Fate;
  readonly #startedMs: number;
  #stage: QueryStage | undefined = "queue";
  #stageMs: number;
  #exists = false;
  #kept = false;
  #figures: (() => QueryFigures) | undefined;

  constructor(options: QueryLogOptions, record: QueryRecord, fate: Fate) {
    this.#options = options;
    this.record = record;
    this.#fate = fate;
    this.#startedMs = options.clock.monotonicMs();
    this.#stageMs = this.#startedMs;
  }

  databaseExists(): void {
    this.#exists = true;
  }

  enter(stage: QueryStage): void {
    this.#leave();
    this.#stage = stage;
    this.#keepOnce();
  }

  state(): QueryState {
    this.#refresh();
    const elapsedMs = this.record.totalMs ?? this.#options.clock.monotonicMs() - this.#startedMs;
    return { record: this.record, isRunning: true, stage: this.#stage, elapsedMs };
  }

  add(figures: QueryFigures): void {
    Object.assign(this.record, figures);
  }

  follow(figures: () => QueryFigures): void {
    this.#refresh();
    this.#figures = figures;
  }

  #refresh(): void {
    if (this.#figures !== undefined) this.add(this.#figures());
  }

  end(error?: unknown): void {
    if (this.record.totalMs !== undefined) return;
    const outcome = error === undefined ? "ok" : outcomeOf(error);
    const nowMs = this.#leave();
    this.#refresh();
    this.#figures = undefined;
    this.record.totalMs = nowMs - this.#startedMs;
    this.record.outcome = outcome;
    this.#noteEnder();
    this.#stage = error === undefined ? "stream" : undefined;
    if (outcome !== "too_many_requests") this.#keepOnce();
    if (error !== undefined) this.#fate.gone();
    this.#logIfSlow();
  }

  streamed(error?: unknown): void {
    if (this.#stage !== "stream") return;
    if (error !== undefined) this.record.outcome = outcomeOf(error);
    this.#noteEnder();
    this.#leave();
    this.#fate.gone();
  }

  /** One that was over by itself in that moment is not ended by anybody. */
  #noteEnder(): void {
    if (this.ender !== undefined && this.record.outcome === "cancelled") this.record.endedBy = this.ender;
  }

  #keepOnce(): void {
    if (this.#kept || !this.#exists) return;
    this.#kept = true;
    this.#fate.keep();
  }

  /** Books the time of the stage that ends now. */
  #leave(): number {
    const nowMs = this.#options.clock.monotonicMs();
    const { stagesMs } = this.record;
    if (this.#stage !== undefined) {
      const stageMs = nowMs - this.#stageMs;
      stagesMs[this.#stage] = (stagesMs[this.#stage] ?? 0) + stageMs;
      QUERY_LOG_METRICS.of(this.#options.metrics).queryStageDuration.observe({ stage: this.#stage }, stageMs / 1000);
    }
    this.#stage = undefined;
    this.#stageMs = nowMs;
    return nowMs;
  }

  #logIfSlow(): void {
    const { slowMs, log } = this.#options;
    const { text, startedAtMs: _started, totalMs = 0, stagesMs, ...rest } = this.record;
    if (slowMs === 0 || totalMs < slowMs) return;
    const rounded = Object.entries(stagesMs).map(([stage, ms]) => [stage, Math.round(ms)]);
    const stages: unknown = Object.fromEntries(rounded);
    const totals = { ...rest, totalMs: Math.round(totalMs), stagesMs: stages };
    log.warn({ ...totals, text: firstBytes(text, MAX_LOGGED_BYTES) }, "slow query");
  }
}

function outcomeOf(error: unknown): string {
  return error instanceof EngineError ? error.code : "internal";
}

/** At most that many bytes of UTF-8, never half a character. */
function firstBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  // A slice keeps the whole text alive; a copy does not.
  return Buffer.from(text.slice(0, read), "utf8").toString("utf8");
}

/** Strings in memory are two bytes per unit at most. */
function sizeOf(record: QueryRecord | undefined): number {
  return record === undefined ? 0 : RECORD_BYTES + record.text.length * 2;
}

const RECORD_BYTES = 512;
