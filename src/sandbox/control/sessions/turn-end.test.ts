import { expect, it } from "vitest";
import type { RecordRow } from "../../../catalog/records.ts";
import { localSignals } from "../../../catalog/signals.ts";
import { ManualClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { SandboxSignals } from "../signals.ts";
import { turnEnd } from "./turn-end.ts";

const TURN = { sessionId: "s", turnId: "t", answerSeq: 2, eventSeq: 0 };
const ANSWER = { id: "m", session_id: "s", seq: 2, role: "assistant", content: "[]", created_at_ms: 1 };

/** One who waits, and the times at which he has looked for the answer. */
function waiting({ isNew }: { isNew: boolean }) {
  const clock = new ManualClock(0);
  const signals = new SandboxSignals({ signals: localSignals(), log: silentLog });
  const looks: number[] = [];
  const stored: RecordRow[] = [];
  const rows = async (sql: string) => {
    if (!sql.includes("FROM sandbox_messages")) return [{ id: "s" }];
    looks.push(clock.nowMs());
    return stored;
  };
  const leaving = new AbortController();
  const ended = turnEnd({ records: { rows }, signals, clock }, TURN, { signal: leaving.signal, isNew });
  const pass = async (ms: number) => {
    await new Promise(setImmediate);
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  const answer = () => void stored.push(ANSWER);
  return { signals, looks, ended, pass, answer, leave: () => leaving.abort() };
}

it("looks for the end of a turn at once, and now and then", async () => {
  const { looks, ended, pass, answer } = waiting({ isNew: false });
  for (const ms of [1_000, 1_000, 1_000]) await pass(ms);
  expect(looks).toEqual([0, 2_000]);
  answer();
  await pass(1_000);
  expect(looks).toEqual([0, 2_000, 4_000]);
  expect(await ended).toMatchObject({ type: "answered", message: { id: "m" } });
});

it("looks for the end of a turn that was begun just now when it is told, or a little later", async () => {
  const told = waiting({ isNew: true });
  await told.pass(20);
  expect(told.looks).toEqual([]);
  told.answer();
  told.signals.turnEnded("another");
  await told.pass(0);
  expect(told.looks).toEqual([]);
  told.signals.turnEnded("s");
  expect(await told.ended).toMatchObject({ type: "answered" });
  expect(told.looks).toEqual([20]);

  const missed = waiting({ isNew: true });
  missed.answer();
  await missed.pass(50);
  expect(await missed.ended).toMatchObject({ type: "answered" });
  expect(missed.looks).toEqual([50]);

  const left = waiting({ isNew: true });
  left.leave();
  expect(await left.ended).toBeUndefined();
  expect(left.looks).toEqual([]);
});
