import { ANONYMOUS } from "../../../src/auth/caller.ts";
import { sleep } from "../../../src/core/clock.ts";
import type { NewJob } from "../../../src/fabric/enqueue.ts";
import { callNode, callUntilTold, type CallerProcess } from "./calls.ts";
import { KINDS, type JobWorld } from "./world.ts";

/** Names of holders to which jobs are pinned. */
export type UserOptions = { holders: readonly string[] };

const DELAYS_MS = [0, 0, 0, 0, 500, 20_000, 300_000];
/** Longer than a statement may be under way: a job that is forgotten sooner could come back by its own insertion. */
const KEEP_MS = 25 * 60_000;
const KEYS = ["k1", "k2"];
const DATABASES = ["a", "b"];

/** Enqueues jobs of all sorts, one after the other, each until it is acknowledged or patience ends. */
export async function enqueueJobs(
  world: JobWorld,
  from: CallerProcess,
  options: UserOptions,
  count: number,
): Promise<void> {
  const { scheduler, model } = world;
  for (let n = 0; n < count; n++) {
    await sleep(from.clock, scheduler.below(scheduler.pick([2, 200, 10_000])));
    const request = drawJob(world, options, `${from.lane.name} ${n}`);
    const isLater = (request.delayMs ?? 0) > 0 || request.priority !== undefined;
    const send = () =>
      callUntilTold(world, from, "enqueue", async ({ verbs }) => {
        const enqueued = await verbs.enqueue(request, ANONYMOUS);
        world.judge(() => model.enqueued(request, enqueued));
      });
    if (isLater) await send();
    // Some go on before they are answered.
    else await Promise.all([send(), scheduler.chance(0.3) ? send() : undefined]);
  }
}

function drawJob({ scheduler }: JobWorld, { holders }: UserOptions, payload: string): NewJob {
  // Together they might be for nobody.
  const place = scheduler.pick([
    {},
    {},
    {},
    {},
    {},
    {},
    { workerId: scheduler.pick(holders) },
    { selector: { gpu: "yes" } },
  ]);
  const maybe = <T>(share: number, draw: () => T): T | undefined => (scheduler.chance(share) ? draw() : undefined);
  return {
    kind: scheduler.pick(KINDS).name,
    payload,
    priority: maybe(0.3, () => scheduler.below(201) - 100),
    delayMs: scheduler.pick(DELAYS_MS),
    dedupKey: maybe(0.4, () => scheduler.pick(KEYS)),
    maxAttempts: maybe(0.7, () => 1 + scheduler.below(3)),
    backoffMs: maybe(0.5, () => scheduler.below(10_000)),
    ...place,
    database: maybe(0.5, () => scheduler.pick(DATABASES)),
  };
}

/** Cancels and retries jobs that there are, and forgets old ones. */
export async function operate(world: JobWorld, from: CallerProcess, count: number): Promise<void> {
  const { scheduler, model } = world;
  for (let n = 0; n < count; n++) {
    await sleep(from.clock, scheduler.below(scheduler.pick([1_000, 5_000, 20_000])));
    const ids = [...model.rows.keys()];
    if (ids.length === 0) continue;
    const id = scheduler.pick(ids);
    const draw = scheduler.random.next();
    if (draw < 0.1) {
      await callNode(world, from, "forget", ({ verbs }) => verbs.forgetFinished(KEEP_MS, 100));
    } else if (draw < 0.55) {
      await callUntilTold(world, from, "cancel", async ({ verbs }) => {
        model.operates("cancel", id);
        const job = await verbs.cancel(id);
        world.judge(() => model.hearsCancelled(id, job));
      });
    } else {
      // Half of the time one that can be: among all there are few.
      const over = [...model.rows.values()].filter(({ status }) => status === "failed" || status === "cancelled");
      const retried = over.length > 0 && scheduler.chance(0.5) ? scheduler.pick(over).id : id;
      await callUntilTold(world, from, "retry", async ({ verbs }) => {
        model.operates("retry", retried);
        await verbs.retry(retried);
      });
    }
  }
}
