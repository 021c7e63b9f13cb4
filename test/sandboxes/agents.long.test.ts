import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { ProcessMachine } from "../../src/sandbox/node/exec/process-machine.test-kit.ts";
import type { ContentBlock } from "../../src/sandbox/contract/content.ts";
import { PICTURE } from "./acp-agent.ts";
import { AgentWorld, type AgentWorldOptions } from "./agent-world.test-kit.ts";

const worlds: AgentWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

function begin(options: AgentWorldOptions = {}): AgentWorld {
  const world = new AgentWorld(options);
  worlds.push(world);
  return world;
}

const text = (said: string): ContentBlock => ({ type: "text", text: said });

it("tells text and tools in order, and makes the message of them; thoughts are left out", async () => {
  const world = begin();
  const turn = world.send("say Let me \nsay look.\nthink hm\nuse Read the file\nsay Done.");
  const report = await world.ended(turn);
  expect(world.eventsOf(turn)).toEqual([
    ["text_delta", { text: "Let me " }],
    ["text_delta", { text: "look." }],
    ["text_complete", { text: "Let me look." }],
    ["tool_use_start", { id: "tool-1", name: "Read", input: { text: "the file" } }],
    ["tool_result", { tool_use_id: "tool-1", content: "the file", is_error: false }],
    ["tool_use_complete", { id: "tool-1" }],
    ["text_delta", { text: "Done." }],
    ["text_complete", { text: "Done." }],
  ]);
  expect(report).toMatchObject({ outcome: "completed", sessionId: turn.sessionId });
  expect(report.content).toEqual([
    text("Let me look."),
    { type: "tool_use", id: "tool-1", name: "Read", input: { text: "the file" } },
    { type: "tool_result", tool_use_id: "tool-1", content: "the file", is_error: false },
    text("Done."),
  ]);
});

it("closes a tool that did not end, and says why the agent stopped early", async () => {
  const world = begin();
  const turn = world.send("begin Build\nstop max_tokens");
  const report = await world.ended(turn);
  expect(report.outcome).toBe("completed");
  expect(report.content.at(-1)).toMatchObject({ type: "tool_result", is_error: true });
  const events = world.eventsOf(turn).map(([type]) => type);
  expect(events.toSorted()).toEqual(["error", "tool_result", "tool_use_complete", "tool_use_start"]);
});

it("lets the agent use what is allowed; what is denied never runs", async () => {
  const world = begin({ config: { allowedTools: ["Wr*", "execute"], deniedTools: ["*Secret*"] } });
  const path = (name: string) => join(world.folder, name);
  const tools = [
    ["edit", "Write", "allowed by a pattern"],
    ["execute", "make", "allowed by its kind"],
    ["edit", "WriteSecrets", "denied before allowed"],
    ["edit", "Delete", "not allowed"],
  ] as const;
  const script = tools.map(([kind, name]) => `ask ${kind} ${name} ${path(name)}`).join("\n");
  const { content } = await world.ask(script);
  expect(tools.map(([, name]) => existsSync(path(name)))).toEqual([true, true, false, false]);
  expect(readFileSync(path("Write"), "utf8")).toBe("once");
  const results = content.flatMap((block) => (block.type === "tool_result" ? [block.is_error] : []));
  expect(results).toEqual([false, false, true, true]);
});

it("has an agent ask that would not by itself, in new sessions and in loaded ones", async () => {
  const world = begin({ args: ["--store", "sessions.json"], config: { provider: "claude-code" } });
  const turn = world.send("mode");
  const { content, agentSessionId } = await world.ended(turn);
  expect(content).toEqual([text("default")]);
  const session = { sessionId: turn.sessionId, agentSessionId };
  await world.ask("die 1", session);
  expect((await world.ask("mode", session)).content).toEqual([text("default")]);
  expect((await begin().ask("mode")).content).toEqual([text("auto")]);
});

it("denies everything without tools; answers an agent that offers no fitting answer", async () => {
  const without = begin({ config: { toolsEnabled: false, allowedTools: ["*"] } });
  await without.ask(`ask edit Write ${join(without.folder, "f")}`);
  expect(existsSync(join(without.folder, "f"))).toBe(false);

  const restricted = begin({ args: ["--late"], config: { allowedTools: ["Write"] } });
  const { content } = await restricted.ask(`ask edit Write ${join(restricted.folder, "f")}`);
  expect(content.at(-1)).toMatchObject({ content: "nobody answered" });

  const free = begin({ args: ["--late"] });
  await free.ask(`ask edit Write ${join(free.folder, "f")}`);
  expect(readFileSync(join(free.folder, "f"), "utf8")).toBe("always");
});

