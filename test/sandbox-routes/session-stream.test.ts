import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import type { JobOwner } from "../../src/fabric/job.ts";
import { line } from "../../src/sandbox/control/events/log.test-kit.ts";
import {
  controlPlaneOn,
  LeasedBox,
  originOf,
  type ControlPlane,
} from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import { delta, reportOf, text, told, turnsIn } from "../../src/sandbox/control/sessions/sessions.test-kit.ts";
import { EventClient, startLiveWorld, type LiveServer, type LiveWorld, type SeenEvent } from "./live.test-kit.ts";

const OWNER: JobOwner = { subject: "t", kind: "session", role: "write", databases: undefined };
const hello = JSON.stringify({ role: "user", content: [{ type: "text", text: "hello" }] });

let world: LiveWorld;
let plane: ControlPlane;
let servers: [LiveServer, LiveServer];
beforeAll(async () => {
  world = await startLiveWorld();
  plane = controlPlaneOn({ catalog: world.catalog, clock: systemClock });
  servers = [await world.startServer(), await world.startServer()];
});
afterAll(async () => {
  plane.fabric.close();
  await world.close();
});

/** A sandbox that runs, with two sessions, and the node that has it. */
async function running() {
  await plane.report("node-1");
  const { id } = await plane.create({}, OWNER);
  const [hold] = await plane.claim("node-1", 1);
  if (hold === undefined) throw new Error("no node got it");
  const box = new LeasedBox(plane, hold);
  await box.desiredState();
  await box.say("creating");
  await box.say("running");
  const { sessions } = plane.sandboxes;
  const [mine, other] = [await sessions.create(id, {}, OWNER), await sessions.create(id, {}, OWNER)];
  const say = async (sessionId: string) => {
    const by = { asker: OWNER, origin: originOf(OWNER) };
    await sessions.begin(await sessions.get(sessionId, OWNER), [text("hello")], by);
    const turn = (await turnsIn(box)).find((one) => one.sessionId === sessionId);
    if (turn === undefined) throw new Error("the node was not told of the turn");
    return turn;
  };
  return { id, box, mine: mine.id, other: other.id, say };
}

const streamOf = ({ url }: LiveServer, sessionId: string, query = "") =>
  `${url}/api/v1/sessions/${sessionId}/stream${query}`;
const send = ({ url }: LiveServer, sessionId: string) =>
  fetch(`${url}/api/v1/sessions/${sessionId}/messages`, {
    method: "POST",
    headers: { Authorization: "Bearer t", "Content-Type": "application/json" },
    body: hello,
  });
const saidIn = (seen: readonly SeenEvent[]) =>
  seen.map(({ event }) => (event.event_type === "text_delta" ? String(event.data["text"]) : "")).join("");
const typeOf = ({ event }: SeenEvent) => event.event_type;

