import { Broken } from "../model.ts";
import { NO_FAULTS } from "../network.ts";
import { LaneClock, startOf, TIMER, type Event } from "../scheduler.ts";
import { runHolder } from "./holder.ts";
import type { JobTally } from "./model.ts";
import { enqueueJobs, operate } from "./users.ts";
import { JobWorld, KINDS, type JobWorldOptions, type Slot } from "./world.ts";

/**
 * The job fabric in one thread: real nodes over the real driver of the catalog, with holders, users, a network and clocks
 * that are drawn from a seed. A run has two parts:
 *
 *     trouble   jobs are enqueued, held, ended; calls fail, processes die and stand still, clocks jump
 *     rest      no more faults: within a lease and a sweep every job must be settled
 */
export type JobOutcome = {
  seed: number;
  steps: number;
  /** Equal for equal runs. */
  hash: number;
  tally: JobTally;
  failure: Error | undefined;
  trace: readonly string[];
};

const MOST_STEPS = 60_000;
/**
 * After the last lease has ended, and the last job is due: the longest lease that a call may still ask for that is under
 * way, a call that is given up, and a few seconds for a sweep, a claim and a completion.
 */
const SETTLED_WITHIN_MS = 50_000 + 30_000 + 10_000;
/** So long nothing has to happen before time passes at once. */
const BORING_MS = 1_500;
/** At rest nodes are not kept from what they do every few seconds. */
const CALM_LEAP_MS = 3_000;
const HOLDERS = ["w1", "w2", "w3"];

export async function simulateJobs(options: JobWorldOptions): Promise<JobOutcome> {
  const world = new JobWorld(options);
  const { scheduler, model } = world;
  try {
    await world.open();
    await run(world);
  } catch (error) {
    scheduler.fail(error instanceof Error ? error : new Error(String(error)));
  } finally {
    await world.close();
  }
  const { steps, hash, failure, trace = [] } = scheduler;
  return { seed: options.seed, steps, hash, tally: model.tally, failure, trace };
}

async function run(world: JobWorld): Promise<void> {
  const { scheduler, network, signals, model } = world;
  populate(world);
  const isBusy = startUsers(world);
  const rate = (most: number): number => (scheduler.chance(0.3) ? 0 : scheduler.random.next() * most);
  network.rates = { refused: rate(0.06), repeated: 0, unheard: rate(0.06), late: rate(0.04), torn: 0 };
  signals.faults = { lost: rate(0.5), doubled: rate(0.2) };
  const strike = chaosOf(world);
  await runWhile(world, isBusy, strike);
  network.rates = NO_FAULTS;
  signals.faults = { lost: 0, doubled: 0 };
  world.isCalm = true;
  for (const slot of world.slots) {
    if (slot.machine !== undefined) slot.machine.lane.frozenUntilMs = 0;
    world.start(slot);
  }
  await land(world);
  const lastMs = Math.max(0, ...model.unfinished.map((row) => row.lease_expires_at_ms ?? row.run_after_ms));
  const untilMs = Math.max(world.nowMs, lastMs) + SETTLED_WITHIN_MS;
  await runWhile(world, () => model.unfinished.length > 0 && world.nowMs < untilMs);
  if (scheduler.failure === undefined) model.concludes();
}

function populate(world: JobWorld): void {
  const { scheduler } = world;
  for (let n = 1 + scheduler.below(3); n > 0; n--) world.addNode(`node${n}`);
  const kinds = KINDS.map(({ name }) => name);
  for (const name of HOLDERS) {
    const labels = name === "w1" ? { gpu: "yes" } : {};
    world.slots.push({
      name,
      machine: undefined,
      start({ lane, clock }) {
        world.users.add(lane);
        void runHolder(world, { lane, clock }, { name, labels, kinds }).catch((error: Error) => scheduler.fail(error));
      },
    });
  }
  for (const slot of world.slots) world.start(slot);
}

/** Starts those who use the cluster; tells whether any of them still does. */
function startUsers(world: JobWorld): () => boolean {
  const { scheduler } = world;
  let running = 0;
  const track = (name: string, task: (from: { lane: typeof lane; clock: LaneClock }) => Promise<void>): void => {
    const own = { name, frozenUntilMs: 0, isCut: false };
    world.users.add(own);
    running++;
    void task({ lane: own, clock: new LaneClock(scheduler, own, 0) })
      .catch((error: Error) => scheduler.fail(error))
      .finally(() => running--);
  };
  const lane = { name: "", frozenUntilMs: 0, isCut: false };
  for (let n = 1 + scheduler.below(3); n > 0; n--) {
    track(`user${n}`, (from) => enqueueJobs(world, from, { holders: HOLDERS }, 2 + scheduler.below(5)));
  }
  track("operator", (from) => operate(world, from, 2 + scheduler.below(6)));
  return () => running > 0;
}

