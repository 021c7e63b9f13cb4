import { atHead } from "../catalog/at-head.ts";
import type {
  Catalog,
  CrowdedDay,
  ExtentRecord,
  ExtentSummary,
  TableRecord,
  UnpublishedDay,
} from "../catalog/catalog.ts";
import { columnsInQuestion, isPublished } from "../catalog/publishable.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { fullBackoffMs } from "../core/backoff.ts";
import { sleep } from "../core/clock.ts";
import type { Metrics } from "../core/metrics.ts";
import { isReadable } from "../format/types.ts";
import { IoBudget } from "./io-budget.ts";
import type { Duty, DutyTurn } from "../feature/lease-loop.ts";
import { mergeOnDisk } from "./merge-on-disk.ts";
import { DamagedInputs, type MergeTask } from "./merge.ts";
import { COMPACTION_METRICS, PUBLICATION_METRICS } from "./metrics.ts";
import {
  DAY_MS,
  FINISHED_BYTES,
  dayOf,
  migratesAtMs,
  pickMerge,
  publishAfter,
  settlesAtMs,
  type Candidate,
  type PickRules,
  type PublishRule,
} from "./pick.ts";
import type { PublishRequest, PublishRequests } from "./publish-requests.ts";
import { mergeAndPublish, type Merger, type PublishPorts } from "./publish.ts";

/**
 * Compaction of one node: finds the day of a table that has most to gain (`pick.ts`), merges (`merge.ts`), publishes
 * (`publish.ts`), and again; one merge at a time. Days that somebody wants published for other programs come first
 * (`publish-requests.ts`), then those where that takes too long; older files are written anew when nothing else is to do. It keeps nothing that matters: stopped or killed at any point, the
 * next run finds in the catalog what is left to do, and several nodes only waste work if they do the same.
 */
export type CompactorPorts = Omit<PublishPorts, "merger"> & {
  /** By default merges are done on this machine's disk, in `tempDir`. */
  merger?: Merger;
  catalog: Pick<
    Catalog,
    | "allTables"
    | "crowdedDays"
    | "extents"
    | "head"
    | "mergeExtents"
    | "misfits"
    | "schemaGeneration"
    | "unpublishedDays"
  >;
  /** Of those who want something published; by default nobody does. */
  requests?: Pick<PublishRequests, "finish" | "forgetLapsed" | "open">;
  metrics: Metrics;
  /** Whether this process has more important work right now; merging then goes on at a fifth of its pace. */
  isBusy: () => boolean;
};

export type CompactorOptions = {
  keyPrefix: string;
  /** A folder for this alone: what an earlier process has left in it is deleted. */
  tempDir: string;
  /** See `PickRules`. */
  minExtents: number;
  /** See `PickRules`. */
  isTlmPast?: boolean;
  /**
   * What is not published and older than that does not wait for its tier, but for tables that have a bound of their own
   * (`TableRecord.openLagSecs`); by default nothing is too old.
   */
  maxLagMs?: number;
  /** After each merge. */
  restMs: number;
  /** Of DuckDB in the merging process. */
  memoryBytes: number;
  threads: number;
  /** The part of the time in which the merging process may run, up to 1. */
  cpuShare: number;
  /** Of new extents: see `MergeTask`. */
  encodings?: MergeTask["encodings"];
  /** What merges may read and write in a second, of the object store and of this machine's disk; by default anything. */
  ioBytesPerSec?: number;
};

/** One merge reads no more; what it spills may be several times that. */
export const MAX_INPUT_BYTES = 1024 * 1024 * 1024;
const SPILL_BYTES = 32 * 1024 * 1024 * 1024;
const BUSY_SHARE = 1 / 5;
/** Days that are quiet are looked for less often than crowded ones: there may be many. */
const SETTLE_POLL_MS = 5 * 60_000;
const DAYS_LISTED = 10_000;
/** Of a day with more extents a part is looked at. */
const MAX_LISTED_EXTENTS = 10_000;
const BACKOFF = { firstMs: 60_000, mostMs: 3_600_000 } as const;
const MAX_REMEMBERED = 50_000;
/** Tables that are told of by themselves. */
const WORST_TABLES = 10;
const NS_PER_MS = 1_000_000n;

