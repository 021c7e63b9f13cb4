import { expect, it } from "vitest";
import { ManualClock } from "../../src/core/clock.ts";
import type { Followed } from "../../src/sandbox/control/events/follower.ts";
import type { SandboxEventType } from "../../src/sandbox/contract/event.ts";
import { turnStream } from "../../src/sandbox/control/routes/session-turn-stream.ts";

const TURN = { sessionId: "s", turnId: "t", answerSeq: 2, eventSeq: 5, sandboxId: "b" };

/** A turn of which the test says what comes. */
function waiting() {
  const clock = new ManualClock();
  const leaving = new AbortController();
  const items: Followed[] = [];
  let [isOver, wake, left] = [false, () => undefined as void, 0];
  const followed = {
    next: async (): Promise<IteratorResult<Followed>> => {
      for (;;) {
        const value = items.shift();
        if (value !== undefined) return { done: false, value };
        if (isOver) return { done: true, value: undefined };
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    return: async (): Promise<IteratorResult<Followed>> => {
      [isOver, left] = [true, left + 1];
      wake();
      return { done: true, value: undefined };
    },
  };
  let seq = 5;
  const come = (type: SandboxEventType, data: Record<string, unknown> = {}, sessionId: string | null = "s") => {
    items.push({
      type: "event",
      event: { sandboxId: "b", seq: ++seq, type, data, sessionId: sessionId ?? undefined, atMs: 0 },
    });
    wake();
  };
  const answer = turnStream({ clock }, TURN, { followed, signal: leaving.signal });
  const pass = async (ms: number) => {
    await new Promise(setImmediate);
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  const end = () => {
    isOver = true;
    wake();
  };
  const push = (item: Followed) => {
    items.push(item);
    wake();
  };
  return { answer, come, push, pass, end, leaving, left: () => left };
}

const failure = { code: "agent_communication_error", message: "the agent died" };

async function eventsOf({ status, headers, body }: Awaited<ReturnType<typeof turnStream>>): Promise<string[]> {
  expect([status, headers["Content-Type"]]).toEqual([200, "text/event-stream; charset=utf-8"]);
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) throw new Error("it is no stream");
  let text = "";
  for await (const piece of body) text += Buffer.from(piece).toString();
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => {
    const { event_type: type, data: fields } = JSON.parse(data) as { event_type: string; data: { code?: string } };
    return fields.code === undefined ? type : `${type} ${fields.code}`;
  });
}

it("begins with the first event of the session, and ends with the turn", async () => {
  const { answer, come, left } = waiting();
  come("stats", {}, null);
  come("text_delta", { text: "other" }, "another");
  come("text_delta", { text: "hi" });
  const response = await answer;
  come("text_complete", { text: "hi" });
  come("session_completed", { session_id: "another" }, "another");
  come("session_completed", { session_id: "s" });
  come("text_delta", { text: "of the next turn" });
  expect(await eventsOf(response)).toEqual(["connected", "text_delta", "text_complete", "session_completed"]);
  expect(left()).toBeGreaterThan(0);
});

it("is a status where the agent fails before it has said anything", async () => {
  const { answer, come, pass, left } = waiting();
  come("stats", {}, null);
  await pass(19_999);
  come("error", failure);
  come("session_failed", { session_id: "s", error: "the agent died" });
  await expect(answer).rejects.toMatchObject({ ...failure, status: 400 });
  expect(left()).toBeGreaterThan(0);
});

it("is an error event where it fails after that, or after 20 s", async () => {
  const said = waiting();
  said.come("text_delta", { text: "half" });
  said.come("error", failure);
  said.come("session_failed", { session_id: "s", error: "the agent died" });
  const events = ["error agent_communication_error", "session_failed"];
  expect(await eventsOf(await said.answer)).toEqual(["connected", "text_delta", ...events]);
  const late = waiting();
  await late.pass(20_000);
  const response = await late.answer;
  late.come("error", failure);
  late.come("session_failed", { session_id: "s", error: "the agent died" });
  expect(await eventsOf(response)).toEqual(["connected", ...events]);
});

it("is unavailable where the server stops before that, and asks to come again after it", async () => {
  const stopped = waiting();
  stopped.push({ type: "reconnect", afterMs: 1_000 });
  await expect(stopped.answer).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("session s"),
  });
  const late = waiting();
  late.come("text_delta", { text: "half" });
  late.push({ type: "reconnect", afterMs: 1_000 });
  late.end();
  expect(await eventsOf(await late.answer)).toEqual(["connected", "text_delta", "reconnect"]);
});

it("ends when its client leaves, or its sandbox is gone", async () => {
  const left = waiting();
  left.leaving.abort();
  await expect(left.answer).rejects.toMatchObject({ code: "agent_communication_error" });
  expect(left.left()).toBeGreaterThan(0);
  const gone = waiting();
  gone.end();
  await expect(gone.answer).rejects.toMatchObject({
    code: "agent_communication_error",
    message: "the sandbox was deleted",
  });
});
