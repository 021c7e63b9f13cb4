import { nextTurn } from "../../../core/clock.ts";
import { NOW, type RecordStore, type Statement } from "../../../db/records.ts";
import { versionOfRow, READ_COLUMNS } from "../rows.ts";
import { chunksOf } from "../store.ts";
import { EMBED_LIMITS } from "./limits.ts";
import { embeddedText, textToVector, vectorKeyOf, vectorToText } from "./vector-text.ts";

/** The vectors of one model, by database. */
export type VectorPlace = { databaseId: number; model: string };

/** A version of a node whose text is to have a vector. */
export type EmbeddedNode = { id: string; version: number; seq: number; key: string; text: string };

/** Where a reader of nodes is: after this version of this commit. */
export type NodeCursor = { seq: number; id: string };

/** Reads and writes vectors. One process at a time holds those of a database, and writes them. */
export class VectorStore {
  readonly #records: RecordStore;
  /** Tells processes apart. */
  readonly #holder: string;

  constructor(records: RecordStore, holder: string) {
    this.#records = records;
    this.#holder = holder;
  }

  /** The commit up to which all nodes have their vectors. */
  async throughSeq({ databaseId, model }: VectorPlace): Promise<number> {
    const sql = "SELECT through_seq FROM memory_vector_heads WHERE database_id = ? AND model = ?";
    const [row] = await this.#records.rows(sql, [databaseId, model]);
    return row === undefined ? 0 : Number(row["through_seq"]);
  }

  /** Of the stored vectors; 0 when there are none. */
  async dimensions({ databaseId, model }: VectorPlace): Promise<number> {
    const sql = "SELECT vector FROM memory_vectors WHERE database_id = ? AND model = ? ORDER BY seq LIMIT 1";
    const [row] = await this.#records.rows(sql, [databaseId, model]);
    return row === undefined ? 0 : textToVector(String(row["vector"])).length;
  }