describe("the stream of a session", () => {
  it("has its own events and those of the sandbox, not those of other sessions", async () => {
    const { box, mine, other, say } = await running();
    const client = await EventClient.open(streamOf(servers[0], mine));
    await client.until((seen) => typeOf(seen) === "connected");
    const [turn, theirs] = [await say(mine), await say(other)];
    await box.record({
      events: [
        delta(theirs, "not for me"),
        delta(turn, "Hi"),
        line("of the sandbox"),
        told(turn, "text_complete", { text: "Hi" }),
        told(turn, "tool_use_start", { id: "t1", name: "bash", input: {} }),
        told(turn, "tool_use_complete", { id: "t1" }),
        told(turn, "tool_result", { tool_use_id: "t1", content: "x", is_error: false }),
      ],
      turns: [reportOf(theirs), reportOf(turn)],
    });
    const seen = await client.until((one) => typeOf(one) === "session_completed");
    client.leave();
    expect(seen.map(typeOf)).toEqual([
      "text_delta",
      "log_line",
      "text_complete",
      "tool_use_start",
      "tool_use_complete",
      "tool_result",
      "session_completed",
    ]);
    expect(seen.map(({ event }) => event.session_id)).toEqual([mine, null, mine, mine, mine, mine, mine]);
    expect(seen[0]?.event.data).toEqual({ text: "Hi" });
  });

  it("goes on at another server in the middle of deltas, with nothing lost and nothing twice", async () => {
    const { box, mine, other, say } = await running();
    const random = drawnRandom();
    const [turn, theirs] = [await say(mine), await say(other)];
    const seen: SeenEvent[] = [];
    let written = 0;
    for (let i = 0; i < 30; i++) {
      const count = 1 + Math.floor(random.next() * 40);
      const events = Array.from({ length: count }, () => [delta(turn, ` ${++written}`), delta(theirs, "x")]).flat();
      const writing = box.record({ events });
      const last = seen.at(-1)?.id;
      const url = streamOf(servers[i % 2 === 0 ? 0 : 1], mine, last === undefined ? "?from=start" : "");
      const client = await EventClient.open(url, last === undefined ? {} : { headers: { "Last-Event-ID": last } });
      // It may ask for more than there is: then nothing comes after the last one.
      const part = await client.take(40 + Math.floor(random.next() * 3_000), (one) => saidIn([one]) === ` ${written}`);
      await writing;
      seen.push(...part.filter(({ id }) => id !== undefined));
    }
    await box.record({ turns: [reportOf(turn)] });
    const last = seen.at(-1)?.id ?? "0";
    const client = await EventClient.open(streamOf(servers[1], mine), { headers: { "Last-Event-ID": last } });
    seen.push(...(await client.until((one) => typeOf(one) === "session_completed")));
    client.leave();
    expect(saidIn(seen)).toBe(Array.from({ length: written }, (_, i) => ` ${i + 1}`).join(""));
  });

  it("follows 200 clients without loss", async () => {
    const { box, mine, say } = await running();
    const turn = await say(mine);
    const clients = await Promise.all(
      Array.from({ length: 200 }, (_, i) => EventClient.open(streamOf(servers[i % 2 === 0 ? 0 : 1], mine))),
    );
    await Promise.all(clients.map((client) => client.until((seen) => typeOf(seen) === "connected")));
    for (let i = 0; i < 10; i++) {
      await box.record({ events: Array.from({ length: 50 }, (_, n) => delta(turn, `${i * 50 + n},`)) });
    }
    await box.record({ turns: [reportOf(turn)] });
    const expected = Array.from({ length: 500 }, (_, i) => `${i},`).join("");
    for (const client of clients) {
      const seen = await client.until((one) => typeOf(one) === "session_completed");
      client.leave();
      expect(saidIn(seen)).toBe(expected);
    }
    await expect.poll(() => servers[0].events.following + servers[1].events.following).toBe(0);
  });

  it("asks its clients to come again when the server stops, and goes on elsewhere with nothing lost", async () => {
    const stopping = await world.startServer();
    const { box, mine, other, say } = await running();
    const turn = await say(mine);
    const others = await say(other);
    const client = await EventClient.open(streamOf(stopping, mine));
    await box.record({ events: [delta(turn, "one "), delta(others, "not mine")] });
    const seen = await client.until((one) => typeOf(one) === "text_delta");
    stopping.events.close();
    const [reconnect, ...more] = await client.all();
    expect(reconnect).toMatchObject({
      id: undefined,
      event: { id: "", event_type: "reconnect", session_id: null, data: { after_ms: 1_000 } },
    });
    expect(more).toEqual([]);
    // A server that stops takes no new ones.
    const refused = await fetch(streamOf(stopping, mine), { headers: { Authorization: "Bearer t" } });
    expect(refused.status).toBe(503);
    await stopping.close();
    // What comes while nobody listens is not lost.
    await box.record({ events: [delta(others, "nor this"), delta(turn, "two ")] });
    const again = await EventClient.open(streamOf(servers[1], mine), {
      headers: { "Last-Event-ID": String(seen.at(-1)?.id) },
    });
    await box.record({ events: [delta(turn, "three")], turns: [reportOf(turn)] });
    const rest = await again.until((one) => typeOf(one) === "session_completed");
    expect(saidIn([...seen, ...rest])).toBe("one two three");
    again.leave();
  });

  it("ends with the sandbox", async () => {
    const { id, mine } = await running();
    const client = await EventClient.open(streamOf(servers[0], mine));
    await plane.act(id, "delete", OWNER);
    expect((await client.all()).map(typeOf)).toEqual(["connected", "sandbox_state_changed"]);
  });
});

