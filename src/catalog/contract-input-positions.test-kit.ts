import { expect, it } from "vitest";
import type { CatalogDatabase } from "./catalog-database.ts";
import type { FlushCommit, TableRecord } from "./catalog.ts";
import { aFlush, aLedgerEntry, anExtent, column, committed, failureOf } from "./contract-fixtures.test-kit.ts";
import type { Subject } from "./contract-fixtures.test-kit.ts";
import {
  listInputPositions,
  readInputPosition,
  resetInputPosition,
  stepsThatFit,
  type SourceStep,
} from "./input-positions.ts";

export function inputPositionsContract({
  catalog,
  clock,
  table,
}: Omit<Subject, "catalog"> & { catalog: () => CatalogDatabase }): void {
  const step = (from: string | undefined, to: string, name = "s"): SourceStep => ({
    name,
    to,
    ...(from !== undefined && { from }),
  });
  const flush = (of: TableRecord, ...sources: SourceStep[]) => aFlush(of, { sources });
  const positionOf = async (name = "s") => (await readInputPosition(catalog().records, name))?.position;
  const extentsOf = async ({ id }: TableRecord) => (await catalog().tableStats(id)).extents;

  it("move with the rows, from where the flush says they are", async () => {
    const events = await table();
    expect(await positionOf()).toBeUndefined();
    const [first] = await catalog().commit([flush(events, step(undefined, "1"))]);
    const { snapshot } = committed(first);
    expect(await readInputPosition(catalog().records, "s")).toEqual({
      source: "s",
      position: "1",
      snapshotId: snapshot.id,
      movedAtMs: clock().nowMs(),
    });
    for (const stale of [undefined, "0", "2"]) {
      const [outcome] = await catalog().commit([flush(events, step(stale, "9"))]);
      expect(outcome).toEqual({ kind: "position_conflict", positions: [{ name: "s", position: "1" }] });
    }
    expect(await positionOf()).toBe("1");
    expect(await extentsOf(events)).toBe(1);
    clock().advance(5);
    expect(committed((await catalog().commit([flush(events, step("1", "2"))]))[0]).snapshot.id).toBe(2);
    expect(await readInputPosition(catalog().records, "s")).toMatchObject({ position: "2", snapshotId: 2 });
    expect(await catalog().commit([flush(events, step("1", "2", "other"))])).toEqual([
      { kind: "position_conflict", positions: [{ name: "other", position: undefined }] },
    ]);
  });

  it("are taken step by step by the flushes of one commit and the bodies of one flush", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    const outcomes = await catalog().commit([
      flush(events, step(undefined, "1"), step("1", "2"), step(undefined, "x", "r")),
      flush(other, step("2", "3")),
      flush(events, step("2", "3")),
      aFlush(events),
      flush(events, step("3", "4"), step("x", "y", "r")),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      "committed",
      "committed",
      "position_conflict",
      "committed",
      "committed",
    ]);
    expect(outcomes[2]).toMatchObject({ positions: [{ name: "s", position: "3" }] });
    expect([await positionOf(), await positionOf("r")]).toEqual(["4", "y"]);
    expect(await extentsOf(events)).toBe(3);
  });

  it("send back the whole flush, and none of its neighbours, when one step does not fit", async () => {
    const events = await table();
    await catalog().commit([flush(events, step(undefined, "5"))]);
    const outcomes = await catalog().commit([
      flush(events, step(undefined, "1", "fine"), step("4", "6")),
      flush(events, step(undefined, "2", "fine")),
      flush(events, step("5", "6")),
      flush(events, step("6", "7"), step("6", "7")),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      "position_conflict",
      "committed",
      "committed",
      "position_conflict",
    ]);
    expect([await positionOf(), await positionOf("fine")]).toEqual(["6", "2"]);
    expect(await extentsOf(events)).toBe(3);
  });

  it("stay where they are when the flush is sent back for another reason, or the commit fails", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { ledger: [aLedgerEntry("k")] })]);
    const step1 = { sources: [step(undefined, "1")] };
    const bad: Partial<FlushCommit>[] = [
      { ...step1, ledger: [aLedgerEntry("k")] },
      { ...step1, newColumns: [column("body", "long")] },
    ];
    const outcomes = await catalog().commit([
      ...bad.map((one) => aFlush(events, one)),
      aFlush(events, { ledger: [aLedgerEntry("k2")] }),
      aFlush(events, { ...step1, ledger: [aLedgerEntry("k2")] }),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["key_conflict", "schema_conflict", "committed", "key_conflict"]);
    expect(await positionOf()).toBeUndefined();
    const broken = aFlush(events, { ...step1, extents: [anExtent({ rows: 0 })] });
    await expect(catalog().commit([broken])).rejects.toThrow("extentIsWellFormed");
    expect(await positionOf()).toBeUndefined();
    // What followed from a flush that is sent back is judged without it.
    const chained = await catalog().commit([
      aFlush(events, { ...step1, ledger: [aLedgerEntry("k")] }),
      flush(events, step("1", "2")),
      flush(events, step(undefined, "other way")),
    ]);
    expect(chained.map(({ kind }) => kind)).toEqual(["key_conflict", "position_conflict", "committed"]);
    expect(await positionOf()).toBe("other way");
  });

  it("let one of many win that start from the same place at once", async () => {
    const events = await table();
    for (const [from, to] of [
      [undefined, "a"],
      ["a", "b"],
    ] as const) {
      const racing = Array.from({ length: 10 }, () => catalog().commit([flush(events, step(from, to))]));
      const kinds = (await Promise.all(racing)).flat().map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === "committed")).toHaveLength(1);
    }
    expect(await extentsOf(events)).toBe(2);
  });

  it("are listed by name, and forgotten on request", async () => {
    const events = await table();
    const names = ["kafka:b:0", "kafka:a:1", "kafka:a:10", "file:x", "kafka:ä:0", "Kafka:z"];
    await catalog().commit([flush(events, ...names.map((name) => step(undefined, "1", name)))]);
    const list = async (asked: Parameters<typeof listInputPositions>[1]) =>
      (await listInputPositions(catalog().records, asked)).map(({ source }) => source);
    expect(await list({ limit: 10 })).toEqual([
      "Kafka:z",
      "file:x",
      "kafka:a:1",
      "kafka:a:10",
      "kafka:b:0",
      "kafka:ä:0",
    ]);
    expect(await list({ prefix: "kafka:", limit: 2 })).toEqual(["kafka:a:1", "kafka:a:10"]);
    expect(await list({ prefix: "kafka:", after: "kafka:a:10", limit: 9 })).toEqual(["kafka:b:0", "kafka:ä:0"]);
    expect(await resetInputPosition(catalog().records, "kafka:a:1")).toBe(true);
    expect(await resetInputPosition(catalog().records, "kafka:a:1")).toBe(false);
    expect(await list({ prefix: "kafka:a", limit: 9 })).toEqual(["kafka:a:10"]);
    // Whoever still reads from there cannot go on.
    expect(await catalog().commit([flush(events, step("1", "2", "kafka:a:1"))])).toMatchObject([
      { kind: "position_conflict" },
    ]);
    expect(await catalog().commit([flush(events, step(undefined, "2", "kafka:a:1"))])).toMatchObject([
      { kind: "committed" },
    ]);
  });

  it("are refused when they cannot be stored", async () => {
    const events = await table();
    const long = "x".repeat(1_025);
    for (const one of [step(undefined, ""), step("", "1"), step("a\0", "1"), step(undefined, "\ud800")]) {
      expect(await failureOf(catalog().commit([flush(events, one)]))).toMatch(/position .* cannot be stored/);
    }
    for (const name of ["", "a\0b", "\ud800", long, "ä".repeat(513)]) {
      expect(await failureOf(catalog().commit([flush(events, step(undefined, "1", name))]))).toMatch(
        /source .* cannot/,
      );
      expect(await readInputPosition(catalog().records, name)).toBeUndefined();
      expect(await resetInputPosition(catalog().records, name)).toBe(false);
    }
    const hostile = `'; DROP TABLE input_positions; -- "\\ %_`;
    await catalog().commit([flush(events, step(undefined, hostile, hostile))]);
    expect(await positionOf(hostile)).toBe(hostile);
    expect(await positionOf()).toBeUndefined();
  });

  it("agree with a plain reading of the rules, whatever comes", async () => {
    const events = await table();
    let state = 7;
    const pick = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    const texts = [undefined, "0", "1", "2"] as const;
    const stands = new Map<string, string>();
    for (let round = 0; round < 60; round++) {
      const flushes = Array.from({ length: 1 + pick(4) }, () =>
        flush(
          events,
          ...Array.from({ length: pick(3) }, () => step(texts[pick(4)], texts[1 + pick(3)] ?? "0", `s${pick(2)}`)),
        ),
      );
      const kinds = (await catalog().commit(flushes)).map(({ kind }) => kind);
      for (const [i, { sources = [] }] of flushes.entries()) {
        const from = ["s0", "s1"].map((name) => ({ name, position: stands.get(name) }));
        const fits = stepsThatFit(sources, from).every(Boolean);
        // A driver may send back what it cannot judge without asking; it must never store what does not fit.
        if (kinds[i] === "committed") {
          expect(fits).toBe(true);
          for (const { name, to } of sources) stands.set(name, to);
        } else expect(kinds[i]).toBe("position_conflict");
      }
      for (const name of ["s0", "s1"]) expect(await positionOf(name)).toBe(stands.get(name));
    }
  });
}
