import { z } from "zod";
import { sleep, type TimerHandle } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { JobFailure, type JobPort, type RunningJob } from "../../fabric/handler.ts";
import { holdOf, type LeasedJob } from "../../fabric/job.ts";
import { isLeaseLost } from "../../fabric/refusals.ts";
import { JobRunner } from "../../fabric/runner.ts";
import type { ImageBuilds } from "./images/image-builds.ts";
import { volumeKeyIn } from "./reconciler/volume-keys.ts";
import type { NodeReport } from "../contract/control-port.ts";
import { SANDBOX_JOB_KIND } from "../contract/sandbox-job.ts";
import { fence } from "./reconciler/fence.ts";
import type { Leased } from "./leased-files.ts";
import { SandboxReconciler, type ReconcilerDeps } from "./reconciler/reconciler.ts";
import { untilAnswered } from "./retry.ts";
import { VolumeRetention } from "./reconciler/volume-retention.ts";

export type SandboxNodeOptions = ReconcilerDeps & {
  /** What it builds beside that. */
  builds?: Pick<ImageBuilds, "run" | "drain" | "stop">;
  jobs: JobPort;
  /** What this node is, but for what changes. */
  node: Omit<NodeReport, "images" | "keeps" | "unusedVolumes" | "removedVolumes">;
  /** How long a volume is kept that nobody here uses and the control plane does not know; undefined: for ever. */
  volumesKeptMs: number | undefined;
  /** Whether machines are prepared before the first sandbox comes. */
  warmsAtOnce: boolean;
  /** Where the processes of the control plane are reached, whenever that is said. */
  onGateways?: (gateways: readonly string[]) => void;
};

const REPORT_EVERY_MS = 5_000;
/** What is written when the node stops gets this long. */
const FLUSH_MS = 2_000;
/** And what is in the middle of something, this long: the next process takes it up from there. */
const STOP_MS = 5_000;

const payloadSchema = z.object({ sandbox_id: z.uuid() });

/**
 * A node that runs sandboxes. It holds the job of each for as long as it has the sandbox, and has a reconciler for it
 * (`reconciler.ts`), which makes of the sandbox what is wanted.
 *
 * Machines do not need this process: each has a supervisor. When the process ends, however it does, its jobs stay leased
 * and its machines go on; the next process with the same folder has the same name, renews the leases, and takes the
 * machines up. What it may have no longer, because that took too long, it ends (`fence.ts`), and so machines that no job
 * explains, before it takes anything new. Disks that may be wanted stay until the control plane says that their
 * sandboxes are no more.
 */
export class SandboxNode {
  readonly #options: SandboxNodeOptions;
  readonly #runner: JobRunner;
  readonly #reconcilers = new Map<string, SandboxReconciler>();
  /** The reconciler before must have ended before the next one of the same sandbox begins. */
  readonly #ends = new Map<string, Promise<void>>();
  /** Sandboxes of which only the disk is here. */
  readonly #kept = new Set<string>();
  readonly #volumes: VolumeRetention;
  /** Deleted ones that are no longer here, which the control plane has not heard yet. */
  #removedVolumes: readonly string[] = [];
  readonly #stopping = new AbortController();
  /** Resolves when all of the process before was taken up. */
  readonly #started = Promise.withResolvers<void>();
  /** Called when the reconciler of a sandbox that is taken up is there. */
  readonly #onReconciler = new Map<string, () => void>();
  #reports: TimerHandle | undefined;
  #isReporting = false;
  #isUnheard = false;
  #stopListening: (() => void) | undefined;

  constructor(options: SandboxNodeOptions) {
    this.#options = options;
    const { jobs: port, node, runtime, volumesKeptMs: keptMs } = options;
    this.#volumes = new VolumeRetention({ ...options, volumes: runtime.volumes, named: () => this.#named(), keptMs });
    this.#runner = new JobRunner({
      ...options,
      port,
      handlers: [{ kind: SANDBOX_JOB_KIND, run: (job) => this.#run(job) }],
      slots: node.capacity.sandboxes,
      // Sandboxes that were lost while the control plane was away wait for this node.
      mostAwayMs: REPORT_EVERY_MS,
    });
  }

  /** Sandboxes that this node has. */
  get sandboxes(): number {
    return this.#reconcilers.size;
  }

