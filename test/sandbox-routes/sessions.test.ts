import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { reportOf, text, turnIn } from "../../src/sandbox/control/sessions/sessions.test-kit.ts";
import { startSandboxApi, type Answer, type Made, type SandboxApi } from "./sandboxes.test-kit.ts";

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi({ actionWaitMs: 300 });
});
afterEach(() => api.close());

const hello = { role: "user", content: [{ type: "text", text: "hello" }] };
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string;

async function open(path: string, body?: unknown): Promise<string> {
  const { status, json } = await api.call("POST", `${path}/sessions`, { body });
  expect(status).toBe(201);
  return `/api/v1/sessions/${String(json["id"])}`;
}
const stateOf = async (session: string) => (await api.call("GET", session)).json["state"];
/** Sends a message, and resolves when the node has it. */
async function send(session: string, { box }: Made, body: unknown = hello) {
  const answer = api.call("POST", `${session}/messages`, { body });
  await expect.poll(async () => (await box.desiredState()).turns?.length).toBe(1);
  return { answer, turn: await turnIn(box) };
}
/** As a client asks for it, and the node does it. */
async function stop({ path, box }: Made): Promise<void> {
  const answer = api.call("POST", `${path}/stop`);
  await expect.poll(async () => (await box.desiredState()).wanted).toBe("stopped");
  await box.say("stopped");
  expect((await answer).json["state"]).toBe("stopped");
}
const codeOf = ({ status, code }: Answer) => `${status} ${code}`;

describe("sessions", () => {
  it("are created, listed and shown, as the specification has them", async () => {
    const { path, id } = await api.make();
    const metadata = { purpose: "review", nested: { a: [1, null] } };
    const made = await api.call("POST", `${path}/sessions`, { body: { metadata } });
    const session = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      sandbox_id: id,
      state: "active",
      metadata,
      created_at: isoTime,
      updated_at: isoTime,
    };
    expect([made.status, made.json]).toEqual([201, session]);
    const second = await open(path);
    await open(path, {});
    const listed = JSON.parse((await api.call("GET", `${path}/sessions`)).text) as { id: string }[];
    expect(listed).toHaveLength(3);
    expect(listed[2]).toEqual(made.json);
    expect((await api.call("GET", second)).json).toEqual({
      ...session,
      id: expect.any(String),
      metadata: {},
      messages: [],
    });
  });

  it("are those of the sandbox's tenant", async () => {
    const { path } = await api.make({}, "creating", "running");
    const session = await open(path);
    const asked = async (by: string) =>
      await Promise.all(
        [
          ["GET", `${path}/sessions`],
          ["POST", `${path}/sessions`],
          ["GET", session],
          ["POST", `${session}/messages`],
          ["POST", `${session}/interrupt`],
          ["GET", `${session}/stream`],
        ].map(async ([method = "", at = ""]) => {
          const body = at.endsWith("messages") ? hello : undefined;
          return codeOf(await api.call(method, at, { by, body }));
        }),
      );
    const notTheirs = "404 session_not_found";
    expect(await asked("bob")).toEqual([
      "404 sandbox_not_found",
      "404 sandbox_not_found",
      notTheirs,
      notTheirs,
      notTheirs,
      notTheirs,
    ]);
    expect((await asked("")).every((code) => code === "401 unauthorized")).toBe(true);
    expect((await api.call("GET", session, { by: "root" })).status).toBe(200);
    expect((await api.call("GET", session, { by: "reader" })).status).toBe(200);
    expect(codeOf(await api.call("POST", `${session}/messages`, { by: "reader", body: hello }))).toBe("403 forbidden");
    expect(codeOf(await api.call("POST", `${session}/interrupt`, { by: "reader" }))).toBe("403 forbidden");
    expect(codeOf(await api.call("GET", "/api/v1/sessions/nothing"))).toBe(notTheirs);
  });

  it.each([
    [{ metadata: "text" }, "config_validation_error", "metadata: "],
    [{ metadata: { big: "x".repeat(65_536) } }, "config_validation_error", "metadata: has more than 65536 bytes"],
    [{ name: "x" }, "config_validation_error", ""],
    [[], "config_error", ""],
    ["{", "config_error", "not JSON"],
  ])("are not created from %j", async (body, code, message) => {
    const { path } = await api.make();
    const answer = await api.call("POST", `${path}/sessions`, { body });
    expect(codeOf(answer)).toBe(`400 ${code}`);
    expect(answer.message).toContain(message);
  });

  it("are none of a sandbox that failed, and gone with one that is deleted", async () => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    await made.box.say("failed", "no disk");
    expect(codeOf(await api.call("POST", `${made.path}/sessions`))).toBe("409 sandbox_invalid_state");
    expect((await api.call("GET", session)).status).toBe(200);
    expect((await api.call("DELETE", made.path)).status).toBe(204);
    expect(codeOf(await api.call("GET", session))).toBe("404 session_not_found");
  });
});

