import { sleep, type Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import { nextStopSignal } from "../core/stop-signal.ts";
import type { JobHandler } from "../fabric/handler.ts";
import { beat } from "../fabric/remote-port-heartbeat.ts";
import type { NodeDescription, Registration, RemotePort } from "../fabric/remote-port.ts";
import { Backoff } from "../core/backoff.ts";
import { isPassing, NodeRefused } from "../fabric/runner-failure.ts";
import { JobRunner } from "../fabric/runner.ts";
import { CliError, EXIT, type ExitCode } from "../client/failure.ts";
import type { DaemonSandboxes } from "./worker-sandboxes.ts";

export type DaemonOptions = {
  port: RemotePort;
  node: NodeDescription;
  handlers: readonly JobHandler[];
  /** What runs sandboxes, where this node does. */
  sandboxes?: ((workerId: string) => Promise<DaemonSandboxes>) | undefined;
  /** Jobs at once. */
  slots: number;
  /** What jobs get to end when the daemon is told to stop, and then what handlers get to stop by themselves. */
  drainMs: number;
  unwindMs: number;
  clock: Clock;
  random: Random;
  log: Log;
};

const AWAY = { firstMs: 500, mostMs: 30_000 } as const;
/** A node that has machines goes on with them before their leases end. */
const MOST_AWAY_WITH_SANDBOXES_MS = 2_000;

/**
 * Runs jobs of a control plane until the process is told to stop: by one signal in order, by a second one at once.
 * Throws `CliError` with the code `auth` when the control plane does not take this node, or no longer.
 */
export async function runDaemon(options: DaemonOptions): Promise<ExitCode> {
  const { port, log, node, drainMs } = options;
  const [stop, over] = [new AbortController(), new AbortController()];
  const told = nextStopSignal();
  void told.then(() => stop.abort(new Error("told to stop")));
  try {
    const registration = await register(options, stop.signal);
    if (registration === undefined) return EXIT.ok;
    const { workerId, heartbeatIntervalMs: intervalMs } = registration;
    log.info({ workerId, ...node, slots: options.slots }, "registered; taking jobs");
    const sandboxes = await options.sandboxes?.(workerId);
    const runner = new JobRunner(options);
    try {
      await Promise.race([
        told,
        ...(options.handlers.length === 0 ? [] : [runner.run()]),
        ...(sandboxes === undefined ? [] : [sandboxes.run()]),
        beat({ ...options, intervalMs, busy: () => runner.busy }, over.signal),
      ]);
      return await drain(runner, sandboxes, { drainMs, log });
    } finally {
      runner.stop();
      await sandboxes?.stop();
    }
  } catch (error) {
    throw error instanceof NodeRefused ? new CliError(error.message, EXIT.auth, { cause: error }) : error;
  } finally {
    over.abort();
    await port.close();
  }
}

/** Undefined when the process is told to stop before the control plane has answered. */
async function register(options: DaemonOptions, signal: AbortSignal): Promise<Registration | undefined> {
  const { port, node, clock, random, log } = options;
  const mostMs = options.sandboxes === undefined ? AWAY.mostMs : MOST_AWAY_WITH_SANDBOXES_MS;
  const backoff = new Backoff({ random, ...AWAY, mostMs });
  while (!signal.aborted) {
    try {
      return await port.register(node);
    } catch (error) {
      if (!isPassing(error)) throw error;
      const pauseMs = backoff.next();
      log.warn({ reason: messageOf(error), pauseMs: Math.round(pauseMs) }, "the control plane does not answer");
      await sleep(clock, pauseMs, signal).catch(() => undefined);
    }
  }
  return undefined;
}

async function drain(
  runner: JobRunner,
  sandboxes: DaemonSandboxes | undefined,
  { drainMs, log }: Pick<DaemonOptions, "drainMs" | "log">,
): Promise<ExitCode> {
  log.info({ running: runner.busy }, "draining: no more jobs; what runs may end");
  const ended = await Promise.race([
    Promise.all([runner.drain(drainMs), sandboxes?.drain()]).then(() => "drained" as const),
    nextStopSignal().then(() => "second signal" as const),
  ]);
  log.info({ ended }, "stopped");
  return ended === "drained" ? EXIT.ok : EXIT.failed;
}
