import type { RecordStore } from "../../../db/records.ts";
import type { LaneReport } from "./lane.ts";
import type { TopicMapping } from "./options.ts";

/**
 * What the nodes say of the partitions that they read, for `system.kafka`: kept in `input_states`, since the node that
 * answers a query is another one. While the brokers cannot be read there is a state for each topic as well: a node that
 * never reached them knows of no partitions.
 */
type State = Partial<Pick<LaneReport, "logEnd" | "rows" | "deadLetters" | "tombstones">> &
  Pick<LaneReport, "state" | "reason"> & { database: string; table: string };

const WRITE =
  "INSERT INTO input_states (source, node, state, updated_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT (source) DO UPDATE " +
  "SET node = excluded.node, state = excluded.state, updated_at_ms = excluded.updated_at_ms";
/** A node that is cut off does not speak for partitions that another has taken over. */
const WRITE_OWN = `${WRITE} WHERE input_states.node = excluded.node`;
const DELETE = "DELETE FROM input_states WHERE source = ?";
/** In place of a state that is not there. */
const NONE = "";

export class States {
  readonly #records: Pick<RecordStore, "transact">;
  readonly #node: string;
  readonly #topics: readonly TopicMapping[];
  readonly #written = new Map<string, string>();

  constructor(records: Pick<RecordStore, "transact">, node: string, topics: readonly TopicMapping[]) {
    this.#records = records;
    this.#node = node;
    this.#topics = topics;
  }

  /** Writes what has changed since the last call. `outage` says why no topic can be read now. */
  async write(reports: readonly LaneReport[], outage: string | undefined): Promise<void> {
    const sql = outage === undefined ? WRITE : WRITE_OWN;
    const partitions = reports.map((report) => ({ source: report.source, text: JSON.stringify(stateOf(report)), sql }));
    const topics = this.#topics.map((mapping) => ({
      source: `kafka:${mapping.topic}`,
      text: outage === undefined ? NONE : JSON.stringify(outageOf(mapping, outage)),
      sql: outage === undefined ? DELETE : WRITE,
    }));
    const changed = [...partitions, ...topics].filter(({ source, text }) => this.#written.get(source) !== text);
    if (changed.length === 0) return;
    const statements = changed.map(({ source, text, sql: statement }) => ({
      sql: statement,
      values: statement === DELETE ? [source] : [source, this.#node, text, { nowPlusMs: 0 }],
    }));
    await this.#records.transact(statements);
    for (const { source, text } of changed) this.#written.set(source, text);
  }
}

function outageOf({ database, table }: TopicMapping, reason: string): State {
  return { database, table, state: "backing_off", reason };
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
