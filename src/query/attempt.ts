import { QUERY_METRICS } from "./metrics.ts";
import { rm } from "node:fs/promises";
import type { Catalog, TableRecord } from "../catalog/catalog.ts";
import type { RecordStore } from "../db/records.ts";
import type { SnapshotPin } from "../catalog/snapshot-holds.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { SystemTable } from "../feature/system-table.ts";
import type { Permit } from "./budgets/admission.ts";
import type { QueryBudget } from "./budgets/budget.ts";
import type { LargeTexts } from "./budgets/large-texts.ts";
import { ReadBudget } from "./budgets/read-budget.ts";
import { supervise, type Supervision } from "./budgets/supervision.ts";
import type { Watchdog } from "./budgets/watchdog.ts";
import { TableChanged, type KqlQuery } from "./translator/kql-query.ts";
import type { QueryRequest, QueryResult, QuerySample } from "./contract/query.ts";
import type { ResolvedTable } from "./contract/tables.ts";
import { bytesToOpen, type ExtentFetcher, type Fetched } from "./fetch/fetch.ts";
import { expiryOf, explainPruning, planQuery, type QueryPlan } from "./prune/plan.ts";
import type { Needs } from "./resolve/needs.ts";
import { snapshotOf } from "./resolve/snapshot-of.ts";
import { lendFiles, type LentFiles } from "./scan/lend-files.ts";
import { inputFolder, outputFolder } from "./scan/process-folders.ts";
import type { Done, RunRequest, TranslatedText } from "./scan/protocol.ts";
import type { QueryProcess } from "./scan/query-process.ts";
import { bodyOf, checkedData, deliver, none } from "./stream/result-body.ts";
import type { QueryFigures, QueryLog, QueryTrace } from "./system-tables/query-log.ts";
import { writeSystemTables, type StagedWrite } from "./system-tables/rows.ts";
import { SYSTEM_SCHEMA, type SystemTableFile } from "./system-tables/system-tables.ts";

/** How an attempt to answer a query ended. What to do then is for the loop over attempts to say (`service.ts`). */
export type Outcome =
  | { kind: "answered"; result: QueryResult }
  /** The query is larger than it was taken for: it waits for the permit of a large one, and starts over. */
  | { kind: "outgrown" }
  /**
   * It failed because of what somebody did to its process before it came, to a cached file, or to the snapshot that it
   * was reading: it deserves another attempt.
   */
  | { kind: "retryable"; reason: unknown }
  | { kind: "failed"; reason: unknown };

/** What every attempt works with. */
export type AttemptDeps = {
  catalog: Catalog;
  /** For the rows of `system.` tables that are records. */
  records: Pick<RecordStore, "rows">;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  /** What is staged and not committed, for `system.staged`; called when a query names it. */
  listStaged: () => AsyncIterable<StagedWrite>;
  /** The tables of features; the processes of the pool must know the same. */
  systemTables?: readonly SystemTable[];
  /** Whether extents without a row of interest are left out; `false` only to compare. */
  prune?: boolean;
  /** How long a query counts as a small one. */
  largeAfterMs?: number;
};

/** What the attempts of all queries share. */
export type AttemptTools = {
  fetcher: ExtentFetcher;
  queryLog: QueryLog;
  watchdog: Watchdog;
  largeTexts: LargeTexts;
};

/** What all attempts of one query share. */
export type QueryContext = {
  request: QueryRequest;
  budget: QueryBudget;
  permit: Permit;
  trace: QueryTrace;
  /** Aborted when the time of the query is up, when its client leaves, and when its snapshots are lost. */
  stop: AbortSignal;
  reading: SnapshotPin | undefined;
  /** The translation of a query in KQL. */
  kql: KqlQuery | undefined;
};

/** A query that has so much to read is large from the start. */
const LARGE_READ_BYTES = 64 * 1024 * 1024;

const OUTGROWN: Outcome = { kind: "outgrown" };

/** One attempt to answer a query, in one process that the caller has leased, and gives back when the outcome is known. */
export class Attempt {
  readonly #deps: AttemptDeps & AttemptTools;
  readonly #query: QueryContext;
  readonly #child: QueryProcess;
  readonly #supervision: Supervision;
  /** Whether the process holds the parsed query, and waits to be told what to do with it. */
  #isOpen = false;
  #needs: Needs | undefined;
  #plan: QueryPlan | undefined;
  #fetched: Fetched | undefined;
  #lent: LentFiles | undefined;
  #systemFiles: readonly SystemTableFile[] = [];
  #kql: KqlQuery | undefined;
  readonly #readBudget: ReadBudget;
  #bytesReady = 0;

