import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RecordStore } from "../../../catalog/records.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { createLog } from "../../../core/log.ts";
import { SandboxSignals } from "../signals.ts";
import type { Followed, SandboxFollower } from "./follower.ts";
import { SandboxEvents } from "./log.ts";
import { addSandboxRow, appendEvents, line } from "./log.test-kit.ts";
import { createEventRetention } from "./retention.ts";

const ID = "0198a000-0000-7000-8000-000000000001";

let clock: ManualClock;
let records: RecordStore;
let signals: SandboxSignals;
let events: SandboxEvents;
let newProcess: () => SandboxEvents;
let asked: string[];
let isBroken: boolean;
let logged: string[];
let close: () => Promise<void>;

beforeEach(async () => {
  clock = new ManualClock();
  [asked, isBroken, logged] = [[], false, []];
  const { catalog } = openMemoryCatalog(clock);
  records = catalog.records;
  const log = createLog("trace", { write: (text) => void logged.push(text) });
  signals = new SandboxSignals({ signals: catalog.signals, log });
  const watched = {
    rows: (sql: string, values?: Parameters<RecordStore["rows"]>[1]) => {
      asked.push(sql);
      return isBroken ? Promise.reject(new Error("the catalog is away")) : records.rows(sql, values);
    },
  };
  newProcess = () => new SandboxEvents({ records: watched, signals, clock, log });
  events = newProcess();
  close = () => catalog.close();
  await addSandboxRow(records, ID);
});
afterEach(async () => {
  events.close();
  await close();
});

const settled = () => new Promise((resolve) => setImmediate(resolve));
const append = async (...texts: string[]) => {
  await appendEvents(
    records,
    ID,
    texts.map((text) => line(text, clock.nowMs())),
  );
  signals.eventsAdded(ID);
  await settled();
};
/** As many looks as come in that time. */
async function pass(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 2_000) {
    clock.advance(2_000);
    await settled();
  }
}
const many = (count: number, from = 1) => Array.from({ length: count }, (_, i) => `line ${from + i}`);
const retain = (mostEvents: number, maxAgeMs = 3_600_000, quotaBytes = 1e9) =>
  createEventRetention(records, { mostEvents, quotaBytes, maxAgeMs })({ signal: new AbortController().signal });

