import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { expect, it } from "vitest";
import { seededRandom, type Random } from "../core/random.ts";
import { ANN, ROOT } from "./control/scheduler/scheduler.test-kit.ts";
import { checkStory } from "./control/scheduler/walk.test-kit.ts";
import { SANDBOX_ACTIONS, type SandboxAction, type SandboxState } from "./contract/states.ts";
import { NodeWorld, type Way } from "./node-world.test-kit.ts";

const ACTIONS = Object.keys(SANDBOX_ACTIONS) as SandboxAction[];
const MOST_SANDBOXES = 8;
const RESTING: ReadonlySet<string> = new Set(["running", "paused", "stopped", "failed"]);

type Row = { id: string; state: SandboxState; persistence: string };

async function rowsOf({ plane }: NodeWorld): Promise<Row[]> {
  const rows = await plane.records.rows("SELECT id, state, persistence FROM sandboxes ORDER BY id");
  return rows.map(({ id, state, persistence }) => ({
    id: String(id),
    state: String(state) as SandboxState,
    persistence: String(persistence),
  }));
}

/** Whatever clients wish, at random moments. */
async function wish(world: NodeWorld, random: Random): Promise<void> {
  const rows = await rowsOf(world);
  const row = rows[Math.floor(random.next() * rows.length)];
  const [action = "stop"] = [ACTIONS[Math.floor(random.next() * ACTIONS.length)]];
  const isRareEnough = action !== "delete" || random.next() < 0.3;
  // What the state does not allow is refused.
  if (row !== undefined && isRareEnough) await world.plane.act(row.id, action, ROOT).catch(() => undefined);
}

async function make(world: NodeWorld, random: Random): Promise<void> {
  if ((await rowsOf(world)).length >= MOST_SANDBOXES) return;
  const hasScript = random.next() < 0.5;
  const text = `echo begin; sleep ${Math.floor(random.next() * 8_000)}; echo end`;
  await world.plane.create(
    {
      persistence: random.next() < 0.5 ? "ephemeral" : "persistent",
      timeoutSecs: random.next() < 0.2 ? 90 : undefined,
      provisioningScripts: hasScript ? [{ name: "s", script: text, user: "root", timeoutSecs: 60 }] : [],
    },
    ANN,
  );
}

/** The node's process dies, or is told to end, and another one comes: soon, or too late for its leases. */
async function restart(world: NodeWorld, random: Random): Promise<void> {
  if (random.next() < 0.7) world.crash();
  else await world.end();
  await world.pass(random.next() * (random.next() < 0.3 ? 60_000 : 5_000));
  world.begin();
}

async function outage(world: NodeWorld, random: Random): Promise<void> {
  const way: Way = random.next() < 0.5 ? "closed" : "no answers";
  world.way = () => way;
  await world.pass(random.next() * (random.next() < 0.3 ? 60_000 : 8_000));
  world.way = () => "open";
}

/** The runtime fails here and there, and takes its time. */
function plant(world: NodeWorld, random: Random): void {
  world.host.before = async (verb) => {
    if (random.next() < 0.2) {
      await new Promise<void>((resolve) => world.clock.after(random.next() * 3_000, resolve));
    }
    if (verb !== "adopt" && random.next() < 0.03) throw new Error(`${verb} failed, as planted`);
  };
}

function killOne(world: NodeWorld, random: Random): void {
  const machines = [...world.host.machines.values()];
  machines[Math.floor(random.next() * machines.length)]?.end({ cause: "died", reason: "planted" });
}

const STEPS: readonly [weight: number, step: (world: NodeWorld, random: Random) => Promise<void> | void][] = [
  [10, wish],
  [4, make],
  [1, restart],
  [1, outage],
  [0.5, killOne],
  [8, (world, random) => world.pass(random.next() * 3_000)],
];

async function takeStep(world: NodeWorld, random: Random): Promise<void> {
  const all = STEPS.reduce((sum, [weight]) => sum + weight, 0);
  let at = random.next() * all;
  for (const [weight, step] of STEPS) {
    at -= weight;
    if (at <= 0) return await step(world, random);
  }
}

/** What is on the computer is what the records say, and nothing else. */
async function expectAgreement(world: NodeWorld): Promise<void> {
  const rows = await rowsOf(world);
  const up = rows.filter(({ state }) => state === "running" || state === "paused");
  const machines = [...world.host.machines.values()].map(({ spec, isPaused }) => [spec.id, isPaused]);
  expect(Object.fromEntries(machines)).toEqual(Object.fromEntries(up.map(({ id, state }) => [id, state === "paused"])));
  const mayKeep = new Set(rows.filter(({ persistence }) => persistence === "persistent").map(({ id }) => id));
  const disks = [...world.host.disks.keys()];
  expect(disks.filter((id) => !mayKeep.has(id) && !world.host.machines.has(id))).toEqual([]);
  const stopped = rows.filter(({ state, persistence }) => state === "stopped" && persistence === "persistent");
  expect(stopped.filter(({ id }) => !world.host.disks.has(id))).toEqual([]);
}

const FIRST = drawnSeed();

it.each(Array.from({ length: 12 }, (_, n) => FIRST + n))(
  "comes to rest where it was wished, whatever happens on the way (seed %i)",
  async (seed) => {
    const world = new NodeWorld(seed);
    const random = seededRandom(seed * 7_919);
    try {
      world.begin();
      plant(world, random);
      for (let step = 0; step < 150; step++) await takeStep(world, random);
      world.host.before = () => undefined;
      // What could not be ended while the runtime failed is ended by the next process of the node.
      world.crash();
      world.begin();
      // Scripts and leases end.
      await world.pass(100_000);
      await world.until("all rest", async () => (await rowsOf(world)).every(({ state }) => RESTING.has(state)));
      await world.pass(20_000);
      await expectAgreement(world);
      for (const { id, state } of await rowsOf(world)) await checkStory(world.plane, id, state);
      for (const { id } of await rowsOf(world)) await world.plane.act(id, "delete", ROOT);
      await world.until(
        "nothing is left",
        async () => (await rowsOf(world)).length === 0 && world.host.left.length === 0,
      );
      await world.pass(10_000);
      expect([world.files.size, world.node?.sandboxes, world.host.left]).toEqual([0, 0, []]);
      const leased = await world.plane.records.rows("SELECT id FROM jobs WHERE status IN ('leased', 'queued')");
      expect(leased).toEqual([]);
    } finally {
      await world.close();
    }
  },
);