/**
 * The duty: does all the merges that there are to do, one after the other, and then returns. One that fails is logged and
 * counted, and the next ones are of other days.
 */
export function createCompactor(ports: CompactorPorts, options: CompactorOptions): Duty {
  const compactor = new Compactor(ports, options);
  return (turn) => compactor.run(turn);
}

type Job = { key: string; table: TableRecord; inputs: ExtentSummary[] };

class Compactor {
  readonly #ports: CompactorPorts;
  readonly #options: CompactorOptions;
  readonly #merger: Merger;
  /** Days in which there was nothing to do, and until when there will not be unless extents come. */
  readonly #idle = new Map<string, { day: CrowdedDay; untilMs: number }>();
  /** Days whose last merges have failed. */
  readonly #failed = new Map<string, { times: number; untilMs: number }>();
  /** Extents whose bytes are not what was committed: nothing can be done with them, and they are reported once. */
  readonly #damaged = new Set<string>();
  /** Bounds of tables that have one of their own, as of a generation of the schema. */
  #lags: { generation: number; msOf: ReadonlyMap<number, number> } = { generation: -1, msOf: new Map() };
  #settleAtMs = 0;
  #isClean = false;

  constructor(ports: CompactorPorts, options: CompactorOptions) {
    this.#ports = ports;
    this.#options = options;
    const budget = new IoBudget({ ...ports, bytesPerSec: options.ioBytesPerSec ?? 0 });
    this.#merger = ports.merger ?? mergeOnDisk(options.tempDir, ports.clock, budget);
  }