/** Takes what comes until the reader ends. */
function taking(follower: SandboxFollower): (string | number)[] {
  const taken: (string | number)[] = [];
  void (async () => {
    for await (const item of follower) taken.push(shown(item));
    taken.push("end");
  })();
  return taken;
}
function shown(item: Followed): string | number {
  if (item.type === "event") return item.event.seq;
  return item.type === "lost" ? `lost ${item.nextSeq}` : item.type;
}
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("those who follow a sandbox", () => {
  it("get what comes from then on, from the start, or after an event", async () => {
    await append(...many(3));
    const now = taking(await events.follow(ID, "now"));
    const start = taking(await events.follow(ID, "start"));
    const after = taking(await events.follow(ID, { afterSeq: 2 }));
    await settled();
    expect([now, start, after]).toEqual([[], [1, 2, 3], [3]]);
    await append("four", "five");
    expect([now, start, after]).toEqual([[4, 5], numbers(1, 5), [3, 4, 5]]);
    expect(events.following).toBe(3);
  });

  it("share what is read: one look and one read for an event, and one look every 2 s while nothing happens", async () => {
    const taken = [];
    for (let i = 0; i < 50; i++) taken.push(taking(await events.follow(ID, "now")));
    asked = [];
    await append("one");
    expect(taken.every((one) => one.join() === "1")).toBe(true);
    expect(asked).toHaveLength(2);
    asked = [];
    clock.advance(2_000);
    await settled();
    expect(asked).toHaveLength(1);
  });

  it("find what no signal told of, and come over a catalog that is away", async () => {
    const taken = taking(await events.follow(ID, "now"));
    await appendEvents(records, ID, [line("unsaid")]);
    isBroken = true;
    clock.advance(2_000);
    await settled();
    expect(taken).toEqual([]);
    expect(logged.join()).toContain("the catalog is away");
    isBroken = false;
    clock.advance(2_000);
    await settled();
    expect(taken).toEqual([1]);
  });

  it("catch up page by page over a long past while more comes", async () => {
    await append(...many(1_500));
    const follower = await events.follow(ID, { afterSeq: 0 });
    const taken = taking(follower);
    await append(...many(700, 1_501));
    await expect.poll(() => taken.length).toBe(2_200);
    expect(taken).toEqual(numbers(1, 2_200));
  });

  it("are told of what retention has cut, and of it alone", async () => {
    await append(...many(20));
    await retain(5);
    expect(await records.rows("SELECT first_seq FROM sandboxes")).toEqual([{ first_seq: 16 }]);
    expect(await records.rows("SELECT count(*) AS n, min(seq) AS first FROM sandbox_events")).toEqual([
      { n: 5, first: 16 },
    ]);
    const behind = taking(await events.follow(ID, { afterSeq: 3 }));
    const exact = taking(await events.follow(ID, { afterSeq: 15 }));
    const start = taking(await events.follow(ID, "start"));
    const ahead = taking(await events.follow(ID, { afterSeq: 99 }));
    await settled();
    const fromThere = ["lost 16", ...numbers(16, 20)];
    expect([behind, exact, start]).toEqual([fromThere, numbers(16, 20), fromThere]);
    expect(ahead).toEqual(["lost 21"]);
    clock.advance(3_600_001);
    await retain(5);
    const other = newProcess();
    const empty = taking(await other.follow(ID, { afterSeq: 18 }));
    await settled();
    expect(empty).toEqual(["lost 21"]);
    await append("next");
    expect(empty).toEqual(["lost 21", 21]);
    expect(ahead).toEqual(["lost 21", 21]);
    other.close();
  });

  it("are let go when they take nothing for 20 s, with no more than a page held for them", async () => {
    const slow = await events.follow(ID, "now");
    const quick = taking(await events.follow(ID, "now"));
    await append("one", "two");
    expect(await slow.next()).toMatchObject({ value: { event: { seq: 1 } } });
    await pass(16_000);
    await append(...many(1_000, 3));
    expect(events.following).toBe(2);
    await pass(8_000);
    expect(events.following).toBe(1);
    expect(await slow.next()).toEqual({ done: false, value: { type: "reconnect", afterMs: 1_000 } });
    expect(await slow.next()).toEqual({ done: true, value: undefined });
    expect(quick).toEqual(numbers(1, 1_002));
    const again = taking(await events.follow(ID, { afterSeq: 1 }));
    await expect.poll(() => again.length).toBe(1_001);
    expect(again).toEqual(numbers(2, 1_002));
  });

  it("are let go when they were near and fall far behind", async () => {
    const slow = await events.follow(ID, "now");
    void slow.next();
    await append("one");
    for (let i = 0; i < 21; i++) {
      await append(...many(500));
      if (events.following > 0) await slow.next();
    }
    clock.advance(2_000);
    await settled();
    expect(events.following).toBe(0);
    expect(await slow.next()).toMatchObject({ value: { type: "reconnect" } });
  });

  it("come to the end with the sandbox, also when it was put away at once", async () => {
    const other = "0198a000-0000-7000-8000-000000000002";
    await addSandboxRow(records, other);
    const put = taking(await events.follow(other, "now"));
    const taken = taking(await events.follow(ID, "now"));
    await append("last");
    await records.transact([{ sql: "UPDATE sandboxes SET deleted_at_ms = 1 WHERE id = ?", values: [ID] }]);
    await appendEvents(records, other, [line("unseen")]);
    await records.transact([{ sql: "DELETE FROM sandboxes WHERE id = ?", values: [other] }]);
    clock.advance(2_000);
    await settled();
    expect([taken, put]).toEqual([
      [1, "end"],
      [1, "end"],
    ]);
    expect(events.following).toBe(0);
  });

  it("are asked to come again when the process stops or an hour has passed; nobody new comes in", async () => {
    const first = taking(await events.follow(ID, "now"));
    await pass(3_602_000);
    expect(first).toEqual(["reconnect", "end"]);
    const second = taking(await events.follow(ID, "now"));
    events.close();
    await settled();
    expect(second).toEqual(["reconnect", "end"]);
    await expect(events.follow(ID, "now")).rejects.toMatchObject({ code: "unavailable" });
  });

  it("leave nothing behind", async () => {
    const follower = await events.follow(ID, "now");
    const waiting = follower.next();
    await follower.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(events.following).toBe(0);
    asked = [];
    clock.advance(10_000);
    await settled();
    expect(asked).toEqual([]);
    isBroken = true;
    await expect(events.follow(ID, "now")).rejects.toThrow("away");
    expect(events.following).toBe(0);
  });
});

describe("the lines of a sandbox", () => {
  it("are the newest of them, with the place where what comes begins", async () => {
    await append(...many(5));
    await appendEvents(records, ID, [{ type: "stats", atMs: 1, data: {} }]);
    const { lines, upToSeq } = await events.tail(ID, 2);
    expect(lines.map(({ data }) => data["line"])).toEqual(["line 4", "line 5"]);
    expect(upToSeq).toBe(6);
    expect((await events.tail(ID, 0)).lines).toEqual([]);
  });
});

describe("retention of events", () => {
  it("goes by age to the first event that is young enough, and clears up after sandboxes that are no more", async () => {
    await appendEvents(records, ID, [line("old", 1_000), line("older", 500)]);
    await append("young");
    await appendEvents(records, ID, [line("of a clock that is behind", 2_000)]);
    await records.transact([{ sql: "DELETE FROM sandboxes WHERE id = ?", values: [ID] }]);
    await retain(1);
    expect(await records.rows("SELECT seq FROM sandbox_events ORDER BY seq")).toEqual([{ seq: 3 }, { seq: 4 }]);
    clock.advance(3_600_001);
    await retain(1);
    expect(await records.rows("SELECT seq FROM sandbox_events")).toEqual([]);
  });
});
