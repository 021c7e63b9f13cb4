import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import type { RecordStore } from "../db/records.ts";
import { ANONYMOUS } from "../auth/caller.ts";
import { ManualClock } from "../core/clock.ts";
import { createLog } from "../core/log.ts";
import { fabricOn } from "./contract.test-kit.ts";
import type { Fabric } from "./fabric.ts";
import { JobEvents, type JobEvent } from "./job-events.ts";
import { JobLogs } from "./job-logs.ts";
import { holdOf, type Hold } from "./job.ts";

let clock: ManualClock;
let fabric: Fabric;
let logs: JobLogs;
let events: JobEvents;
let close: () => Promise<void>;
/** Statements that were asked, and whether they fail. */
let asked: string[];
let isBroken: boolean;
let logged: string[];

beforeEach(() => {
  clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  [asked, logged, isBroken] = [[], [], false];
  const records: RecordStore = {
    rows: (sql, values) => {
      asked.push(sql);
      return isBroken ? Promise.reject(new Error("the catalog is away")) : catalog.records.rows(sql, values);
    },
    write: (statement) => catalog.records.write(statement),
    transact: (statements) => catalog.records.transact(statements),
  };
  fabric = fabricOn({ catalog, clock });
  logs = new JobLogs(catalog.records);
  const log = createLog("trace", { write: (line) => void logged.push(line) });
  events = new JobEvents({ records, logs: new JobLogs(records), clock, log });
  close = () => catalog.close();
});
afterEach(async () => {
  fabric.close();
  events.close();
  await close();
});

async function running(): Promise<Hold> {
  await fabric.enqueue({ kind: "test.task", payload: { n: 1 } }, ANONYMOUS);
  const claim = {
    kinds: new Set(["test.task"]),
    holder: "w",
    workerId: undefined,
    jobsOf: "everybody" as const,
    labels: {},
    max: 1,
    waitMs: 0,
  };
  const [job] = await fabric.claim(claim);
  if (job === undefined) throw new Error("there was no job to claim");
  return holdOf(job);
}

/** Takes what comes until the watcher ends. */
function taking(watcher: AsyncIterableIterator<JobEvent>): JobEvent[] {
  const taken: JobEvent[] = [];
  void (async () => {
    for await (const event of watcher) taken.push(event);
  })();
  return taken;
}

/** Lets what is under way come to its end. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

async function nextLook(): Promise<void> {
  clock.advance(1_000);
  await settled();
}

describe("those who watch jobs", () => {
  it("share one statement a second while nothing happens, and what is read of a job that changed", async () => {
    const holds = [await running(), await running(), await running()];
    const taken = Array.from({ length: 60 }, (_, i) => taking(events.watch(holds[i % 3]?.jobId ?? "", 0)));
    await settled();
    await nextLook();
    expect(taken.every(([first, ...more]) => first?.type === "state" && more.length === 0)).toBe(true);
    for (let i = 0; i < 3; i++) {
      asked = [];
      await nextLook();
      expect(asked).toHaveLength(1);
    }
    const [hold] = holds;
    if (hold === undefined) throw new Error("there is no job");
    await logs.append(hold, [{ level: "info", message: "hello" }]);
    asked = [];
    await nextLook();
    // All that are watched, the job that changed, and its line.
    expect(asked).toHaveLength(3);
    expect(taken.map((all) => all.length)).toEqual(Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? 2 : 1)));
  });

  it("are not read for while they take nothing, and miss nothing by it", async () => {
    const hold = await running();
    const watcher = events.watch(hold.jobId, 0);
    await settled();
    asked = [];
    for (let i = 1; i <= 3; i++) {
      await logs.append(hold, [{ level: "info", message: `${i}` }]);
      await nextLook();
    }
    expect(asked).toEqual([]);
    const taken = taking(watcher);
    await nextLook();
    await fabric.complete(hold, null);
    await nextLook();
    expect(taken.map((event) => (event.type === "log" ? event.line.message : event.type))).toEqual(
      "state 1 2 3 state end".split(" "),
    );
  });

  it("go on when the catalog is back", async () => {
    const hold = await running();
    isBroken = true;
    const taken = taking(events.watch(hold.jobId, 0));
    await settled();
    await nextLook();
    expect([taken, asked.length]).toEqual([[], 2]);
    expect(logged.filter((line) => line.includes("the catalog is away"))).toHaveLength(2);
    isBroken = false;
    await nextLook();
    expect(taken).toMatchObject([{ type: "state" }]);
  });

  it("see the end of a job that is forgotten", async () => {
    const hold = await running();
    const taken = taking(events.watch(hold.jobId, 0));
    await settled();
    await fabric.complete(hold, null);
    clock.advance(60_001);
    await fabric.forgetFinished(60_000, 1);
    await settled();
    await nextLook();
    expect(taken.at(-1)).toMatchObject({ type: "end" });
    expect(events.watching).toBe(0);
    asked = [];
    await nextLook();
    expect(asked).toEqual([]);
  });
});
