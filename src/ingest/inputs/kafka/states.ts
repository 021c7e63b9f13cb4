import type { RecordStore } from "../../../db/records.ts";
import type { LaneReport } from "./lane.ts";

/**
 * What the nodes say of the partitions that they read, for `system.kafka`: kept in `input_states`, since the node that
 * answers a query is another one.
 */
type State = Pick<LaneReport, "state" | "reason" | "logEnd" | "rows" | "deadLetters" | "tombstones"> & {
  database: string;
  table: string;
};

const WRITE =
  "INSERT INTO input_states (source, node, state, updated_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT (source) DO UPDATE " +
  "SET node = excluded.node, state = excluded.state, updated_at_ms = excluded.updated_at_ms";

export class States {
  readonly #records: Pick<RecordStore, "transact">;
  readonly #node: string;
  readonly #written = new Map<string, string>();

  constructor(records: Pick<RecordStore, "transact">, node: string) {
    this.#records = records;
    this.#node = node;
  }

  /** Writes what has changed since the last call. */
  async write(reports: readonly LaneReport[]): Promise<void> {
    const changed = reports
      .map((report) => ({ source: report.source, text: JSON.stringify(stateOf(report)) }))
      .filter(({ source, text }) => this.#written.get(source) !== text);
    if (changed.length === 0) return;
    const statements = changed.map(({ source, text }) => ({
      sql: WRITE,
      values: [source, this.#node, text, { nowPlusMs: 0 }],
    }));
    await this.#records.transact(statements);
    for (const { source, text } of changed) this.#written.set(source, text);
  }
}

function stateOf({ mapping, state, reason, logEnd, rows, deadLetters, tombstones }: LaneReport): State {
  const { database, table } = mapping;
  return { database, table, state, reason, logEnd, rows, deadLetters, tombstones };
}

/** A state as it was written; undefined for what another version wrote. */
export function readState(text: unknown): Partial<State> {
  if (typeof text !== "string") return {};
  return JSON.parse(text) as Partial<State>;
}
