import { describe, expect, test } from "vitest";
import type { Catalog, FlushCommit, FlushOutcome } from "../catalog/catalog.ts";
import { ManualClock } from "../core/clock.ts";
import { createMetrics } from "../core/metrics.ts";
import { Committer } from "./committer.ts";

type Commit = { tables: number[]; finish: (outcomes: FlushOutcome[]) => void; fail: (error: Error) => void };

function setUp(maxExtents = 128) {
  const clock = new ManualClock();
  const commits: Commit[] = [];
  const catalog = {
    commit: (flushes: readonly FlushCommit[]) =>
      new Promise<FlushOutcome[]>((resolve, reject) => {
        commits.push({ tables: flushes.map(({ tableId }) => tableId), finish: resolve, fail: reject });
      }),
  } as unknown as Catalog;
  const committer = new Committer({ catalog, clock, metrics: createMetrics(), windowMs: 5, maxExtents });
  return { clock, commits, committer };
}

function flushOf(tableId: number, extents = 1): FlushCommit {
  return { tableId, schemaVersion: 1, newColumns: [], extents: Array.from({ length: extents }), ledger: [] } as never;
}

const done: FlushOutcome = { kind: "committed", snapshot: { id: 1, committedAtMs: 0 }, schemaVersion: 1 };
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("Committer", () => {
  test("commits at once when nothing else approaches", () => {
    const { committer, commits } = setUp();
    committer.approach();
    void committer.commit(flushOf(1));
    expect(commits).toHaveLength(0);
    committer.leave();
    expect(commits.map(({ tables }) => tables)).toEqual([[1]]);
  });

  test("waits for an approaching flush, which shares the snapshot", () => {
    const { committer, commits } = setUp();
    committer.approach();
    committer.approach();
    void committer.commit(flushOf(1));
    committer.leave();
    expect(commits).toHaveLength(0);
    void committer.commit(flushOf(2));
    committer.leave();
    expect(commits.map(({ tables }) => tables)).toEqual([[1, 2]]);
  });

  test("waits no longer than the window", () => {
    const { committer, commits, clock } = setUp();
    committer.approach();
    committer.approach();
    void committer.commit(flushOf(1));
    committer.leave();
    clock.advance(4);
    expect(commits).toHaveLength(0);
    clock.advance(1);
    expect(commits).toHaveLength(1);
  });

  test("gathers while a commit runs, and splits at the most extents of a snapshot", async () => {
    const { committer, commits } = setUp(3);
    void committer.commit(flushOf(1));
    for (const table of [2, 3, 4]) void committer.commit(flushOf(table, 2));
    commits[0]?.finish([done]);
    await settle();
    expect(commits.map(({ tables }) => tables)).toEqual([[1], [2]]);
  });

  test("a failed commit fails its own flushes and no later one", async () => {
    const { committer, commits } = setUp();
    const first = committer.commit(flushOf(1));
    const second = committer.commit(flushOf(2));
    commits[0]?.fail(new Error("disk"));
    await expect(first).rejects.toThrow("disk");
    await settle();
    commits[1]?.finish([done]);
    await expect(second).resolves.toEqual(done);
  });
});