  /** Takes the vectors of a database for this process, for a while. Undefined when another process holds them. */
  async hold({ databaseId, model }: VectorPlace): Promise<{ throughSeq: number } | undefined> {
    const outcome = await this.#records.transact([
      {
        sql:
          "INSERT INTO memory_vector_heads (database_id, model, seq, through_seq, held_until_ms) VALUES (?, ?, 0, 0, 0) " +
          "ON CONFLICT DO NOTHING",
        values: [databaseId, model],
      },
      {
        sql:
          "UPDATE memory_vector_heads SET held_by = ?, held_until_ms = ? WHERE database_id = ? AND model = ? " +
          "AND (held_by IS NULL OR held_by = ? OR held_until_ms < ?) RETURNING through_seq",
        values: [this.#holder, { nowPlusMs: EMBED_LIMITS.heldMs }, databaseId, model, this.#holder, NOW],
      },
    ]);
    const row = outcome.done ? outcome.rows[1]?.[0] : undefined;
    return row === undefined ? undefined : { throughSeq: Number(row["through_seq"]) };
  }

  async release({ databaseId, model }: VectorPlace): Promise<void> {
    await this.#records.write({
      sql:
        "UPDATE memory_vector_heads SET held_by = NULL, held_until_ms = ? " +
        "WHERE database_id = ? AND model = ? AND held_by = ?",
      values: [NOW, databaseId, model, this.#holder],
    });
  }

  /** Notes that all nodes up to a commit have their vectors. False when another process holds them. */
  async advance({ databaseId, model }: VectorPlace, throughSeq: number): Promise<boolean> {
    const sql =
      "UPDATE memory_vector_heads SET through_seq = ?, held_until_ms = ? " +
      "WHERE database_id = ? AND model = ? AND held_by = ? RETURNING seq";
    const held = { nowPlusMs: EMBED_LIMITS.heldMs };
    const rows = await this.#records.write({ sql, values: [throughSeq, held, databaseId, model, this.#holder] });
    return rows.length > 0;
  }

  /** Current nodes of the commits up to `throughSeq`, in the order of commits, after the cursor. */
  async nodes(databaseId: number, { seq, id }: NodeCursor, throughSeq: number): Promise<EmbeddedNode[]> {
    const sql =
      `SELECT ${READ_COLUMNS} FROM memory_records WHERE database_id = ? AND seq >= ? AND seq <= ? ` +
      "AND (seq > ? OR id > ?) AND kind = 'node' AND ended_seq IS NULL AND erased = 0 ORDER BY seq, id LIMIT ?";
    const rows = await this.#records.rows(sql, [databaseId, seq, throughSeq, seq, id, EMBED_LIMITS.pageNodes]);
    return rows.map(versionOfRow).flatMap((stored) => {
      if (stored.kind !== "node" || stored.erased) return [];
      const { record } = stored;
      const place = { id: record.id, version: record.version, seq: stored.seq };
      return [{ ...place, key: vectorKeyOf(record), text: embeddedText(record) }];
    });
  }

  /** Those of which no vector is stored. */
  async withoutVector({ databaseId, model }: VectorPlace, nodes: readonly EmbeddedNode[]): Promise<EmbeddedNode[]> {
    const known = new Set<string>();
    for (const keys of chunksOf(nodes.map(({ key }) => key))) {
      const places = keys.map(() => "?").join(", ");
      const sql = `SELECT text_key FROM memory_vectors WHERE database_id = ? AND model = ? AND text_key IN (${places})`;
      for (const row of await this.#records.rows(sql, [databaseId, model, ...keys])) known.add(String(row["text_key"]));
    }
    return nodes.filter(({ key }) => !known.has(key));
  }

  /** The vectors of those texts that have one, by the key of the text. */
  async vectors({ databaseId, model }: VectorPlace, keys: readonly string[]): Promise<Map<string, Float32Array>> {
    const found = new Map<string, Float32Array>();
    for (const chunk of chunksOf(keys)) {
      const places = chunk.map(() => "?").join(", ");
      const sql =
        "SELECT text_key, vector FROM memory_vectors " +
        `WHERE database_id = ? AND model = ? AND text_key IN (${places})`;
      for (const row of await this.#records.rows(sql, [databaseId, model, ...chunk])) {
        found.set(String(row["text_key"]), textToVector(String(row["vector"])));
      }
      // SQLite reads on this thread: others have their turn between chunks.
      await nextTurn();
    }
    return found;
  }

  /** Stores vectors of nodes that are still there. False, and nothing is stored, when another process holds them. */
  async store(place: VectorPlace, vectors: readonly { node: EmbeddedNode; vector: Float32Array }[]): Promise<boolean> {
    const { databaseId, model } = place;
    const { done } = await this.#records.transact([
      {
        sql:
          "UPDATE memory_vector_heads SET seq = seq + ?, held_until_ms = ? " +
          "WHERE database_id = ? AND model = ? AND held_by = ? RETURNING seq",
        values: [vectors.length, { nowPlusMs: EMBED_LIMITS.heldMs }, databaseId, model, this.#holder],
        mustReturn: 1,
      },
      ...vectors.map((each, i) => insertVector(place, each, vectors.length - 1 - i)),
    ]);
    return done;
  }
}

/**
 * Looks for the version in the same transaction: of a node that is erased meanwhile no vector stays. `before`: how many
 * vectors of the transaction come after it.
 */
function insertVector(
  { databaseId, model }: VectorPlace,
  { node: { id, version, key }, vector }: { node: EmbeddedNode; vector: Float32Array },
  before: number,
): Statement {
  const newest = "(SELECT seq FROM memory_vector_heads WHERE database_id = ? AND model = ?)";
  const sql =
    "INSERT INTO memory_vectors (database_id, model, text_key, node_id, seq, vector) SELECT CAST(? AS bigint), " +
    `CAST(? AS text), CAST(? AS text), CAST(? AS text), ${newest} - CAST(? AS bigint), CAST(? AS text) ` +
    "WHERE EXISTS (SELECT 1 FROM memory_records WHERE database_id = ? AND kind = 'node' AND id = ? AND version = ? " +
    "AND erased = 0) ON CONFLICT DO NOTHING";
  const row = [databaseId, model, key, id, databaseId, model, before, vectorToText(vector)];
  return { sql, values: [...row, databaseId, id, version] };
}
