import type { Clock, TimerHandle } from "../core/clock.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { SIGNAL_BYTES, type Signals } from "../db/signals.ts";
import { claimFromLane, laneHeads } from "./claim.ts";
import { holdOf, type Job } from "./job.ts";
import { release } from "./fail.ts";
import type { Claimant } from "./lanes.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import type { FabricPorts } from "./ports.ts";
import { QueueView, type Turn } from "./queue-view.ts";

/** A claim: who, for what, how many jobs, and how long it waits for the first. */
export type Claim = Claimant & {
  holder: string;
  max: number;
  waitMs: number;
  /** Aborted when nobody wants the answer any more. */
  signal?: AbortSignal | undefined;
};

export type ClaimDeskOptions = { ports: FabricPorts; signals: Signals; clock: Clock; log: Log };

type Waiter = { claim: Claim; settle: PromiseWithResolvers<Job[]>; isServed: boolean };

const TOPIC = "jobs";
/** Signals can be lost; and nothing signals that a job's time has come, or that a process died before it signalled. */
const LOOK_EVERY_MS = 1_000;
/** The database rounds times to ms. */
const LOOK_SOONEST_MS = 2;
/** Claims that are made at once for those who wait. */
const SERVED_AT_ONCE = 4;

/**
 * Where claims of one process come to. Those that find nothing wait here, in memory: only the desk looks at the queue,
 * once a second however many wait, and when it hears that jobs were enqueued, here or on another node.
 */
export class ClaimDesk {
  readonly #options: ClaimDeskOptions;
  readonly #view: QueueView;
  /** Tells the messages of this desk from those of others. */
  readonly #name: string;
  readonly #waiters = new Set<Waiter>();
  readonly #stopListening: () => void;
  #looking: Promise<void> | undefined;
  #lookedAtMs = -Infinity;
  #nextLook: TimerHandle | undefined;
  #serving = 0;
  #isClosed = false;
  /** Lanes that other nodes have not been told of. */
  #unsent = new Set<string>();
  #isTelling = false;

  constructor(options: ClaimDeskOptions) {
    this.#options = options;
    this.#view = new QueueView(options.clock);
    this.#name = options.ports.newId();
    this.#stopListening = options.signals.listen(TOPIC, (payload) => this.#heard(payload));
  }

