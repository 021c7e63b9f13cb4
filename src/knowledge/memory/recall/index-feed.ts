import type { RecordValue } from "../../../db/records.ts";
import { textToVector } from "../embed/vector-text.ts";
import type { IndexedEdge } from "../index/edge-index.ts";
import type { IndexChange, IndexPage } from "../index/memory-index.ts";
import type { IndexedNode } from "../index/node-index.ts";
import type { IndexedVector } from "../index/vector-index.ts";
import { DEFAULT_NAMESPACE } from "../model.ts";
import { readHead } from "../store.ts";
import { jsonNumbers } from "./json-numbers.ts";
import type { RecordReader } from "./record-source.ts";

/**
 * How an index follows the memory of a database: it asks for the head before each use, and for the versions between the
 * head that it has and the new one. Commits of a database are numbered without gaps, and a version is never committed
 * below a head that somebody has read, so nothing is missed. A cold start reads all versions, so rows come as arrays, and
 * of an edge's JSON only numbers are read.
 */
export class IndexFeed {
  readonly #records: RecordReader;

  constructor(records: RecordReader) {
    this.#records = records;
  }

  /** The newest commit: one indexed row. `databaseId` is the catalog's. */
  async head(databaseId: number): Promise<FeedHead> {
    const { seq, stampUs, nowUs } = await readHead(this.#records, databaseId);
    return { seq, nowUs: Math.max(nowUs, stampUs) };
  }

  /** About how many nodes and edges there are: those that are erased already count, too. From an index alone. */
  async counts(databaseId: number): Promise<{ nodes: number; edges: number }> {
    const rows = await this.#records.values(COUNTS, [databaseId]);
    const counts = new Map(rows.map(([kind, count]) => [kind, Number(count)]));
    return { nodes: counts.get("node") ?? 0, edges: counts.get("edge") ?? 0 };
  }

  /**
   * Versions whose commit is in (`afterSeq`, `throughSeq`], about `limit` of them: a page holds all versions of its last
   * commit, however many. Whatever came in a page may come in the next one again with another state, and is applied by id
   * and version.
   */
  async changes(databaseId: number, afterSeq: number, throughSeq: number, limit: number): Promise<IndexPage> {
    const seq = await this.#endOfPage(databaseId, { afterSeq, throughSeq, limit });
    const rows = await this.#records.values(VERSIONS, [databaseId, afterSeq, seq]);
    const page = { seq, nodes: [] as IndexChange<IndexedNode>[], edges: [] as IndexChange<IndexedEdge>[] };
    for (const row of rows) {
      if (isSet(row, IS_EDGE)) page.edges.push(edgeChange(row));
      else page.nodes.push(nodeChange(row));
    }
    return page;
  }

  /** Vectors of a model that come after one, in their order; fewer than `limit` are all that there are. */
  async vectors(
    { databaseId, model }: { databaseId: number; model: string },
    afterSeq: number,
    limit: number,
  ): Promise<IndexedVector[]> {
    const rows = await this.#records.values(VECTORS, [databaseId, model, afterSeq, limit]);
    return rows.map(([key, nodeId, seq, vector]) => ({
      key: String(key),
      nodeId: String(nodeId),
      seq: Number(seq),
      vector: textToVector(String(vector)),
    }));
  }

  async #endOfPage(
    databaseId: number,
    { afterSeq, throughSeq, limit }: { afterSeq: number; throughSeq: number; limit: number },
  ): Promise<number> {
    if (throughSeq - afterSeq <= FEW_COMMITS) return throughSeq;
    const range: RecordValue[] = [databaseId, afterSeq, throughSeq];
    const [row] = await this.#records.values(`${SEQS} LIMIT 1 OFFSET ?`, [...range, limit - 1]);
    return row === undefined ? throughSeq : Number(row[0]);
  }
}

export type FeedHead = {
  /** The number of the newest commit, 0 before the first. */
  seq: number;
  /**
   * The time of the database, by which commits are stamped, and not before that stamp, which runs ahead where commits come
   * faster than the clock counts. So what was saved before the head was read holds by then.
   */
  nowUs: number;
};

