import { systemClock } from "../src/core/clock.ts";
import type { Service } from "../src/core/lifecycle.ts";
import type { Log } from "../src/core/log.ts";
import { nextStopSignal } from "../src/core/stop-signal.ts";

/**
 * Runs a role's services until the process is told to stop.
 *
 * SIGTERM or SIGINT drains: no new work, accepted work finished, within `drainTimeoutMs`. A second signal ends at once.
 * Nothing acknowledged depends on any of this: what is acknowledged is durable already.
 */
export type RoleRun = { services: readonly Service[]; log: Log; drainTimeoutMs: number };

export async function runUntilStopped({ services, log, drainTimeoutMs }: RoleRun): Promise<number> {
  const started: Service[] = [];
  try {
    for (const service of services) {
      await service.run();
      started.push(service);
    }
  } catch (error) {
    await stopAll(started, log);
    throw error;
  }
  const signal = await nextStopSignal();
  log.info({ signal }, "draining");
  const stopNow = nextStopSignal();
  const drained = await Promise.race([
    drainAll(started, log).then(() => "drained" as const),
    stopNow.then(() => "second signal" as const),
    new Promise<"timeout">((resolve) => {
      systemClock.after(drainTimeoutMs, () => resolve("timeout"), { background: true });
    }),
  ]);
  if (drained !== "drained") log.warn({ reason: drained }, "stopping before everything was drained");
  await stopAll(started, log);
  log.info("stopped");
  return drained === "drained" ? 0 : 1;
}

async function drainAll(started: readonly Service[], log: Log): Promise<void> {
  for (const service of started.toReversed()) await attempt(log, `drain ${service.name}`, () => service.drain());
}

async function stopAll(started: readonly Service[], log: Log): Promise<void> {
  for (const service of started.toReversed()) await attempt(log, `stop ${service.name}`, () => service.stop());
}

async function attempt(log: Log, what: string, step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    log.error({ err: error }, `could not ${what}`);
  }
}
