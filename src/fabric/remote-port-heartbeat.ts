import { sleep, type Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { RemotePort } from "./remote-port.ts";
import { NodeRefused } from "./runner-failure.ts";

export type HeartbeatOptions = {
  port: Pick<RemotePort, "heartbeat">;
  clock: Clock;
  log: Log;
  /** From one heartbeat to the next while there is nothing to do. */
  intervalMs: number;
  /** Jobs that run here: then cancellations are asked for more often. */
  busy: () => number;
};

const BUSY_INTERVAL_MS = 5_000;

/**
 * Tells the control plane that this node is there, until the signal is aborted. Rejects with `NodeRefused` when the node
 * is not wanted any more; what fails otherwise is tried again.
 */
export async function beat(options: HeartbeatOptions, signal: AbortSignal): Promise<void> {
  const { port, clock, log, intervalMs, busy } = options;
  let isDraining = false;
  let nextMs = clock.monotonicMs();
  while (!signal.aborted) {
    const nowMs = clock.monotonicMs();
    if (nowMs >= nextMs || busy() > 0) {
      nextMs = nowMs + intervalMs;
      try {
        const { drain } = await port.heartbeat();
        if (drain !== isDraining)
          log.info({ drain }, drain ? "an operator drains this node" : "this node takes jobs again");
        isDraining = drain;
      } catch (error) {
        if (error instanceof NodeRefused) throw error;
        if (!signal.aborted) log.warn({ reason: messageOf(error) }, "a heartbeat did not get through");
        nextMs = nowMs;
      }
    }
    await sleep(clock, Math.min(BUSY_INTERVAL_MS, intervalMs), signal).catch(() => undefined);
  }
}