it("loses none of 10,000 deltas, in their order, while they are written slowly", async () => {
  let waiting = 0;
  const world = begin({
    onBatch: async ({ events }) => {
      waiting = Math.max(waiting, events.length);
      await new Promise((resolve) => setTimeout(resolve, 2));
    },
  });
  const turn = world.send("flood 10000");
  const { content } = await world.ended(turn, 30_000);
  const deltas = world.eventsOf(turn).flatMap(([type, data]) => (type === "text_delta" ? [data] : []));
  expect(deltas).toEqual(Array.from({ length: 10_000 }, (_, i) => ({ text: `${i} ` })));
  const all = deltas.map((delta) => (delta as { text: string }).text).join("");
  expect(content.map((block) => (block.type === "text" ? block.text : "")).join("")).toBe(all);
  expect(waiting).toBeLessThanOrEqual(200);
});

it("completes a text in parts that no event can say at once", async () => {
  const world = begin();
  const turn = world.send(`say ${"€".repeat(20_000)}\nuse Big ${"x".repeat(100_000)}`);
  const { content } = await world.ended(turn);
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  expect(texts.join("")).toBe("€".repeat(20_000));
  expect(texts.length).toBeGreaterThan(1);
  const completed = world.eventsOf(turn).flatMap(([type, data]) => (type === "text_complete" ? [data] : []));
  expect(completed).toEqual(texts.map((one) => ({ text: one })));
  for (const event of world.events) expect(JSON.stringify(event.data).length).toBeLessThan(40_000);
  expect(content.find((block) => block.type === "tool_use")?.input).toMatchObject({ shortened: expect.any(String) });
});

it("gives the agent pictures, and takes them", async () => {
  const world = begin();
  const { content } = await world.ask([
    { type: "image", media_type: "image/png", data: PICTURE },
    text("blocks\nimage"),
  ]);
  expect(content).toEqual([text("image|blocks\nimage"), { type: "image", media_type: "image/png", data: PICTURE }]);
});

it("has a process for all sessions, whose turns run at once; its errors are lines of the log", async () => {
  const world = begin({ config: { model: "m-1", systemPrompt: "Be brief." } });
  const waiting = world.send("say a\nwait");
  await world.until(() => world.eventsOf(waiting).length > 0);
  const other = await world.ask("log oh no\nsay b");
  expect(other).toMatchObject({ outcome: "completed", content: [text("b")] });
  expect(world.reports).toHaveLength(1);
  world.interrupt(waiting);
  expect(await world.ended(waiting)).toMatchObject({ outcome: "interrupted", content: [text("a")] });
  const logged = world.events.filter(({ type }) => type === "log_line").map(({ data }) => data);
  expect(logged).toContainEqual({ line: "oh no", stream: "stderr" });
});

it("goes on in a session of the process that runs, loads one of an earlier process, and repeats no event", async () => {
  const world = begin({ args: ["--store", "sessions.json"] });
  const first = world.send("say one");
  const { agentSessionId } = await world.ended(first);
  const session = { sessionId: first.sessionId, agentSessionId };
  expect((await world.ask("history", session)).content).toEqual([text("say one")]);
  const died = await world.ask("die 1", session);
  expect(died).toMatchObject({ outcome: "failed", agentSessionId });
  const before = world.eventsOf(first).length;
  const after = await world.ask("history", session);
  expect(after).toMatchObject({ agentSessionId, content: [text("say one|history|die 1")] });
  expect(
    world
      .eventsOf(first)
      .slice(before)
      .map(([type]) => type),
  ).toEqual(["text_delta", "text_complete"]);
});

it("tells the history to an agent that does not know the session", async () => {
  const world = begin();
  world.history = [
    { role: "user" as const, content: [text("What is it?")] },
    {
      role: "assistant" as const,
      content: [text("A door."), { type: "tool_use" as const, id: "1", name: "Look", input: 1 }],
    },
  ];
  const { content, agentSessionId } = await world.ask("blocks", { agentSessionId: "unknown", messagesBefore: 2 });
  const [said] = content;
  expect(said?.type === "text" ? said.text : "").toMatch(
    /User:\nWhat is it\?\n\nAssistant:\nA door\.\n.*Look.*\|blocks$/s,
  );
  expect(agentSessionId).not.toBe("unknown");
});