  /** Machines of this node that are up. */
  get machines(): { running: number; paused: number } {
    const all = [...this.#reconcilers.values()].flatMap(({ machine }) => machine ?? []);
    const paused = all.filter(({ isPaused }) => isPaused).length;
    return { running: all.length - paused, paused };
  }

  /**
   * Goes on where the process before was, then takes sandboxes until `stop`. Resolves when it takes them; rejects when
   * the control plane does not take this node (`NodeRefused`), or what is left here cannot be cleared away.
   */
  async start(): Promise<void> {
    const { clock, control, runtime, warmsAtOnce } = this.#options;
    this.#stopListening = control.onDesiredState((sandboxId, change) => this.#reconcilers.get(sandboxId)?.wake(change));
    this.#reports = clock.every(REPORT_EVERY_MS, () => void this.report());
    try {
      await this.report();
      const leased = await this.#options.files.readAll();
      await this.#sweep(leased);
      await Promise.all(leased.map((one) => this.#takeUp(one)));
      if (this.#kept.size > 0) await this.report();
    } finally {
      this.#started.resolve();
    }
    if (warmsAtOnce) runtime.warm();
  }

  /** Takes sandboxes until `stop`. Rejects as `JobRunner.run` does. */
  async run(): Promise<void> {
    await Promise.all([this.#runner.run(), this.#options.builds?.run()]);
  }

  /**
   * The reconciler of a sandbox that this node has, once it knows what of the sandbox is here. Rejects with `unavailable` for
   * another one, and with the reason of the signal.
   */
  async reconcilerFor(sandboxId: string, signal: AbortSignal): Promise<SandboxReconciler> {
    if (!this.#reconcilers.has(sandboxId)) await untilAborted(this.#started.promise, signal);
    const reconciler = this.#reconcilers.get(sandboxId);
    if (reconciler === undefined) throw new EngineError("unavailable", "the node does not have the sandbox");
    await untilAborted(reconciler.ready, signal);
    return reconciler;
  }

  /** Undefined for a sandbox that this node does not have. */
  reconcilerOf(sandboxId: string): SandboxReconciler | undefined {
    return this.#reconcilers.get(sandboxId);
  }

  /** Takes nothing more, and writes what has happened. Sandboxes go on. */
  async drain(): Promise<void> {
    this.#runner.close();
    const flushed = Promise.allSettled([...this.#reconcilers.values()].map((reconciler) => reconciler.flush()));
    await Promise.all([this.#within(FLUSH_MS, flushed), this.#options.builds?.drain()]);
  }

  /** Lets go of everything: machines run on, and their jobs stay leased to this node. */
  async stop(): Promise<void> {
    this.#stopping.abort(new EngineError("unavailable", "the node stops"));
    this.#reports?.cancel();
    this.#stopListening?.();
    this.#runner.stop();
    await this.#within(STOP_MS, Promise.all([...this.#ends.values(), this.#options.builds?.stop()]));
  }

  /** Says what this node is and has. Never rejects. */
  async report(): Promise<void> {
    if (this.#isReporting) return;
    this.#isReporting = true;
    const { control, runtime, node, log, onGateways } = this.#options;
    try {
      const unusedVolumes = await this.#volumes.unused();
      const removedVolumes = this.#removedVolumes;
      const volumes = {
        ...(unusedVolumes.length > 0 && { unusedVolumes }),
        ...(removedVolumes.length > 0 && { removedVolumes }),
      };
      const answer = await control.report({ ...node, images: runtime.images(), keeps: [...this.#kept], ...volumes });
      this.#isUnheard = false;
      onGateways?.(answer.gateways);
      for (const sandboxId of answer.gone ?? []) await this.#forget(sandboxId);
      if (unusedVolumes.length > 0) await this.#volumes.remove(answer.goneVolumes ?? []);
      this.#removedVolumes = await this.#volumes.removeDeleted(answer.deletedVolumes ?? []);
    } catch (error) {
      if (!this.#isUnheard && !this.#stopping.signal.aborted) {
        log.warn({ reason: messageOf(error) }, "the control plane does not hear of this sandbox node; trying on");
      }
      this.#isUnheard = true;
    } finally {
      this.#isReporting = false;
    }
  }

  /** Volumes that sandboxes of this node name. */
  #named(): Set<string> {
    const desired = [...this.#reconcilers.values()].flatMap(({ desired }) => desired ?? []);
    return new Set(desired.flatMap((one) => one.spec.volumes.flatMap(({ name }) => volumeKeyIn(one, name) ?? [])));
  }

  async #within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
    const waited = new AbortController();
    await Promise.race([work, sleep(this.#options.clock, timeoutMs, waited.signal).catch(() => undefined)]);
    waited.abort();
  }

  /**
   * Ends machines of which nothing is known here. Their disks go when the control plane says that it does not know them
   * either: this node's files may have been lost, and a disk is all that somebody has.
   */
  async #sweep(leased: readonly Leased[]): Promise<void> {
    const { runtime, files, log } = this.#options;
    const known = new Set(leased.map(({ sandboxId }) => sandboxId));
    for (const sandboxId of await runtime.list()) {
      if (known.has(sandboxId)) continue;
      log.warn({ sandboxId }, "ending what is left of a sandbox that this node knows nothing of");
      try {
        await (await runtime.adopt(sandboxId))?.stop();
        await files.write({ sandboxId, keepsDisk: true, isProvisioned: true });
        this.#kept.add(sandboxId);
      } catch (error) {
        log.error({ err: error, sandboxId }, "it could not be ended; the next start of the node tries again");
      }
    }
  }

  /** Goes on with a sandbox of the process before, or ends it if that took too long. */
  async #takeUp(leased: Leased): Promise<void> {
    const { jobs, clock, log } = this.#options;
    const { sandboxId, job: leasedJob } = leased;
    if (leasedJob === undefined) {
      this.#kept.add(sandboxId);
      return;
    }
    const { credentials = [] } = leasedJob;
    const job: LeasedJob = { ...leasedJob, ...OF_EVERY_SANDBOX, credentials, payload: { sandbox_id: sandboxId } };
    try {
      let askedAtMs = clock.monotonicMs();
      await untilAnswered("renewing the hold of a sandbox", { ...this.#options, signal: this.#stopping.signal }, () => {
        askedAtMs = clock.monotonicMs();
        return jobs.extend(holdOf(job), job.leaseMs);
      });
      const kept = new Promise<void>((resolve) => this.#onReconciler.set(sandboxId, resolve));
      await Promise.race([kept, this.#runner.adopt(job, askedAtMs)]);
      this.#onReconciler.delete(sandboxId);
      log.info({ sandboxId, jobId: job.id }, "going on with a sandbox of the process before");
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (!isLeaseLost(error)) throw error;
      await this.#fence(leased);
    }
  }

  /** Never rejects: a machine that could not be ended here ends with its lease. */
  async #fence(leased: Leased): Promise<void> {
    const { runtime, log } = this.#options;
    const { sandboxId } = leased;
    try {
      await fence(this.#options, leased, await runtime.adopt(sandboxId));
      await this.#noteKept(sandboxId);
    } catch (error) {
      log.error({ err: error, sandboxId }, "a sandbox could not be ended; the next start of the node tries again");
    }
  }

  async #run(job: RunningJob): Promise<unknown> {
    const { data } = payloadSchema.safeParse(job.payload);
    if (data === undefined) throw new JobFailure({ error: "the payload names no sandbox" });
    const sandboxId = data.sandbox_id;
    const before = this.#ends.get(sandboxId);
    const running = this.#keep(sandboxId, job, before);
    const ended = running.catch(() => undefined);
    this.#ends.set(sandboxId, ended);
    try {
      await running;
    } finally {
      if (this.#ends.get(sandboxId) === ended) this.#ends.delete(sandboxId);
    }
    return null;
  }

  async #keep(sandboxId: string, job: RunningJob, before: Promise<void> | undefined): Promise<void> {
    await before;
    const { runtime, log } = this.#options;
    const reconciler = new SandboxReconciler(this.#options, job, sandboxId);
    this.#kept.delete(sandboxId);
    this.#reconcilers.set(sandboxId, reconciler);
    this.#onReconciler.get(sandboxId)?.();
    runtime.warm();
    try {
      await reconciler.run();
    } catch (error) {
      if (!job.signal.aborted) log.error({ err: error, sandboxId }, "a sandbox could not be kept");
      throw error;
    } finally {
      this.#reconcilers.delete(sandboxId);
      await this.#noteKept(sandboxId);
    }
  }

  async #noteKept(sandboxId: string): Promise<void> {
    const leased = await this.#options.files.read(sandboxId);
    if (leased !== undefined && leased.job === undefined) this.#kept.add(sandboxId);
  }

  /** The sandbox of a disk that is kept here was deleted while no node had it. */
  async #forget(sandboxId: string): Promise<void> {
    if (!this.#kept.has(sandboxId) || this.#reconcilers.has(sandboxId)) return;
    const { runtime, files, log } = this.#options;
    log.info({ sandboxId }, "removing the disk of a sandbox that is no more");
    try {
      await runtime.remove(sandboxId);
      await files.remove(sandboxId);
      this.#kept.delete(sandboxId);
    } catch (error) {
      log.warn({ sandboxId, reason: messageOf(error) }, "it could not be removed; trying again");
    }
  }
}

/** What jobs of sandboxes have in common: it needs not be kept. */
const OF_EVERY_SANDBOX = {
  kind: SANDBOX_JOB_KIND,
  database: undefined,
  owner: { subject: "engine", kind: "internal", role: "admin", databases: undefined },
  traceContext: undefined,
} as const;
