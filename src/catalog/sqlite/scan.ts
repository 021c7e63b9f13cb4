import type { Additions, AdditionsRequest, ColumnRecord, ScanPlan, ScanRequest } from "../catalog.ts";
import { ExtentIndex } from "../extent-index.ts";
import { foldName } from "../../core/names.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { extentsAfter, extentsBySeq, extentsEndedSince, StatsReader } from "./extents.ts";
import type { SchemaReader } from "./schema.ts";
import { readHead } from "./snapshots.ts";

/** Memory for the indexes of all tables together; the table of the scan at hand is kept in any case. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024;

type Indexed = {
  index: ExtentIndex;
  /** The head that the index has seen, and its time. */
  headId: number;
  headMs: number;
  /** `forgotten_extents` as it was. */
  forgotten: number;
};

/** Plans scans with an index per table, brought up to date before each: what is committed is seen at once. */
export class ScanPlanner {
  readonly #connection: Connection;
  readonly #schema: SchemaReader;
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #tables = new Map<number, Indexed>();

  constructor(connection: Connection, schema: SchemaReader, maxBytes = MAX_INDEX_BYTES) {
    this.#connection = connection;
    this.#schema = schema;
    this.#maxBytes = maxBytes;
  }

  /** To be called within a transaction: all that it reads is of one state. */
  plan({ tableId, ...request }: ScanRequest): ScanPlan {
    const index = this.#indexOf(tableId);
    const columns = this.#schema.columnsById(tableId);
    const byName = new Map(columns.map((column) => [foldName(column.name), column]));
    const { seqs, ...pruning } = index.scan(
      request,
      (name) => byName.get(foldName(name)),
      (wanted) => this.#loader(columns, wanted),
    );
    this.#evict();
    return { extents: extentsBySeq(this.#connection, seqs, columns), ...pruning };
  }

  /** To be called within a transaction. */
  additions({ tableId, ...request }: AdditionsRequest): Additions {
    const { seqs, upTo } = this.#indexOf(tableId).additions(request);
    this.#evict();
    return { extents: extentsBySeq(this.#connection, seqs, this.#schema.columnsById(tableId)), upTo };
  }

  #loader(
    columns: readonly ColumnRecord[],
    wanted: readonly ColumnRecord[],
  ): (seq: number) => ReturnType<StatsReader["statsOf"]> {
    const reader = new StatsReader(this.#connection, columns, wanted);
    return (seq) => reader.statsOf(seq);
  }

  #indexOf(tableId: number): ExtentIndex {
    const head = readHead(this.#connection);
    const forgotten = Number(this.#connection.get("SELECT forgotten_extents AS n FROM meta")?.["n"]);
    const known = this.#tables.get(tableId);
    const isSound = known !== undefined && known.forgotten === forgotten;
    const { index, headId, headMs } = isSound ? known : { index: new ExtentIndex(), headId: -1, headMs: Infinity };
    if (headId !== head.id) {
      for (const extent of extentsAfter(this.#connection, tableId, index.lastSeq)) index.add(extent);
      const ended = headMs === Infinity ? [] : extentsEndedSince(this.#connection, tableId, headMs);
      for (const { seq, endSnapshot } of ended) index.end(seq, endSnapshot);
    }
    this.#tables.delete(tableId);
    this.#tables.set(tableId, { index, headId: head.id, headMs: head.committedAtMs, forgotten });
    return index;
  }

  #evict(): void {
    let sizeBytes = 0;
    for (const { index } of this.#tables.values()) sizeBytes += index.sizeBytes;
    for (const [tableId, { index }] of this.#tables) {
      if (sizeBytes <= this.#maxBytes || this.#tables.size === 1) return;
      this.#tables.delete(tableId);
      sizeBytes -= index.sizeBytes;
    }
  }
}
