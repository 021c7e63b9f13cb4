import { expect, it } from "vitest";
import { LIMITS } from "../core/limits.ts";
import type { FlushCommit } from "./catalog.ts";
import {
  aFlush,
  aLedgerEntry,
  column,
  committed,
  entryOf,
  failureOf,
  type Subject,
} from "./contract-fixtures.test-kit.ts";
import { KEYS_FREE_FOR_MS } from "./flush-checks.ts";

export function ledgerContract({ catalog, clock, table }: Subject): void {
  it("remembers what was acknowledged, per table", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: [] });
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k"), aLedgerEntry("K")] })]);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toEqual(entryOf("k", 1));
    expect((await catalog().lookUpKey(events.id, "K")).entry).toEqual(entryOf("K", 1));
    expect((await catalog().lookUpKey(events.id, "x")).entry).toBeUndefined();
    expect((await catalog().lookUpKey(other.id, "k")).entry).toBeUndefined();
  });

  it("sends back a flush whose keys are taken, naming each, and keeps its neighbours", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("a"), aLedgerEntry("b")] })]);
    const outcomes = await catalog().commit([
      aFlush(events, {
        ledger: ["new", "a", "b"].map((key) => aLedgerEntry(key, 99)),
        newColumns: [column("fresh")],
      }),
      aFlush(events, { ledger: [aLedgerEntry("c")] }),
    ]);
    expect(outcomes[0]).toEqual({ kind: "key_conflict", entries: [entryOf("a", 1), entryOf("b", 1)] });
    expect(committed(outcomes[1]).snapshot.id).toBe(2);
    expect((await catalog().lookUpKey(events.id, "new")).entry).toBeUndefined();
    expect((await catalog().lookUpKey(events.id, "a")).entry).toEqual(entryOf("a", 1));
    expect(await catalog().table("default", "events")).toEqual(events);
    expect(await catalog().extents(events.id, 2)).toHaveLength(2);
  });

  it("lets the first of two flushes with one key win", async () => {
    const events = await table();
    const flush = () => aFlush(events, { ledger: [aLedgerEntry("k")] });
    const [first, second] = await catalog().commit([flush(), flush()]);
    expect(committed(first).snapshot.id).toBe(1);
    expect(second).toEqual({ kind: "key_conflict", entries: [entryOf("k", 1)] });
    const commits = await Promise.all(Array.from({ length: 10 }, () => catalog().commit([flush()])));
    expect(commits.flat()).toEqual(Array.from({ length: 10 }, () => second));
    expect((await catalog().head()).id).toBe(1);
    expect(await catalog().tableStats(events.id)).toMatchObject({ extents: 1 });
  });

  it("forgets a key after 24 hours, and takes it anew", async () => {
    const events = await table();
    const flush = () => aFlush(events, { ledger: [aLedgerEntry("k")] });
    await catalog().commit([flush()]);
    clock().advance(LIMITS.idempotencyTtlMs - 1);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toEqual(entryOf("k", 1));
    expect((await catalog().commit([flush()]))[0]?.kind).toBe("key_conflict");
    clock().advance(1);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toBeUndefined();
    expect(committed((await catalog().commit([flush()]))[0]).snapshot.id).toBe(2);
    expect((await catalog().lookUpKey(events.id, "k")).entry).toEqual(entryOf("k", 2));
  });

  it("judges a flush that was accepted before by the keys as they were then", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("a"), aLedgerEntry("b")] })]);
    const endsAtMs = clock().nowMs() + LIMITS.idempotencyTtlMs;
    clock().advance(2 * LIMITS.idempotencyTtlMs);
    const accepted = (acceptedAtMs: number, keys: string[], more: Partial<FlushCommit> = {}) =>
      aFlush(events, { acceptedAtMs, ledger: keys.map((key) => aLedgerEntry(key)), ...more });
    const outcomes = await catalog().commit([
      accepted(endsAtMs - 1, ["new", "b", "a"], { newColumns: [column("fresh")] }),
      { ...accepted(endsAtMs - 1, ["a"]), tableId: other.id },
      accepted(endsAtMs, ["b"]),
      // The neighbour's entry of this very commit is younger than the acceptance, and counts.
      accepted(endsAtMs, ["b"]),
    ]);
    expect(outcomes[0]).toEqual({ kind: "key_conflict", entries: [entryOf("b", 1), entryOf("a", 1)] });
    expect(committed(outcomes[1]).snapshot.id).toBe(2);
    expect(committed(outcomes[2]).snapshot.id).toBe(2);
    expect(outcomes[3]).toEqual({ kind: "key_conflict", entries: [entryOf("b", 2)] });
    expect(await catalog().table("default", "events")).toEqual(events);
    // Of two acceptances of one key the one that is committed first wins, however old both are.
    expect(await catalog().commit([accepted(0, ["b"])])).toEqual([
      { kind: "key_conflict", entries: [entryOf("b", 2)] },
    ]);
    // The entry lives from the commit on.
    clock().advance(LIMITS.idempotencyTtlMs - 1);
    expect((await catalog().lookUpKey(events.id, "b")).entry).toEqual(entryOf("b", 2));
    clock().advance(1);
    expect((await catalog().lookUpKey(events.id, "b")).entry).toBeUndefined();
    // A clock that is ahead makes nothing end early.
    const ahead = accepted(clock().nowMs() + 1e9, ["c"]);
    expect(await catalog().commit([ahead, ahead])).toMatchObject([{ kind: "committed" }, { kind: "key_conflict" }]);
    expect(await catalog().commit([ahead])).toMatchObject([{ kind: "key_conflict" }]);
  });

  it("replays a staged object whose keys have ended since", async () => {
    const events = await table();
    const flush = () => aFlush(events, { staged: "s", ledger: [aLedgerEntry("k")], acceptedAtMs: 0 });
    await catalog().commit([flush()]);
    clock().advance(LIMITS.idempotencyTtlMs);
    expect(await catalog().commit([flush()])).toEqual([{ kind: "replayed", snapshotId: 1 }]);
  });

  it("says of a key when it was looked up, by its own time", async () => {
    const events = await table();
    const first = clock().nowMs();
    expect(await catalog().lookUpKey(events.id, "k")).toEqual({ entry: undefined, atMs: first });
    clock().advance(7);
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    expect(await catalog().lookUpKey(events.id, "k")).toEqual({ entry: entryOf("k", 1), atMs: first + 7 });
    expect(await catalog().lookUpKey(events.id, "a\0b")).toEqual({ entry: undefined, atMs: first + 7 });
  });

  it("refuses a flush whose keys were looked up so long ago that they may be forgotten, and keeps its neighbours", async () => {
    const events = await table();
    const { entry, atMs: keysFreeAtMs } = await catalog().lookUpKey(events.id, "k");
    expect(entry).toBeUndefined();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    clock().advance(KEYS_FREE_FOR_MS - 1);
    const held = () => aFlush(events, { keysFreeAtMs, ledger: [aLedgerEntry("k")], newColumns: [column("fresh")] });
    // While the entry is there, it tells.
    expect(await catalog().commit([held()])).toEqual([{ kind: "key_conflict", entries: [entryOf("k", 1)] }]);
    clock().advance(2 * LIMITS.idempotencyTtlMs);
    await catalog().sweepLedger();
    const nowMs = clock().nowMs();
    const outcomes = await catalog().commit([
      held(),
      aFlush(events, { keysFreeAtMs: nowMs - KEYS_FREE_FOR_MS, ledger: [aLedgerEntry("b")] }),
      aFlush(events, { keysFreeAtMs: nowMs - KEYS_FREE_FOR_MS + 1, ledger: [aLedgerEntry("c")] }),
      // One that is refused takes no key from those behind it.
      aFlush(events, { keysFreeAtMs: nowMs, ledger: [aLedgerEntry("k"), aLedgerEntry("b")] }),
      aFlush(events),
    ]);
    const tooLate = { kind: "too_late", lookedUpByMs: nowMs - KEYS_FREE_FOR_MS };
    expect(outcomes.slice(0, 2)).toEqual([tooLate, tooLate]);
    expect(outcomes.slice(2).map((outcome) => committed(outcome).snapshot.id)).toEqual([2, 2, 2]);
    expect(await catalog().table("default", "events")).toEqual(events);
    expect(await catalog().extents(events.id, 2)).toHaveLength(4);
    expect(await catalog().commit([held()])).toEqual([tooLate]);
    expect((await catalog().head()).id).toBe(2);
  });

  it("keeps entries that something needs which was accepted at a time", async () => {
    const events = await table();
    const commitKey = (key: string) => catalog().commit([aFlush(events, { ledger: [aLedgerEntry(key)] })]);
    await commitKey("first");
    const endsAtMs = clock().nowMs() + LIMITS.idempotencyTtlMs;
    clock().advance(10);
    await commitKey("second");
    clock().advance(3 * LIMITS.idempotencyTtlMs);
    await commitKey("alive");
    expect(await catalog().sweepLedger(endsAtMs - 0.5)).toBe(0);
    expect(await catalog().sweepLedger(endsAtMs)).toBe(1);
    const accepted = (key: string) => aFlush(events, { acceptedAtMs: endsAtMs - 1, ledger: [aLedgerEntry(key)] });
    const kinds = (await catalog().commit([accepted("first"), accepted("second")])).map(({ kind }) => kind);
    expect(kinds).toEqual(["committed", "key_conflict"]);
    // A time to come is no reason to end anything early.
    expect(await catalog().sweepLedger(clock().nowMs() + 1e12)).toBe(1);
    expect((await catalog().lookUpKey(events.id, "alive")).entry).toEqual(entryOf("alive", 3));
  });

  it("sweeps what is past its time and nothing else", async () => {
    const events = await table();
    const old = Array.from({ length: 4_500 }, (_, i) => aLedgerEntry(`old ${i}`));
    await catalog().commit([aFlush(events, { ledger: old })]);
    clock().advance(LIMITS.idempotencyTtlMs / 2);
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("young")] })]);
    expect(await catalog().sweepLedger()).toBe(0);
    clock().advance(LIMITS.idempotencyTtlMs / 2);
    expect(await catalog().sweepLedger()).toBe(4_500);
    expect(await catalog().sweepLedger()).toBe(0);
    expect((await catalog().lookUpKey(events.id, "young")).entry).toEqual(entryOf("young", 2));
  });

  it("tells long keys and odd keys apart", async () => {
    const events = await table();
    const long = "k".repeat(4_096);
    const keys = [`${long}a`, `${long}b`, "'; DROP TABLE ledger; --", "\u{1f600}", "%", "\n", " k", "k"];
    await catalog().commit([aFlush(events, { ledger: keys.map((key) => aLedgerEntry(key)) })]);
    for (const key of keys) expect((await catalog().lookUpKey(events.id, key)).entry).toEqual(entryOf(key, 1));
    expect((await catalog().lookUpKey(events.id, long)).entry).toBeUndefined();
  });

  it("refuses keys that are empty, given twice, or would not read back", async () => {
    const events = await table();
    for (const keys of [["a", "a"], [""], ["a\0b"], ["\ud800"]]) {
      const committing = catalog().commit([aFlush(events, { ledger: keys.map((key) => aLedgerEntry(key)) })]);
      expect(`${JSON.stringify(keys)}: ${await failureOf(committing)}`).toMatch(/idempotency key/);
    }
    expect((await catalog().head()).id).toBe(0);
  });
}