it("starts an agent anew that died in the middle; what it said is kept", async () => {
  const world = begin();
  const turn = world.send("say half\nlog no memory\nsleep 50\ndie 7");
  const report = await world.ended(turn);
  expect(report).toMatchObject({ outcome: "failed", content: [text("half")] });
  expect(report.error).toBe("the agent failed: it ended with exit code 7; its last line: no memory");
  expect(await world.ask("say again")).toMatchObject({ outcome: "completed", content: [text("again")] });
});

it("fails a turn whose agent cannot be started, dies at once, or breaks the protocol", async () => {
  const missing = begin({ argv: ["/nowhere/agent"] });
  expect((await missing.ask("say x")).error).toMatch(/it cannot be started: .*ENOENT.*codex-acp@/);
  const dead = begin({ args: ["--dead"] });
  expect((await dead.ask("say x")).error).toMatch(/it ended with exit code 3; its last line: no such model/);
  for (const garbage of ["no json", '{"jsonrpc":"1.0","method":"x"}', "[]", "7"]) {
    const world = begin();
    const report = await world.ask(`say a\nsleep 20\ngarbage ${garbage}\nwait`);
    expect(report).toMatchObject({ outcome: "failed", content: [text("a")] });
    expect(report.error).toContain("it said what is no message of the protocol");
    expect((await world.ask("say b")).outcome).toBe("completed");
  }
  const wrong = begin();
  const update = '{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}';
  expect((await wrong.ask(`garbage ${update}\nwait`)).error).toContain("it said an update that is none");
});

it("passes over what an agent says that is newer, or an answer to nothing", async () => {
  const world = begin();
  const later = '{"jsonrpc":"2.0","method":"_later/thing","params":{}}';
  const answer = '{"jsonrpc":"2.0","id":99,"result":{}}';
  const { outcome, content } = await world.ask(`garbage ${later}\ngarbage ${answer}\ngarbage \nsay a`);
  expect({ outcome, content }).toEqual({ outcome: "completed", content: [text("a")] });
});

it("says what an agent answers with an error, and goes on with it", async () => {
  const world = begin();
  const turn = world.send("say a\nfail the model is busy");
  const report = await world.ended(turn);
  expect(report).toMatchObject({ outcome: "failed", content: [text("a")] });
  expect(report.error).toBe("the agent failed: it did not answer: the model is busy");
  const { sessionId } = turn;
  expect((await world.ask("history", { sessionId, agentSessionId: report.agentSessionId })).outcome).toBe("completed");
});

it("logs in where the agent asks for it", async () => {
  const world = begin({ args: ["--login"] });
  expect((await world.ask("say in")).content).toEqual([text("in")]);
});

it("interrupts before the agent was told, while it works, and one that does not listen", async () => {
  const world = begin();
  const early = world.send("say never");
  world.interrupt(early);
  expect(await world.ended(early)).toMatchObject({ outcome: "interrupted", content: [] });
  const working = world.send("say a\nwait");
  await world.until(() => world.eventsOf(working).length > 0);
  world.interrupt(working);
  expect(await world.ended(working)).toMatchObject({ outcome: "interrupted", content: [text("a")] });
  const deaf = world.send("say b\nhang");
  const beside = world.send("say c\nwait");
  await world.until(() => world.eventsOf(deaf).length > 0 && world.eventsOf(beside).length > 0);
  const startedMs = performance.now();
  world.interrupt(deaf);
  expect(await world.ended(deaf)).toMatchObject({ outcome: "interrupted", content: [text("b")] });
  expect(performance.now() - startedMs).toBeGreaterThan(9_000);
  // The process is all sessions'.
  expect(await world.ended(beside)).toMatchObject({ outcome: "failed", content: [text("c")] });
  expect((await world.ask("say d")).outcome).toBe("completed");
});