  /** Claims that wait. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Says, here and to other nodes, that jobs wait in lanes. */
  readonly announce = (lanes: readonly string[]): void => {
    for (const lane of lanes) {
      this.#view.announce(lane);
      this.#unsent.add(lane);
    }
    this.#wake();
    if (!this.#isTelling) void this.#tell();
  };

  /** At least one job where there is one within the wait; else none. Rejects as the catalog does. */
  async claim(claim: Claim): Promise<Job[]> {
    if (this.#isClosed) return [];
    if (this.#options.clock.monotonicMs() - this.#lookedAtMs > LOOK_EVERY_MS) await this.#look();
    const jobs = await this.#take(claim);
    if (jobs.length > 0 || claim.waitMs <= 0) return jobs;
    return await this.#wait(claim);
  }

  /** Those who wait get nothing, and those who come. */
  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#nextLook?.cancel();
    for (const waiter of this.#waiters) this.#settle(waiter, []);
  }

  async #wait(claim: Claim): Promise<Job[]> {
    if (this.#isClosed || claim.signal?.aborted === true) return [];
    if (this.#waiters.size >= FABRIC_LIMITS.claimsWaiting) {
      const headers = { "Retry-After": "1" };
      throw new EngineError("too_many_requests", "too many claims wait here", { headers });
    }
    const waiter: Waiter = { claim, settle: Promise.withResolvers(), isServed: false };
    this.#waiters.add(waiter);
    const leave = () => this.#settle(waiter, []);
    const timer = this.#options.clock.after(claim.waitMs, leave, { background: true });
    claim.signal?.addEventListener("abort", leave, { once: true });
    this.#lookAgain();
    // Something may have been announced since this claim looked.
    this.#wake();
    try {
      return await waiter.settle.promise;
    } finally {
      timer.cancel();
      claim.signal?.removeEventListener("abort", leave);
      if (this.#waiters.size === 0) this.#nextLook?.cancel();
    }
  }

  #settle(waiter: Waiter, jobs: Job[]): void {
    this.#waiters.delete(waiter);
    waiter.settle.resolve(jobs);
  }

  /** Claims for the first of those who wait whose turn there is, several at a time, until there is none. */
  #wake(): void {
    while (this.#serving < SERVED_AT_ONCE) {
      const waiter = this.#firstWithTurn();
      if (waiter === undefined) return;
      this.#serving++;
      waiter.isServed = true;
      void this.#serve(waiter);
    }
  }

  #firstWithTurn(): Waiter | undefined {
    // Many who wait are alike: what one cannot have, none of the same kind can.
    const inVain = new Set<string>();
    for (const waiter of this.#waiters) {
      if (waiter.isServed) continue;
      const likeness = likenessOf(waiter.claim);
      if (inVain.has(likeness)) continue;
      if (this.#view.turns(waiter.claim).length > 0) return waiter;
      inVain.add(likeness);
    }
    return undefined;
  }

  async #serve(waiter: Waiter): Promise<void> {
    try {
      const jobs = await this.#take(waiter.claim);
      if (!this.#waiters.has(waiter)) await this.#giveBack(jobs);
      else if (jobs.length > 0) this.#settle(waiter, jobs);
    } catch (error) {
      this.#waiters.delete(waiter);
      waiter.settle.reject(error);
    } finally {
      waiter.isServed = false;
      this.#serving--;
      this.#wake();
    }
  }

  /** Jobs that were claimed for somebody who has left. */
  async #giveBack(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs) {
      await release(this.#options.ports, holdOf(job)).catch((error: unknown) => {
        this.#options.log.warn({ err: error, jobId: job.id }, "a job could not be given back; its lease will end");
      });
    }
  }

  async #take(claim: Claim): Promise<Job[]> {
    const jobs: Job[] = [];
    for (;;) {
      const turns = this.#view.turns(claim);
      if (turns.length === 0 || jobs.length >= claim.max) return jobs;
      try {
        await this.#takeTurns(claim, turns, jobs);
      } catch (error) {
        // What was claimed before it went wrong would wait for its lease to end.
        if (jobs.length === 0) throw error;
        return jobs;
      }
    }
  }

  /** Adds jobs of each group in turn, the same share of each. */
  async #takeTurns({ holder, max }: Claim, turns: readonly Turn[], jobs: Job[]): Promise<void> {
    for (const [i, turn] of turns.entries()) {
      const free = max - jobs.length;
      if (free <= 0) return;
      const share = Math.ceil(free / (turns.length - i));
      this.#view.served(turn);
      const claimed = await claimFromLane(this.#options.ports, { lane: turn.key, holder, max: share });
      if (claimed.length < share) this.#view.exhausted(turn);
      jobs.push(...claimed);
    }
  }

  /** Looks at the heads of all lanes; calls at once share a look. */
  async #look(): Promise<void> {
    const { ports, clock } = this.#options;
    this.#looking ??= (async () => {
      const { version } = this.#view;
      const atMs = clock.monotonicMs();
      this.#view.replace(await laneHeads(ports), version);
      this.#lookedAtMs = atMs;
    })().finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  /** Looks when the next job is due, and now and then, as long as anybody waits. */
  #lookAgain(): void {
    this.#nextLook?.cancel();
    if (this.#waiters.size === 0 || this.#isClosed) return;
    const inMs = Math.max(LOOK_SOONEST_MS, Math.min(LOOK_EVERY_MS, this.#view.nextDueInMs ?? LOOK_EVERY_MS));
    this.#nextLook = this.#options.clock.after(inMs, () => void this.#lookNow(), { background: true });
  }

  async #lookNow(): Promise<void> {
    try {
      await this.#look();
      this.#wake();
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "the queue of jobs could not be looked at");
    }
    this.#lookAgain();
  }

  #heard(payload: string | undefined): void {
    if (this.#isClosed) return;
    const [sender, ...lanes] = payload?.split("\n") ?? [];
    // What this desk says comes back to it.
    if (sender === this.#name) return;
    if (lanes.length === 0) {
      this.#lookedAtMs = -Infinity;
      if (this.#waiters.size > 0) void this.#lookNow();
      return;
    }
    for (const lane of lanes) this.#view.announce(lane);
    this.#wake();
  }

  async #tell(): Promise<void> {
    this.#isTelling = true;
    while (this.#unsent.size > 0 && !this.#isClosed) {
      const payload = [this.#name, ...this.#unsent].join("\n");
      this.#unsent.clear();
      const fits = Buffer.byteLength(payload) <= SIGNAL_BYTES;
      await this.#options.signals.send(TOPIC, fits ? payload : this.#name).catch((error: unknown) => {
        this.#options.log.debug(
          { reason: messageOf(error) },
          "other nodes were not told of jobs; they look themselves",
        );
      });
    }
    this.#isTelling = false;
  }
}

/** The same for claims that may have the same jobs. */
function likenessOf({ kinds, labels, workerId, jobsOf }: Claim): string {
  const whose = jobsOf === "everybody" ? null : [jobsOf.owner, [...kinds].filter(jobsOf.admitted)];
  return JSON.stringify([[...kinds], labels, workerId ?? null, whose]);
}