  async run(turn: DutyTurn): Promise<void> {
    const { signal } = turn;
    if (!this.#isClean) await this.#merger.prepare();
    this.#isClean = true;
    try {
      for (;;) {
        signal.throwIfAborted();
        const job = await this.#find(signal);
        if (job === undefined) return;
        await this.#do(job, turn);
        await sleep(this.#ports.clock, this.#options.restMs, signal);
      }
    } finally {
      await this.#merger.rest();
    }
  }

  async #do(job: Job, turn: DutyTurn): Promise<void> {
    const { clock, metrics } = this.#ports;
    const startedMs = clock.monotonicMs();
    try {
      const outcome = await this.#merge(job, turn);
      this.#failed.delete(job.key);
      COMPACTION_METRICS.of(metrics).compactionMerges.inc({ outcome });
    } catch (error) {
      if (turn.signal.aborted || error instanceof LeaseLost) throw error;
      this.#noteFailure(job, error);
    } finally {
      COMPACTION_METRICS.of(metrics).compactionDuration.observe((clock.monotonicMs() - startedMs) / 1000);
    }
  }

  async #merge({ table, inputs }: Job, { signal, lease }: DutyTurn): Promise<"published" | "lost"> {
    const { log, metrics, isBusy } = this.#ports;
    const { keyPrefix, memoryBytes, threads, cpuShare, encodings } = this.#options;
    const ports = { ...this.#ports, merger: this.#merger };
    const published = await mergeAndPublish(ports, {
      table,
      inputs,
      keyPrefix,
      limits: { memoryBytes, spillBytes: SPILL_BYTES, threads },
      encodings,
      share: () => (isBusy() ? cpuShare * BUSY_SHARE : cpuShare),
      lease,
      signal,
    });
    const about = { database: table.database, table: table.name, inputs: inputs.length };
    if (published === undefined) {
      log.info(about, "a merge came too late: an input is gone");
      return "lost";
    }
    const inputBytes = inputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    COMPACTION_METRICS.of(metrics).compactionInputExtents.inc(inputs.length);
    COMPACTION_METRICS.of(metrics).compactionInputBytes.inc(inputBytes);
    COMPACTION_METRICS.of(metrics).compactionOutputBytes.inc(published.sizeBytes);
    log.debug({ ...about, ...published, inputBytes }, "merged extents");
    return "published";
  }

  #noteFailure({ key, table, inputs }: Job, error: unknown): void {
    const { clock, log, metrics } = this.#ports;
    COMPACTION_METRICS.of(metrics).compactionMerges.inc({ outcome: "failed" });
    if (error instanceof DamagedInputs) {
      const keys = inputs.filter(({ id }) => error.extentIds.includes(id)).map((extent) => extent.key);
      log.error({ keys }, "extents are damaged: their bytes are not those that were committed");
      for (const id of error.extentIds) this.#damaged.add(id);
      return;
    }
    const times = (this.#failed.get(key)?.times ?? 0) + 1;
    const backoffMs = fullBackoffMs(BACKOFF, times - 1);
    bounded(this.#failed).set(key, { times, untilMs: clock.nowMs() + backoffMs });
    const about = { database: table.database, table: table.name, inputs: inputs.length, times, backoffMs };
    log.error({ err: error, ...about }, "a merge failed; compaction goes on with other days");
  }

  async #find(signal: AbortSignal): Promise<Job | undefined> {
    const requests = (await this.#ports.requests?.open()) ?? [];
    const job =
      (await this.#findUnpublished(requests, signal)) ??
      (await this.#findCrowded(signal)) ??
      (await this.#findOlder(requests, signal));
    if (job === undefined) await this.#tellUnpublished();
    return job;
  }

  /** What is to be published, since somebody asks for it or it has waited for too long. */
  async #findUnpublished(requests: readonly PublishRequest[], signal: AbortSignal): Promise<Job | undefined> {
    const { catalog, clock } = this.#ports;
    const asked = requests.filter(({ whole }) => !whole);
    const lagOf = await this.#lagOf();
    if (asked.length === 0 && lagOf === undefined) return undefined;
    const days = await catalog.unpublishedDays({ belowBytes: FINISHED_BYTES });
    for (const request of asked) {
      const job = await this.#workOff(request, days, signal);
      if (job !== undefined) return job;
    }
    if (lagOf === undefined) return undefined;
    const nowMs = clock.nowMs();
    const due = days.filter(({ tableId, sinceMs }) => sinceMs + lagOf(tableId) <= nowMs);
    return await this.#lookInto(due, ({ tableId }) => publishAfter(lagOf(tableId), nowMs), signal);
  }

  /** For how long what is not published may wait, by table; undefined where all may wait for their tiers. */
  async #lagOf(): Promise<((tableId: number) => number) | undefined> {
    const { catalog } = this.#ports;
    const generation = await catalog.schemaGeneration();
    if (generation !== this.#lags.generation) {
      const own = (await catalog.allTables()).flatMap(({ id, openLagSecs }) =>
        openLagSecs === undefined ? [] : [[id, openLagSecs * 1_000] as const],
      );
      this.#lags = { generation, msOf: new Map(own) };
    }
    const { msOf } = this.#lags;
    const { maxLagMs = 0 } = this.#options;
    if (maxLagMs === 0 && [...msOf.values()].every((ms) => ms === 0)) return undefined;
    // A bound of 0 is none.
    return (tableId) => (msOf.get(tableId) ?? maxLagMs) || Infinity;
  }

  /** Finished files that are asked for, which nobody waits for. */
  async #findOlder(requests: readonly PublishRequest[], signal: AbortSignal): Promise<Job | undefined> {
    for (const request of requests.filter(({ whole }) => whole)) {
      const { tableId, upTo } = request;
      const job = await this.#workOff(request, await this.#ports.catalog.unpublishedDays({ tableId, upTo }), signal);
      if (job !== undefined) return job;
    }
    return undefined;
  }

  /** The next merge of a request. When there is none it is done, but for days whose last merge has failed. */
  async #workOff(
    request: PublishRequest,
    days: readonly UnpublishedDay[],
    signal: AbortSignal,
  ): Promise<Job | undefined> {
    const { tableId, upTo, whole } = request;
    const own = days.filter((day) => day.tableId === tableId && day.firstSnapshot <= upTo);
    const rule = { isDue: ({ beginSnapshot = Infinity }: Candidate) => beginSnapshot <= upTo, withFinished: whole };
    const job = await this.#lookInto(own, () => rule, signal);
    if (job === undefined && !own.some((day) => this.#hasFailed(day))) await this.#ports.requests?.finish(request);
    return job;
  }

  async #lookInto(
    days: readonly UnpublishedDay[],
    ruleOf: (day: UnpublishedDay) => PublishRule,
    signal: AbortSignal,
  ): Promise<Job | undefined> {
    for (const day of days) {
      signal.throwIfAborted();
      const job = this.#hasFailed(day) ? undefined : await this.#look(day, ruleOf(day));
      if (job !== undefined) return job;
    }
    return undefined;
  }

  async #findCrowded(signal: AbortSignal): Promise<Job | undefined> {
    const { catalog, clock, requests } = this.#ports;
    const isSettling = clock.nowMs() >= this.#settleAtMs;
    const days = await catalog.crowdedDays({
      belowBytes: FINISHED_BYTES,
      minExtents: isSettling ? 1 : this.#options.minExtents,
      limit: DAYS_LISTED,
    });
    for (const day of days) {
      signal.throwIfAborted();
      const job = this.#isIdle(day) ? undefined : await this.#look(day);
      if (job === undefined) continue;
      this.#tellBacklog(days);
      return job;
    }
    this.#tellBacklog(days);
    if (!isSettling) return undefined;
    this.#settleAtMs = clock.nowMs() + SETTLE_POLL_MS;
    await requests?.forgetLapsed();
    return undefined;
  }

  /** What other programs cannot read yet, of all tables. */
  async #tellUnpublished(): Promise<void> {
    const { catalog, clock, metrics } = this.#ports;
    const nowMs = clock.nowMs();
    const ageOf = (sinceMs: number): number => Math.max(0, nowMs - sinceMs) / 1_000;
    const tables = waitingTables(await catalog.unpublishedDays({}));
    const own = PUBLICATION_METRICS.of(metrics);
    own.unpublishedRows.set(tables.reduce((sum, { rows }) => sum + rows, 0));
    own.unpublishedBytes.set(tables.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
    own.unpublishedAge.set(ageOf(tables[0]?.sinceMs ?? nowMs));
    for (const gauge of [own.unpublishedRowsOfTable, own.unpublishedBytesOfTable, own.unpublishedAgeOfTable])
      gauge.reset();
    if (tables.length === 0) return;
    const names = new Map((await catalog.allTables()).map(({ id, database, name }) => [id, `${database}.${name}`]));
    for (const { tableId, rows, sizeBytes, sinceMs } of tables.slice(0, WORST_TABLES)) {
      const table = names.get(tableId);
      if (table === undefined) continue;
      own.unpublishedRowsOfTable.set({ table }, rows);
      own.unpublishedBytesOfTable.set({ table }, sizeBytes);
      own.unpublishedAgeOfTable.set({ table }, ageOf(sinceMs));
    }
  }

  /** Crowded days in which there is something to do, or may be: not yet looked at, or failed. */
  #tellBacklog(days: readonly CrowdedDay[]): void {
    const { metrics } = this.#ports;
    const left = days.filter((day) => day.extents >= this.#options.minExtents && !this.#isDone(day));
    COMPACTION_METRICS.of(metrics).backlogDays.set(left.length);
    COMPACTION_METRICS.of(metrics).backlogExtents.set(left.reduce((sum, { extents }) => sum + extents, 0));
    COMPACTION_METRICS.of(metrics).backlogBytes.set(left.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
  }

  #isIdle(day: CrowdedDay): boolean {
    return this.#hasFailed(day) || this.#isDone(day);
  }

  /** Whether its last merge has failed, and it is too early for the next. */
  #hasFailed(day: CrowdedDay): boolean {
    return this.#ports.clock.nowMs() < (this.#failed.get(keyOf(day))?.untilMs ?? 0);
  }

