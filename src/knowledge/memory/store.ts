import { nextTurn } from "../../core/clock.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue } from "../../db/records.ts";
import type { Known, RecordKey } from "./draft.ts";
import type { NodeRecord } from "./model.ts";
import { realmCondition, type RealmRights } from "./realms.ts";
import { READ_COLUMNS, versionOfRow, type RecordKind, type StoredVersion } from "./rows.ts";

/** The newest commit of a database. */
export type Head = {
  seq: number;
  /** 0 before the first commit. */
  stampUs: number;
  /** The time of the database. */
  nowUs: number;
};

export type CountRow = { realm: string; kind: string; current: number; invalidated: number };

/** Ids in one statement. Texts of statements are kept prepared, so there are as many as sizes. */
const IDS_AT_ONCE = [1, 8, 64, 512] as const;
/** Statements after which a database in the same process lets others have their turn. */
const STATEMENTS_PER_TURN = 4;

const CURRENT = "ended_seq IS NULL";
const OF_SAME_ID = "v.database_id = r.database_id AND v.kind = r.kind AND v.id = r.id";
const KNOWN_COLUMNS =
  `${READ_COLUMNS}, (SELECT max(v.version) FROM memory_records v WHERE ${OF_SAME_ID}) AS latest, ` +
  `(SELECT max(v.origin_us) FROM memory_records v WHERE ${OF_SAME_ID} AND v.erased = 1) AS erased_origin_us`;

/** The newest commit of a database, by its id in the catalog: one indexed row. */
export async function readHead(records: Pick<RecordStore, "rows">, databaseId: number): Promise<Head> {
  const sql =
    "SELECT ? AS now_ms, (SELECT seq FROM memory_heads WHERE database_id = ?) AS seq, " +
    "(SELECT stamp_us FROM memory_heads WHERE database_id = ?) AS stamp_us";
  const [row] = await records.rows(sql, [NOW, databaseId, databaseId]);
  if (row === undefined) throw new Error("the catalog did not say what time it is");
  return { seq: Number(row["seq"]), stampUs: Number(row["stamp_us"]), nowUs: Number(row["now_ms"]) * 1_000 };
}

/** Reads the records of memories. Nobody's rights are asked but where a method takes them. */
export class MemoryStore {
  readonly #records: Pick<RecordStore, "rows">;

  constructor(records: Pick<RecordStore, "rows">) {
    this.#records = records;
  }

