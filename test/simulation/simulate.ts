import { LaneClock } from "./scheduler.ts";
import { Chaos } from "./chaos.ts";
import { runClient } from "./client.ts";
import { Machine } from "./machine.ts";
import { Broken, type Tally } from "./model.ts";
import { NO_FAULTS } from "./network.ts";
import { runReader } from "./reader.ts";
import { World, type WorldOptions } from "./world.ts";

/**
 * The write path in one thread: real ingest, committers, compaction, retention and deletion, over the real driver of the
 * catalog in memory, with a scheduler, a network, a store and clocks that are drawn from a seed. A run has three parts:
 *
 *     trouble   clients write, duties run, readers read; calls fail, processes die, stand still, lose time
 *     rest      no more faults: what was promised must come true
 *     days      nothing but time passes: what nobody needs must go
 */
export type Outcome = {
  seed: number;
  steps: number;
  /** Equal for equal runs. */
  hash: number;
  tally: Tally;
  failure: Error | undefined;
  trace: readonly string[];
};

const DUTIES = ["committer", "compaction", "retention", "deletion", "orphan sweep", "ledger sweep"] as const;
const MOST_STEPS = 60_000;
const DAY_MS = 86_400_000;

export async function simulate(options: WorldOptions): Promise<Outcome> {
  const world = new World(options);
  const { scheduler, model } = world;
  try {
    await run(world);
  } catch (error) {
    scheduler.fail(error instanceof Error ? error : new Error(String(error)));
  } finally {
    world.close();
  }
  const { steps, hash, failure, trace = [] } = scheduler;
  return { seed: options.seed, steps, hash, tally: model.tally, failure, trace };
}

async function run(world: World): Promise<void> {
  const { scheduler, network, model } = world;
  await populate(world);
  const isBusy = startClients(world);
  network.rates = drawRates(world);
  const chaos = new Chaos(world);
  await runWhile(
    world,
    () => isBusy() || chaos.isAnyStuck,
    async () => {
      chaos.skip();
      await chaos.strike();
    },
  );
  network.rates = NO_FAULTS;
  for (const slot of world.slots) {
    if (slot.machine !== undefined) slot.machine.lane.frozenUntilMs = 0;
    await world.start(slot);
  }
  world.runs.clear();
  // What was sent long ago may still be done.
  await runWhile(world, () => model.hasStaged || isInHand(world) || !hasRun(world));
  await chaos.land();
  await runWhile(world, () => model.hasStaged);
  await checkRest(world);
  for (let leap = 0; leap < 2; leap++) {
    scheduler.pass(3 * DAY_MS);
    world.runs.clear();
    await runWhile(world, () => !hasRun(world));
  }
  await checkRest(world);
  const [orphan] = model.orphans(scheduler.nowMs - 3 * DAY_MS);
  if (orphan !== undefined && scheduler.failure === undefined) throw new Broken("what nobody needs goes", orphan);
}

async function populate(world: World): Promise<void> {
  const { scheduler } = world;
  await world.createTables();
  const mode = world.given.mode ?? scheduler.pick(["sync", "staged", "staged"] as const);
  world.addIngest("ingest-a", mode);
  world.addIngest("ingest-b", scheduler.chance(0.8) ? mode : scheduler.pick(["sync", "staged"] as const));
  world.addDuties("committer-a", ["committer", "ledger sweep"]);
  if (scheduler.chance(0.5)) world.addDuties("committer-b", ["committer"]);
  world.addDuties("worker-a", ["compaction", "retention", "deletion", "orphan sweep"]);
  world.addDuties("worker-b", ["compaction", "deletion"]);
  for (const slot of world.slots) await world.start(slot);
}

/** Starts those who use the cluster; tells whether any of them still does. */
function startClients(world: World): () => boolean {
  const { scheduler, network, model } = world;
  const lane = { name: "client", frozenUntilMs: 0, isCut: false };
  world.users.add(lane);
  const clock = new LaneClock(scheduler, lane, 0);
  const nodes = () => [...world.ingest.values()];
  let running = 0;
  const track = (task: Promise<void>): void => {
    running++;
    void task.catch((error: Error) => scheduler.fail(error)).finally(() => running--);
  };
  const keyedShare = world.given.keyedShare ?? scheduler.pick([0, 0.7, 0.9]);
  const clients = 2 + scheduler.below(3);
  for (let i = 0; i < clients; i++) {
    track(
      runClient({ scheduler, network, model, lane, clock, nodes, keyedShare }, `client${i}`, 2 + scheduler.below(4)),
    );
  }
  const reader = new Machine(scheduler, "reader", 0);
  world.users.add(reader.lane);
  track(runReader({ scheduler, model, parts: world.parts(reader), node: "reader" }, 4));
  return () => running > 0;
}

function drawRates({ scheduler, given }: World): typeof NO_FAULTS {
  const rate = (most: number): number => (scheduler.chance(0.3) ? 0 : scheduler.random.next() * most);
  const repeated = given.repeatedRate ?? 0;
  return {
    refused: rate(0.06),
    repeated,
    unheard: given.unheardRate ?? rate(0.06),
    late: rate(0.04),
    torn: rate(0.15),
  };
}

/** Steps as long as it is so, and nothing is wrong. */
async function runWhile(
  { scheduler, model }: World,
  isToGoOn: () => boolean,
  before: () => Promise<void> = async () => {},
): Promise<void> {
  while (scheduler.failure === undefined && isToGoOn()) {
    if (scheduler.steps > MOST_STEPS) throw new Broken("a run comes to an end", `${scheduler.steps} steps`);
    await before();
    if (!(await scheduler.step())) throw new Broken("somebody always has something to do", "all wait for nothing");
  }
  model.look("nothing");
}

/** Whether a node has a request that it has not answered. */
function isInHand({ ingest }: World): boolean {
  return [...ingest.values()].some(({ inHand }) => inHand > 0);
}

/** Whether every duty was done by some machine. */
function hasRun({ runs }: World): boolean {
  return DUTIES.every((name) => runs.has(name));
}

async function checkRest({ scheduler, catalog, model }: World): Promise<void> {
  if (scheduler.failure !== undefined) return;
  await catalog.verify();
  model.concludes();
}
