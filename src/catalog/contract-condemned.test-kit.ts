import { expect, it } from "vitest";
import { aFlush, aLedgerEntry, anExtent, column, type Subject } from "./contract-fixtures.test-kit.ts";
import { CondemnedExtent } from "./refusals.ts";

/** An id as it is made at the time. */
function idAt(ms: number, n = 0): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(n).padStart(12, "0")}`;
}

export function condemnedContract({ catalog, clock, table }: Subject): void {
  it("condemns ids that no extent has, alive or dead", async () => {
    const events = await table();
    const [alive, dead, lost] = [anExtent(), anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents: [alive, dead] })]);
    await catalog().endExtents(events.id, [dead.id]);
    const ids = [alive.id, lost.id, dead.id];
    expect(await catalog().condemnExtents(ids)).toEqual([lost.id]);
    // Asked again after a crash, the answer is the same.
    expect(await catalog().condemnExtents(ids)).toEqual([lost.id]);
    expect(await catalog().condemnExtents([])).toEqual([]);
  });

  it("lets no commit bring in a condemned extent, and stores nothing of one that tries", async () => {
    const events = await table();
    const [lost, other, fine] = [anExtent(), anExtent(), anExtent()];
    await catalog().condemnExtents([lost.id, other.id]);
    const committing = catalog().commit([
      aFlush(events, { extents: [fine], newColumns: [column("fresh")] }),
      aFlush(events, { extents: [lost], ledger: [aLedgerEntry("k")], staged: "s" }),
      aFlush(events, { extents: [other] }),
    ]);
    await expect(committing).rejects.toBeInstanceOf(CondemnedExtent);
    await expect(committing).rejects.toMatchObject({ extentIds: [lost.id, other.id] });
    expect((await catalog().head()).id).toBe(0);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toBeUndefined();
    expect(await catalog().committedStaged(["s"])).toEqual([]);
    expect(await catalog().table("default", "events")).toEqual(events);
    // Without them it goes through.
    expect(await catalog().commit([aFlush(events, { extents: [fine] })])).toMatchObject([{ kind: "committed" }]);
  });

  it("lets no merge bring in a condemned extent", async () => {
    const events = await table();
    const [input, output] = [anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents: [input] })]);
    await catalog().condemnExtents([output.id]);
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
    await catalog().condemnExtents([then, late, early, ...many]);
    expect(await catalog().sweepCondemned(0, 10)).toBe(0);
    expect(await catalog().sweepCondemned(timeMs, 1)).toBe(1);
    const events = await table();
    const bring = (id: string) => catalog().commit([aFlush(events, { extents: [anExtent({ id })] })]);
    expect(await bring(early)).toMatchObject([{ kind: "committed" }]);
    await expect(bring(late)).rejects.toBeInstanceOf(CondemnedExtent);
    expect(await catalog().sweepCondemned(timeMs - 0.5, 4_300)).toBe(4_300);
    expect(await catalog().sweepCondemned(timeMs - 0.5, 4_300)).toBe(201);
    expect(await bring(late)).toMatchObject([{ kind: "committed" }]);
    await expect(bring(then)).rejects.toBeInstanceOf(CondemnedExtent);
    expect(await catalog().sweepCondemned(2 ** 60, 10)).toBe(1);
    expect(await bring(then)).toMatchObject([{ kind: "committed" }]);
  });

  it("answers a flush that is sent back without a look at its extents", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    const lost = anExtent();
    await catalog().condemnExtents([lost.id]);
    const flush = aFlush(events, { extents: [lost], ledger: [aLedgerEntry("k")] });
    expect(await catalog().commit([flush])).toMatchObject([{ kind: "key_conflict" }]);
  });

  it("decides races: an id is either an extent's or condemned", async () => {
    const events = await table();
    const extents = Array.from({ length: 40 }, () => anExtent());
    const outcomes = await Promise.all(
      extents.map(async (extent) => {
        const condemning = catalog().condemnExtents([extent.id]);
        const committing = catalog().commit([aFlush(events, { extents: [extent] })]);
        const [condemned, committed] = await Promise.allSettled([condemning, committing]);
        return { condemned: condemned.status === "fulfilled" && condemned.value.length === 1, committed };
      }),
    );
    for (const { condemned, committed } of outcomes) {
      expect(committed.status).toBe(condemned ? "rejected" : "fulfilled");
    }
    const { extents: alive } = await catalog().tableStats(events.id);
    expect(alive).toBe(outcomes.filter(({ condemned }) => !condemned).length);
  });
}
