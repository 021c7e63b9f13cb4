import { join } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import type { Migration } from "../../db/migration.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { aFlush, aLedgerEntry, anExtent, column } from "../contract-fixtures.test-kit.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { openSqliteCatalog } from "../sqlite/sqlite.ts";
import { sqliteTables } from "../sqlite/transfer-layout.ts";
import { NUMBERS, type TransferRow, type TransferSource, type TransferTable } from "./transfer.ts";

export const openIn = (folder: string, migrations: readonly Migration[] = MIGRATIONS): Promise<CatalogDatabase> =>
  openSqliteCatalog({
    path: join(folder, "catalog.db"),
    clock: systemClock,
    log: silentLog,
    migrations,
    mode: "server",
  });

/** A catalog that has something of everything in `folder`: live, merged and dropped extents, and a row in each table. */
export async function makeFullCatalog(folder: string): Promise<void> {
  const catalog = await openIn(folder);
  const columns = [column("at", "timestamp"), column("id"), column("n", "long"), column("props", "dynamic")];
  const table = (await catalog.createTable({ database: "default", name: "Events", columns })).table;
  await catalog.setRetention(table.id, 30);
  await catalog.setInferTypes(table.id, true);
  await catalog.setOpenLag(table.id, 300);
  const filter = { name: "id", kind: "words", bytes: Uint8Array.of(0, 1, 254, 255) } as const;
  const extents = [anExtent({ filters: [filter as never] }), anExtent(), anExtent()];
  const [first, second] = extents;
  await catalog.commit([aFlush(table, { extents, ledger: [aLedgerEntry("käse\n\u2028")] })]);
  await catalog.commit([aFlush(table, { staged: "0190a000-0000-7000-8000-0000000000ff" })]);
  const merged = anExtent({ rows: 20 });
  const inputs = [first?.id ?? "", second?.id ?? ""];
  await catalog.mergeExtents({ tableId: table.id, schemaVersion: 1, inputs, outputs: [merged] });
  const gone = (await catalog.createTable({ database: "Other", name: "gone", columns })).table;
  await catalog.commit([aFlush(gone)]);
  await catalog.dropTable(gone.id);
  await catalog.markPendingDeletion(["0190a000-0000-7000-8000-00000000ffff"]);
  await catalog.acquireLease("duty", "me", 60_000);
  await catalog.close();
  fillEmptyTables(join(folder, "catalog.db"));
}

/** One row for each table that has none. Numbers are 1 and texts "a", so that references hold. */
function fillEmptyTables(path: string): void {
  const connection = new Connection(path, { readOnly: false, busyTimeoutMs: 0 });
  connection.db.exec("PRAGMA foreign_keys = OFF");
  for (const { name, columns } of sqliteTables(connection)) {
    if (name === NUMBERS || connection.get(`SELECT 1 FROM "${name}"`) !== undefined) continue;
    const values = columns.map(({ type }) => (type === "int" ? 1 : type === "text" ? "a" : Uint8Array.of(1)));
    const names = columns.map((one) => `"${one.name}"`).join(", ");
    connection.run(`INSERT INTO "${name}" (${names}) VALUES (${columns.map(() => "?").join(", ")})`, ...values);
  }
  connection.close();
}

/** A source that is in memory. */
export type Dump = TransferSource & {
  byTable: Map<string, { columns: TransferTable["columns"]; rows: TransferRow[] }>;
};

export async function dumpOf(catalog: Pick<CatalogDatabase, "openReader">): Promise<Dump> {
  const reader = await catalog.openReader();
  const byTable: Dump["byTable"] = new Map();
  for (const { name, columns } of reader.tables) {
    const rows: TransferRow[] = [];
    for await (const batch of reader.rows(name)) rows.push(...batch);
    byTable.set(name, { columns, rows });
  }
  await reader.close();
  return {
    schema: reader.schema,
    tables: reader.tables,
    byTable,
    rows: async function* (name) {
      yield byTable.get(name)?.rows ?? [];
    },
  };
}

/** The rows by the names of their columns, whose order the databases do not share. */
export function comparable({ byTable }: Dump): Record<string, unknown[]> {
  const tables = [...byTable].map(([name, { columns, rows }]) => {
    const named = rows.map((row) =>
      Object.fromEntries(row.map((value, i) => [columns[i]?.name ?? "", value] as const).toSorted(byName)),
    );
    const ordered = named.map((row) => JSON.stringify(row)).toSorted();
    return [name, ordered.map((row) => JSON.parse(row) as unknown)] as const;
  });
  return Object.fromEntries(tables.toSorted(byName));
}

function byName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : 1;
}