  /** Whether there was nothing to do when the day was looked at as it is. */
  #isDone(day: CrowdedDay): boolean {
    const idle = this.#idle.get(keyOf(day));
    if (idle === undefined || this.#ports.clock.nowMs() >= idle.untilMs) return false;
    return idle.day.extents === day.extents && idle.day.rows === day.rows && idle.day.sizeBytes === day.sizeBytes;
  }

  /** The merge to be done in a day, if there is one. */
  async #look(day: CrowdedDay, publish?: PublishRule): Promise<Job | undefined> {
    const { catalog, clock } = this.#ports;
    const { minExtents, isTlmPast = false } = this.#options;
    const rules: PickRules = {
      minExtents,
      isTlmPast,
      nowMs: clock.nowMs(),
      maxInputBytes: MAX_INPUT_BYTES,
      ...(publish && { publish }),
    };
    let settlesMs = Infinity;
    const known = publish === undefined ? undefined : await this.#table(day);
    for (const range of partsOf(day)) {
      const statsOf = known === undefined ? [] : columnsInQuestion(known);
      const overlapping = await atHead(catalog, (head) => catalog.extents(day.tableId, head, range, statsOf));
      const ofDay = overlapping.filter(({ id, minAtNs }) => dayOf(minAtNs) === day.dayMs && !this.#damaged.has(id));
      // Those of a newer version are merged by a server of that version.
      const extents = ofDay.filter(isReadable);
      const inputs = pickMerge(
        known === undefined ? extents : extents.map((extent) => candidate(known, extent)),
        rules,
      );
      if (inputs === undefined) {
        if (extents.length > 0) settlesMs = Math.min(settlesMs, settlesAtMs(extents));
        if (isTlmPast) settlesMs = Math.min(settlesMs, migratesAtMs(extents));
        continue;
      }
      const ids = new Set(inputs.map(({ id }) => id));
      const table = await this.#table(day);
      if (table === undefined) return undefined;
      return { key: keyOf(day), table, inputs: extents.filter(({ id }) => ids.has(id)) };
    }
    // How many extents of the day are not published says nothing about the others.
    if (publish !== undefined) return undefined;
    const untilMs = settlesMs > rules.nowMs ? settlesMs : Infinity;
    bounded(this.#idle).set(keyOf(day), { day, untilMs });
    return undefined;
  }

  async #table({ tableId }: CrowdedDay): Promise<TableRecord | undefined> {
    return (await this.#ports.catalog.allTables()).find(({ id }) => id === tableId);
  }
}

/** An extent as it is now; snapshots of before do not matter. */
function candidate(table: TableRecord, extent: ExtentRecord): Candidate {
  return { ...extent, isUnpublished: !isPublished(table, Number.MAX_SAFE_INTEGER, extent) };
}

type WaitingTable = Pick<UnpublishedDay, "tableId" | "rows" | "sizeBytes" | "sinceMs">;

/** What waits to be published, by table; that which has waited for the longest first. */
function waitingTables(days: readonly UnpublishedDay[]): WaitingTable[] {
  const tables = new Map<number, WaitingTable>();
  for (const { tableId, rows, sizeBytes, sinceMs } of days) {
    const known = tables.get(tableId);
    tables.set(tableId, {
      tableId,
      rows: rows + (known?.rows ?? 0),
      sizeBytes: sizeBytes + (known?.sizeBytes ?? 0),
      sinceMs: Math.min(sinceMs, known?.sinceMs ?? sinceMs),
    });
  }
  return [...tables.values()].sort((a, b) => a.sinceMs - b.sinceMs);
}

function keyOf({ tableId, dayMs }: CrowdedDay): string {
  return `${tableId} ${dayMs}`;
}

/** Ranges of time that together are the day, such that none has many more extents than can be listed at once. */
function partsOf({ dayMs, extents }: CrowdedDay): { minNs: bigint; maxNs: bigint }[] {
  const count = Math.ceil(extents / MAX_LISTED_EXTENTS);
  const edge = (part: number): bigint => BigInt(dayMs + Math.floor((DAY_MS * part) / count)) * NS_PER_MS;
  return Array.from({ length: count }, (_, part) => ({ minNs: edge(part), maxNs: edge(part + 1) - 1n }));
}

/** The map, emptied when it is too large: everything in it can be found out again. */
function bounded<V>(map: Map<string, V>): Map<string, V> {
  if (map.size >= MAX_REMEMBERED) map.clear();
  return map;
}
