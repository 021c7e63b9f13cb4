import { expect, it } from "vitest";
import type { Catalog, Lease } from "./catalog.ts";
import { aFlush, anExtent, committed, type Subject } from "./contract-fixtures.test-kit.ts";
import { LeaseLost } from "./refusals.ts";

const TTL_MS = 30_000;

/** The lease, which must be free. */
async function acquired(catalog: Catalog, name: string, holder: string): Promise<Lease> {
  const lease = await catalog.acquireLease(name, holder, TTL_MS);
  if (lease === undefined) throw new Error(`the lease ${name} is held by somebody else`);
  return lease;
}

async function thrownBy(call: () => Promise<unknown>): Promise<unknown> {
  return await call().then(
    () => undefined,
    (error: unknown) => error,
  );
}

export function leasesContract({ catalog, clock, table }: Subject): void {
  it("gives a lease to one holder at a time, which renews it", async () => {
    const first = await acquired(catalog(), "duty", "a");
    expect(first).toEqual({ name: "duty", holder: "a", fence: 1 });
    expect(await catalog().acquireLease("duty", "b", TTL_MS)).toBeUndefined();
    clock().advance(TTL_MS - 1);
    expect(await catalog().acquireLease("duty", "a", TTL_MS)).toEqual(first);
    clock().advance(TTL_MS - 1);
    expect(await catalog().acquireLease("duty", "b", TTL_MS)).toBeUndefined();
    clock().advance(1);
    expect(await catalog().acquireLease("duty", "b", TTL_MS)).toEqual({ name: "duty", holder: "b", fence: 2 });
    expect(await catalog().acquireLease("duty", "a", TTL_MS)).toBeUndefined();
  });

  it("tells its time", async () => {
    expect(await catalog().nowMs()).toBe(clock().nowMs());
  });

  it("keeps leases of other names apart", async () => {
    await acquired(catalog(), "duty", "a");
    expect(await acquired(catalog(), "Duty", "b")).toEqual({ name: "Duty", holder: "b", fence: 1 });
  });

  it("gives one of many that ask at once", async () => {
    const asked = Array.from({ length: 20 }, (_, i) => catalog().acquireLease("duty", `holder ${i}`, TTL_MS));
    expect((await Promise.all(asked)).filter((lease) => lease !== undefined)).toHaveLength(1);
  });

  it("raises the fence when a lease is taken again after its end, by whomever", async () => {
    await acquired(catalog(), "duty", "a");
    clock().advance(TTL_MS);
    expect((await acquired(catalog(), "duty", "a")).fence).toBe(2);
    await catalog().releaseLease(await acquired(catalog(), "duty", "a"));
    expect((await acquired(catalog(), "duty", "a")).fence).toBe(3);
  });

  it("takes a lease back early, but not one that somebody else has by now", async () => {
    const lost = await acquired(catalog(), "duty", "a");
    clock().advance(TTL_MS);
    const held = await acquired(catalog(), "duty", "b");
    await catalog().releaseLease(lost);
    await catalog().releaseLease({ ...held, fence: held.fence - 1 });
    await catalog().releaseLease({ name: "unknown", holder: "b", fence: 1 });
    expect(await catalog().acquireLease("duty", "a", TTL_MS)).toBeUndefined();
    await catalog().releaseLease(held);
    await catalog().releaseLease(held);
    expect((await acquired(catalog(), "duty", "a")).fence).toBe(held.fence + 1);
  });

  it("lets every write with a lease through while it is held, and none after", async () => {
    const events = await table();
    const lease = await acquired(catalog(), "duty", "a");
    const [one, two, three] = [anExtent(), anExtent(), anExtent()];
    const [outcome] = await catalog().commit([aFlush(events, { extents: [one, two, three] })], lease);
    expect(committed(outcome).snapshot.id).toBe(1);
    expect(await catalog().endExtents(events.id, [one.id], lease)).toHaveLength(1);
    expect((await catalog().expireSnapshots(2, lease)).id).toBe(2);
    await catalog().forgetExtents([one.id], lease);
    const merge = { tableId: events.id, schemaVersion: 1, inputs: [two.id], outputs: [anExtent()] };
    expect(await catalog().mergeExtents({ ...merge, lease })).toMatchObject({ id: 3 });

    const writes = (late: Lease): [string, () => Promise<unknown>][] => [
      ["commit", () => catalog().commit([aFlush(events)], late)],
      ["endExtents", () => catalog().endExtents(events.id, [three.id], late)],
      ["expireSnapshots", () => catalog().expireSnapshots(3, late)],
      ["forgetExtents", () => catalog().forgetExtents([two.id], late)],
      ["mergeExtents", () => catalog().mergeExtents({ ...merge, inputs: [three.id], lease: late })],
    ];
    clock().advance(TTL_MS);
    for (const [name, write] of writes(lease))
      expect(await thrownBy(write), `with a lost lease: ${name}`).toBeInstanceOf(LeaseLost);
    await acquired(catalog(), "duty", "a");
    for (const [name, write] of writes(lease)) {
      expect(await thrownBy(write), `with a lost lease: ${name}`).toMatchObject({ lease: "duty" });
    }
    expect(await catalog().head()).toMatchObject({ id: 3 });
    expect(await catalog().oldestSnapshot()).toMatchObject({ id: 2 });
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toHaveLength(1);
    expect(await catalog().tableStats(events.id)).toMatchObject({ extents: 2 });
  });
}
