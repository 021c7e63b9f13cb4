import { afterEach, beforeEach, expect, it } from "vitest";
import { defaultAgentConfig } from "../../src/sandbox/contract/agents/providers.ts";
import { NodeWorld } from "../../src/sandbox/node-world.test-kit.ts";
import { Talk, text } from "../../src/sandbox/control/sessions/sessions.test-kit.ts";
import type { BegunTurn } from "../../src/sandbox/control/sessions/turn-end.ts";
import { ANN } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import type { AgentBehaviour } from "./acp-agent.ts";
import { MemoryAgent } from "./memory-agent.test-kit.ts";

let world: NodeWorld;
let talk: Talk;
let agents: MemoryAgent[];
let behaviour: AgentBehaviour;

beforeEach(async () => {
  behaviour = {};
  world = new NodeWorld();
  talk = new Talk(world.plane);
  agents = [];
  world.host.execOf = (request) => {
    if (request.argv[0] !== "codex-acp") return undefined;
    const made = new MemoryAgent(request, behaviour);
    agents.push(made);
    return made;
  };
  world.begin();
  await world.pass(1_000);
});
afterEach(() => world.close());

const stateOf = (id: string): Promise<string> => world.stateOf(id);

async function running(): Promise<string> {
  const { id } = await world.plane.create({ agentProvider: "codex" }, ANN);
  await world.until("it runs", async () => (await stateOf(id)) === "running");
  return id;
}

async function act(id: string, action: "pause" | "resume" | "stop" | "delete", state: string): Promise<void> {
  await world.plane.act(id, action, ANN);
  await world.until(`it is ${state}`, async () => (await stateOf(id)) === state);
}

/** The answer to a message, when there is one. */
async function answer(begun: BegunTurn) {
  await world.until("the turn has ended", async () => (await talk.messages(begun.sessionId)).length >= begun.answerSeq);
  const { content, error } = (await talk.messages(begun.sessionId)).at(-1) ?? {};
  return { content, error };
}

/** A message that the agent is in the middle of answering. */
async function midway(sandboxId: string, script: string): Promise<BegunTurn> {
  const session = await talk.open(sandboxId);
  const begun = await talk.say(session.id, script);
  const has = async () => (await world.plane.events(sandboxId)).some(({ type }) => type === "text_delta");
  await world.until("it has said something", has);
  return begun;
}

it("answers messages, and keeps what was said", async () => {
  const id = await running();
  const session = await talk.open(id);
  expect(await answer(await talk.say(session.id, "say hello"))).toEqual({ content: [text("hello")] });
  expect(await answer(await talk.say(session.id, "history"))).toEqual({ content: [text("say hello")] });
  expect((await talk.get(session.id)).state).toBe("active");
  expect(agents).toHaveLength(1);
});

it("interrupts; the next message is answered by the same agent", async () => {
  const id = await running();
  const begun = await midway(id, "say half\nwait");
  await talk.interrupt(begun.sessionId);
  expect(await answer(begun)).toMatchObject({ content: [text("half")] });
  expect(await answer(await talk.say(begun.sessionId, "say more"))).toEqual({ content: [text("more")] });
  expect(agents).toHaveLength(1);
});

it("kills an agent that does not heed an interrupt for ten seconds", async () => {
  const begun = await midway(await running(), "say half\nhang");
  await talk.interrupt(begun.sessionId);
  await world.pass(9_000);
  expect(agents[0]?.isKilled).toBe(false);
  expect(await answer(begun)).toMatchObject({ content: [text("half")] });
  await world.until("it is killed", () => agents[0]?.isKilled === true);
});

it("gives an agent 30 seconds to say who it is, in which its machine runs", async () => {
  const id = await running();
  behaviour = { isSilent: true };
  const session = await talk.open(id);
  const begun = await talk.say(session.id, "say x");
  await world.pass(20_000);
  await act(id, "pause", "paused");
  await world.pass(60_000);
  expect((await talk.get(session.id)).state).toBe("processing");
  await act(id, "resume", "running");
  const { error } = await answer(begun);
  expect(error).toBe("the agent failed: it did not say who it is in 30 seconds");
  expect(agents[0]?.isKilled).toBe(true);
  behaviour = {};
  expect(await answer(await talk.say(session.id, "say x"))).toEqual({ content: [text("x")] });
});

it("carries on after a pause in the middle", async () => {
  const id = await running();
  const begun = await midway(id, "say half\nwait");
  await act(id, "pause", "paused");
  await world.pass(5_000);
  expect((await talk.get(begun.sessionId)).state).toBe("processing");
  await act(id, "resume", "running");
  await talk.interrupt(begun.sessionId);
  expect(await answer(begun)).toMatchObject({ content: [text("half")] });
  expect(agents).toHaveLength(1);
});

