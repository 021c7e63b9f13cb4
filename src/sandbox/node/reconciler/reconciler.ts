import { sleep } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import type { Random } from "../../../core/random.ts";
import { JobFailure, type RunningJob } from "../../../fabric/handler.ts";
import { holdOf, type Hold } from "../../../fabric/job.ts";
import { isLeaseLost } from "../../../fabric/refusals.ts";
import { Backoff } from "../../../core/backoff.ts";
import { AgentTurns } from "../agent/turns.ts";
import type { Machine, MachineEnd } from "../../runtime/runtime.ts";
import { SandboxActions } from "./actions.ts";
import type { Companions } from "./companions.ts";
import type { ControlPort, DesiredStateChange, DesiredState } from "../../contract/control-port.ts";
import { fence, type FenceDeps } from "./fence.ts";
import { LeasedSandbox, type Leased } from "../leased-files.ts";
import { Recorder } from "../recorder.ts";
import { isGone, untilAnswered, untilDone } from "../retry.ts";
import { Sampler } from "./sampler.ts";
import { SandboxSecrets } from "./secrets.ts";
import { SetupHosts } from "./setup-hosts.ts";
import { nextStep, type Step } from "./steps.ts";

export type ReconcilerDeps = FenceDeps & {
  control: ControlPort;
  random: Random;
  companions: Companions;
  /** How agents are started, by provider, where the operator says how. */
  agentCommands: Readonly<Record<string, readonly string[]>>;
};

/** Wishes that nobody told of are found so late. */
const LOOK_EVERY_MS = 10_000;
/** The machine's lease ends that much before the job's, for the way to the supervisor. */
const LEASE_MARGIN_MS = 500;
const RETRY = { firstMs: 100, mostMs: 10_000 } as const;
/** After so many failures of these steps, the sandbox has failed. The others are tried for ever. */
const TRIES = 5;
const MAY_FAIL: ReadonlySet<Step | "cancel"> = new Set(["begin", "make", "pause", "resume", "freeze", "thaw"]);
/** A batch of an earlier process of this node may still be on its way: its number is not taken again. */
const ON_ITS_WAY = 1;

/**
 * Has one sandbox for as long as this node holds its job: looks at what it is and what it is to be, takes the next step,
 * and looks again (`steps.ts`). All that it must know after a crash of this process is in its file, in the machine's
 * supervisor, and in the records; a later process starts where this one was.
 *
 * The machine never outlives the hold: its lease is renewed only when the job's was, and ends before that.
 */
export class SandboxReconciler {
  readonly sandboxId: string;
  readonly #ports: ReconcilerDeps;
  readonly #job: RunningJob;
  readonly #hold: Hold;
  /** Aborted when this node may say nothing more about the sandbox, or is about to end. */
  readonly #gone = new AbortController();
  #leased: LeasedSandbox | undefined;
  #recorder: Recorder | undefined;
  #turns: AgentTurns | undefined;
  #desired: DesiredState | undefined;
  #machine: Machine | undefined;
  #end: MachineEnd | undefined;
  readonly #ready = Promise.withResolvers<void>();
  #isCancelled = false;
  #isStale = false;
  #bell = Promise.withResolvers<void>();
  /** Aborted when what is being made is no longer wanted. */
  #making: AbortController | undefined;

  constructor(ports: ReconcilerDeps, job: RunningJob, sandboxId: string) {
    this.#ports = ports;
    this.#job = job;
    this.#hold = holdOf(job);
    this.sandboxId = sandboxId;
  }

  /** The machine, while it is up. */
  get machine(): Machine | undefined {
    return this.#machine;
  }

  /** Resolves when it is known what of the sandbox is here, and what is to become of it. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** What is to become of it, as far as this node has heard. */
  get desired(): DesiredState | undefined {
    return this.#desired;
  }

  /** The desired state may have changed, or has by this. */
  wake(change?: DesiredStateChange): void {
    const desired = this.#desired;
    if (change === undefined || desired?.version !== change.version - 1) {
      this.#isStale = true;
      this.#ring();
    } else this.#take({ ...desired, version: change.version, turns: [...(desired.turns ?? []), change.begun] });
  }

  /** A line of output that belongs into the sandbox's log. */
  logLine(stream: "stdout" | "stderr", line: string): void {
    this.#recorder?.event("log_line", { line, stream });
  }

  /** Resolves when everything was written that happened before. */
  async flush(): Promise<void> {
    await this.#recorder?.flush();
  }

  /** Resolves when the sandbox is no longer this node's, and nothing is left to do for it here. */
  async run(): Promise<void> {
    const { signal } = this.#job;
    const onAbort = () => this.#toldToStop(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const leased = await this.#persist("taking up a sandbox", () => this.#takeUp());
      const desired = await this.#ask();
      this.#ready.resolve();
      await this.#work(desired, leased);
    } catch (error) {
      if (this.#gone.signal.aborted) await this.#letGo();
      else if (isGone(error)) await this.#persist("putting away a sandbox", () => this.#putAway());
      else throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#ready.resolve();
    }
  }

