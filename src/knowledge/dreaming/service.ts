import type { AuditLog, Origin } from "../../auth/audit.ts";
import { roleIncludes, type Caller } from "../../auth/caller.ts";
import { ownerOf } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import type { MemoryScope, MemoryService } from "../memory/service.ts";
import type { MemoryStore } from "../memory/store.ts";
import type { DreamMode } from "./dream-job.ts";
import type { DreamAsked, DreamQueue } from "./queue.ts";
import { keyOfChange, revertOperation, type Reverted } from "./revert.ts";
import type { PipelineRun, PipelineRuns, RunList } from "./runs.ts";

export type DreamingServiceDeps = {
  queue: Pick<DreamQueue, "request">;
  memory: Pick<MemoryService, "scope" | "commit">;
  store: Pick<MemoryStore, "version">;
  runs: PipelineRuns;
  audit: AuditLog;
};

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

  /**
   * Queues a dream of a database, unless one is queued or running. Throws `forbidden` where a reader would say what the
   * model looks for, or have it go over memories that it has gone over before.
   */
  async request(
    { databaseId, caller }: MemoryScope,
    database: string,
    asked: { mode: DreamMode; focus: string | undefined },
  ): Promise<DreamAsked> {
    if ((asked.mode === "deep" || asked.focus !== undefined) && !roleIncludes(caller.role, "write")) {
      throw new EngineError("forbidden", `a deep or focused dream needs the role write; the token has ${caller.role}`);
    }
    const requestedBy = ownerOf(caller);
    return await this.#deps.queue.request({ ...asked, databaseId, database, trigger: "manual", requestedBy });
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
