import { afterEach, beforeEach, expect, test } from "vitest";
import type { CatalogDatabase } from "../../catalog/catalog-database.ts";
import { aFlush, anExtent } from "../../catalog/contract-fixtures.test-kit.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { snapshotRows } from "./snapshots.ts";

let catalog: CatalogDatabase;
beforeEach(() => (catalog = openMemoryCatalog(systemClock).catalog));
afterEach(() => catalog.close());

const COLUMNS = ["id", "table_name", "operation", "rows_added", "rows_removed", "extents_added", "extents_removed"];

async function rowsOf(database: string): Promise<string[]> {
  const rows = await Array.fromAsync(snapshotRows(catalog, database));
  return rows.map((row) => COLUMNS.flatMap((name) => row[name] ?? []).join(" "));
}

test("a snapshot says what it did to the tables of the database, and nothing of others", async () => {
  const columns = [{ name: "at", type: { kind: "timestamp" } as const }];
  const { table } = await catalog.createTable({ database: "d", name: "t", columns });
  const [first, second, third] = [anExtent({ rows: 5 }), anExtent({ rows: 7 }), anExtent({ rows: 9 })] as const;
  await catalog.commit([aFlush(table, { extents: [first, second, third] })]);
  const merged = anExtent({ rows: 12 });
  const inputs = [first.id, second.id];
  await catalog.mergeExtents({ tableId: table.id, schemaVersion: table.schemaVersion, inputs, outputs: [merged] });
  await catalog.endExtents(table.id, [merged.id]);
  const { table: other } = await catalog.createTable({ database: "other", name: "t", columns });
  await catalog.commit([aFlush(other, { extents: [anExtent({ rows: 1 })] })]);
  expect(await rowsOf("d")).toEqual(["4", "3 t delete 0 12 0 1", "2 t replace 12 12 1 2", "1 t append 21 0 3 0", "0"]);
  expect(await rowsOf("other")).toEqual(["4 t append 1 0 1 0", "3", "2", "1", "0"]);
  expect(await rowsOf("nobody's")).toEqual(["4", "3", "2", "1", "0"]);
});
