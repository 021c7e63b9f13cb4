import { afterEach, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { startEngine } from "../support/engine.ts";
import { ask, dataOf, eventsOf, only, send, startAsked, storedRun, type AskedEngine } from "./agent.test-kit.ts";

let asked: AskedEngine | undefined;
afterEach(() => asked?.remove());

async function firstEvents(response: Response, until: string): Promise<ReturnType<typeof eventsOf>> {
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes(until) && text.endsWith("\n\n")) break;
  }
  return eventsOf(text);
}

test("a run whose server is killed is ended by the next one, with what had been said, and its session goes on", async () => {
  asked = await startAsked();
  asked.play([{ text: ["Said before ", "the kill. ", "And then"], hang: true }]);
  const abort = new AbortController();
  const response = await send(asked.engine.url, "POST", "/v1/agent/ask", { question: "Slowly" }, {}, abort.signal);
  const text: string[] = [];
  const reading = (async () => {
    for await (const chunk of response.body ?? []) text.push(Buffer.from(chunk).toString());
  })().catch(() => "the connection was lost");
  await eventually(() => text.join("").includes("before"));
  const { run_id: runId, session_id: sessionId } = only(eventsOf(text.join("")), "run_started");
  // What has happened is stored within a moment, while it goes on.
  const { engine } = asked;
  await eventually(async () => JSON.stringify(await storedRun(engine.url, runId)).includes("before"));
  expect(await storedRun(engine.url, runId)).toMatchObject({ status: "running", finished_at: null });
  const killedAtMs = performance.now();
  await engine.stop("SIGKILL");
  expect(await reading).toBe("the connection was lost");
  const next = await startEngine({ home: asked.home, env: asked.env });
  asked.engine = next;
  await eventually(async () => (await storedRun(next.url, runId))["status"] === "failed", 40_000);
  expect(performance.now() - killedAtMs).toBeLessThan(30_000);
  const run = await storedRun(next.url, runId);
  expect(run).toMatchObject({ error: { code: "interrupted" }, answer: expect.stringContaining("Said before") });
  const events = run["events"] as { event: string }[];
  expect(events.slice(-2)).toMatchObject([
    { event: "run_error" },
    { event: "run_finished", data: { status: "failed" } },
  ]);
  asked.play([{ text: ["Going on."] }]);
  const again = await ask(next.url, { question: "And?", session_id: sessionId });
  expect(only(again, "run_finished")).toMatchObject({ status: "done" });
  expect(JSON.stringify(asked.asked().at(-1)?.body)).toContain("Said before");
});

test("a server that stops ends its runs within its time to drain, and says so", async () => {
  asked = await startAsked("anthropic", { ENGINE_DRAIN_TIMEOUT_SECS: "30" });
  asked.play([{ text: ["Begun. ", "More"], hang: true }]);
  const response = await send(asked.engine.url, "POST", "/v1/agent/ask", { question: "Slowly" });
  const rest = firstEvents(response, "run_finished");
  await asked.provider.reached(1);
  expect(await asked.engine.stop("SIGTERM")).toEqual({ code: 0, signal: null });
  const events = await rest;
  expect(only(events, "run_error")).toMatchObject({ code: "interrupted", retryable: true });
  expect(events.at(-1)).toMatchObject({ event: "run_finished", data: { status: "failed" } });
});

test("without an engine a question is answered with what to do", async () => {
  asked = await startAsked("anthropic", { ANTHROPIC_API_KEY: "" });
  const events = await ask(asked.engine.url, "Anybody there?");
  expect(only(events, "run_error")).toMatchObject({
    code: "not_configured",
    message: expect.stringMatching(/key|credential/iu),
  });
  expect(dataOf(events, "run_finished")).toMatchObject([{ status: "failed" }]);
});
