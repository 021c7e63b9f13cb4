import type { AuditLog, Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import { ownerOf } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import type { RecordStore } from "../../db/records.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import type { MemoryScope, MemoryService } from "../memory/service.ts";
import type { MemoryStore } from "../memory/store.ts";
import { DREAM_JOB, DREAM_KEY, dreamerOf, type DreamMode } from "./dream-job.ts";
import { keyOfChange, revertOperation, type Reverted } from "./revert.ts";
import type { PipelineRun, PipelineRuns, RunList, RunTrigger } from "./runs.ts";

export type DreamRequest = { mode: DreamMode; focus: string | undefined; trigger: RunTrigger };

/** `jobId` is undefined where one is queued or running already: `inFlight` is its run, if it has not ended since. */
export type DreamAsked = { jobId: string } | { jobId: undefined; inFlight: string | undefined };

export type DreamingServiceDeps = {
  records: RecordStore;
  fabric: Pick<Fabric, "prepare">;
  memory: Pick<MemoryService, "scope" | "commit">;
  store: Pick<MemoryStore, "version">;
  runs: PipelineRuns;
  audit: AuditLog;
};

/** Of the newest runs, among which the one under way is looked for. */
const UNDER_WAY_LOOKED_AT = 20;

/** Asks for dreams, shows the runs of all pipelines, and takes them back. */
export class DreamingService {
  readonly #deps: DreamingServiceDeps;

  constructor(deps: DreamingServiceDeps) {
    this.#deps = deps;
  }

  /** Throws `forbidden`, `database_not_found`. */
  scope(caller: Caller, database: string): Promise<MemoryScope> {
    return this.#deps.memory.scope(caller, database);
  }

  /** Queues a dream of a database, unless one is queued or running. */
  async request({ databaseId, caller }: MemoryScope, database: string, request: DreamRequest): Promise<DreamAsked> {
    const { records, fabric, runs } = this.#deps;
    const { mode, focus, trigger } = request;
    const run = { databaseId, kind: "dreaming", trigger, mode, focus, requestedBy: ownerOf(caller) } as const;
    const runId = runs.newRunId();
    const payload = { run_id: runId, mode, focus: focus ?? null };
    const job = { kind: DREAM_JOB.name, payload, database, dedupKey: DREAM_KEY };
    const prepared = fabric.prepare([job], dreamerOf(database));
    const [jobId = ""] = prepared.ids;
    const { done } = await records.transact([
      runs.settleStatement(databaseId, "dreaming"),
      prepared.statement,
      runs.queuedStatement(runId, run, jobId),
    ]);
    if (done) {
      prepared.stored();
      return { jobId };
    }
    const newest = await runs.list(databaseId, { kind: "dreaming", limit: UNDER_WAY_LOOKED_AT, offset: 0 });
    const inFlight = newest.find(({ status }) => status === "queued" || status === "running");
    return { jobId: undefined, inFlight: inFlight?.id };
  }

  list({ databaseId }: MemoryScope, page: RunList): Promise<PipelineRun[]> {
    return this.#deps.runs.list(databaseId, page);
  }

  /** Throws `not_found`. */
  async get({ databaseId }: MemoryScope, id: string): Promise<PipelineRun> {
    const run = await this.#deps.runs.get(databaseId, id);
    if (run !== undefined) return run;
    throw new EngineError("not_found", `there is no run ${JSON.stringify(id.slice(0, 100))} in this database`);
  }

  /**
   * Takes back what a run wrote: see `revertOperation`. Again is like once, but that more may be taken back by then.
   * Throws `not_found`, and `conflict` while the run is under way.
   */
  async revert(scope: MemoryScope, id: string, origin: Origin): Promise<Reverted> {
    const { memory, store, runs, audit } = this.#deps;
    const { databaseId, rights } = scope;
    const { status } = await this.get(scope, id);
    if (status === "queued" || status === "running") {
      throw new EngineError("conflict", `the run is ${status}: cancel its job, or wait for its end, to take it back`);
    }
    const changes = await runs.changes(id);
    const changed = changes.filter(({ versionBefore }) => versionBefore !== undefined);
    const former = await Promise.all(
      changed.map(async (change) => {
        const version = await store.version(databaseId, change, change.versionBefore ?? 0);
        return version === undefined ? [] : [[keyOfChange(change), version] as const];
      }),
    );
    const entry = { origin, action: "dreaming.revert", target: id, outcome: "ok" } as const;
    return await memory.commit(
      databaseId,
      revertOperation({
        runId: id,
        changes,
        former: new Map(former.flat()),
        rights,
        also: ({ taken, kept }) => {
          if (taken.length === 0) return [];
          const details = { taken: taken.length, kept: kept.length };
          return [...runs.revertStatements(id, taken), audit.statement({ ...entry, details })];
        },
      }),
    );
  }
}
