import { QUERY_LOG_METRICS } from "./metrics.ts";
import { ownerFilterWithin, ownerOf, type Asker } from "../../auth/owner.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
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
  readonly requestId: string;
  readonly database: string;
  /** Who asked: see `auth/owner.ts`. */
  readonly owner: string;
  readonly startedAtMs: number;
  /** The first `MAX_TEXT_BYTES` of the query, as it was sent. */
  readonly text: string;
  readonly language: string;
  /** `running`, `ok`, or the code of the error. */
  outcome: string;
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
  bytesRead?: number;
  cacheHits?: number;
  /** CPU time of the query process, all threads. */
  cpuMs?: number;
  /** The most that was spilled to disk at one time, as sampled. */
  spillBytes?: number;
};

/** Follows one query through its stages. */
export type QueryTrace = {
  /** Names of databases that do not exist are anybody's to invent, so nothing is kept before this is called. */
  databaseExists(): void;
  /** Ends the stage before. */
  enter(stage: QueryStage): void;
  add(figures: QueryFigures): void;
  /** The answer can begin, or there is none; says so in the slow-query log where it took long. */
  end(error?: unknown): void;
  /** The client has read the answer, or left. */
  streamed(): void;
};

export type QueryLogOptions = {
  clock: Clock;
  log: Log;
  /** Queries that take at least this long are logged; 0 for none. */
  slowMs: number;
  metrics: Metrics;
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
  requestId: string;
  database: string;
  text: string;
  language?: string;
  caller: Asker;
  tailing?: unknown;
};

type Held = { records: QueryRecord[]; bytes: number };

export class QueryLog {
  readonly #options: QueryLogOptions;
  /** By folded name, the one used last at the end. */
  readonly #databases = new Map<string, Held>();
  #bytes = 0;

  constructor(options: QueryLogOptions) {
    this.#options = options;
  }

  /**
   * Begins a record, in the stage `queue`; it is in the list once the query has a process, or failed without. One for live
   * tails is not: they are many, and nobody's own.
   */
  start(query: LoggedQuery): QueryTrace {
    const record: QueryRecord = {
      requestId: query.requestId,
      database: query.database,
      owner: ownerOf(query.caller),
      startedAtMs: this.#options.clock.nowMs(),
      text: firstBytes(query.text, MAX_TEXT_BYTES),
      language: query.language ?? "sql",
      outcome: "running",
      stagesMs: {},
    };
    return new Trace(this.#options, record, () => query.tailing === undefined && this.#keep(record));
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

class Trace implements QueryTrace {
  readonly #options: QueryLogOptions;
  readonly #record: QueryRecord;
  readonly #keep: () => void;
  readonly #startedMs: number;
  #stage: QueryStage | undefined = "queue";
  #stageMs: number;
  #exists = false;
  #kept = false;

  constructor(options: QueryLogOptions, record: QueryRecord, keep: () => void) {
    this.#options = options;
    this.#record = record;
    this.#keep = keep;
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

  add(figures: QueryFigures): void {
    Object.assign(this.#record, figures);
  }

  end(error?: unknown): void {
    if (this.#record.totalMs !== undefined) return;
    const outcome = error === undefined ? "ok" : error instanceof EngineError ? error.code : "internal";
    const nowMs = this.#leave();
    this.#record.totalMs = nowMs - this.#startedMs;
    this.#record.outcome = outcome;
    this.#stage = error === undefined ? "stream" : undefined;
    if (outcome !== "too_many_requests") this.#keepOnce();
    this.#logIfSlow();
  }

  streamed(): void {
    if (this.#stage === "stream") this.#leave();
  }

  #keepOnce(): void {
    if (this.#kept || !this.#exists) return;
    this.#kept = true;
    this.#keep();
  }

  /** Books the time of the stage that ends now. */
  #leave(): number {
    const nowMs = this.#options.clock.monotonicMs();
    const { stagesMs } = this.#record;
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
    const { text, startedAtMs: _started, totalMs = 0, stagesMs, ...rest } = this.#record;
    if (slowMs === 0 || totalMs < slowMs) return;
    const rounded = Object.entries(stagesMs).map(([stage, ms]) => [stage, Math.round(ms)]);
    const stages: unknown = Object.fromEntries(rounded);
    const totals = { ...rest, totalMs: Math.round(totalMs), stagesMs: stages };
    log.warn({ ...totals, text: firstBytes(text, MAX_LOGGED_BYTES) }, "slow query");
  }
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
