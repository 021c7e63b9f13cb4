import { expect } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import { seededRandom, type Random } from "../../../core/random.ts";
import { LeasedBox, LEASE_MS, ROOT } from "../scheduler/scheduler.test-kit.ts";
import type { WalkOptions } from "../scheduler/walk.test-kit.ts";
import { mayMove, SANDBOX_STATES, type SandboxState } from "../../contract/states.ts";
import { TAKES_MESSAGE } from "../../contract/session-states.ts";
import { delta, reportOf, Talk, text, turnsIn } from "./sessions.test-kit.ts";
import type { BegunTurn } from "./turn-end.ts";

/** In these a turn may be under way. */
const WITH_AGENT: ReadonlySet<SandboxState> = new Set(["running", "pausing", "paused", "stopping"]);
/** A walk that stops soon shows little. */
const ENDS: ReadonlySet<SandboxState> = new Set(["stopping", "failed"]);
const OUTCOMES = ["completed", "interrupted", "failed"] as const;

type Walk = {
  options: WalkOptions;
  random: Random;
  talk: Talk;
  id: string;
  node: string;
  sessions: readonly string[];
  box: LeasedBox | undefined;
  begun: BegunTurn[];
};

/**
 * Two sessions of a sandbox of which anything may be asked, reported and lost at any moment. After every step no session
 * is being answered that no agent could answer, and each of their messages has one answer but for that one; at the end
 * every turn that was begun has ended, once. Returns how many there were.
 */
export async function walkSessions(options: WalkOptions): Promise<number> {
  const { plane, persistence, seed, steps } = options;
  const random = seededRandom(seed);
  const talk = new Talk(plane);
  const reported = `talk-${persistence}-${seed}`;
  await plane.report(reported);
  const { id, nodeId: node = reported } = await plane.create({ persistence });
  const sessions = [(await talk.open(id)).id, (await talk.open(id)).id];
  const walk: Walk = { options, random, talk, id, node, sessions, box: undefined, begun: [] };
  for (let step = 0; step < steps; step++) {
    await goOn(walk);
    await check(walk, `seed ${seed}, step ${step}`);
  }
  await plane.act(id, "stop", ROOT).catch(orRefused);
  await lose(walk);
  await check(walk, `seed ${seed}, the end`);
  for (const turn of walk.begun) expect((await talk.ended(turn)).type).toBe("answered");
  await plane.act(id, "delete", ROOT);
  expect(await plane.records.rows("SELECT id FROM sandbox_sessions WHERE sandbox_id = ?", [id])).toEqual([]);
  return walk.begun.length;
}

async function goOn(walk: Walk): Promise<void> {
  const { random, box, options, id } = walk;
  const choice = random.next();
  if (box === undefined && choice < 0.6) await claim(walk);
  else if (choice < 0.25) await say(walk);
  else if (choice < 0.3) await walk.talk.interrupt(oneOf(walk.sessions, random)).catch(orRefused);
  else if (choice < 0.35) {
    await options.plane.act(id, oneOf(["start", "stop", "pause", "resume"] as const, random), ROOT).catch(orRefused);
  } else if (choice < 0.6) await move(walk);
  else if (choice < (options.persistence === "ephemeral" ? 0.995 : 0.95)) await answer(walk);
  else await lose(walk);
}

async function claim(walk: Walk): Promise<void> {
  const { plane } = walk.options;
  const [hold] = await plane.claim(walk.node, 1);
  if (hold === undefined) return;
  walk.box = new LeasedBox(plane, hold);
  await walk.box.desiredState();
}

async function say({ talk, sessions, random, begun }: Walk): Promise<void> {
  const turn = await talk.say(oneOf(sessions, random), "hello").catch(orRefused);
  if (turn !== undefined) begun.push(turn);
}

/** The node observes a state. */
async function move({ box, random, id, options: { plane } }: Walk): Promise<void> {
  if (box === undefined) return;
  const { state } = await plane.sandboxes.get(id, ROOT);
  if (state === "stopped") await plane.act(id, "start", ROOT);
  if (state === "paused") await plane.act(id, "resume", ROOT);
  const likely = SANDBOX_STATES.filter((to) => mayMove(state, to, "node") && (!ENDS.has(to) || random.next() < 0.02));
  if (likely.length > 0) await box.say(oneOf(likely, random));
}

/** The node says what the agent does, perhaps of a turn that has ended. */
async function answer({ box, random, begun }: Walk): Promise<void> {
  if (box === undefined) return;
  const turns = await turnsIn(box);
  if (begun.length === 0) return;
  const old = oneOf([...begun, ...turns], random);
  const choice = random.next();
  const isEnd = choice < 0.5;
  const outcome = oneOf(OUTCOMES, random);
  const content = choice < 0.25 ? [text("whole")] : [];
  await box.record({ events: [delta(old, "x")], ...(isEnd && { turns: [reportOf(old, { outcome, content })] }) });
}

async function lose(walk: Walk): Promise<void> {
  const { plane, clock } = walk.options;
  clock.advance(LEASE_MS + 1);
  await plane.fabric.sweep();
  await plane.report(walk.node);
  // Where nobody looks, the next holder does.
  if (walk.random.next() < 0.5 || walk.box === undefined) await plane.sandboxes.settle();
  else await claim({ ...walk, box: undefined });
  await plane.sandboxes.settle();
  walk.box = undefined;
  // What was claimed in passing is lost, too.
  clock.advance(LEASE_MS + 1);
  await plane.fabric.sweep();
  await plane.sandboxes.settle();
}

async function check({ talk, options: { plane }, id, sessions }: Walk, where: string): Promise<void> {
  const { state } = await plane.sandboxes.get(id, ROOT);
  for (const sessionId of sessions) {
    const session = await talk.get(sessionId);
    const isBusy = session.turnId !== undefined;
    expect(session.state === "processing", `${where}: processing`).toBe(isBusy);
    expect(TAKES_MESSAGE.includes(session.state), `${where}: ${session.state}`).toBe(!isBusy);
    if (isBusy) expect([...WITH_AGENT], `${where}: busy`).toContain(state);
    const roles = (await talk.messages(sessionId)).map(({ role }) => role);
    const pairs = Array.from({ length: Math.ceil(roles.length / 2) }, () => ["user", "assistant"] as const).flat();
    expect(roles, `${where}: messages`).toEqual(isBusy ? pairs.slice(0, -1) : pairs);
  }
  const told = await talk.events(id);
  const ends = told.filter(({ type }) => type !== "session_created").length;
  const answers = await plane.records.rows(
    "SELECT count(*) AS answers FROM sandbox_messages JOIN sandbox_sessions ON sandbox_sessions.id = session_id " +
      "WHERE sandbox_id = ? AND role = 'assistant'",
    [id],
  );
  expect(ends, `${where}: events`).toBe(Number(answers[0]?.["answers"]));
}

function oneOf<T>(items: readonly T[], random: Random): T {
  const item = items[Math.floor(random.next() * items.length)];
  if (item === undefined) throw new Error("there is nothing to choose from");
  return item;
}

/** Only for want of the right state. */
function orRefused(error: unknown): undefined {
  expect(error).toBeInstanceOf(EngineError);
  expect((error as EngineError).code).toMatch(/^(session|sandbox)_invalid_state$/);
  return undefined;
}
