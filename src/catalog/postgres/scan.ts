import { foldName } from "../../core/names.ts";
import type { ColumnStats } from "../../format/types.ts";
import type {
  Additions,
  AdditionsRequest,
  ColumnRecord,
  ExtentRecord,
  PlannedExtent,
  ScanPlan,
  ScanRequest,
  TimeRange,
} from "../catalog.ts";
import { ExtentIndex } from "../extent-index.ts";
import { toSummary } from "../rows.ts";
import { columnsNamed, readStatsOf, StatsDecoder } from "../stats-decoder.ts";
import type { Connection, Row } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";
import { extentsBySeq, FIELDS, keptExtents, readableExtents } from "./extents.ts";
import type { SchemaReader } from "./schema.ts";

/** Memory for the indexes of all tables together; the table of the scan at hand is kept in any case. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024;
/** Extents per statement while an index is filled, so that other work gets its turn in between. */
const EXTENTS_PER_FILLING = 20_000;

type Indexed = {
  index: ExtentIndex;
  /** The head that the index has seen, and its time. */
  headId: number;
  headMs: number;
  /** The table's columns, at that head or later. */
  columns: readonly ColumnRecord[];
  /** Rows added to the index. */
  added: number;
  /** How many extents of the table had been forgotten when the index was begun, and when it was last looked at. */
  forgottenBefore: number;
  forgotten: number;
};

/**
 * Plans scans with an index per table in memory. Before each, what was committed since the index was last looked at is
 * read, unless the index has seen the snapshot asked for already: whoever names a snapshot learnt it from a commit or
 * from the head, so the head that the index has seen tells whether it is complete up to there.
 *
 * Extents are numbered in the order of the commits under the head's lock, so what comes after the last that is here is
 * all that was committed since; and an end is found by its time, which never decreases. Extents that were forgotten stay
 * in the index until they are half of it, for no snapshot that can be read sees them. But one that ended after the index
 * was last looked at, and is forgotten already, would be taken for alive: then the index is begun anew.
 */
export class ScanPlanner {
  readonly #database: Database;
  readonly #schema: SchemaReader;
  /** Least recently used first. */
  readonly #tables = new Map<number, Indexed>();
  /** Of each table the last that is under way: they take turns. */
  readonly #turns = new Map<number, Promise<unknown>>();

  constructor(database: Database, schema: SchemaReader) {
    this.#database = database;
    this.#schema = schema;
  }

