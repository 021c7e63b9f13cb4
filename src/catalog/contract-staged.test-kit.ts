import { expect, it } from "vitest";
import {
  aFlush,
  aLedgerEntry,
  anExtent,
  column,
  committed,
  failureOf,
  type Subject,
} from "./contract-fixtures.test-kit.ts";

export function stagedContract({ catalog, clock, table }: Subject): void {
  it("commits what comes from one staged object once, however often it is tried", async () => {
    const events = await table();
    const flush = () => aFlush(events, { staged: "s1", newColumns: [column("fresh")], ledger: [aLedgerEntry("k")] });
    const [first, second] = await catalog().commit([flush(), flush()]);
    expect(committed(first).snapshot.id).toBe(1);
    expect(second).toEqual({ kind: "replayed", snapshotId: 1 });
    // A retry has the extents that are in already: nobody looks at them.
    const extents = await catalog().extents(events.id, 1);
    const retries = await Promise.all(
      [flush(), aFlush(events, { staged: "s1", extents })].map((retry) => catalog().commit([retry])),
    );
    expect(retries.flat()).toEqual([second, second]);
    expect((await catalog().head()).id).toBe(1);
    expect(await catalog().tableStats(events.id)).toMatchObject({ extents: 1 });
  });

  it("records nothing of a flush that is sent back", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    const outcomes = await catalog().commit([
      aFlush(events, { staged: "key", ledger: [aLedgerEntry("k")] }),
      aFlush(events, { staged: "schema", newColumns: [column("body", "long")] }),
      aFlush(events, { staged: "fine" }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["key_conflict", "schema_conflict", "committed"]);
    expect(await catalog().committedStaged(["key", "schema", "fine", "unknown"])).toEqual(["fine"]);
    expect(await catalog().committedStaged([])).toEqual([]);
    // A flush whose rows are all in already still ends its object.
    const [empty] = await catalog().commit([aFlush(events, { staged: "key", extents: [] })]);
    expect(committed(empty).snapshot.id).toBe(3);
    expect(await catalog().committedStaged(["key"])).toEqual(["key"]);
  });

  it("records nothing of a commit that fails", async () => {
    const events = await table();
    const broken = [aFlush(events, { staged: "s" }), aFlush(events, { extents: [anExtent({ rows: 0 })] })];
    await expect(catalog().commit(broken)).rejects.toThrow("extentIsWellFormed");
    expect(await catalog().committedStaged(["s"])).toEqual([]);
    for (const staged of ["", "a\0b", "\ud800"]) {
      expect(await failureOf(catalog().commit([aFlush(events, { staged })]))).toMatch(/staged object id/);
    }
  });

  it("forgets those committed strictly before a time", async () => {
    const events = await table();
    const stage = (staged: string) => aFlush(events, { staged, extents: [] });
    await catalog().commit(Array.from({ length: 4_500 }, (_, i) => stage(`old ${i}`)));
    const oldMs = clock().nowMs();
    clock().advance(1_000);
    await catalog().commit([stage("young")]);
    expect(await catalog().sweepStaged(oldMs)).toBe(0);
    expect(await catalog().sweepStaged(oldMs + 1)).toBe(4_500);
    expect(await catalog().committedStaged(["old 0", "young"])).toEqual(["young"]);
    expect(await catalog().sweepStaged(oldMs + 1_000)).toBe(0);
  });
}
