import { pause, type Clock } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Machine, Runtime } from "../../runtime/runtime.ts";
import type { Held, HeldFiles } from "../leased-files.ts";

export type FencePorts = { runtime: Runtime; files: HeldFiles; clock: Clock; log: Log; killGraceMs: number };

/**
 * This node may have the sandbox no longer: its machine stands still at once, and is killed after a grace. Of a
 * persistent one the disk stays, for the job that comes to this node again; of others nothing. Rejects when the runtime
 * could not do it: then the supervisor's lease ends the machine, and the next start of the node sweeps what is left.
 */
export async function fence(ports: FencePorts, held: Held, machine: Machine | undefined): Promise<void> {
  const { runtime, clock, log, killGraceMs } = ports;
  const { sandboxId } = held;
  if (machine !== undefined) {
    log.warn({ sandboxId }, "a sandbox is no longer this node's; it is stopped");
    await machine.pause().catch((error: unknown) => {
      log.warn({ sandboxId, reason: messageOf(error) }, "a machine could not be frozen; it is killed");
    });
    const ended = new AbortController();
    void machine.ended.then(() => ended.abort());
    await pause(clock, killGraceMs, ended.signal);
    if (!ended.signal.aborted) await machine.stop();
  }
  await keepOrRemove({ runtime, files: ports.files }, held);
}

/** What is left of a sandbox without a job: the disk of a persistent one. */
export async function keepOrRemove({ runtime, files }: Pick<FencePorts, "runtime" | "files">, held: Held) {
  const { job: _job, deadlineAtMs: _deadline, ...kept } = held;
  if (held.keepsDisk && held.isProvisioned) {
    await files.write(kept);
    return;
  }
  await runtime.remove(held.sandboxId);
  await files.remove(held.sandboxId);
}