/** These are one page, however many versions they have. */
const FEW_COMMITS = 2;

const RANGE = "FROM memory_records WHERE database_id = ? AND seq > ? AND seq <= ? ORDER BY seq";
const SEQS = `SELECT seq ${RANGE}`;
/** The three of which a text or a number of its own for each row would cost as much as an id. */
const FLAGS =
  "CASE WHEN kind = 'edge' THEN 1 ELSE 0 END + CASE WHEN ended_seq IS NULL THEN 0 ELSE 2 END + " +
  "CASE WHEN erased = 0 THEN 0 ELSE 4 END AS flags";
const IS_EDGE = 1;
const IS_FORMER = 2;
const IS_ERASED = 4;
const COLUMNS = ["flags", "id", "version", "realm", "origin_us", "content_hash", "src", "dst", "body"] as const;
const VERSIONS = `SELECT ${COLUMNS.join(", ").replace("flags", FLAGS)} ${RANGE}`;

const COUNTS =
  "SELECT kind, COUNT(*) AS found FROM memory_records WHERE database_id = ? AND ended_seq IS NULL GROUP BY kind";

const VECTORS =
  "SELECT text_key, node_id, seq, vector FROM memory_vectors WHERE database_id = ? AND model = ? AND seq > ? " +
  "ORDER BY seq LIMIT ?";

/** Where a column is in a row. */
const COLUMN = Object.fromEntries(COLUMNS.map((name, i) => [name, i])) as Record<(typeof COLUMNS)[number], number>;

type Row = readonly unknown[];

function nodeChange(row: Row): IndexChange<IndexedNode> {
  const common = commonOf(row);
  if (isSet(row, IS_ERASED)) return { state: "erased", record: common };
  // Only this program wrote it.
  const record = Object.assign(JSON.parse(String(row[COLUMN.body])) as object, common) as IndexedNode;
  return { state: stateOf(row), record };
}

function edgeChange(row: Row): IndexChange<IndexedEdge> {
  if (isSet(row, IS_ERASED)) return { state: "erased", record: commonOf(row) };
  jsonNumbers(String(row[COLUMN.body]), NUMBERS, numbers);
  // It has a column only where it is a node of the memory.
  const dst = row[COLUMN.dst];
  const isNode = typeof dst === "string";
  // Of all rows these are the most: to spread what is common would take as long again.
  const record: IndexedEdge = {
    id: String(row[COLUMN.id]),
    version: Number(row[COLUMN.version]),
    realm: String(row[COLUMN.realm]),
    originUpdatedAtUs: Number(row[COLUMN.origin_us]),
    contentHash: String(row[COLUMN.content_hash]),
    updatedAtUs: numbers[0] ?? 0,
    validFromUs: numbers[1] ?? 0,
    validToUs: presentOf(numbers[2]),
    invalidatedAtUs: presentOf(numbers[3]),
    src: String(row[COLUMN.src]),
    dst: isNode ? dst : "",
    namespace: isNode ? DEFAULT_NAMESPACE : OTHER_GRAPH,
    weight: numbers[4] ?? 0,
  };
  return { state: stateOf(row), record };
}

const NUMBERS = ["updatedAtUs", "validFromUs", "validToUs", "invalidatedAtUs", "weight"];
const numbers = new Float64Array(NUMBERS.length);
const OTHER_GRAPH = "";

function presentOf(number: number | undefined): number | undefined {
  return number === undefined || Number.isNaN(number) ? undefined : number;
}

function commonOf(row: Row) {
  return {
    id: String(row[COLUMN.id]),
    version: Number(row[COLUMN.version]),
    realm: String(row[COLUMN.realm]),
    originUpdatedAtUs: Number(row[COLUMN.origin_us]),
    contentHash: String(row[COLUMN.content_hash]),
  };
}

function isSet(row: Row, flag: number): boolean {
  return (Number(row[COLUMN.flags]) & flag) !== 0;
}

function stateOf(row: Row): "current" | "former" {
  return isSet(row, IS_FORMER) ? "former" : "current";
}
