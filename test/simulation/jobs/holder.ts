import { sleep } from "../../../src/core/clock.ts";
import type { Claim } from "../../../src/fabric/claim-desk.ts";
import { holdOf, type Hold, type Job } from "../../../src/fabric/job.ts";
import type { Labels } from "../../../src/fabric/lanes.ts";
import { callNode, callUntilTold, type Answer, type CallerProcess } from "./calls.ts";
import type { HolderVerb } from "./move-rules.ts";
import type { JobWorld } from "./world.ts";

export type HolderOptions = { name: string; labels: Labels; kinds: readonly string[] };

/** A job that is in hand, as its holder sees it. */
type InHand = { hold: Hold; attempt: number };

/** In trouble a holder takes no more than so many jobs at once. */
const MOST_IN_HAND = 4;
const WAITS_MS = [0, 2_000, 20_000];

/**
 * One life of a holder: claims jobs from any node, keeps them for a while, and ends them in any way that a program may:
 * well, badly, not at all, twice, too late, or although it heard that it should not.
 */
export async function runHolder(world: JobWorld, from: CallerProcess, options: HolderOptions): Promise<void> {
  const { scheduler } = world;
  let inHand = 0;
  while (!from.lane.isCut) {
    if (world.isCalm || inHand < MOST_IN_HAND) {
      const answer = await claim(world, from, options);
      for (const job of answer.kind === "answered" ? answer.value : []) {
        inHand++;
        void work(world, from, job).finally(() => inHand--);
      }
    }
    await sleep(from.clock, 1 + scheduler.below(world.isCalm ? 50 : scheduler.pick([20, 500, 5_000])));
  }
}

function claim(world: JobWorld, from: CallerProcess, { name, labels, kinds }: HolderOptions): Promise<Answer<Job[]>> {
  const { scheduler, model } = world;
  return callNode(world, from, "claim", async ({ machine, verbs }) => {
    const leaving = new AbortController();
    if (scheduler.chance(0.15)) machine.clock.after(scheduler.below(10_000), () => leaving.abort());
    const [max, waitMs] = [1 + scheduler.below(3), scheduler.pick(WAITS_MS)];
    const request: Claim = {
      kinds: new Set(kinds),
      labels,
      workerId: name,
      jobsOf: "everybody",
      holder: name,
      max,
      waitMs,
    };
    const jobs = await verbs.claim({ ...request, signal: leaving.signal });
    world.judge(() => model.gives({ holder: name, kinds, labels, max }, jobs));
    return jobs;
  });
}

async function work(world: JobWorld, from: CallerProcess, job: Job): Promise<void> {
  const { scheduler } = world;
  const inHand = { hold: holdOf(job), attempt: job.attempt };
  for (let steps = scheduler.below(4); steps > 0 && !world.isCalm; steps--) {
    await sleep(from.clock, scheduler.below(scheduler.pick([50, 2_000, 15_000, 60_000])));
    if (world.isCalm) break;
    const answer = await say(world, from, inHand, scheduler.pick(["extend", "progress"]));
    if (answer.kind === "refused" && scheduler.chance(0.6)) return;
    if (answer.kind === "answered" && answer.value && scheduler.chance(0.6)) {
      await say(world, from, inHand, "fail");
      return;
    }
  }
  const draw = world.isCalm ? 0 : scheduler.random.next();
  if (draw < 0.5) {
    await say(world, from, inHand, "complete");
    // A holder that is not sure says so again, and does not say quite the same.
    if (scheduler.chance(0.2)) await say(world, from, inHand, "complete");
  } else if (draw < 0.75) await say(world, from, inHand, "fail");
  else if (draw < 0.83) await say(world, from, inHand, "release");
  // Of two ways to end it only one can be let in.
  else if (draw < 0.9) await Promise.all([say(world, from, inHand, "complete"), say(world, from, inHand, "fail")]);
}

/** Resolves to whether the holder should stop, where it goes on. */
function say(world: JobWorld, from: CallerProcess, inHand: InHand, verb: HolderVerb): Promise<Answer<boolean>> {
  const { scheduler, model } = world;
  const { hold } = inHand;
  const result = { by: hold.holder, fence: hold.fence, nonce: scheduler.below(1e9) };
  const failure = {
    error: `failure ${result.nonce}`,
    retryable: scheduler.chance(0.5),
    ...(scheduler.chance(0.5) ? { retryAfterMs: scheduler.below(5_000) } : {}),
  };
  const leaseMs = 10_000 + scheduler.below(40_000);
  return callUntilTold(world, from, `${verb} ${hold.fence}`, async ({ verbs }) => {
    const ask = model.asks(verb, hold, verb === "complete" ? result : undefined);
    try {
      if (verb === "extend" || verb === "progress") {
        const state = await (verb === "extend" ? verbs.extend(hold, leaseMs) : verbs.progress(hold, result));
        world.judge(() => model.continues(ask, state));
        return state.cancelRequested;
      }
      const job =
        verb === "complete"
          ? await verbs.complete(hold, result)
          : await (verb === "fail" ? verbs.fail(hold, failure) : verbs.release(hold));
      world.judge(() => model.accepts(ask, job));
      return false;
    } catch (error) {
      model.refused();
      throw error;
    }
  });
}
