import { sleep, type Clock } from "../../../src/core/clock.ts";
import { EngineError } from "../../../src/core/errors.ts";
import { InjectedFault } from "../../../src/io/objectstore/faulty.test-kit.ts";
import type { Lane } from "../scheduler.ts";
import type { FabricNode, JobWorld } from "./world.ts";

/** Who calls nodes: a holder in one of its lives, or one who enqueues. */
export type CallerProcess = { lane: Lane; clock: Clock };

/** What a call came to, as its caller knows it. */
export type Answer<T> =
  | { kind: "answered"; value: T }
  /** The node refused, and nothing was done. */
  | { kind: "refused"; code: string }
  /** Nobody knows. */
  | { kind: "unknown" };

/** A node that does not answer for so long is given up; longer than claims wait. */
const TIMEOUT_MS = 30_000;
const PAUSES_MS = [10, 200, 2_000];
/** What nodes may say when nothing is wrong with them. */
const REFUSALS = new Set(["lease_lost", "conflict", "not_found"]);

/**
 * One call of one node, any that runs. It takes time on the way there and on the way back, and may be lost on either; the
 * node may die, or stand still, while it has it. An error that no correct node gives ends the run.
 */
export async function callNode<T>(
  world: JobWorld,
  from: CallerProcess,
  label: string,
  effect: (node: FabricNode) => Promise<T>,
): Promise<Answer<T>> {
  const { scheduler } = world;
  const nodes = [...world.nodes.values()];
  const answer = Promise.withResolvers<Answer<T>>();
  const timer = from.clock.after(TIMEOUT_MS, () => answer.resolve({ kind: "unknown" }));
  const isLost = (): boolean => !world.isCalm && scheduler.chance(0.02);
  const tell = (value: Answer<T>): void => {
    if (isLost()) return;
    const dueMs = scheduler.nowMs + delayMs(world);
    scheduler.at({ dueMs, lane: from.lane, label: `answer to ${label}`, run: () => answer.resolve(value) });
  };
  if (nodes.length > 0 && !isLost()) {
    const node = scheduler.pick(nodes);
    const dueMs = scheduler.nowMs + delayMs(world);
    const run = (): void => void take(world, node, effect).then(tell);
    scheduler.at({ dueMs, lane: node.machine.lane, label: `${from.lane.name} ${label}`, run });
  }
  try {
    return await answer.promise;
  } finally {
    timer.cancel();
  }
}

/** Calls until a node says yes or no, for so many times; some call twice although they were answered. */
export async function callUntilTold<T>(
  world: JobWorld,
  from: CallerProcess,
  label: string,
  effect: (node: FabricNode) => Promise<T>,
): Promise<Answer<T>> {
  const { scheduler } = world;
  for (let tries = 1; ; tries++) {
    const answer = await callNode(world, from, label, effect);
    const again = answer.kind === "unknown" ? tries < 8 : tries === 1 && scheduler.chance(0.1);
    if (!again) return answer;
    await sleep(from.clock, scheduler.below(scheduler.pick(PAUSES_MS)));
  }
}

async function take<T>(
  world: JobWorld,
  node: FabricNode,
  effect: (node: FabricNode) => Promise<T>,
): Promise<Answer<T>> {
  try {
    return { kind: "answered", value: await effect(node) };
  } catch (error) {
    if (error instanceof EngineError && REFUSALS.has(error.code)) return { kind: "refused", code: error.code };
    const isFault = error instanceof InjectedFault || (error instanceof EngineError && error.code === "unavailable");
    if (!isFault) world.scheduler.fail(error instanceof Error ? error : new Error(String(error)));
    return { kind: "unknown" };
  }
}

function delayMs({ scheduler, isCalm }: JobWorld): number {
  return 1 + scheduler.below(isCalm ? 20 : scheduler.pick([20, 20, 20, 20, 2_000]));
}