it("a turn ends once, however an interrupt races with its end", async () => {
  const world = begin();
  for (let i = 0; i < 30; i++) {
    const turn = world.send(`say a\nsleep ${i % 4}`);
    await new Promise((resolve) => setTimeout(resolve, i % 7));
    world.interrupt(turn);
    const { outcome } = await world.ended(turn);
    expect(["completed", "interrupted"]).toContain(outcome);
    expect(world.reports.filter(({ turnId }) => turnId === turn.turnId)).toHaveLength(1);
  }
});

it("fails what the agent does when the sandbox stops, and what nobody has begun", async () => {
  const world = begin();
  const working = world.send("say a\nhang");
  await world.until(() => world.eventsOf(working).length > 0);
  await world.turns.end();
  await world.change({ state: "stopped" });
  const never = world.send("say b");
  const error = "the sandbox was stopped";
  expect(await world.ended(working)).toMatchObject({ outcome: "failed", error, content: [text("a")] });
  expect(await world.ended(never)).toMatchObject({ outcome: "failed", error, content: [] });
});

it("waits while the sandbox is paused", async () => {
  const world = begin();
  await world.machine.pause();
  const turn = world.send("say a");
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(world.reports).toEqual([]);
  await world.machine.resume();
  await world.change({});
  expect((await world.ended(turn)).outcome).toBe("completed");
});

it("a process of the node that begins again fails the turn that was begun, and begins the others", async () => {
  const world = begin();
  const begun = world.send("say a\nhang");
  await world.until(() => world.eventsOf(begun).length > 0);
  await world.machine.pause();
  const waiting = world.send("say b");
  await world.machine.resume();
  await world.restart();
  const error = "its node was restarted in the middle of it";
  expect(await world.ended(begun)).toMatchObject({ outcome: "failed", error, content: [] });
  expect(await world.ended(waiting)).toMatchObject({ outcome: "completed", content: [text("b")] });
  // And the one after it does not begin it either.
  await world.restart();
  const again = () => world.reports.filter(({ turnId }) => turnId === begun.turnId).map((one) => one.error);
  await world.until(() => again().length === 2);
  expect(again()).toEqual([error, error]);
});

const TOOLS = {
  name: "tools",
  type: "stdio",
  command: "/bin/tools",
  args: ["--fast"],
  env: { KEY: "is ${SECRET}" },
} as const;
const FAR = {
  name: "far",
  type: "http",
  url: "https://far.test/mcp",
  headers: { Authorization: "Bearer ${SECRET}" },
} as const;

it("tells the agent of its MCP servers, with the sandbox's variables, in new sessions and in loaded ones", async () => {
  const world = begin({
    args: ["--http", "--store", "sessions.json"],
    config: { mcpServers: [TOOLS, FAR] },
    envVars: { SECRET: "hunter2" },
  });
  const servers = JSON.stringify([
    { name: "tools", command: "/bin/tools", args: ["--fast"], env: [{ name: "KEY", value: "is hunter2" }] },
    { type: "http", name: "far", url: FAR.url, headers: [{ name: "Authorization", value: "Bearer hunter2" }] },
  ]);
  const asked = world.send("servers");
  const { content, agentSessionId } = await world.ended(asked);
  const [said] = content;
  expect(JSON.parse(said?.type === "text" ? said.text : "")).toEqual(JSON.parse(servers));
  const session = { sessionId: asked.sessionId, agentSessionId };
  await world.ask("die 1", session);
  expect((await world.ask("servers", session)).content).toEqual(content);
});

it("says which MCP server the agent does not take", async () => {
  const world = begin({ config: { mcpServers: [TOOLS, FAR] }, envVars: { SECRET: "hunter2" } });
  const why = "the agent failed: it does not take MCP servers over http, as far is";
  expect(await world.ask("say x")).toMatchObject({ outcome: "failed", error: why, content: [] });
  await expect(world.turns.start()).rejects.toThrow(why);
});

it("has the agent run before the first message, which that same process answers", async () => {
  const world = begin({ args: ["--store", "sessions.json"] });
  await world.turns.start();
  const { machine } = world;
  const started = machine instanceof ProcessMachine ? [...machine.execs.keys()] : [];
  expect(started).toHaveLength(1);
  expect((await world.ask("say a")).content).toEqual([text("a")]);
  expect(machine instanceof ProcessMachine ? [...machine.execs.keys()] : []).toEqual(started);
  await expect(begin({ argv: ["/nowhere/agent"] }).turns.start()).rejects.toThrow(
    /^the agent failed: it cannot be started: .*ENOENT/,
  );
});
