import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startSandboxApi, type Made, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { delta, reportOf, text, told, turnIn } from "../../src/sandbox/control/sessions/sessions.test-kit.ts";
import { runHere, type RunOptions } from "../../src/cli/cli.test-kit.ts";
import { CutWire, Keyboard, SeenOutput } from "../../src/cli/sandbox.test-kit.ts";

let api: SandboxApi;
let made: Made;
beforeEach(async () => {
  api = await startSandboxApi();
  made = await api.make({}, "creating", "running");
});
afterEach(() => api.close());

type Options = RunOptions & { url?: string };

const chat = (argv: readonly string[], { url = api.url, ...options }: Options = {}) =>
  runHere(["sandbox", "chat", made.id, ...argv, "--server", url], { ...options, env: { ENGINE_TOKEN: "ann" } });
/** The turn that the node is to have. */
async function nextTurn() {
  await expect.poll(async () => (await made.box.desiredState()).turns?.length).toBe(1);
  return await turnIn(made.box);
}

describe("engine sandbox chat", () => {
  test("prints what the agent says as it comes, and what it does", async () => {
    const stdout = new SeenOutput();
    const talking = chat(["What is here?"], { stdout });
    const turn = await nextTurn();
    expect(turn.content).toEqual([text("What is here?")]);
    await made.box.record({ events: [delta(turn, "let me\n"), delta(turn, "\tsee \u0007")] });
    await expect.poll(() => stdout.text()).toBe("let me\n\tsee \\u0007");
    await made.box.record({
      events: [
        told(turn, "text_complete", { text: "let me\n\tsee \u0007" }),
        told(turn, "tool_use_start", { id: "t", name: "bash", input: { command: "ls" } }),
        told(turn, "text_complete", { text: "a file" }),
      ],
      turns: [reportOf(turn)],
    });
    const { code, stderr } = await talking;
    expect([code, stdout.text()]).toEqual([0, "let me\n\tsee \\u0007\na file\n"]);
    expect(stderr).toBe(`session ${turn.sessionId}\n[bash] {"command":"ls"}\n`);
    const again = chat(["--session", turn.sessionId, "and?", "--json"]);
    const second = await nextTurn();
    expect(second).toMatchObject({ sessionId: turn.sessionId, content: [text("and?")] });
    await made.box.record({ events: [delta(second, "no")], turns: [reportOf(second)] });
    const types = (await again).stdout.trim().split("\n");
    expect(types.map((line) => (JSON.parse(line) as { event_type: string }).event_type)).toEqual([
      "text_delta",
      "session_completed",
    ]);
  });

  test("takes the message from standard input; from a terminal line by line", async () => {
    const talking = chat([], { input: "several\nlines\n" });
    const turn = await nextTurn();
    expect(turn.content).toEqual([text("several\nlines\n")]);
    await made.box.record({ turns: [reportOf(turn)] });
    expect((await talking).code).toBe(0);
    const keyboard = new Keyboard();
    const conversing = chat([], { input: keyboard });
    for (const said of ["first", "second"]) {
      keyboard.write(`${said}\n`);
      const next = await nextTurn();
      expect(next.content).toEqual([text(said)]);
      await made.box.record({ events: [told(next, "text_complete", { text: `${said}!` })], turns: [reportOf(next)] });
    }
    keyboard.end();
    const { code, stdout } = await conversing;
    expect([code, stdout]).toEqual([0, "first!\nsecond!\n"]);
  });

  test("is interrupted by Ctrl-C, and has what was said until then", async () => {
    const stdout = new SeenOutput();
    const talking = chat(["count to a million"], { stdout });
    const turn = await nextTurn();
    await made.box.record({ events: [delta(turn, "1 2 3")] });
    await expect.poll(() => stdout.text()).toBe("1 2 3");
    const before = process.listenerCount("SIGINT");
    process.emit("SIGINT", "SIGINT");
    await expect.poll(async () => (await turnIn(made.box)).isInterrupted).toBe(true);
    await made.box.record({ turns: [reportOf(turn, { outcome: "interrupted" })] });
    expect((await talking).code).toBe(130);
    expect(stdout.text()).toBe("1 2 3\n");
    expect(process.listenerCount("SIGINT")).toBe(before - 1);
  });

  test("misses nothing when the connections break in the middle", async () => {
    const wire = new CutWire(api.url);
    const stdout = new SeenOutput();
    const talking = chat(["hello"], { url: await wire.open(), stdout });
    const turn = await nextTurn();
    await made.box.record({ events: [delta(turn, "one ")] });
    await expect.poll(() => stdout.text()).toBe("one ");
    wire.breakAll();
    await made.box.record({ events: [delta(turn, "two ")] });
    await expect.poll(() => stdout.text()).toBe("one two ");
    await made.box.record({ events: [delta(turn, "three")], turns: [reportOf(turn)] });
    expect((await talking).code).toBe(0);
    expect(stdout.text()).toBe("one two three\n");
    wire.close();
  });

  test("says why there is no answer", async () => {
    expect(await chat([], { input: "  \n" })).toEqual({
      code: 2,
      stdout: "",
      stderr: "error: there is nothing to say\n",
    });
    const failing = chat(["hello"]);
    const turn = await nextTurn();
    await made.box.record({ turns: [reportOf(turn, { outcome: "failed", error: "it died" })] });
    expect(await failing).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/\nerror: the agent failed: it died\n$/),
    });
    const first = chat(["hello"]);
    const { sessionId } = await nextTurn();
    const second = await chat(["--session", sessionId, "me, too"]);
    expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/^error: the session is processing: /)]);
    await api.call("DELETE", made.path);
    expect((await first).stderr).toMatch(/the sandbox was deleted\n$/);
    expect((await chat(["hello"])).stderr).toBe(`error: there is no sandbox ${made.id}\n`);
    const other = await api.make({}, "creating", "running");
    const { json } = await api.call("POST", `${other.path}/sessions`);
    const strange = await chat(["--session", String(json["id"]), "hello"]);
    expect([strange.code, strange.stderr]).toEqual([2, "error: the session is one of another sandbox\n"]);
  });
});