  constructor(deps: AttemptDeps & AttemptTools, query: QueryContext, child: QueryProcess) {
    this.#deps = deps;
    this.#query = query;
    this.#child = child;
    this.#kql = query.kql;
    this.#readBudget = new ReadBudget(query.budget.objectStoreBytes);
    this.#supervision = supervise({ ...query, ...deps, child });
    query.trace.follow(() => this.#figures());
  }

  /** What changes while it goes on. */
  #figures(): QueryFigures {
    const memoryBytes = this.#supervision.peakBytes();
    const { usedBytes: bytesRead } = this.#readBudget;
    return this.#plan === undefined ? { memoryBytes } : { memoryBytes, bytesRead, bytesReady: this.#bytesReady };
  }

  /** Never rejects for what is wrong with the query: that is an outcome. */
  async run(): Promise<Outcome> {
    try {
      return await this.#steps();
    } catch (error) {
      await this.#drop();
      return await this.#outcomeOf(error);
    } finally {
      await this.#release();
    }
  }

  async #steps(): Promise<Outcome> {
    const { request, permit } = this.#query;
    const wasLarge = this.#deps.largeTexts.has(request);
    if (wasLarge && !permit.grow()) return OUTGROWN;
    const done = (await this.#readKeys()) ? await this.#runText() : undefined;
    if (done === undefined) return OUTGROWN;
    this.#supervision.end();
    if (wasLarge && !this.#supervision.isLong()) this.#deps.largeTexts.delete(request);
    return { kind: "answered", result: await this.#resultOf(done) };
  }

  /**
   * Reads the keys that a translation needs before it can say its columns, all at one snapshot. False when that makes it
   * a large query, which must wait.
   */
  async #readKeys(): Promise<boolean> {
    const { stop, budget } = this.#query;
    while (this.#kql?.translation.kind === "keys") {
      const done = await this.#runText();
      if (done === undefined) return false;
      const keys = await keysOf(await bodyOf(checkedData(done.data, outputFolder(this.#child.folder)), stop));
      await this.#releaseFiles();
      this.#query.trace.enter("translate");
      this.#kql = await this.#kql.withKeys(keys, { signal: stop, memoryBytes: budget.memoryBytes });
    }
    return true;
  }

  /** Runs what the process is to run now; undefined when that is too much for a small query. */
  async #runText(): Promise<Done | undefined> {
    const needs = await this.#parse();
    const plan = await this.#planTables(needs);
    if (bytesToRead(plan) > LARGE_READ_BYTES && !this.#query.permit.grow()) {
      await this.#drop();
      return undefined;
    }
    const tables = await this.#fetch(needs, plan);
    return await this.#scan(plan, tables);
  }

  async #parse(): Promise<Needs> {
    const { request, trace, budget } = this.#query;
    const { database, parameters, matching, tailing, exploring, maxRows } = request;
    const selection = matching ?? tailing?.selection ?? exploring?.selection;
    const { memoryBytes } = budget;
    trace.enter("parse");
    const bound = parameters === undefined ? {} : { parameters };
    const written = this.#kql === undefined ? { text: request.text } : sqlOf(this.#kql, request);
    const asked = { ...written, database, ...bound, memoryBytes, selection };
    const isAnswer = this.#kql?.translation.kind !== "keys";
    const needs = await this.#child.ask({ kind: "parse", ...asked, ...(isAnswer && { maxRows }) });
    if (needs.kind !== "needs") throw unexpected(needs.kind);
    this.#isOpen = true;
    this.#needs = needs;
    if (request.tablesOnly === true) refuseSystemTables(needs);
    return needs;
  }

  async #planTables(needs: Needs): Promise<QueryPlan> {
    const { request, trace, reading } = this.#query;
    trace.enter("plan");
    const { catalog, clock, prune = true, metrics } = this.#deps;
    const plan = await planQuery(catalog, request, this.#atFirstHead(needs), { clock, prune, reading });
    this.#plan = plan;
    this.#kql?.check(plan.tables);
    const figures = figuresOf(plan);
    const { queryExtents } = QUERY_METRICS.of(metrics);
    queryExtents.inc({ result: "read" }, figures.extentsRead);
    queryExtents.inc({ result: "pruned" }, figures.extentsTotal - figures.extentsRead);
    trace.add(figures);
    return plan;
  }

  /** What was read before was read at that snapshot. */
  #atFirstHead(needs: Needs): Needs {
    if (this.#plan === undefined) return needs;
    const travel = { version: BigInt(this.#plan.head.id) };
    return { ...needs, tables: needs.tables.map((table) => ({ ...table, travel })) };
  }

  /** Brings what the query reads into the input folder of its process: extents, and the rows of system tables. */
  async #fetch(needs: Needs, plan: QueryPlan): Promise<readonly ResolvedTable[]> {
    const { request, trace, stop } = this.#query;
    const { fetcher, catalog, records, queryLog, systemTables = [] } = this.#deps;
    const { caller, database } = request;
    trace.enter("fetch");
    this.#bytesReady = 0;
    const onReady = ({ sizeBytes }: { sizeBytes: number }): void => void (this.#bytesReady += sizeBytes);
    this.#fetched = await fetcher.fetch(plan.tables, {
      signal: stop,
      budget: this.#readBudget,
      onReady,
      mayBePartial: request.exploring !== undefined,
    });
    trace.add({ bytesRead: this.#readBudget.usedBytes, cacheHits: this.#fetched.cacheHits });
    // Only the bytes of a staged write say which database it is for: who may not see all databases sees none.
    const listStaged = caller.databases === undefined ? this.#deps.listStaged : none;
    const folder = inputFolder(this.#child.folder);
    const travel = needs.extentsTravel;
    const at = (table: TableRecord): Promise<number> =>
      snapshotOf(catalog, table, { name: table.name, mentions: [], ...(travel && { travel }) }, plan.head);
    const target = { database, head: plan.head, snapshotOf: at, folder, signal: stop };
    const sources = { catalog, records, caller, queryLog, listStaged, systemTables };
    this.#systemFiles = await writeSystemTables(needs.system, { ...sources, ...target });
    this.#lent = await lendFiles(folder, this.#fetched.tables);
    const { tables } = this.#lent;
    const { matching, tailing } = request;
    if (tailing !== undefined) return tables.map((table) => ({ ...table, numberedFrom: tailing.from }));
    return matching?.rows === "matching" ? tables.map(namingExtents) : tables;
  }

  async #scan(plan: QueryPlan, tables: readonly ResolvedTable[]): Promise<Done> {
    const { request, trace } = this.#query;
    const isAnswer = this.#kql?.translation.kind !== "keys";
    const format = isAnswer ? (request.format ?? "ndjson") : "ndjson";
    trace.enter("scan");
    this.#isOpen = false;
    const run: RunRequest = {
      kind: "run",
      tables,
      listed: plan.listed,
      system: this.#systemFiles,
      format,
      ...(isAnswer && { maxRows: request.maxRows }),
      pruning: explainPruning(plan),
    };
    const done = await this.#child.ask(run, (progress) => trace.add(progress));
    if (done.kind !== "done") throw unexpected(done.kind);
    return done;
  }

  async #resultOf({ data, rows, isTruncated, columns, usage }: Done): Promise<QueryResult> {
    const { request, trace, reading } = this.#query;
    const own = checkedData(data, outputFolder(this.#child.folder));
    reading?.check();
    trace.add({ rows, ...usage });
    if (this.#plan === undefined) throw new Error("a query has answered without a plan");
    const sample = sampleOf(this.#plan, this.#fetched?.tables ?? []);
    const answer = {
      rows,
      isTruncated,
      columns,
      snapshot: this.#plan.head.id,
      ...renderOf(this.#kql),
      ...(sample && { sample }),
    };
    return { ...answer, body: await deliver(own, request) };
  }

  /** Has the process forget a query that will not run, so that it stays good for the next one. */
  async #drop(): Promise<void> {
    if (!this.#isOpen || !this.#child.alive || this.#child.isCancelled) return;
    this.#isOpen = false;
    // Otherwise the process has ended, or the query was stopped meanwhile: neither is why it failed.
    await this.#child.ask({ kind: "drop" }).catch(() => {});
  }

  async #outcomeOf(error: unknown): Promise<Outcome> {
    const cause = this.#supervision.reasonOf(error);
    const reason = this.#kql === undefined ? cause : this.#kql.failureOf(cause);
    const wasLost = this.#needs === undefined && this.#child.isLost;
    const isRetryable = wasLost || error instanceof TableChanged || this.#fetched?.dropMissing() === true;
    if (this.#query.stop.aborted) return { kind: "failed", reason };
    if (this.#supervision.isOutgrown(error)) return OUTGROWN;
    if (isRetryable) return { kind: "retryable", reason };
    if (isExpiry(reason)) return { kind: this.#travels() ? "failed" : "retryable", reason };
    const expiry = await this.#expiry();
    return expiry === undefined ? { kind: "failed", reason } : { kind: "retryable", reason: expiry };
  }

  /** Whether the query says which snapshot it reads: then another attempt would read the same. */
  #travels(): boolean {
    const tables = this.#needs?.tables ?? [];
    const { matching, tailing } = this.#query.request;
    return matching !== undefined || tailing !== undefined || tables.some(({ travel }) => travel !== undefined);
  }

  /** A query whose snapshot was made unreadable under it plans again: at the head, or to hear that it is too late. */
  async #expiry(): Promise<EngineError | undefined> {
    if (this.#plan === undefined) return undefined;
    try {
      return await expiryOf(this.#deps.catalog, this.#plan);
    } catch (error) {
      this.#deps.log.warn({ err: error }, "it is not known whether what a failed query read was still there");
      return undefined;
    }
  }

  async #release(): Promise<void> {
    this.#supervision.end();
    if (this.#child.isLost) QUERY_METRICS.of(this.#deps.metrics).queryProcessesLost.inc();
    if (this.#supervision.isLong()) this.#deps.largeTexts.add(this.#query.request);
    await this.#releaseFiles();
  }

  async #releaseFiles(): Promise<void> {
    this.#fetched?.release();
    await this.#lent?.release();
    await Promise.all(this.#systemFiles.map(({ path }) => rm(path, { force: true })));
  }
}

/** What the query process is to run for a KQL query. */
export function sqlOf(
  { translation }: KqlQuery,
  { explain = false, exploring }: Pick<QueryRequest, "explain" | "exploring"> = {},
): { text: string; translated: TranslatedText } {
  const { sql, macros } = translation;
  const isPart = translation.kind === "keys" || exploring !== undefined;
  if (isPart) return { text: sql, translated: { macros } };
  return { text: explain ? `EXPLAIN ${sql}` : sql, translated: { macros, columns: translation.columns } };
}

function renderOf(kql: KqlQuery | undefined): Pick<QueryResult, "render"> {
  const translation = kql?.translation;
  return translation?.kind === "query" && translation.render !== undefined ? { render: translation.render } : {};
}

/** The values of the one column of NDJSON. */
async function keysOf(body: AsyncIterable<Uint8Array>): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString("utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => String(Object.values(JSON.parse(line) as object)[0]));
}

/** `information_schema` tells of tables alone. */
function refuseSystemTables({ system }: Needs): void {
  const name = system.find((one) => one.startsWith(`${SYSTEM_SCHEMA}.`));
  if (name === undefined) return;
  throw new EngineError("forbidden", `${name} is not for callers whom nobody asks for a token; ask over HTTP`, {
    refused: true,
  });
}

function namingExtents(table: ResolvedTable): ResolvedTable {
  return { ...table, namesExtents: true };
}

function isExpiry(error: unknown): boolean {
  return error instanceof EngineError && error.code === "snapshot_expired";
}

/** What was read, where that is not all that was planned. */
function sampleOf({ tables }: QueryPlan, fetched: readonly ResolvedTable[]): QuerySample | undefined {
  const planned = tables.flatMap(({ extents }) => extents);
  const left = fetched.reduce((sum, { leftOut = 0 }) => sum + leftOut, 0);
  if (left === 0) return undefined;
  const rowsRead = fetched.reduce((sum, table) => sum + rowsOf(table.extents) + table.bareRows, 0);
  const extentsRead = planned.length - left;
  return { rowsRead, rowsTotal: rowsOf(planned), extentsRead, extentsTotal: planned.length };
}

function rowsOf(extents: readonly { rows: number }[]): number {
  return extents.reduce((sum, { rows }) => sum + rows, 0);
}

/** How much the plan has to read. */
function figuresOf({ tables }: QueryPlan) {
  const extents = tables.flatMap((table) => table.extents);
  return {
    extentsTotal: tables.reduce((sum, { pruning }) => sum + pruning.total.extents, 0),
    extentsRead: extents.length,
    rowsRead: extents.reduce((sum, extent) => sum + extent.rows, 0),
    bytesPlanned: bytesToOpen(tables),
  } satisfies QueryFigures;
}

function bytesToRead({ tables }: QueryPlan): number {
  return tables.reduce((sum, { extents }) => sum + extents.reduce((all, extent) => all + extent.sizeBytes, 0), 0);
}

/** For an answer of the process that is not of the kind that was asked for. */
export function unexpected(kind: string): Error {
  return new EngineError("query_failed", `the query process answered ${kind} out of turn`);
}