it("fails what is under way when the sandbox stops", async () => {
  const id = await running();
  const begun = await midway(id, "say half\nhang");
  await act(id, "stop", "stopped");
  const { content, error } = await answer(begun);
  expect(content).toEqual([text("half")]);
  expect(error).toContain("stopped");
});

it("lets a sandbox be deleted in the middle of a turn", async () => {
  const id = await running();
  await midway(id, "say half\nhang");
  await act(id, "delete", "gone");
  expect(world.host.left).toEqual([]);
  expect(agents[0]?.isKilled).toBe(true);
});

it("a process of the node that dies in the middle: the next one ends its agent, and fails the turn with what it said", async () => {
  const id = await running();
  const begun = await midway(id, "say half\nwait");
  await world.pass(1_000);
  world.crash();
  world.begin();
  const { content, error } = await answer(begun);
  expect(error).toContain("its node was restarted in the middle of it");
  expect(content).toEqual([text("half")]);
  expect(agents.map(({ isKilled }) => isKilled)).toEqual([true]);
  expect(await answer(await talk.say(begun.sessionId, "say again"))).toEqual({ content: [text("again")] });
  expect(agents).toHaveLength(2);
});

it("a process of the node that is told to end in the middle does as well", async () => {
  const begun = await midway(await running(), "say half\nwait");
  await world.end();
  world.begin();
  expect((await answer(begun)).error).toContain("its node was restarted in the middle of it");
});

it("begins a turn that came while no process of the node was there", async () => {
  const id = await running();
  const session = await talk.open(id);
  world.crash();
  const begun = await talk.say(session.id, "say late");
  world.begin();
  expect(await answer(begun)).toEqual({ content: [text("late")] });
});

it("says how turns ended though the answers of the control plane are lost", async () => {
  const id = await running();
  const session = await talk.open(id);
  let calls = 0;
  world.way = () => (++calls % 3 === 0 ? "open" : calls % 3 === 1 ? "no answers" : "closed");
  const begun = await talk.say(session.id, "flood 300");
  const { content } = await answer(begun);
  world.way = () => "open";
  expect(content).toEqual([text(Array.from({ length: 300 }, (_, i) => `${i} `).join(""))]);
  const deltas = (await world.plane.events(id)).filter(({ type }) => type === "text_delta");
  expect(deltas.map(({ data }) => data["text"])).toEqual(Array.from({ length: 300 }, (_, i) => `${i} `));
});

const withAgent = () => world.plane.create({ agentProvider: "codex", agentConfig: defaultAgentConfig("codex") }, ANN);
const stepsOf = async (id: string) =>
  (await world.plane.events(id)).flatMap(({ type, data }) =>
    type === "provisioning_step" ? [`${String(data["step"])} ${String(data["status"])}`] : [],
  );

it("starts the agent before the sandbox runs, where something is said of it; the first message finds it", async () => {
  const { id } = await withAgent();
  await world.until("it runs", async () => (await stateOf(id)) === "running");
  expect((await stepsOf(id)).slice(-2)).toEqual(["StartAgent in_progress", "StartAgent completed"]);
  expect(agents).toHaveLength(1);
  const session = await talk.open(id);
  expect(await answer(await talk.say(session.id, "say hello"))).toEqual({ content: [text("hello")] });
  expect(agents).toHaveLength(1);
});

it("fails a sandbox whose agent does not start, with the step and the reason", async () => {
  behaviour = { isSilent: true };
  const { id } = await withAgent();
  await world.until("it has failed", async () => (await stateOf(id)) === "failed");
  const failed = (await world.plane.events(id)).find(({ type }) => type === "provisioning_failed");
  expect(failed?.data).toEqual({
    step: "StartAgent",
    error: "the agent failed: it did not say who it is in 30 seconds",
  });
  await world.until("it is killed", () => agents[0]?.isKilled === true);
});

it("lets a sandbox be deleted while its agent starts, and starts it anew after a crash of the node", async () => {
  behaviour = { isSilent: true };
  const starting = async () => {
    const { id } = await withAgent();
    await world.until("it starts", async () => (await stepsOf(id)).includes("StartAgent in_progress"));
    await world.pass(500);
    return id;
  };
  await act(await starting(), "delete", "gone");
  expect(world.host.left).toEqual([]);
  expect(agents.map(({ isKilled }) => isKilled)).toEqual([true]);
  const id = await starting();
  world.crash();
  behaviour = {};
  world.begin();
  await world.until("it runs", async () => (await stateOf(id)) === "running");
  expect(agents.map(({ isKilled }) => isKilled)).toEqual([true, true, false]);
});
