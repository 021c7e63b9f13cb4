import { expect, it } from "vitest";
import { aFlush, aLedgerEntry, anExtent, column, committed, type Subject } from "./contract-fixtures.test-kit.ts";

/** A vector has no NULL: it does not come to rows, and rows do not come around it. */
export function vectorColumnsContract({ catalog, table }: Subject): void {
  const vector = { name: "v", type: { kind: "vector", dimensions: 3 } } as const;

  it("comes to a table without rows only, and takes nothing else with it when it is refused", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { extents: [] })]);
    const widened = await catalog().addColumns(events.id, [column("a"), vector]);
    expect(widened.columns.map(({ name }) => name)).toEqual(["at", "body", "a", "v"]);
    const [outcome] = await catalog().commit([aFlush(widened)]);
    committed(outcome);
    const generation = await catalog().schemaGeneration();
    const adding = catalog().addColumns(events.id, [column("b"), { ...vector, name: "w" }]);
    await expect(adding).rejects.toMatchObject({
      code: "conflict",
      status: 409,
      message: /"w" vector\(3\).* has rows/,
    });
    expect(await catalog().table("default", "events")).toEqual(widened);
    expect(await catalog().schemaGeneration()).toBe(generation);
    // What is there already is no addition, and other columns may come.
    expect(await catalog().addColumns(events.id, [{ ...vector, name: "V" }])).toEqual(widened);
    expect((await catalog().addColumns(events.id, [column("b")])).columns).toHaveLength(5);
    await catalog().verify();
  });

  it("comes to a table whose rows are all gone", async () => {
    const events = await table();
    const extent = anExtent();
    await catalog().commit([aFlush(events, { extents: [extent] })]);
    await expect(catalog().addColumns(events.id, [vector])).rejects.toMatchObject({ code: "conflict" });
    await catalog().endExtents(events.id, [extent.id]);
    expect((await catalog().addColumns(events.id, [vector])).columns).toHaveLength(3);
  });

  it("of two that come at once with rows, one wins, and no row is without it", async () => {
    for (let round = 0; round < 10; round++) {
      const name = `t${round}`;
      const { table: fresh } = await catalog().createTable({
        database: "d",
        name,
        columns: [column("at", "timestamp")],
      });

      const flush = aFlush(fresh, { extents: [anExtent({ stats: [] })] });
      const [added, [outcome]] = await Promise.all([
        catalog()
          .addColumns(fresh.id, [vector])
          .then(
            () => true,
            () => false,
          ),
        catalog().commit([flush]),
      ]);
      expect([added, outcome?.kind]).toEqual([added, added ? "schema_conflict" : "committed"]);
      const { rows } = await catalog().tableStats(fresh.id);
      expect(rows > 0).toBe(!added);
    }
  });

  it("sends back a flush that was sealed before a vector came, alone", async () => {
    const events = await table();
    const between = await catalog().addColumns(events.id, [column("between")]);
    const widened = await catalog().addColumns(events.id, [vector]);
    const { table: other } = await catalog().createTable({
      database: "default",
      name: "other",
      columns: events.columns,
    });
    const outcomes = await catalog().commit([
      aFlush(events, { ledger: [aLedgerEntry("a")] }),
      aFlush(between, { newColumns: [column("fresh")] }),
      aFlush(widened, { ledger: [aLedgerEntry("b")] }),
      aFlush(other),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["schema_conflict", "schema_conflict", "committed", "committed"]);
    expect((await catalog().table("default", "events"))?.columns).toEqual(widened.columns);
    expect((await catalog().lookUpKey(events.id, "a")).entry).toBeUndefined();
    expect(await catalog().extents(events.id, 1)).toHaveLength(1);
    // Only what was sealed before it: later columns change nothing.
    await catalog().addColumns(events.id, [column("later")]);
    expect((await catalog().commit([aFlush(widened)])).map(({ kind }) => kind)).toEqual(["committed"]);
    await catalog().verify();
  });
}