/** What befalls the cluster beside the faults of single calls; how much of it is drawn with the seed. */
function chaosOf(world: JobWorld): () => void {
  const { scheduler } = world;
  const rate = (most: number): number => (scheduler.chance(0.4) ? 0 : scheduler.random.next() * most);
  const deeds: [rate: number, deed: (slot: Slot) => void][] = [
    [rate(0.01), (slot) => crash(world, slot)],
    [rate(0.01), (slot) => freeze(world, slot)],
    [rate(0.004), () => scheduler.pass(scheduler.below(scheduler.pick([5_000, 60_000, 600_000])))],
    [rate(0.004), () => stepDatabaseClock(world)],
    [rate(0.004), ({ machine }) => machine && (machine.clock.skewMs = scheduler.pick([0, 200_000, -3_600_000, 1e9]))],
  ];
  return () => {
    let draw = scheduler.random.next();
    for (const [share, deed] of deeds) {
      if (draw < share) {
        deed(scheduler.pick(world.slots));
        return;
      }
      draw -= share;
    }
  };
}

function crash(world: JobWorld, slot: Slot): void {
  const { scheduler } = world;
  world.crash(slot);
  const dueMs = scheduler.nowMs + scheduler.below(scheduler.pick([100, 10_000, 120_000]));
  scheduler.at({ dueMs, lane: undefined, label: `${slot.name} starts`, run: () => world.start(slot) });
}

/** The process stands still, mostly for longer than a lease lasts, and what others do goes on. */
function freeze({ scheduler }: JobWorld, { machine }: Slot): void {
  if (machine === undefined) return;
  machine.lane.frozenUntilMs = scheduler.nowMs + scheduler.below(scheduler.pick([1_000, 30_000, 120_000]));
  scheduler.note(`${machine.name} stands still until ${machine.lane.frozenUntilMs}`);
}

/** The database moves to a machine whose clock is ahead. */
function stepDatabaseClock(world: JobWorld): void {
  world.databaseAheadMs += world.scheduler.below(600_000);
  world.scheduler.note(`the database's clock is ${world.databaseAheadMs} ms ahead`);
}

/** Steps as long as it is so, and nothing is wrong. */
async function runWhile(world: JobWorld, isToGoOn: () => boolean, before: () => void = () => {}): Promise<void> {
  const { scheduler } = world;
  while (scheduler.failure === undefined && isToGoOn()) {
    if (scheduler.steps > MOST_STEPS) throw new Broken("a run comes to an end", `${scheduler.steps} steps`);
    skip(world);
    before();
    if (world.isShared && scheduler.chance(0.2)) await meet(world);
    else if (!(await scheduler.step())) throw new Broken("somebody always has something to do", "all wait for nothing");
  }
}

/** Statements that are under way reach the database at once. */
async function meet(world: JobWorld): Promise<void> {
  const { scheduler } = world;
  const events = under(world).slice(0, 2 + scheduler.below(6));
  await world.burst(() => Promise.all(events.map((event) => scheduler.run(event))));
}

/** What is on its way to the database. */
function under({ scheduler }: JobWorld) {
  return scheduler.pending.filter(({ lane }) => lane === undefined);
}

/** What is under way arrives, and what follows from it: a driver waits for minutes, and a lease ends before that. */
async function land({ scheduler }: JobWorld): Promise<void> {
  for (let events = [...scheduler.pending]; events.some(isUnderWay); events = [...scheduler.pending]) {
    for (const event of events.filter(isUnderWay)) await scheduler.run(event);
    if (scheduler.steps > MOST_STEPS) throw new Broken("a run comes to an end", `${scheduler.steps} steps`);
  }
}

/** Time in which only nodes' clocks tick passes at once, up to where a lease ends or a job is due. */
function skip(world: JobWorld): void {
  const { scheduler, users, model, isCalm } = world;
  let nextMs = model.nextMs(world.nowMs) - world.databaseAheadMs;
  for (const event of scheduler.pending) {
    const { lane, label } = event;
    if (lane?.isCut === true) continue;
    if (lane === undefined || users.has(lane) || label !== TIMER) nextMs = Math.min(nextMs, startOf(event));
  }
  const byMs = nextMs - scheduler.nowMs - BORING_MS;
  if (byMs > 0 && nextMs < Infinity) scheduler.pass(Math.min(byMs, isCalm ? CALM_LEAP_MS : Infinity));
}

function isUnderWay({ lane, label }: Event): boolean {
  return lane?.isCut !== true && label !== TIMER;
}
