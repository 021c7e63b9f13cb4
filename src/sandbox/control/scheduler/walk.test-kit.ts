import { expect } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import type { ManualClock } from "../../../core/clock.ts";
import { seededRandom, type Random } from "../../../core/random.ts";
import type { Persistence } from "../../contract/spec.ts";
import {
  mayAsk,
  mayMove,
  SANDBOX_ACTIONS,
  SANDBOX_STATES,
  type SandboxAction,
  type SandboxState,
} from "../../contract/states.ts";
import { LeasedBox, LEASE_MS, ROOT, type ControlPlane } from "./scheduler.test-kit.ts";

export type WalkOptions = {
  plane: ControlPlane;
  clock: ManualClock;
  persistence: Persistence;
  seed: number;
  steps: number;
};

/** The states that the model expects: what it may not reach is not among them. */
type Model = { state: SandboxState; isLeased: boolean; hasBegun: boolean };

const ACTIONS: readonly SandboxAction[] = ["start", "stop", "pause", "resume"];
const UP: ReadonlySet<SandboxState> = new Set(["creating", "running", "pausing", "paused", "stopping"]);

/**
 * Asks and reports at random, and compares each answer, and the state after it, with what the table of states says. At
 * the end the events must tell the same story: from one state to the next, without a gap, by allowed steps alone.
 */
export async function walk({ plane, clock, persistence, seed, steps }: WalkOptions): Promise<void> {
  const random = seededRandom(seed);
  const node = `walk-${persistence}-${seed}`;
  await plane.report(node);
  const { id, nodeId } = await plane.create({ persistence });
  const model: Model = { state: "pending", isLeased: false, hasBegun: false };
  // The node with the most room is one of those that the walk may use.
  const place = nodeId ?? node;
  let box: LeasedBox | undefined;
  for (let step = 0; step < steps; step++) {
    const choice = random.next();
    if (box === undefined && choice < 0.5) box = await claim(plane, place, model, persistence);
    else if (choice < 0.4) await ask(plane, id, model, random);
    else if (choice < 0.92) await report(box, model, random);
    else box = await lose({ plane, clock, model, persistence, place, box });
    expect((await plane.sandboxes.get(id, ROOT)).state, `seed ${seed}, step ${step}`).toBe(model.state);
  }
  await checkStory(plane, id, model.state);
  await plane.act(id, "delete", ROOT);
  if (box !== undefined) {
    await box.record({ removed: true });
    await plane.fabric.complete(box.hold, null);
  }
  expect(await plane.records.rows("SELECT id FROM sandboxes WHERE id = ?", [id])).toEqual([]);
}

async function claim(
  plane: ControlPlane,
  node: string,
  model: Model,
  persistence: Persistence,
): Promise<LeasedBox | undefined> {
  const [hold] = await plane.claim(node, 1);
  // One that failed for good waits for nobody.
  if (hold === undefined) {
    expect(model.state === "failed" || persistence === "ephemeral").toBe(true);
    return undefined;
  }
  const box = new LeasedBox(plane, hold);
  // What was begun anew while nobody had it is settled when somebody does.
  if (model.hasBegun && UP.has(model.state)) model.state = model.state === "stopping" ? "stopped" : "pending";
  expect((await box.desiredState()).state).toBe(model.state);
  model.isLeased = true;
  model.hasBegun = true;
  return box;
}

async function ask(plane: ControlPlane, id: string, model: Model, random: Random): Promise<void> {
  const action = oneOf(ACTIONS, random);
  const outcome = await plane.act(id, action, ROOT).catch((error: unknown) => error);
  if (!mayAsk(action, model.state)) {
    expect(outcome).toMatchObject({ code: "sandbox_invalid_state" });
    return;
  }
  expect(outcome).not.toBeInstanceOf(EngineError);
  model.state = SANDBOX_ACTIONS[action].to;
}

async function report(box: LeasedBox | undefined, model: Model, random: Random): Promise<void> {
  if (box === undefined) return;
  // Failures are final, and a walk that has failed shows little.
  const likely = SANDBOX_STATES.filter((to) => mayMove(model.state, to, "node") && to !== "failed");
  const to = random.next() < 0.8 && likely.length > 0 ? oneOf(likely, random) : oneOf(SANDBOX_STATES, random);
  const outcome = await box.say(to).catch((error: unknown) => error);
  if (mayMove(model.state, to, "node")) model.state = to;
  else if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "sandbox_invalid_state" });
  else expect(outcome).toMatchObject({ state: model.state });
}

type Loss = Omit<WalkOptions, "seed" | "steps"> & { model: Model; place: string; box: LeasedBox | undefined };

/** The node is silent until its lease has ended, and is there again. */
async function lose({ plane, clock, model, persistence, place, box }: Loss): Promise<undefined> {
  clock.advance(LEASE_MS + 1);
  await plane.fabric.sweep();
  await plane.report(place);
  await plane.sandboxes.settle();
  const wasLeased = model.isLeased;
  model.isLeased = false;
  if (box !== undefined) await expect(box.say("running")).rejects.toMatchObject({ code: "lease_lost" });
  if (persistence === "ephemeral") {
    if (wasLeased) model.state = "failed";
  } else if (UP.has(model.state)) model.state = model.state === "stopping" ? "stopped" : "pending";
  return undefined;
}

export async function checkStory(plane: ControlPlane, id: string, last: SandboxState): Promise<void> {
  const events = await plane.events(id);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  let state: string = "pending";
  for (const { data } of events.filter(({ type }) => type === "sandbox_state_changed")) {
    expect(data["from"]).toBe(state);
    state = String(data["to"]);
    const [from, to] = [data["from"], state] as [SandboxState, SandboxState];
    const isAsked = Object.values(SANDBOX_ACTIONS).some((action) => {
      const before: readonly SandboxState[] = action.from;
      return action.to === to && before.includes(from);
    });
    expect(isAsked || mayMove(from, to, "node") || mayMove(from, to, "control plane"), `${from} to ${to}`).toBe(true);
  }
  expect(state).toBe(last);
}

function oneOf<T>(items: readonly T[], random: Random): T {
  const item = items[Math.floor(random.next() * items.length)];
  if (item === undefined) throw new Error("there is nothing to choose from");
  return item;
}
