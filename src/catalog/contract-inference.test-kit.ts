import { expect, it } from "vitest";
import { originOf, type ColumnSpec } from "../format/types.ts";
import { aFlush, column, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

/** Types that come from data: what columns and tables say of them. */
export function inferenceContract({ catalog }: Subject): void {
  const AT = column("at", "timestamp");
  const inferred = (name: string, kind: "long" | "real"): ColumnSpec => ({ name, type: { kind }, inferred: true });

  it("stay known as such, however the column came", async () => {
    const columns = [AT, inferred("early", "real")];
    const { table } = await catalog().createTable({ database: "d", name: "t", columns });
    const flush = aFlush(table, { newColumns: [inferred("took", "long"), column("plain")] });
    expect(await catalog().commit([flush])).toMatchObject([{ kind: "committed" }]);
    await catalog().addColumns(table.id, [inferred("added", "long")]);
    const found = (await catalog().table("d", "t"))?.columns ?? [];
    expect(found.map((one) => `${one.name} ${originOf(one)}`)).toEqual([
      "at declared",
      "early inferred",
      "took inferred",
      "plain declared",
      "added inferred",
    ]);
  });

  it("agree where they are the same, whether declared or not, and else conflict", async () => {
    const { table } = await catalog().createTable({ database: "d", name: "t", columns: [AT] });
    const wanted = [inferred("x", "long"), column("x", "long"), inferred("x", "real")];
    const flushes = wanted.map((one) => aFlush(table, { newColumns: [one] }));
    const outcomes = await catalog().commit(flushes);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["committed", "committed", "schema_conflict"]);
    const found = (await catalog().table("d", "t"))?.columns.at(-1);
    expect(found).toMatchObject({ type: { kind: "long" }, inferred: true });
  });

  it("are asked for by a setting of the table, which may be absent", async () => {
    const { table: silent } = await catalog().createTable({ database: "d", name: "silent", columns: [AT] });
    expect(silent).not.toHaveProperty("inferTypes");
    for (const inferTypes of [true, false]) {
      const request = { database: "d", name: `table_${inferTypes}`, columns: [AT], inferTypes };
      expect((await catalog().createTable(request)).table.inferTypes).toBe(inferTypes);
    }
    const generation = await catalog().schemaGeneration();
    expect(await catalog().setInferTypes(silent.id, true)).toEqual({ ...silent, inferTypes: true });
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("d", "silent")).toEqual({ ...silent, inferTypes: true });
    expect(await catalog().setInferTypes(silent.id, false)).toEqual({ ...silent, inferTypes: false });
    expect(await catalog().setInferTypes(silent.id, undefined)).toEqual(silent);
    expect(await failureOf(catalog().setInferTypes(4711, true))).toBe("table_not_found");
  });
}
