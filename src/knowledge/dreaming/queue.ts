import type { RecordStore, Statement } from "../../db/records.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import { DREAM_JOB, DREAM_KEY, dreamerOf, type DreamMode } from "./dream-job.ts";
import type { PipelineRuns, RunTrigger } from "./runs.ts";

export type DreamRequest = {
  databaseId: number;
  database: string;
  mode: DreamMode;
  focus?: string | undefined;
  trigger: RunTrigger;
  /** Whose wish it is: see `ownerOf`. */
  requestedBy?: string | undefined;
  /** Further statements of the transaction. */
  also?: readonly Statement[];
};

/** `jobId` is undefined where nothing was queued, for one is queued or running: `inFlight`, if it has not ended since. */
export type DreamAsked = { jobId: string } | { jobId: undefined; inFlight: string | undefined };

/** Of the newest runs, among which the one under way is looked for. */
const LOOKED_AT = 20;

/** Queues dreams, one at a time for each database: its job, and its run, are stored together. */
export class DreamQueue {
  readonly #records: RecordStore;
  readonly #fabric: Pick<Fabric, "prepare">;
  readonly #runs: PipelineRuns;

  constructor({
    records,
    fabric,
    runs,
  }: {
    records: RecordStore;
    fabric: Pick<Fabric, "prepare">;
    runs: PipelineRuns;
  }) {
    this.#records = records;
    this.#fabric = fabric;
    this.#runs = runs;
  }

  async request({ also = [], ...request }: DreamRequest): Promise<DreamAsked> {
    const runs = this.#runs;
    const { databaseId, database, mode, focus } = request;
    const runId = runs.newRunId();
    const payload = { run_id: runId, mode, focus: focus ?? null };
    const job = { kind: DREAM_JOB.name, payload, database, dedupKey: DREAM_KEY };
    const prepared = this.#fabric.prepare([job], dreamerOf(database));
    const [jobId = ""] = prepared.ids;
    const { done } = await this.#records.transact([
      runs.settleStatement(databaseId, "dreaming"),
      prepared.statement,
      runs.queuedStatement(runId, { ...request, kind: "dreaming" }, jobId),
      ...also,
    ]);
    if (done) {
      prepared.stored();
      return { jobId };
    }
    const newest = await runs.list(databaseId, { kind: "dreaming", limit: LOOKED_AT, offset: 0 });
    const inFlight = newest.find(({ status }) => status === "queued" || status === "running");
    return { jobId: undefined, inFlight: inFlight?.id };
  }
}
