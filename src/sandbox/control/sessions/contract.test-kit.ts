import { drawnSeed } from "../../../core/drawn-seed.test-kit.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.test-kit.ts";
import type { DesiredStateChange } from "../../contract/control-port.ts";
import {
  ANN,
  BOB,
  controlPlaneOn,
  LeasedBox,
  LEASE_MS,
  ROOT,
  type ControlPlane,
} from "../scheduler/scheduler.test-kit.ts";
import { SANDBOX_METRICS } from "../../contract/metrics.ts";
import { BY_ANN, delta, reportOf, Talk, text, told, turnIn, turnsIn } from "./sessions.test-kit.ts";
import { MOST_SESSIONS } from "./sessions.ts";
import { MOST_MESSAGE_BYTES } from "../turns/told-content.ts";
import { walkSessions } from "./walk.test-kit.ts";

const NODE = "node-1";

/** What the control plane must do with sessions on every catalog. */
export function sessionsContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`sessions on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    let talk: Talk;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened);
      talk = new Talk(plane);
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });

    const running = async (spec: Parameters<ControlPlane["create"]>[0] = {}) => {
      await plane.report(NODE);
      const { id } = await plane.create(spec);
      const [hold] = await plane.claim(NODE, 1);
      if (hold === undefined) throw new Error("there was nothing to claim");
      const box = new LeasedBox(plane, hold);
      await box.desiredState();
      await box.say("creating");
      await box.say("running");
      return { id, box };
    };
    /** With a session that is being answered. */
    const talking = async (spec: Parameters<ControlPlane["create"]>[0] = {}) => {
      const { id, box } = await running(spec);
      const session = await talk.open(id);
      const begun = await talk.say(session.id, "hello");
      return { id, box, session, begun, turn: await turnIn(box) };
    };
    const loseNodes = async () => {
      opened.clock.advance(LEASE_MS + 1);
      await plane.fabric.sweep();
      await plane.sandboxes.settle();
    };
    const lastEvent = async (id: string) => (await talk.events(id)).at(-1);

    it("belong to their sandbox: its tenant and admins see them, nobody else", async () => {
      const { id } = await plane.create();
      const { sessions } = plane.sandboxes;
      const made = await sessions.create(id, { topic: "ünï", deep: [1, null] }, ANN);
      expect(made).toMatchObject({ sandboxId: id, state: "active", metadata: { topic: "ünï", deep: [1, null] } });
      expect(await sessions.get(made.id, ANN)).toEqual(made);
      expect(await sessions.get(made.id, ROOT)).toEqual(made);
      await expect(sessions.get(made.id, BOB)).rejects.toMatchObject({ code: "session_not_found" });
      await expect(sessions.get("\0", ROOT)).rejects.toMatchObject({ code: "session_not_found" });
      await expect(sessions.create(id, {}, BOB)).rejects.toMatchObject({ code: "sandbox_not_found" });
      await expect(sessions.list(id, { limit: 10 }, BOB)).rejects.toMatchObject({ code: "sandbox_not_found" });
      const second = await sessions.create(id, {}, ANN);
      const page = async (limit: number, before?: string) =>
        (await sessions.list(id, { limit, before }, ANN)).map((session) => session.id);
      expect(await page(10)).toEqual([second.id, made.id]);
      expect([await page(1), await page(1, second.id), await page(1, made.id)]).toEqual([[second.id], [made.id], []]);
      expect(await talk.events(id)).toEqual(
        [made, second].map((session) => ({
          type: "session_created",
          sessionId: session.id,
          data: { session_id: session.id },
        })),
      );
      await plane.act(id, "delete");
      await expect(sessions.get(made.id, ROOT)).rejects.toMatchObject({ code: "session_not_found" });
      expect(await plane.records.rows("SELECT id FROM sandbox_sessions")).toEqual([]);
    });

    it("are opened in every state but failed, and not without end", async () => {
      const { id, box } = await running();
      await plane.act(id, "stop");
      await box.say("stopped");
      await talk.open(id);
      const columns = "sandbox_id, tenant, state, metadata, turn_event_seq, is_interrupted, last_message";
      await plane.records.write({
        sql:
          `INSERT INTO sandbox_sessions (id, ${columns}, created_at_ms, updated_at_ms) ` +
          `VALUES ${Array.from({ length: MOST_SESSIONS - 1 }, () => "(?, ?, 'ann', 'active', '{}', 0, 0, 0, 1, 1)").join(", ")}`,
        values: Array.from({ length: MOST_SESSIONS - 1 }, (_, i) => [`s${i}`, id]).flat(),
      });
      await expect(talk.open(id)).rejects.toMatchObject({ code: "conflict" });
      const { box: broken, id: failed } = await running();
      await broken.say("failed", "no disk");
      await expect(talk.open(failed)).rejects.toMatchObject({ code: "sandbox_invalid_state" });
    });

    it("tell a node in this process how its order has changed, so that it need not ask", async () => {
      const { id, box } = await running();
      const session = await talk.open(id);
      const changes: [string, DesiredStateChange | undefined][] = [];
      const told: unknown[] = [];
      const stops = [
        plane.sandboxes.signals.onDesiredStateOf(NODE, (sandboxId, change) => changes.push([sandboxId, change])),
        plane.sandboxes.signals.onDesiredState((...signal) => told.push(signal)),
      ];
      let known = await box.desiredState();
      for (const [script, agentSessionId] of [
        ["look \0 😀", undefined],
        ["again", "agent-1"],
      ] as const) {
        await talk.say(session.id, script);
        const [[sandboxId, change] = [], ...more] = changes.splice(0);
        expect([sandboxId, more]).toEqual([id, []]);
        const { version = 0, begun } = change ?? {};
        expect({ ...known, version, turns: [begun] }).toEqual(await box.desiredState());
        expect(version).toBe(known.version + 1);
        expect(begun).toMatchObject({ content: [text(script)], agentSessionId });
        known = await box.record({ turns: [reportOf(await turnIn(box), { agentSessionId: "agent-1" })] });
      }
      // Of what else has changed it is told that it has; and others are told nothing of what is not theirs.
      await plane.act(id, "pause");
      expect(changes).toEqual([[id, undefined]]);
      for (const stop of stops) stop();
      expect(told).toEqual([]);
    });

    it("take a message, which the node finds in its order, and have the answer", async () => {
      const { id, box } = await running();
      const session = await talk.open(id);
      const signals: unknown[] = [];
      const stop = plane.sandboxes.signals.onDesiredState((...signal) => signals.push(signal));
      const before = await box.desiredState();
      const image = { type: "image", media_type: "image/png", data: "AAAA" } as const;
      const begun = await talk.say(session.id, [text("look \0 😀"), image]);
      await expect.poll(() => signals).toEqual([[id, NODE]]);
      stop();
      expect(await talk.get(session.id)).toMatchObject({ state: "processing", turnId: begun.turnId });
      const order = await box.desiredState();
      expect(order.version).toBe(before.version + 1);
      expect(order.turns).toEqual([
        {
          sessionId: session.id,
          turnId: begun.turnId,
          content: [text("look \0 😀"), image],
          agentSessionId: undefined,
          messagesBefore: 0,
          isInterrupted: false,
        },
      ]);
      await expect(talk.say(session.id, "more")).rejects.toMatchObject({ code: "session_invalid_state" });
      const turn = await turnIn(box);
      await box.record({ events: [delta(turn, "Hi"), told(turn, "text_complete", { text: "Hi" })] });
      const after = await box.record({
        turns: [reportOf(turn, { content: [text("Hi")], agentSessionId: "agent-1" })],
      });
      expect(after.turns).toEqual([]);
      expect(after.version).toBe(order.version + 1);
      expect(await talk.ended(begun)).toMatchObject({ message: { role: "assistant", content: [text("Hi")] } });
      expect(await talk.get(session.id)).toMatchObject({ state: "active", turnId: undefined });
      expect(await lastEvent(id)).toEqual({
        type: "session_completed",
        sessionId: session.id,
        data: { session_id: session.id },
      });
      await talk.say(session.id, "and?");
      expect(await turnIn(box)).toMatchObject({
        agentSessionId: "agent-1",
        content: [text("and?")],
        messagesBefore: 2,
      });
      expect(await box.history(session.id)).toEqual([
        { role: "user", content: [text("look \0 😀"), image] },
        { role: "assistant", content: [text("Hi")] },
      ]);
      expect(await SANDBOX_METRICS.of(plane.metrics).sandboxTurns.get()).toMatchObject({
        values: [{ labels: { outcome: "completed" }, value: 1 }],
      });
    });

    it("let one of many messages through that come at once, in however many processes", async () => {
      const { id, box } = await running();
      const session = await talk.open(id);
      const others = [controlPlaneOn(opened, { seed: 2 }), controlPlaneOn(opened, { seed: 3 })];
      const talks = [talk, ...others.map((other) => new Talk(other))];
      const asked = await Promise.allSettled(
        Array.from({ length: 9 }, async (_, i) => await (talks[i % 3] ?? talk).say(session.id, `message ${i}`)),
      );
      const refused = asked.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
      expect(refused).toHaveLength(8);
      for (const error of refused) expect(error).toMatchObject({ code: "session_invalid_state" });
      expect(await turnsIn(box)).toHaveLength(1);
      expect(await talk.messages(session.id)).toHaveLength(1);
      for (const { fabric } of others) fabric.close();
    });

    it("need a sandbox that runs", async () => {
      const { id, box, session } = await talking();
      await box.record({ turns: [reportOf(await turnIn(box))] });
      await plane.act(id, "pause");
      await expect(talk.say(session.id, "x")).rejects.toMatchObject({
        code: "sandbox_invalid_state",
        message: expect.stringContaining("pausing"),
      });
      await box.say("paused");
      await expect(talk.say(session.id, "x")).rejects.toMatchObject({ code: "sandbox_invalid_state" });
      expect(await talk.messages(session.id)).toHaveLength(2);
      expect(await talk.get(session.id)).toMatchObject({ state: "active" });
    });

    it("go on over a pause", async () => {
      const { id, box, begun, turn } = await talking();
      await plane.act(id, "pause");
      expect(await turnIn(box)).toEqual(turn);
      await box.say("paused");
      await plane.act(id, "resume");
      await box.say("running");
      await box.record({ turns: [reportOf(turn, { content: [text("still here")] })] });
      expect(await talk.ended(begun)).toMatchObject({ message: { content: [text("still here")], error: undefined } });
    });

    it("are interrupted: the node is told, and what was said is kept", async () => {
      const { id, box, session, begun, turn } = await talking();
      const { version } = await box.desiredState();
      expect(await talk.interrupt(session.id)).toMatchObject({ state: "processing", isInterrupted: true });
      expect(await box.desiredState()).toMatchObject({
        version: version + 1,
        turns: [{ ...turn, isInterrupted: true }],
      });
      await box.record({
        events: [delta(turn, "I was ab")],
        turns: [reportOf(turn, { outcome: "interrupted" })],
      });
      expect(await talk.ended(begun)).toMatchObject({ message: { content: [text("I was ab")], error: undefined } });
      expect(await talk.get(session.id)).toMatchObject({ state: "active", isInterrupted: false });
      expect(await lastEvent(id)).toMatchObject({ type: "session_completed" });
      await expect(talk.interrupt(session.id)).rejects.toMatchObject({ code: "session_invalid_state" });
      await talk.say(session.id, "again");
      expect(await turnIn(box)).toMatchObject({ isInterrupted: false });
    });

    it("keep what an agent said that failed, put together from its events, and take the next message", async () => {
      const { id, box, session, begun, turn } = await talking();
      const other = await talk.open(id);
      await talk.say(other.id, "hello");
      const tool = { id: "t1", name: "bash", input: { command: "ls" } };
      await box.record({
        events: [
          delta(turn, "one "),
          delta(turn, "two"),
          delta({ sessionId: other.id }, "not mine"),
          told(turn, "text_complete", { text: "one two" }),
          told(turn, "tool_use_start", tool),
          told(turn, "tool_use_complete", { id: "t1" }),
          told(turn, "tool_result", { tool_use_id: "t1", content: "a b", is_error: false }),
          delta(turn, "and th"),
        ],
      });
      await box.record({
        events: [delta(turn, "en")],
        turns: [reportOf(turn, { outcome: "failed", error: "the agent died \0" })],
      });
      const content = [
        text("one two"),
        { type: "tool_use", ...tool },
        { type: "tool_result", tool_use_id: "t1", content: "a b", is_error: false },
        text("and then"),
      ];
      const error = "the agent died \u{fffd}";
      expect(await talk.ended(begun)).toMatchObject({ message: { content, error } });
      expect(await talk.get(session.id)).toMatchObject({ state: "failed" });
      expect(await talk.get(other.id)).toMatchObject({ state: "processing" });
      expect(await lastEvent(id)).toEqual({
        type: "session_failed",
        sessionId: session.id,
        data: { session_id: session.id, error },
      });
      await talk.say(session.id, "try again");
      const turns = await turnsIn(box);
      const again = turns.find(({ sessionId }) => sessionId === session.id);
      expect(await box.history(session.id)).toEqual([
        { role: "user", content: [text("hello")] },
        { role: "assistant", content },
      ]);
      if (again === undefined) throw new Error("there is no turn");
      // What was said in the turn before is no part of this one.
      await box.record({ events: [delta(again, "well")], turns: [reportOf(again)] });
      expect((await talk.messages(session.id)).at(-1)).toMatchObject({ role: "assistant", content: [text("well")] });
    });

    it("pass over reports of turns that are not under way, and take each once", async () => {
      const { id, box, session, turn } = await talking();
      const stranger = { sessionId: session.id, turnId: "019a0000-0000-7000-8000-000000000000" };
      await box.record({ turns: [reportOf(stranger, { content: [text("x")] })] });
      expect(await talk.get(session.id)).toMatchObject({ state: "processing" });
      const batch = { number: 50, events: [], turns: [reportOf(turn, { content: [text("once")] })] };
      await Promise.all(Array.from({ length: 4 }, () => plane.sandboxes.record(box.hold, batch)));
      await plane.sandboxes.record(box.hold, { ...batch, number: 51 });
      expect(await talk.messages(session.id)).toHaveLength(2);
      expect((await talk.events(id)).filter(({ type }) => type === "session_completed")).toHaveLength(1);
    });

    it("do not tell a node again of turns that it knows", async () => {
      const { box, session } = await talking();
      const { version } = await box.desiredState();
      expect(await box.record({ knownVersion: version })).toMatchObject({ version, turns: [] });
      expect((await box.record({ knownVersion: version - 1 })).turns).toHaveLength(1);
      await talk.interrupt(session.id);
      expect((await box.record({ knownVersion: version })).turns).toMatchObject([{ isInterrupted: true }]);
    });

    it("cut what is too long", async () => {
      const { box, begun, turn } = await talking();
      const long = text("é".repeat(MOST_MESSAGE_BYTES / 2));
      await box.record({ turns: [reportOf(turn, { content: [text("short"), long] })] });
      const ended = await talk.ended(begun);
      const content = ended.type === "answered" ? ended.message.content : [];
      expect(content).toHaveLength(3);
      expect(content[0]).toEqual(text("short"));
      expect(content[2]).toEqual(text("[the rest of this message is too long to be kept]"));
      expect(JSON.stringify(content).length).toBeLessThan(MOST_MESSAGE_BYTES);
    });

    it("give an agent the newest mebibyte of what was said, and clients all of it, page by page", async () => {
      const { id, box } = await running();
      const session = await talk.open(id);
      for (let i = 0; i < 5; i++) {
        await talk.say(session.id, `${i}${"x".repeat(200_000)}`);
        await box.record({ turns: [reportOf(await turnIn(box), { content: [text(`${i}${"y".repeat(100_000)}`)] })] });
      }
      await talk.say(session.id, "last");
      const history = await box.history(session.id);
      expect(history.map(({ content: [first] }) => (first?.type === "text" ? first.text.slice(0, 2) : ""))).toEqual([
        "1y",
        "2x",
        "2y",
        "3x",
        "3y",
        "4x",
        "4y",
      ]);
      const { sessions } = plane.sandboxes;
      const now = await talk.get(session.id);
      const newest = await sessions.messages(now, { limit: 3 });
      expect(newest.map(({ seq }) => seq)).toEqual([9, 10, 11]);
      const older = await sessions.messages(now, { limit: 3, before: newest[0]?.id });
      expect(older.map(({ seq }) => seq)).toEqual([6, 7, 8]);
      await expect(sessions.messages(now, { limit: 3, before: session.id })).rejects.toMatchObject({
        code: "invalid_parameter",
      });
    });

    describe("end their turns", () => {
      it.each([
        ["is stopped", "stopped", "the sandbox is stopped"],
        ["fails", "failed", "the sandbox is failed: its machine ended"],
      ] as const)("when their sandbox %s", async (_, to, why) => {
        const { id, box, session, begun, turn } = await talking();
        await box.record({ events: [delta(turn, "half")] });
        if (to === "stopped") await plane.act(id, "stop");
        expect(await turnsIn(box)).toHaveLength(1);
        await box.record({
          events: [delta(turn, " said")],
          state: { to, ...(to === "failed" && { reason: "its machine ended" }) },
        });
        expect(await talk.ended(begun)).toMatchObject({ message: { content: [text("half said")], error: why } });
        expect(await talk.get(session.id)).toMatchObject({ state: "failed" });
        expect(await turnsIn(box)).toEqual([]);
        expect(await lastEvent(id)).toMatchObject({ type: "session_failed", data: { error: why } });
        // A report that comes late changes nothing.
        await box.record({ turns: [reportOf(turn, { content: [text("late")] })] });
        expect(await talk.messages(session.id)).toHaveLength(2);
      });

      it("when their node is lost, whoever notices", async () => {
        const { box, session, begun, turn } = await talking({ persistence: "persistent" });
        await box.record({ events: [delta(turn, "half")] });
        await loseNodes();
        const lost = { content: [text("half")], error: "its node was lost" };
        expect(await talk.ended(begun)).toMatchObject({ message: lost });
        const [hold] = await plane.claim(NODE, 1);
        if (hold === undefined) throw new Error("the node did not get it again");
        const again = new LeasedBox(plane, hold);
        expect(await turnsIn(again)).toEqual([]);
        await again.say("creating");
        await again.say("running");
        const second = await talk.say(session.id, "still there?");
        // The next holder finds it before the duty does.
        opened.clock.advance(LEASE_MS + 1);
        await plane.fabric.sweep();
        const [next] = await plane.claim(NODE, 1);
        if (next === undefined) throw new Error("the node did not get it again");
        expect(await turnsIn(new LeasedBox(plane, next))).toEqual([]);
        expect(await talk.ended(second)).toMatchObject({ message: { content: [], error: "its node was lost" } });
      });

      it("when their sandbox is deleted, and they with it", async () => {
        const { id, box, begun } = await talking();
        const waiting = talk.ended(begun);
        await plane.act(id, "delete");
        expect(await waiting).toMatchObject({ message: { error: "the sandbox was deleted" } });
        expect(await lastEvent(id)).toMatchObject({ type: "session_failed" });
        expect(await turnsIn(box)).toEqual([]);
        await box.record({ removed: true });
        expect(await talk.ended(begun)).toEqual({ type: "gone" });
        for (const table of ["sandbox_sessions", "sandbox_messages"]) {
          expect(await plane.records.rows(`SELECT 1 AS one FROM ${table}`)).toEqual([]);
        }
      });
    });

    it("tell of the end in every process that waits for it, and of none to one that leaves", async () => {
      const { box, begun, turn } = await talking();
      const other = controlPlaneOn(opened, { seed: 2 });
      const waiting = [talk.ended(begun), new Talk(other).ended(begun)];
      const leaving = new AbortController();
      const left = plane.sandboxes.sessions.ended(begun, { signal: leaving.signal });
      leaving.abort();
      expect(await left).toBeUndefined();
      await box.record({ turns: [reportOf(turn, { content: [text("done")] })] });
      for (const ended of await Promise.all(waiting))
        expect(ended).toMatchObject({ message: { content: [text("done")] } });
      other.fabric.close();
    });

    it("are written to the audit log, without what was said", async () => {
      const { id, session } = await talking();
      await talk.interrupt(session.id);
      const [interrupt, message] = await plane.audit.list({ limit: 2 });
      expect(interrupt).toMatchObject({ actor: "ann", action: "sandbox.interrupt", target: id });
      expect(message).toMatchObject({ actor: "ann", action: "sandbox.message", target: id });
      expect(JSON.stringify(message)).toContain(session.id);
      expect(JSON.stringify(message)).not.toContain("hello");
      expect(BY_ANN.origin.caller.subject).toBe("ann");
    });

    it("never stay without an answer, whatever happens to their sandbox, in whichever order", async () => {
      // A database in memory takes many more in the same time.
      const seeds = name === "sqlite" ? 40 : 2;
      let answered = 0;
      const patient = controlPlaneOn(opened, { seed: 2, limits: { pendingTimeoutMs: 1e9 } });
      const first = drawnSeed();
      for (let seed = first; seed < first + seeds; seed++) {
        for (const persistence of ["ephemeral", "persistent"] as const) {
          answered += await walkSessions({ plane: patient, clock: opened.clock, persistence, seed, steps: 60 });
        }
      }
      patient.fabric.close();
      // Of the steps that are drawn some are messages: few in one walk, so that a few walks may have hardly any.
      expect(answered).toBeGreaterThan(seeds);
    });
  });
}
