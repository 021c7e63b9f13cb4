import { EngineError, publicText } from "../../../core/errors.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Machine, MachineEnd, Runtime } from "../../runtime/runtime.ts";
import { JobFailure } from "../../../fabric/handler.ts";
import type { Companions } from "./companions.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import { keepOrRemove } from "./fence.ts";
import type { HeldFiles, HeldSandbox } from "../leased-files.ts";
import { provision, StepFailed } from "./provision.ts";
import type { Recorder } from "../recorder.ts";
import type { SandboxSecrets } from "./secrets.ts";
import type { SetupHosts } from "./setup-hosts.ts";
import type { Step } from "./steps.ts";

export type ActionsOptions = {
  runtime: Runtime;
  files: HeldFiles;
  companions: Companions;
  secrets: SandboxSecrets;
  clock: Clock;
  recorder: Recorder;
  held: HeldSandbox;
  order: () => SandboxOrder;
  machine: () => Machine | undefined;
  setMachine: (machine: Machine) => void;
  dropMachine: () => void;
  setupHosts: SetupHosts;
  /** Has the agent run before the first message. */
  startAgent: () => Promise<void>;
  /** Ends what the agent is doing, and says how that ended. */
  endTurns: () => Promise<void>;
  /** How the last machine ended, when it ended by itself under the eyes of this process. */
  end: () => MachineEnd | undefined;
  /** What is left of the lease at this moment, for a machine. */
  leaseMs: () => number;
  /** Aborted when what is being made is no longer wanted. */
  making: () => AbortSignal;
};

/** The steps of `steps.ts`, each repeatable: what is done already is not done again. */
export class SandboxActions {
  readonly #options: ActionsOptions;

  constructor(options: ActionsOptions) {
    this.#options = options;
  }

  /** True when it was the last step: the sandbox is no longer this node's. */
  async take(step: Step | "cancel"): Promise<boolean> {
    const { recorder } = this.#options;
    switch (step) {
      case "begin":
        await recorder.say({ state: { to: "creating" } });
        return false;
      case "make":
        await this.#make();
        return false;
      case "pause":
      case "freeze":
        await this.#machine().pause();
        if (step === "pause") await recorder.say({ state: { to: "paused" } });
        return false;
      case "resume":
      case "thaw":
        if (this.#machine().isPaused) await this.#machine().resume();
        if (step === "resume") await recorder.say({ state: { to: "running" } });
        return false;
      case "leave":
        await recorder.say({ state: { to: "stopping" } });
        return false;
      case "stop":
        await this.#stop();
        await recorder.say({ state: { to: "stopped" } });
        return false;
      case "quench":
        await this.#stop();
        return false;
      case "mourn":
        await this.#mourn();
        return false;
      case "give up":
        return await this.#giveUp();
      case "remove":
        await this.#remove();
        return true;
      case "cancel":
        return await this.#cancel();
      case "rest":
        return false;
    }
  }

  /** The sandbox has failed; what is left of it goes with the next step. */
  async fail(reason: string): Promise<void> {
    await this.#options.recorder.say({ state: { to: "failed", reason: publicText(reason) } });
  }

  #machine(): Machine {
    const machine = this.#options.machine();
    if (machine === undefined) throw new EngineError("conflict", "the machine has ended");
    return machine;
  }