describe("a message", () => {
  it("goes on when its server stops: the session has its answer at another one", async () => {
    const stopping = await world.startServer();
    const { box, mine } = await running();
    const waiting = send(stopping, mine);
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    stopping.events.close();
    const refused = await waiting;
    const { error } = (await refused.json()) as { error: { code: string; message: string } };
    expect([refused.status, error.code]).toEqual([503, "unavailable"]);
    expect(error.message).toContain(`session ${mine}`);
    await stopping.close();
    const [turn] = await turnsIn(box);
    if (turn === undefined) throw new Error("the turn has ended");
    expect(turn).toMatchObject({ isInterrupted: false });
    await box.record({ turns: [reportOf(turn, { content: [text("still here")] })] });
    const shown = await fetch(`${servers[0].url}/api/v1/sessions/${mine}`, { headers: { Authorization: "Bearer t" } });
    expect(await shown.json()).toMatchObject({ state: "active", messages: [{}, { content: [text("still here")] }] });
  });

  it("is answered by its events where they are asked for", async () => {
    const { box, mine } = await running();
    const ask = () =>
      EventClient.open(`${servers[0].url}/api/v1/sessions/${mine}/messages`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
        body: hello,
      });
    const asked = ask();
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    const [turn] = await turnsIn(box);
    if (turn === undefined) throw new Error("the node was not told of the turn");
    await box.record({ events: [line("somebody else's"), delta(turn, "hi")] });
    const client = await asked;
    await box.record({ events: [delta(turn, " there")], turns: [reportOf(turn)] });
    const seen = await client.all();
    expect(saidIn(seen)).toBe("hi there");
    expect(seen.map(typeOf)).toEqual(["connected", "text_delta", "text_delta", "session_completed"]);
    // An agent that fails before it has said anything has its status.
    const failing = ask();
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    const [second] = await turnsIn(box);
    if (second === undefined) throw new Error("the node was not told of the turn");
    await box.record({ turns: [reportOf(second, { outcome: "failed", error: "no key" })] });
    await expect(failing).rejects.toThrow(/^400 .*"agent_communication_error","message":"no key"/);
    // One that fails after it is an event.
    const late = ask();
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    const [third] = await turnsIn(box);
    if (third === undefined) throw new Error("the node was not told of the turn");
    await box.record({ events: [delta(third, "half")] });
    const broken = await late;
    await box.record({ turns: [reportOf(third, { outcome: "failed", error: "it died" })] });
    const [, , error, failed, ...more] = await broken.all();
    expect(error?.event).toMatchObject({
      event_type: "error",
      session_id: mine,
      data: { code: "agent_communication_error", message: "it died" },
    });
    expect(failed?.event).toMatchObject({ event_type: "session_failed", data: { session_id: mine, error: "it died" } });
    expect(more).toEqual([]);
    // A message that is refused follows nothing.
    const busy = ask();
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    await expect(ask()).rejects.toThrow(/^409 /);
    await expect.poll(() => servers[0].events.following).toBe(1);
    const [last] = await turnsIn(box);
    if (last === undefined) throw new Error("the node was not told of the turn");
    await box.record({ turns: [reportOf(last)] });
    expect((await (await busy).all()).map(typeOf)).toEqual(["connected", "session_completed"]);
    await expect.poll(() => servers[0].events.following).toBe(0);
  });

  it("goes on without its client, and is answered by a server that did not hear of its end", async () => {
    const { box, mine } = await running();
    const leaving = new AbortController();
    const left = fetch(`${servers[0].url}/api/v1/sessions/${mine}/messages`, {
      method: "POST",
      headers: { Authorization: "Bearer t", "Content-Type": "application/json" },
      body: hello,
      signal: leaving.signal,
    });
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    leaving.abort();
    await expect(left).rejects.toThrow("abort");
    const [turn] = await turnsIn(box);
    if (turn === undefined) throw new Error("the turn has ended");
    await box.record({ turns: [reportOf(turn, { content: [text("first")] })] });
    const waiting = send(servers[1], mine);
    await expect.poll(async () => (await turnsIn(box)).length).toBe(1);
    const [next] = await turnsIn(box);
    if (next === undefined) throw new Error("the turn has ended");
    // No signal is sent of it.
    await world.catalog.records.transact([
      {
        sql:
          "INSERT INTO sandbox_messages (session_id, seq, id, turn_id, role, content, created_at_ms) " +
          "VALUES (?, 4, 'm', ?, 'assistant', '[]', 1)",
        values: [mine, next.turnId],
      },
    ]);
    const answer = await waiting;
    expect([answer.status, await answer.json()]).toMatchObject([200, { id: "m", content: [] }]);
  });
});
