import type { IdSource } from "../core/ids.ts";
import type { Failure } from "./fail.ts";
import type { ClaimRequest, JobPort, LogLine } from "./handler.ts";
import type { HoldState } from "./extend.ts";
import type { Fabric } from "./fabric.ts";
import type { Hold, Job } from "./job.ts";

export type LocalPortOptions = {
  fabric: Fabric;
  newId: IdSource;
  /** Where lines go: see `JobLogs`. */
  logs: { append(hold: Hold, lines: readonly LogLine[]): Promise<void> };
  /** The secret that a holder may have, on behalf of the job's owner. */
  credential: (hold: Hold, id: string) => Promise<unknown>;
  /**
   * A node with a name that it keeps: it goes on with its jobs when its process is another one, and jobs may be for it
   * alone. A dispatcher otherwise, under a name that no other process has.
   */
  nodeId?: string;
};

/** The fabric as nodes in this program reach it: directly. */
export class LocalPort implements JobPort {
  readonly holder: string;
  readonly #options: LocalPortOptions;

  constructor(options: LocalPortOptions) {
    this.#options = options;
    this.holder = options.nodeId ?? `dispatcher/${options.newId()}`;
  }

  claim({ kinds, max, waitMs, signal }: ClaimRequest): Promise<Job[]> {
    const { fabric, nodeId } = this.#options;
    const claimable = fabric.kinds.claimable(kinds, "engine");
    return fabric.claim({
      kinds: claimable,
      holder: this.holder,
      workerId: nodeId,
      labels: {},
      jobsOf: "everybody",
      max,
      waitMs,
      signal,
    });
  }

  extend(hold: Hold, leaseMs: number): Promise<HoldState> {
    return this.#options.fabric.extend(hold, leaseMs);
  }

  progress(hold: Hold, snapshot: unknown): Promise<HoldState> {
    return this.#options.fabric.progress(hold, snapshot);
  }

  log(hold: Hold, lines: readonly LogLine[]): Promise<void> {
    return this.#options.logs.append(hold, lines);
  }

  async complete(hold: Hold, result: unknown): Promise<void> {
    await this.#options.fabric.complete(hold, result);
  }

  async fail(hold: Hold, failure: Failure): Promise<void> {
    await this.#options.fabric.fail(hold, failure);
  }

  async release(hold: Hold): Promise<void> {
    await this.#options.fabric.release(hold);
  }

  credential(hold: Hold, id: string): Promise<unknown> {
    return this.#options.credential(hold, id);
  }

  onCancel(listener: (jobId: string) => void): () => void {
    return this.#options.fabric.onCancel(listener);
  }
}
