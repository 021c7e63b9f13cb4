import { mayUseDatabase } from "../../../auth/caller.ts";
import type { ColumnSpec, ScalarTypeName } from "../../../format/types.ts";
import type { SystemRow, SystemTable, SystemTableContext } from "../../../feature/system-table.ts";
import { parsePosition } from "./position.ts";
import { readState } from "./states.ts";

const PAGE = 1_000;
const NS_PER_MS = 1_000_000n;

const column = (name: string, kind: ScalarTypeName): ColumnSpec => ({ name, type: { kind } });
const texts = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "string"));
const longs = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "long"));
const times = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "timestamp"));

/**
 * `system.kafka`: a row for each partition that has a position or is being read; and one without a partition for each
 * topic while a node cannot read from the brokers.
 */
export const KAFKA_TABLE: SystemTable = {
  name: "kafka",
  columns: [
    ...texts("topic"),
    ...longs("partition"),
    ...texts("database", "table_name", "state"),
    // Offsets: of the next message to be stored, after the last of the topic, and between them.
    ...longs("position", "log_end", "lag"),
    // Since the node that reads it was given the partition.
    ...longs("rows", "dead_letters", "tombstones"),
    ...texts("node", "reason"),
    ...longs("snapshot_id"),
    ...times("moved_at", "updated_at"),
  ],
  rows: partitionRows,
};

const FIELDS =
  "n.source, p.position, p.snapshot_id, p.moved_at_ms, s.node, s.state, s.updated_at_ms FROM " +
  "(SELECT source FROM input_positions WHERE source > ? AND source < 'kafka;' " +
  "UNION SELECT source FROM input_states WHERE source > ? AND source < 'kafka;') n " +
  "LEFT JOIN input_positions p ON p.source = n.source LEFT JOIN input_states s ON s.source = n.source";

async function* partitionRows({ records, caller, signal }: SystemTableContext): AsyncIterable<SystemRow> {
  for (let after = "kafka:"; ;) {
    signal.throwIfAborted();
    const page = await records.rows(`SELECT ${FIELDS} ORDER BY n.source LIMIT ?`, [after, after, PAGE]);
    for (const row of page) {
      after = String(row["source"]);
      const shown = rowOf(row);
      // Who may not see every database sees the partitions of those that are known to go to one of theirs.
      const { database } = shown;
      const isSeen =
        caller.databases === undefined || (typeof database === "string" && mayUseDatabase(caller, database));
      if (isSeen) yield shown;
    }
    if (page.length < PAGE) return;
  }
}

function rowOf(row: Record<string, unknown>): SystemRow {
  const [, topic, partition] = /^kafka:([^:]*)(?::(\d+))?$/.exec(String(row["source"])) ?? [];
  const state = readState(row["state"]);
  const position = typeof row["position"] === "string" ? parsePosition(row["position"])?.next : undefined;
  const lag = position === undefined || state.logEnd === undefined ? undefined : Math.max(0, state.logEnd - position);
  return {
    topic,
    partition: partition === undefined ? undefined : Number(partition),
    database: state.database,
    table_name: state.table,
    state: state.state,
    position,
    log_end: state.logEnd,
    lag,
    rows: state.rows,
    dead_letters: state.deadLetters,
    tombstones: state.tombstones,
    node: typeof row["node"] === "string" ? row["node"] : undefined,
    reason: state.reason,
    snapshot_id: numberOf(row["snapshot_id"]),
    moved_at: timeOf(row["moved_at_ms"]),
    updated_at: timeOf(row["updated_at_ms"]),
  };
}

function numberOf(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

function timeOf(value: unknown): bigint | undefined {
  const ms = numberOf(value);
  return ms === undefined ? undefined : BigInt(ms) * NS_PER_MS;
}