  async head(databaseId: number): Promise<Head> {
    return await readHead(this.#records, databaseId);
  }

  /** The databases that have a memory, the one that changed last first; dropped ones are among them. */
  async databases(): Promise<number[]> {
    const rows = await this.#records.rows("SELECT database_id FROM memory_heads ORDER BY stamp_us DESC, database_id");
    return rows.map((row) => Number(row["database_id"]));
  }

  /** The newest commit whose stamp is not after the time; 0 when there is none. */
  async seqAt(databaseId: number, stampUs: number): Promise<number> {
    const sql = "SELECT seq FROM memory_commits WHERE database_id = ? AND stamp_us <= ? ORDER BY stamp_us DESC LIMIT 1";
    const [row] = await this.#records.rows(sql, [databaseId, stampUs]);
    return row === undefined ? 0 : Number(row["seq"]);
  }

  async stampOf(databaseId: number, seq: number): Promise<number> {
    const sql = "SELECT stamp_us FROM memory_commits WHERE database_id = ? AND seq = ?";
    const [row] = await this.#records.rows(sql, [databaseId, seq]);
    return row === undefined ? 0 : Number(row["stamp_us"]);
  }

  /** The current versions of those ids, with what else a change of them must know. */
  async known(databaseId: number, kind: RecordKind, ids: readonly string[]): Promise<Known[]> {
    return await this.#inChunks(ids, (places) => {
      const which = `database_id = ? AND kind = ? AND ${CURRENT} AND id IN (${places})`;
      return { sql: `SELECT ${KNOWN_COLUMNS} FROM memory_records r WHERE ${which}`, before: [databaseId, kind] };
    });
  }

  /** The memories that equal ones confirm. */
  async knownByDuplicateKey(databaseId: number, keys: readonly string[]): Promise<Known[]> {
    return await this.#inChunks(keys, (places) => {
      const which = `database_id = ? AND ${CURRENT} AND duplicate_key IS NOT NULL AND duplicate_key IN (${places})`;
      return { sql: `SELECT ${KNOWN_COLUMNS} FROM memory_records r WHERE ${which}`, before: [databaseId] };
    });
  }

  /** The edges of a node of the memory. */
  async knownEdgesOf(databaseId: number, nodeId: string): Promise<Known[]> {
    const found = await Promise.all(
      ["src", "dst"].map(async (end) => {
        const which = `database_id = ? AND ${CURRENT} AND ${end} IS NOT NULL AND ${end} = ?`;
        const sql = `SELECT ${KNOWN_COLUMNS} FROM memory_records r WHERE ${which}`;
        return await this.#records.rows(sql, [databaseId, nodeId]);
      }),
    );
    return found.flat().map(knownOfRow);
  }

  /** Current edges that begin, or end, at nodes of the memory; about `limit` of each statement's, in the order of ids. */
  async edgesAt(
    databaseId: number,
    end: "src" | "dst",
    ids: readonly string[],
    { limit, rights }: { limit: number; rights: RealmRights },
  ): Promise<StoredVersion[]> {
    const realms = realmCondition(rights);
    const found = new Map<string, StoredVersion>();
    for (const chunk of chunksOf([...new Set(ids)])) {
      const places = chunk.map(() => "?").join(", ");
      const which = `database_id = ? AND ${CURRENT} AND ${end} IS NOT NULL AND ${end} IN (${places})${realms.sql}`;
      const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which} ORDER BY id LIMIT ?`;
      const rows = await this.#records.rows(sql, [databaseId, ...chunk, ...realms.values, limit]);
      for (const version of rows.map(versionOfRow)) found.set(version.record.id, version);
      await nextTurn();
    }
    return [...found.values()];
  }

  async current(databaseId: number, { kind, id }: RecordKey): Promise<StoredVersion | undefined> {
    const which = `database_id = ? AND kind = ? AND ${CURRENT} AND id = ?`;
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which}`;
    const [row] = await this.#records.rows(sql, [databaseId, kind, id]);
    return row === undefined ? undefined : versionOfRow(row);
  }

  /** The newest versions of an id, the newest first. */
  async versions(databaseId: number, { kind, id }: RecordKey, limit: number): Promise<StoredVersion[]> {
    const which = "database_id = ? AND kind = ? AND id = ?";
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which} ORDER BY version DESC LIMIT ?`;
    return (await this.#records.rows(sql, [databaseId, kind, id, limit])).map(versionOfRow);
  }

  /** Current versions after an id, tombstones too, in the order of ids. */
  async page(
    databaseId: number,
    kind: RecordKind,
    { after, limit, rights }: { after: string; limit: number; rights: RealmRights },
  ): Promise<StoredVersion[]> {
    const realms = realmCondition(rights);
    const which = `database_id = ? AND kind = ? AND ${CURRENT} AND id > ?${realms.sql}`;
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which} ORDER BY id LIMIT ?`;
    return (await this.#records.rows(sql, [databaseId, kind, after, ...realms.values, limit])).map(versionOfRow);
  }

  /** Nodes of those realms that hold, the last changed first. */
  async newestNodes(
    databaseId: number,
    { realms, limit }: { realms: readonly string[]; limit: number },
  ): Promise<NodeRecord[]> {
    // Each of its own: for several at once there is no index that has the order.
    const found = await Promise.all(realms.map((realm) => this.#newestRows(databaseId, realm, limit)));
    const newest = found.flat().toSorted((a, b) => Number(b["seq"]) - Number(a["seq"]));
    return nodesThatHold(newest.slice(0, limit));
  }

  /** Nodes of a realm, the last changed first, those that do not hold too. */
  async newestIn(databaseId: number, realm: string, limit: number): Promise<NodeRecord[]> {
    return nodesIn(await this.#newestRows(databaseId, realm, limit));
  }

  #newestRows(databaseId: number, realm: string, limit: number): Promise<RecordRow[]> {
    const which = `database_id = ? AND kind = 'node' AND ${CURRENT} AND erased = 0 AND realm = ?`;
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which} ORDER BY seq DESC, id LIMIT ?`;
    return this.#records.rows(sql, [databaseId, realm, limit]);
  }

  /** Nodes of those realms that hold, after an id, in the order of ids; `last` is the id that the page ends with. */
  async nodesAfter(
    databaseId: number,
    { realms, after, limit }: { realms: readonly string[]; after: string; limit: number },
  ): Promise<{ nodes: NodeRecord[]; last: string | undefined }> {
    const which = `database_id = ? AND kind = 'node' AND ${CURRENT} AND erased = 0 AND id > ? AND realm IN (${realms.map(() => "?").join(", ")})`;
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which} ORDER BY id LIMIT ?`;
    const rows = await this.#records.rows(sql, [databaseId, after, ...realms, limit]);
    const last = rows.length < limit ? undefined : rows.map(versionOfRow).at(-1)?.record.id;
    return { nodes: nodesThatHold(rows), last };
  }

  /** A version of a record; undefined when it is not kept. */
  async version(databaseId: number, { kind, id }: RecordKey, version: number): Promise<StoredVersion | undefined> {
    const which = "database_id = ? AND kind = ? AND id = ? AND version = ?";
    const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which}`;
    const [row] = await this.#records.rows(sql, [databaseId, kind, id, version]);
    return row === undefined ? undefined : versionOfRow(row);
  }

  /** Current versions whose commit is in (`afterSeq`, `throughSeq`]: about `limit`, and all of the last one's commit. */
  async changed(
    databaseId: number,
    range: { afterSeq: number; throughSeq: number; limit: number; rights: RealmRights; realm: string | undefined },
  ): Promise<{ versions: StoredVersion[]; seq: number; hasMore: boolean }> {
    const rights = realmCondition(range.rights);
    const realm =
      range.realm === undefined ? { sql: "", values: [] } : { sql: " AND realm = ?", values: [range.realm] };
    const also = {
      sql: ` AND ${CURRENT}${rights.sql}${realm.sql}`,
      values: [...rights.values, ...realm.values],
    };
    return await this.#inOrder(databaseId, range, also);
  }

  async counts(databaseId: number, rights: RealmRights): Promise<CountRow[]> {
    const realms = realmCondition(rights);
    const which = `database_id = ? AND current <> 0${realms.sql}`;
    const sql = `SELECT realm, kind, current, invalidated FROM memory_counts WHERE ${which} ORDER BY realm, kind`;
    const rows = await this.#records.rows(sql, [databaseId, ...realms.values]);
    return rows.map((row) => ({
      realm: String(row["realm"]),
      kind: String(row["kind"]),
      current: Number(row["current"]),
      invalidated: Number(row["invalidated"]),
    }));
  }

  async #inOrder(
    databaseId: number,
    { afterSeq, throughSeq, limit }: { afterSeq: number; throughSeq: number; limit: number },
    also: { sql: string; values: readonly RecordValue[] } = { sql: "", values: [] },
  ): Promise<{ versions: StoredVersion[]; seq: number; hasMore: boolean }> {
    const select = (range: string, rest: string) =>
      `SELECT ${READ_COLUMNS} FROM memory_records WHERE database_id = ? AND ${range}${also.sql} ORDER BY seq${rest}`;
    const sql = select("seq > ? AND seq <= ?", ", kind, id, version LIMIT ?");
    const found = await this.#records.rows(sql, [databaseId, afterSeq, throughSeq, ...also.values, limit]);
    if (found.length < limit) return { versions: found.map(versionOfRow), seq: throughSeq, hasMore: false };
    const seq = Number(found.at(-1)?.["seq"]);
    const whole = found.filter((row) => Number(row["seq"]) < seq);
    // As a range: of "seq = ?" SQLite makes a walk through all versions, in an index that has the order.
    const ofCommit = select("seq >= ? AND seq <= ?", ", kind, id, version");
    const last = await this.#records.rows(ofCommit, [databaseId, seq, seq, ...also.values]);
    return { versions: [...whole, ...last].map(versionOfRow), seq, hasMore: seq < throughSeq };
  }

  async #inChunks(
    ids: readonly string[],
    statementOf: (places: string) => { sql: string; before: RecordValue[] },
  ): Promise<Known[]> {
    const known: Known[] = [];
    const chunks = chunksOf([...new Set(ids)]);
    for (const [i, chunk] of chunks.entries()) {
      if (i % STATEMENTS_PER_TURN === STATEMENTS_PER_TURN - 1) await nextTurn();
      const { sql, before } = statementOf(chunk.map(() => "?").join(", "));
      known.push(...(await this.#records.rows(sql, [...before, ...chunk])).map(knownOfRow));
    }
    return known;
  }
}

/** In pieces of one of the sizes; the last one repeats an id until it has one. */
export function chunksOf<T>(ids: readonly T[], sizes: readonly number[] = IDS_AT_ONCE): T[][] {
  const most = sizes.at(-1) ?? 1;
  const chunks: T[][] = [];
  for (let from = 0; from < ids.length; from += most) {
    const chunk = ids.slice(from, from + most);
    const size = sizes.find((each) => each >= chunk.length) ?? most;
    while (chunk.length < size) chunk.push(...chunk.slice(-1));
    chunks.push(chunk);
  }
  return chunks;
}

function nodesThatHold(rows: readonly RecordRow[]): NodeRecord[] {
  return nodesIn(rows).filter(({ validToUs, invalidatedAtUs }) => {
    return validToUs === undefined && invalidatedAtUs === undefined;
  });
}

function nodesIn(rows: readonly RecordRow[]): NodeRecord[] {
  return rows.map(versionOfRow).flatMap((version) => {
    return version.kind === "node" && !version.erased ? [version.record] : [];
  });
}

function knownOfRow(row: RecordRow): Known {
  const erased = row["erased_origin_us"];
  return {
    current: versionOfRow(row),
    latest: Number(row["latest"]),
    erasedOriginUs: erased === null || erased === undefined ? undefined : Number(erased),
  };
}