describe("a message", () => {
  it("is answered when the agent has, and kept with its answer", async () => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    const image = { type: "image", media_type: "image/png", data: "AAAA" };
    const { answer, turn } = await send(session, made, { role: "user", content: [...hello.content, image] });
    expect(turn.content).toEqual([...hello.content, image]);
    expect(await stateOf(session)).toBe("processing");
    expect(codeOf(await api.call("POST", `${session}/messages`, { body: hello }))).toBe("409 session_invalid_state");
    const tool = { type: "tool_use" as const, id: "t", name: "bash", input: { command: "ls" } };
    const result = { type: "tool_result" as const, tool_use_id: "t", content: [{ a: 1 }], is_error: true };
    await made.box.record({ turns: [reportOf(turn, { content: [text("let me see"), tool, result] })] });
    const { status, json } = await answer;
    expect([status, json]).toEqual([
      200,
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        session_id: turn.sessionId,
        role: "assistant",
        content: [text("let me see"), tool, result],
        timestamp: isoTime,
      },
    ]);
    const shown = await api.call("GET", session);
    expect(shown.json).toMatchObject({ state: "active", messages: [{ role: "user", content: turn.content }, json] });
    const page = await api.call("GET", `${session}?limit=1&before=${String(json["id"])}`);
    expect(page.json["messages"]).toMatchObject([{ role: "user" }]);
    expect(codeOf(await api.call("GET", `${session}?limit=0`))).toBe("400 invalid_parameter");
    expect(codeOf(await api.call("GET", `${session}?before=${made.id}`))).toBe("400 invalid_parameter");
  });

  it("whose agent fails is a 400 with the reason; the next one is taken", async () => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    const first = await send(session, made);
    const report = reportOf(first.turn, { outcome: "failed", error: "the agent ended", content: [text("I th")] });
    await made.box.record({ turns: [report] });
    const failed = await first.answer;
    expect([codeOf(failed), failed.message]).toEqual(["400 agent_communication_error", "the agent ended"]);
    expect((await api.call("GET", session)).json).toMatchObject({
      state: "failed",
      messages: [{ role: "user" }, { role: "assistant", content: [text("I th")] }],
    });
    const second = await send(session, made);
    await made.box.record({ turns: [reportOf(second.turn, { content: [text("better")] })] });
    expect((await second.answer).json["content"]).toEqual([text("better")]);
  });

  it("that is interrupted is answered with what was said", async () => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    expect(codeOf(await api.call("POST", `${session}/interrupt`))).toBe("409 session_invalid_state");
    const { answer, turn } = await send(session, made);
    const interrupted = await api.call("POST", `${session}/interrupt`);
    expect([interrupted.status, interrupted.json]).toMatchObject([200, { state: "processing", id: turn.sessionId }]);
    expect(await turnIn(made.box)).toMatchObject({ isInterrupted: true });
    await made.box.record({ turns: [reportOf(turn, { outcome: "interrupted", content: [text("half")] })] });
    expect(await answer).toMatchObject({ status: 200, json: { content: [text("half")] } });
  });

  it.each(["stopped", "deleted"])("is a 400 when its sandbox is %s meanwhile", async (end) => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    const { answer } = await send(session, made);
    await (end === "deleted" ? api.call("DELETE", made.path) : stop(made));
    const { status, code, message } = await answer;
    expect([status, code, message]).toEqual([400, "agent_communication_error", expect.stringContaining(end)]);
  });

  it("waits for a sandbox that is being made, and needs one that runs", async () => {
    const made = await api.make();
    const session = await open(made.path);
    const answer = api.call("POST", `${session}/messages`, { body: hello });
    await made.box.say("creating");
    await made.box.say("running");
    await expect.poll(async () => (await made.box.desiredState()).turns?.length).toBe(1);
    await made.box.record({ turns: [reportOf(await turnIn(made.box), { content: [text("hi")] })] });
    expect((await answer).status).toBe(200);
    const waiting = await api.make();
    const late = await api.call("POST", `${await open(waiting.path)}/messages`, { body: hello });
    expect([codeOf(late), late.message]).toEqual(["409 sandbox_invalid_state", expect.stringContaining("pending")]);
    await stop(made);
    expect(codeOf(await api.call("POST", `${session}/messages`, { body: hello }))).toBe("409 sandbox_invalid_state");
  });

  it.each([
    [{ content: hello.content }, "role: "],
    [{ ...hello, role: "assistant" }, "role: "],
    [{ role: "user", content: [] }, "content: "],
    [{ role: "user", content: "hello" }, "content: "],
    [{ role: "user", content: [{ type: "text", text: "" }] }, "content.0.text: "],
    [{ role: "user", content: [{ type: "text", text: "x".repeat(1_048_577) }] }, "content.0.text: "],
    [{ role: "user", content: [{ type: "tool_use", id: "x", name: "y", input: {} }] }, "content.0.type: "],
    [{ role: "user", content: [{ type: "image", media_type: "text/html", data: "AAAA" }] }, "content.0.media_type: "],
    [{ role: "user", content: [{ type: "image", media_type: "image/png", data: "?" }] }, "content.0.data: "],
    [{ role: "user", content: Array.from({ length: 101 }, () => hello.content[0]) }, "content: "],
    [{ ...hello, extra: 1 }, ""],
  ])("is refused: %#", async (body, field) => {
    const made = await api.make({}, "creating", "running");
    const session = await open(made.path);
    const answer = await api.call("POST", `${session}/messages`, { body });
    expect(codeOf(answer)).toBe("400 config_validation_error");
    expect(answer.message.startsWith(field)).toBe(true);
    expect(await stateOf(session)).toBe("active");
  });
});
