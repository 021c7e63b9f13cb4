import { describe, expect, it } from "vitest";
import { ManualClock } from "../../src/core/clock.ts";
import type { EndedTurn } from "../../src/sandbox/control/sessions/turn-end.ts";
import { turnAnswer } from "../../src/sandbox/control/routes/session-answer.ts";

const TURN = { sessionId: "s", turnId: "t", answerSeq: 2, eventSeq: 0 };

function said(error?: string): EndedTurn {
  const content = [{ type: "text" as const, text: "hi" }];
  return {
    type: "answered",
    message: { id: "m", sessionId: "s", seq: 2, role: "assistant", content, error, createdAtMs: 0 },
  };
}

/** A message whose turn ends when the test says so. */
function waiting() {
  const clock = new ManualClock();
  const closing = new AbortController();
  const leaving = new AbortController();
  const ending = Promise.withResolvers<EndedTurn | undefined>();
  const sessions = {
    ended: (_: unknown, { signal }: { signal: AbortSignal }) => {
      signal.addEventListener("abort", () => ending.resolve(undefined));
      return ending.promise;
    },
  };
  const deps = { sandboxes: { sessions }, events: { closing: closing.signal }, clock };
  const answer = turnAnswer(deps, TURN, { signal: leaving.signal, requestId: "r" });
  /** So long nothing happens. */
  const pass = async (ms: number) => {
    await new Promise(setImmediate);
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  return { answer, pass, closing, leaving, end: ending.resolve };
}

async function late(outcome: EndedTurn | undefined) {
  const { answer, pass, end } = waiting();
  await pass(20_000);
  const { status, headers, body } = await answer;
  expect([status, headers["Content-Type"]]).toEqual([200, "application/json; charset=utf-8"]);
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) throw new Error("it has begun");
  const pieces = body[Symbol.asyncIterator]();
  const next = async () => {
    const step = await pieces.next();
    return step.done === true ? undefined : Buffer.from(step.value).toString();
  };
  expect(await next()).toBe(" ");
  for (let i = 0; i < 100; i++) {
    const piece = next();
    await pass(15_000);
    expect(await piece).toBe(" ");
  }
  const last = next();
  await pass(1_000);
  end(outcome);
  const shown = JSON.parse((await last) ?? "") as Record<string, unknown>;
  expect(await next()).toBeUndefined();
  return shown;
}

describe("the answer to a message that takes long", () => {
  it("has its status while it has not begun", async () => {
    const quick = waiting();
    await quick.pass(19_999);
    quick.end(said());
    expect(await quick.answer).toMatchObject({ status: 200, body: expect.stringContaining('"role":"assistant"') });
    const failed = waiting();
    failed.end(said("the agent died"));
    await expect(failed.answer).rejects.toMatchObject({ code: "agent_communication_error", message: "the agent died" });
    const gone = waiting();
    gone.end({ type: "gone" });
    await expect(gone.answer).rejects.toMatchObject({ code: "agent_communication_error" });
  });

  it("begins after 20 s, keeps the connection alive, and is whole JSON in the end", async () => {
    expect(await late(said())).toMatchObject({ id: "m", role: "assistant", content: [{ type: "text", text: "hi" }] });
    expect(await late(said("the agent died"))).toEqual({
      error: { code: "agent_communication_error", message: "the agent died", request_id: "r" },
    });
    expect(await late({ type: "gone" })).toMatchObject({ error: { code: "agent_communication_error" } });
  });

  it("is not waited for when the server stops, or the client leaves", async () => {
    const stopped = waiting();
    stopped.closing.abort();
    await expect(stopped.answer).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("session s"),
    });
    const left = waiting();
    left.leaving.abort();
    await expect(left.answer).rejects.toMatchObject({ code: "unavailable" });
    expect(await late(undefined)).toMatchObject({ error: { code: "unavailable" } });
  });
});
