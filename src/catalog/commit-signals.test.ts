import { expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { localSignals } from "../db/signals.ts";
import type { FlushCommit, FlushOutcome } from "./catalog.ts";
import { CommitSignals, onCommits } from "./commit-signals.ts";

const flushOf = (tableId: number): FlushCommit => ({
  tableId,
  schemaVersion: 1,
  newColumns: [],
  extents: [],
  ledger: [],
});
const COMMITTED: FlushOutcome = { kind: "committed", snapshot: { id: 1, committedAtMs: 0 }, schemaVersion: 1 };

function aNode(gapMs: number) {
  const clock = new ManualClock();
  const signals = localSignals();
  const heard: (number[] | undefined)[] = [];
  const stop = onCommits(signals, (tables) => heard.push(tables && [...tables]));
  const commits = new CommitSignals(signals, clock, gapMs);
  const commit = (...tableIds: number[]) =>
    commits.committed(
      tableIds.map(flushOf),
      tableIds.map(() => COMMITTED),
    );
  return { clock, signals, heard, stop, commits, commit };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("tell of the tables that got rows, and of no others", async () => {
  const { heard, commits, commit, stop } = aNode(0);
  commits.committed([flushOf(1), flushOf(2), flushOf(1)], [COMMITTED, { kind: "schema_conflict" }, COMMITTED]);
  await settled();
  commits.committed([flushOf(3)], [{ kind: "replayed", snapshotId: 1 }]);
  commit(4);
  await settled();
  stop();
  commit(5);
  await settled();
  expect(heard).toEqual([[1], [4]]);
});

test("of many commits one is sent at a time, with a pause between", async () => {
  const { clock, heard, commit } = aNode(20);
  for (let i = 1; i <= 5; i++) commit(i % 2 === 0 ? 2 : i);
  await settled();
  expect(heard).toEqual([[1]]);
  clock.advance(19);
  await settled();
  expect(heard).toHaveLength(1);
  clock.advance(1);
  await settled();
  expect(heard).toEqual([[1], [2, 3, 5]]);
});

test("said in the way of a newer version may be of any table", async () => {
  const { signals, heard } = aNode(0);
  await signals.send("catalog_commits", "1 2 v2:x");
  expect(heard).toEqual([undefined]);
});

test("of too many tables, and where signals were lost, any may have rows", async () => {
  const { heard, commit } = aNode(0);
  commit(...Array.from({ length: 300 }, (_, i) => i));
  await settled();
  expect(heard).toEqual([undefined]);
});

test("a signal that cannot be sent keeps nobody from the next", async () => {
  const clock = new ManualClock();
  const sent: string[] = [];
  const send = async (_topic: string, payload: string) => {
    sent.push(payload);
    if (sent.length === 1) throw new Error("away");
  };
  const commits = new CommitSignals({ send, listen: () => () => {} }, clock, 20);
  commits.committed([flushOf(1)], [COMMITTED]);
  await settled();
  clock.advance(20);
  commits.committed([flushOf(2)], [COMMITTED]);
  await settled();
  expect(sent).toEqual(["1", "2"]);
});