  async plan({ tableId, ...request }: ScanRequest): Promise<ScanPlan> {
    const { columns, seqs, ...pruning } = await this.#inTurn(tableId, () => this.#scan(tableId, request));
    const { atSnapshot } = request;
    const of = { tableId, atSnapshot, seqs, select: `${FIELDS}, e.column_ids`, withStats: false };
    return await this.#database.read(async (connection) => {
      const decoder = new StatsDecoder(columns);
      const extents: PlannedExtent[] = [];
      for await (const row of readableExtents(connection, of)) {
        extents.push(Object.assign(toSummary(row), { columns: decoder.columnsIn(String(row["column_ids"])) }));
      }
      return { extents, ...pruning };
    });
  }

  /** See `Catalog.additions`. */
  async additions({ tableId, ...request }: AdditionsRequest): Promise<Additions> {
    const { columns, seqs, upTo } = await this.#inTurn(tableId, async () => {
      const { index, columns: known } = await this.#upToDate(tableId, request.upTo);
      const found = index.additions(request);
      this.#evict();
      return { columns: known, ...found };
    });
    const of = { tableId, after: request.from - 1, seqs, select: `${FIELDS}, e.column_ids`, withStats: false };
    return await this.#database.read(async (connection) => {
      const decoder = new StatsDecoder(columns);
      const extents: PlannedExtent[] = [];
      for await (const row of keptExtents(connection, of)) {
        extents.push(Object.assign(toSummary(row), { columns: decoder.columnsIn(String(row["column_ids"])) }));
      }
      return { extents, upTo };
    });
  }

  /** See `Catalog.extents`. */
  async extents(
    tableId: number,
    atSnapshot: number,
    range: TimeRange,
    statsOf: readonly string[] | undefined,
  ): Promise<ExtentRecord[]> {
    const { minNs, maxNs } = range;
    const isEmpty = minNs !== undefined && maxNs !== undefined && minNs > maxNs;
    const filters = isEmpty ? [] : [{ range, tests: [] }];
    const { columns, seqs } = await this.#inTurn(tableId, () => this.#scan(tableId, { atSnapshot, filters }));
    const wanted = statsOf === undefined ? undefined : columnsNamed(columns, statsOf);
    const withStats = statsOf?.length !== 0;
    const select = withStats ? `${FIELDS}, e.column_ids, s.stats` : FIELDS;
    return await this.#database.read(async (connection) => {
      const decoder = new StatsDecoder(columns, wanted);
      const extents: ExtentRecord[] = [];
      for await (const row of readableExtents(connection, { tableId, atSnapshot, seqs, select, withStats })) {
        const stats = withStats ? statsIn(decoder, row) : [];
        extents.push(Object.assign(toSummary(row), { stats }));
      }
      return extents;
    });
  }

  async #scan(tableId: number, request: Omit<ScanRequest, "tableId">) {
    const { index, columns } = await this.#upToDate(tableId, request.atSnapshot);
    const byName = new Map(columns.map((column) => [foldName(column.name), column]));
    const columnOf = (name: string) => byName.get(foldName(name));
    const prepared = index.prepare(request, columnOf);
    const loaded = await this.#loadStats(columns, prepared);
    const scan = prepared.run((seq) => loaded.get(seq) ?? []);
    this.#evict();
    return { columns, ...scan };
  }

  async #loadStats(
    columns: readonly ColumnRecord[],
    missing: { columns: readonly ColumnRecord[]; seqs: readonly number[] },
  ): Promise<Map<number, ColumnStats[]>> {
    if (missing.seqs.length === 0) return new Map();
    const decoder = new StatsDecoder(columns, missing.columns);
    return await this.#database.read(async (connection) => {
      const loaded = new Map<number, ColumnStats[]>();
      const of = { seqs: missing.seqs, select: "e.seq, e.id, e.column_ids, s.stats", withStats: true };
      for await (const row of extentsBySeq(connection, of)) {
        loaded.set(Number(row["seq"]), statsIn(decoder, row));
      }
      return loaded;
    });
  }

  async #upToDate(tableId: number, atSnapshot: number): Promise<Indexed> {
    const known = this.#tables.get(tableId);
    const current =
      known !== undefined && known.headId >= atSnapshot
        ? known
        : await this.#database.read((connection) => this.#catchUp(connection, tableId, known));
    this.#tables.delete(tableId);
    this.#tables.set(tableId, current);
    return current;
  }

  async #catchUp(connection: Connection, tableId: number, known: Indexed | undefined): Promise<Indexed> {
    const indexed: Indexed = known === undefined ? emptyIndex() : { ...known };
    const { index } = indexed;
    const isCurrent = await connection.snapshot(async () => {
      const [[state], added, ended] = await Promise.all([
        connection.query(STATE, [tableId]),
        connection.values(ADDED, [tableId, index.lastSeq, EXTENTS_PER_FILLING]),
        connection.values(ENDED, [tableId, indexed.headMs]),
      ]);
      if (state === undefined) throw new Error("the catalog has no head");
      const forgotten = Number(state["forgotten_extents"]);
      if (known !== undefined && isOutdated(known, forgotten, Number(state["oldest"]))) return false;
      for (let rows = added; rows.length > 0;) {
        for (const row of rows) addRow(index, row);
        indexed.added += rows.length;
        if (rows.length < EXTENTS_PER_FILLING) break;
        rows = await connection.values(ADDED, [tableId, index.lastSeq, EXTENTS_PER_FILLING]);
      }
      for (const [seq, endSnapshot] of ended) index.end(Number(seq), Number(endSnapshot));
      indexed.columns = await this.#schema.columnsAt(connection, tableId, Number(state["schema_version"]));
      indexed.headId = Number(state["snapshot_id"]);
      indexed.headMs = Number(state["committed_at_ms"]);
      indexed.forgotten = forgotten;
      if (known === undefined) indexed.forgottenBefore = forgotten;
      return true;
    });
    return isCurrent ? indexed : await this.#catchUp(connection, tableId, undefined);
  }

  /** Runs the work when all work on that table which came before has ended. */
  async #inTurn<T>(tableId: number, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(tableId);
    const turn = (async () => {
      await before?.catch(() => undefined);
      return await work();
    })();
    this.#turns.set(tableId, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(tableId) === turn) this.#turns.delete(tableId);
    }
  }

  #evict(): void {
    let sizeBytes = 0;
    for (const { index } of this.#tables.values()) sizeBytes += index.sizeBytes;
    for (const [tableId, { index }] of this.#tables) {
      if (sizeBytes <= MAX_INDEX_BYTES || this.#tables.size === 1) return;
      this.#tables.delete(tableId);
      sizeBytes -= index.sizeBytes;
    }
  }
}

/** Of a new index nothing has ended: what has, says so itself. */
function emptyIndex(): Indexed {
  const headMs = Number.MAX_SAFE_INTEGER;
  return { index: new ExtentIndex(), headId: -1, headMs, columns: [], added: 0, forgottenBefore: 0, forgotten: 0 };
}

/** Whether an index must be begun anew: see `ScanPlanner`. */
function isOutdated({ headId, added, forgottenBefore, forgotten: seen }: Indexed, forgotten: number, oldest: number) {
  const mayMissEnds = forgotten !== seen && oldest > headId;
  return mayMissEnds || (forgotten - forgottenBefore) * 2 > added;
}

const STATE =
  "SELECT h.snapshot_id, h.committed_at_ms, t.schema_version, s.forgotten_extents, " +
  "greatest(t.oldest_snapshot, z.oldest_snapshot) AS oldest FROM engine.head h CROSS JOIN engine.horizon z " +
  "LEFT JOIN engine.tables t ON t.id = $1 LEFT JOIN engine.table_totals s ON s.table_id = t.id";

const ADDED =
  "SELECT seq, begin_snapshot, end_snapshot, size_bytes, row_count, min_at_ns, max_at_ns FROM engine.extents " +
  "WHERE table_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";

const ENDED = "SELECT seq, end_snapshot FROM engine.extents WHERE table_id = $1 AND deleted_at_ms >= $2";

/** A row as `ADDED` names its columns. */
function addRow(index: ExtentIndex, row: readonly unknown[]): void {
  const [seq, begin, end, sizeBytes, rowCount, minAt, maxAt] = row;
  index.add({
    seq: Number(seq),
    beginSnapshot: Number(begin),
    endSnapshot: end === null ? undefined : Number(end),
    sizeBytes: Number(sizeBytes),
    rowCount: Number(rowCount),
    minAtNs: BigInt(String(minAt)),
    maxAtNs: BigInt(String(maxAt)),
  });
}

function statsIn(decoder: StatsDecoder, { id, column_ids: columnIds, stats }: Row): ColumnStats[] {
  return readStatsOf(String(id), () => decoder.statsIn(String(columnIds), String(stats)));
}