  /** Finds out what of the sandbox is here. */
  async #takeUp(): Promise<LeasedSandbox> {
    const { files, runtime } = this.#ports;
    const { jobId, holder, fence: fenceNumber } = this.#hold;
    const before = await files.read(this.sandboxId);
    const isSame = before?.job?.id === jobId && before.job.holder === holder && before.job.fence === fenceNumber;
    const machine = await runtime.adopt(this.sandboxId);
    // One that an earlier hold left is not what the records speak of. Until it has ended, the file says whose it is.
    if (!isSame) await machine?.stop();
    const leased = isSame ? new LeasedSandbox(files, before) : await this.#begin(before);
    this.#leased = leased;
    if (isSame && machine !== undefined) this.#watch(machine);
    this.#job.lease.onRenewed(() => void this.#renew());
    await this.#renew();
    return leased;
  }

  /** The first process that has this hold. A disk may be here from an earlier one. */
  async #begin(before: Leased | undefined): Promise<LeasedSandbox> {
    const { id, holder = "", fence: fenceNumber, leaseMs, attempt, credentials: named } = this.#job;
    const { keepsDisk = false, isProvisioned = false, authority } = before ?? {};
    const { sandboxId } = this;
    const leased = new LeasedSandbox(this.#ports.files, { sandboxId, keepsDisk, isProvisioned, authority });
    const credentials = named.length === 0 ? undefined : [...named];
    await leased.update({ job: { id, holder, fence: fenceNumber, leaseMs, attempt, credentials } });
    return leased;
  }

  async #work(desired: DesiredState, leased: LeasedSandbox): Promise<void> {
    const recorder = new Recorder({
      ...this.#io(),
      control: this.#ports.control,
      hold: this.#hold,
      lastBatch: desired.recordedBatch + ON_ITS_WAY,
      knownVersion: () => this.#desired?.version,
      onDesiredState: (newer) => this.#take(newer),
      onLost: (error) => this.#lose(error),
    });
    this.#recorder = recorder;
    const machine = () => this.#machine;
    const secrets = new SandboxSecrets({ ...this.#ports, job: this.#job, leased });
    const turns = this.#agentTurns(desired, recorder, leased);
    this.#turns = turns;
    const setupHosts = new SetupHosts(this.#ports.companions, leased);
    const sampler = new Sampler({ ...this.#ports, recorder, machine, sandboxId: this.sandboxId });
    const actions = new SandboxActions({
      ...this.#ports,
      recorder,
      leased,
      secrets,
      machine,
      desired: () => this.#desired ?? desired,
      end: () => this.#end,
      leaseMs: () => this.#leaseMs(),
      setMachine: (made) => this.#watch(made),
      dropMachine: () => (this.#machine = undefined),
      setupHosts,
      startAgent: () => turns.start(),
      endTurns: () => turns.end(),
      making: () => this.#beginMaking(),
    });
    try {
      if (this.#machine !== undefined) {
        await this.#ports.companions.began(this.#machine, desired, secrets);
        setupHosts.takeUp();
        await turns.takeUp(this.#machine);
      }
      await this.#steps(actions);
    } finally {
      sampler.stop();
      turns.abandon();
      leased.close();
      await this.#ports.companions.end(this.sandboxId);
    }
  }

  #agentTurns(desired: DesiredState, recorder: Recorder, leased: LeasedSandbox): AgentTurns {
    const { control, clock, random, log, agentCommands: commands } = this.#ports;
    return new AgentTurns({
      recorder,
      leased,
      desired: () => this.#desired ?? desired,
      history: (sessionId) =>
        untilAnswered("what was said in a session", this.#io(), () => control.history(this.#hold, sessionId)),
      machine: () => this.#machine,
      commands,
      newId: uuidV7Source(clock, random),
      clock,
      log,
    });
  }

  /** Steps until one is the last. */
  async #steps(actions: SandboxActions): Promise<void> {
    const { clock, random, log } = this.#ports;
    const backoff = new Backoff({ random, ...RETRY });
    let tries = 0;
    let lastLook = "";
    for (;;) {
      const bell = this.#bell.promise;
      let step: Step | "cancel" = "rest";
      try {
        if (this.#isStale) await this.#ask();
        this.#turns?.look();
        step = this.#isCancelled ? "cancel" : this.#nextStep();
        const look = `${step} ${this.#desired?.version}`;
        if (step === "rest") await this.#untilRung(bell);
        else if (look === lastLook) throw new Error("it changed nothing");
        else if (await actions.take(step)) return;
        lastLook = look;
        tries = 0;
        backoff.reset();
      } catch (error) {
        if (this.#gone.signal.aborted || error instanceof JobFailure || isGone(error)) throw error;
        const reason = messageOf(error);
        log.warn({ sandboxId: this.sandboxId, step, reason }, "a step of a sandbox failed; trying again");
        await sleep(clock, backoff.next(), this.#gone.signal);
        tries++;
        if (tries >= TRIES && MAY_FAIL.has(step)) await actions.fail(`${step}: ${reason}`);
        lastLook = "";
        // Somebody else may have moved it: the records know.
        this.#isStale = true;
      }
      this.#gone.signal.throwIfAborted();
    }
  }

  #nextStep(): Step {
    if (this.#desired === undefined) throw new Error("a step without a desired state");
    const { state, wanted, spec } = this.#desired;
    const machine = this.#machine === undefined ? "absent" : this.#machine.isPaused ? "paused" : "running";
    return nextStep({ state, wanted, machine, keepsDisk: spec.persistence === "persistent" });
  }

  /** What is to become of the sandbox, and where it is. */
  async #ask(): Promise<DesiredState> {
    this.#isStale = false;
    const { control } = this.#ports;
    try {
      const ask = () => control.desiredState(this.#hold);
      const desired = await untilAnswered("what is to become of a sandbox", this.#io(), ask);
      this.#take(desired);
      return desired;
    } catch (error) {
      if (isLeaseLost(error)) this.#lose(error);
      throw error;
    }
  }

  async #untilRung(bell: Promise<void>): Promise<void> {
    const timer = this.#ports.clock.after(LOOK_EVERY_MS, () => this.wake(), { background: true });
    try {
      await untilAborted(bell, this.#gone.signal);
    } finally {
      timer.cancel();
    }
  }

  /** Orders overtake each other on their way. */
  #take(desired: DesiredState): void {
    if (this.#desired !== undefined && desired.version <= this.#desired.version) return;
    this.#desired = desired;
    if (desired.wanted === "deleted") this.#making?.abort(DELETED);
    this.#ring();
  }

  #beginMaking(): AbortSignal {
    const making = new AbortController();
    this.#making = making;
    if (this.#desired?.wanted === "deleted") making.abort(DELETED);
    return AbortSignal.any([making.signal, this.#gone.signal]);
  }

  #watch(machine: Machine): void {
    this.#machine = machine;
    this.#end = undefined;
    machine.onLine(
      ({ stream, line }) => this.logLine(stream, line),
      (lines) => this.#recorder?.linesLost(lines, "were written while nothing listened"),
    );
    void machine.ended.then((end) => {
      if (this.#machine !== machine) return;
      this.#machine = undefined;
      this.#end = end;
      void this.#turns?.end("its machine has ended");
      void this.#ports.companions.end(this.sandboxId).then(() => this.#ring());
    });
  }

  #ring(): void {
    this.#bell.resolve();
    this.#bell = Promise.withResolvers();
  }

  /** What is left of the lease, for the machine. */
  #leaseMs(): number {
    return Math.max(0, this.#job.lease.untilMs - this.#ports.clock.monotonicMs() - LEASE_MARGIN_MS);
  }

  async #renew(): Promise<void> {
    const machine = this.#machine;
    const leaseMs = this.#leaseMs();
    if (machine === undefined || leaseMs === 0 || this.#gone.signal.aborted) return;
    await machine.renew(leaseMs).catch((error: unknown) => {
      if (this.#machine !== machine) return;
      const { log } = this.#ports;
      log.warn({ sandboxId: this.sandboxId, reason: messageOf(error) }, "the lease of a machine was not renewed");
    });
  }

  #toldToStop(reason: unknown): void {
    const isCancel = reason instanceof EngineError && reason.code === "conflict";
    if (!isCancel) {
      this.#gone.abort(reason);
      return;
    }
    this.#isCancelled = true;
    this.#making?.abort(reason);
    this.#ring();
  }

  #lose(error: unknown): void {
    if (!this.#gone.signal.aborted) this.#gone.abort(error);
  }

  /** A node that ends leaves everything to its next process; one that has lost the hold ends the machine. */
  async #letGo(): Promise<void> {
    if (!isLeaseLost(this.#gone.signal.reason) || this.#leased === undefined) return;
    const machine = this.#machine;
    this.#machine = undefined;
    const leased = this.#leased.now;
    await untilDone("ending a sandbox", { ...this.#ports, mostTries: TRIES }, () =>
      fence(this.#ports, leased, machine),
    );
  }

  /** Nobody else can do it, so it is tried until the node stops. */
  #persist<T>(what: string, work: () => Promise<T>): Promise<T> {
    return untilDone(what, { ...this.#ports, signal: this.#job.signal }, work);
  }

  async #putAway(): Promise<void> {
    const { runtime, files, companions } = this.#ports;
    await companions.end(this.sandboxId);
    await this.#machine?.stop();
    this.#machine = undefined;
    await runtime.remove(this.sandboxId);
    await files.remove(this.sandboxId);
  }

  #io() {
    const { clock, random, log } = this.#ports;
    return { clock, random, log, signal: this.#gone.signal };
  }
}

const DELETED = new EngineError("conflict", "the sandbox is deleted");
