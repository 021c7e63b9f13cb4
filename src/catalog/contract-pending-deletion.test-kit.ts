import { expect, it } from "vitest";
import { aFlush, aLedgerEntry, anExtent, column, type Subject } from "./contract-fixtures.test-kit.ts";
import { ExtentPendingDeletion } from "./refusals.ts";

/** An id as it is made at the time. */
function idAt(ms: number, n = 0): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(n).padStart(12, "0")}`;
}

export function pendingDeletionContract({ catalog, clock, table }: Subject): void {
  it("marks ids that no extent has, alive or dead", async () => {
    const events = await table();
    const [alive, dead, lost] = [anExtent(), anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents: [alive, dead] })]);
    await catalog().endExtents(events.id, [dead.id]);
    const ids = [alive.id, lost.id, dead.id];
    expect(await catalog().markPendingDeletion(ids)).toEqual([lost.id]);
    // Asked again after a crash, the answer is the same.
    expect(await catalog().markPendingDeletion(ids)).toEqual([lost.id]);
    expect(await catalog().markPendingDeletion([])).toEqual([]);
  });

  it("lets no commit bring in an extent that is pending deletion, and stores nothing of one that tries", async () => {
    const events = await table();
    const [lost, other, fine] = [anExtent(), anExtent(), anExtent()];
    await catalog().markPendingDeletion([lost.id, other.id]);
    const committing = catalog().commit([
      aFlush(events, { extents: [fine], newColumns: [column("fresh")] }),
      aFlush(events, { extents: [lost], ledger: [aLedgerEntry("k")], staged: "s" }),
      aFlush(events, { extents: [other] }),
    ]);
    await expect(committing).rejects.toBeInstanceOf(ExtentPendingDeletion);
    await expect(committing).rejects.toMatchObject({ extentIds: [lost.id, other.id] });
    expect((await catalog().head()).id).toBe(0);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toBeUndefined();
    expect(await catalog().committedStaged(["s"])).toEqual([]);
    expect(await catalog().table("default", "events")).toEqual(events);
    // Without them it goes through.
    expect(await catalog().commit([aFlush(events, { extents: [fine] })])).toMatchObject([{ kind: "committed" }]);
  });

  it("lets no merge bring in an extent that is pending deletion", async () => {
    const events = await table();
    const [input, output] = [anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents: [input] })]);
    await catalog().markPendingDeletion([output.id]);
    const merging = catalog().mergeExtents({
      tableId: events.id,
      schemaVersion: 1,
      inputs: [input.id],
      outputs: [output],
    });
    await expect(merging).rejects.toMatchObject({ extentIds: [output.id] });
    expect((await catalog().extents(events.id, 1)).map(({ id }) => id)).toEqual([input.id]);
  });

  it("forgets ids that were made strictly before a time, the oldest first and a few at a time", async () => {
    const timeMs = clock().nowMs();
    const [early, late, then] = [idAt(0), idAt(timeMs - 1, 7), idAt(timeMs)];
    const many = Array.from({ length: 4_500 }, (_, n) => idAt(1_000, n));
    await catalog().markPendingDeletion([then, late, early, ...many]);
    expect(await catalog().sweepPendingDeletions(0, 10)).toBe(0);
    expect(await catalog().sweepPendingDeletions(timeMs, 1)).toBe(1);
    const events = await table();
    const bring = (id: string) => catalog().commit([aFlush(events, { extents: [anExtent({ id })] })]);
    expect(await bring(early)).toMatchObject([{ kind: "committed" }]);
    await expect(bring(late)).rejects.toBeInstanceOf(ExtentPendingDeletion);
    expect(await catalog().sweepPendingDeletions(timeMs - 0.5, 4_300)).toBe(4_300);
    expect(await catalog().sweepPendingDeletions(timeMs - 0.5, 4_300)).toBe(201);
    expect(await bring(late)).toMatchObject([{ kind: "committed" }]);
    await expect(bring(then)).rejects.toBeInstanceOf(ExtentPendingDeletion);
    expect(await catalog().sweepPendingDeletions(2 ** 60, 10)).toBe(1);
    expect(await bring(then)).toMatchObject([{ kind: "committed" }]);
  });

  it("answers a flush that is sent back without a look at its extents", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    const lost = anExtent();
    await catalog().markPendingDeletion([lost.id]);
    const flush = aFlush(events, { extents: [lost], ledger: [aLedgerEntry("k")] });
    expect(await catalog().commit([flush])).toMatchObject([{ kind: "key_conflict" }]);
  });

  it("decides races: an id is either an extent's or pending deletion", async () => {
    const events = await table();
    const extents = Array.from({ length: 40 }, () => anExtent());
    const outcomes = await Promise.all(
      extents.map(async (extent) => {
        const marking = catalog().markPendingDeletion([extent.id]);
        const committing = catalog().commit([aFlush(events, { extents: [extent] })]);
        const [marked, committed] = await Promise.allSettled([marking, committing]);
        return { marked: marked.status === "fulfilled" && marked.value.length === 1, committed };
      }),
    );
    for (const { marked, committed } of outcomes) {
      expect(committed.status).toBe(marked ? "rejected" : "fulfilled");
    }
    const { extents: alive } = await catalog().tableStats(events.id);
    expect(alive).toBe(outcomes.filter(({ marked }) => !marked).length);
  });
}
