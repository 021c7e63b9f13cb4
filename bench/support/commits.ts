import type { Catalog, NewExtent, TableRecord } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/core/random.ts";
import type { ColumnSpec } from "../../src/format/types.ts";

/** Commits of extents that exist in the catalog alone. */

export const SECOND_NS = 1_000_000_000n;
const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  ...Array.from({ length: 11 }, (_, i): ColumnSpec => ({ name: `c${i}`, type: { kind: "long" } })),
];

const newId = uuidV7Source(systemClock, systemRandom);

/** A table with a time and eleven numbers. */
export async function aTable(nodes: readonly Catalog[], name: string): Promise<TableRecord> {
  const made = await nodes[0]?.createTable({ database: "bench", name, columns: COLUMNS });
  if (made === undefined) throw new Error("there is no node");
  return made.table;
}

/** Commits the extents, with one key. */
export async function commit(catalog: Catalog, table: TableRecord, extents: readonly NewExtent[]): Promise<void> {
  const ledger = [{ key: newId(), extentCount: extents.length, rows: 10, sizeBytes: 1_000 }];
  const { id: tableId, schemaVersion } = table;
  const [outcome] = await catalog.commit([{ tableId, schemaVersion, newColumns: [], extents, ledger }]);
  if (outcome?.kind !== "committed") throw new Error(`the catalog said ${outcome?.kind}`);
}

/** An extent of one second with statistics of all columns. */
export function anExtent(minAtNs: bigint): NewExtent {
  const id = newId();
  return {
    id,
    key: `engine/bench/table/2026-01-01/${id}.tlm`,
    format: "tlm",
    formatVersion: 1,
    rows: 8_000,
    sizeBytes: 300_000,
    checksum: "crc32:01234567",
    minAtNs,
    maxAtNs: minAtNs + SECOND_NS - 1n,
    stats: COLUMNS.map(({ name }, i) => ({ name, nullCount: 0, distinct: 500, min: String(i), max: String(i + 9) })),
  };
}