  async #make(): Promise<void> {
    const { recorder, held, order, machine, companions, secrets } = this.#options;
    const wanted = order();
    const keepsDisk = wanted.spec.persistence === "persistent";
    const signal = this.#options.making();
    try {
      await provision({
        ...this.#options,
        order: wanted,
        machine: machine(),
        hasDisk: keepsDisk && held.now.isProvisioned,
        signal,
        onMachine: async (made) => {
          this.#options.setMachine(made);
          await companions.began(made, wanted, secrets);
        },
        onStart: (deadlineAtMs) => held.update({ keepsDisk, deadlineAtMs }),
      });
      await held.update({ isProvisioned: true });
      recorder.event("provisioning_complete", { sandbox_id: wanted.sandboxId });
    } catch (error) {
      // Deleted in the middle: the next look sees it.
      if (signal.aborted) return;
      if (!(error instanceof StepFailed)) throw error;
      recorder.event("provisioning_failed", { error: publicText(error.message), step: error.step });
      await this.fail(`${error.step}: ${error.message}`);
      return;
    }
    await recorder.say({ state: { to: "running" } });
  }

  /** Ends the machine; of an ephemeral sandbox nothing stays. */
  async #stop(): Promise<void> {
    const { runtime, held, order } = this.#options;
    await this.#end();
    const keepsDisk = order().spec.persistence === "persistent";
    if (!keepsDisk) await runtime.remove(held.now.sandboxId);
    await held.update({ deadlineAtMs: undefined, ...(keepsDisk ? {} : { isProvisioned: false }) });
  }

  /** Of an ephemeral sandbox that failed nothing stays; the disk of a persistent one does until it is deleted. */
  async #giveUp(): Promise<boolean> {
    const { files, held, order, recorder } = this.#options;
    await this.#stop();
    if (order().spec.persistence === "persistent") return false;
    await recorder.flush();
    await files.remove(held.now.sandboxId);
    return true;
  }

  /** The machine ended and nobody had asked for that. What can be started again is stopped, and the rest has failed. */
  async #mourn(): Promise<void> {
    const { recorder, order } = this.#options;
    const end = this.#howItEnded();
    if (end === undefined) return await this.#lose("its machine ended while its node was away");
    if (end.cause === "lease") return await this.#lose("its node did not renew the lease of its machine in time");
    const isDeadline = end.cause === "deadline";
    const reason = isDeadline ? "timeout_secs have passed" : `its machine ended: ${reasonOf(end)}`;
    const mayStop = isDeadline || order().spec.persistence === "persistent";
    await recorder.say({ state: { to: mayStop ? "stopping" : "failed", reason } });
  }

  /** Undefined where nobody saw it, and it was not its time. */
  #howItEnded(): MachineEnd | undefined {
    const { clock, end, held } = this.#options;
    const seen = end();
    if (seen !== undefined) return seen;
    const { deadlineAtMs = Infinity } = held.now;
    return clock.nowMs() >= deadlineAtMs ? { cause: "deadline" } : undefined;
  }

  /**
   * This node had it, and was of no use to it for too long: the same as if it had lost the hold. What becomes of the
   * sandbox is decided as it is then; a persistent one comes back to its disk under a new hold.
   */
  async #lose(reason: string): Promise<never> {
    const { recorder, held } = this.#options;
    await this.#end();
    await recorder.flush();
    await keepOrRemove(this.#options, held.now);
    throw new JobFailure({ error: reason, retryable: true, retryAfterMs: 0 });
  }

  async #remove(): Promise<void> {
    const { runtime, files, recorder, held } = this.#options;
    const { sandboxId } = held.now;
    await this.#end();
    await runtime.remove(sandboxId);
    await recorder.say({ removed: true });
    await files.remove(sandboxId);
  }

  /** An operator cancelled the job of the sandbox. */
  async #cancel(): Promise<never> {
    const { runtime, files, held } = this.#options;
    const { sandboxId } = held.now;
    await this.#end();
    const reason = "its job was cancelled";
    await this.fail(reason);
    await runtime.remove(sandboxId);
    await files.remove(sandboxId);
    throw new JobFailure({ error: reason });
  }

  async #end(): Promise<void> {
    const { machine, dropMachine, companions, held, endTurns } = this.#options;
    await endTurns();
    await companions.end(held.now.sandboxId);
    await machine()?.stop();
    dropMachine();
  }
}

function reasonOf(end: MachineEnd): string {
  return end.cause === "died" ? end.reason : "it was stopped";
}
