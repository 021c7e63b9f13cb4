import { NOW, type RecordRow, type RecordStore, type Statement } from "../../db/records.ts";
import { vectorKeyOf } from "./embed/vector-text.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import type { NodeRecord } from "./model.ts";
import { chunksOf } from "./store.ts";

/** What a language model says of two memories that may say the same. `undecided`: it could not, and is not asked again. */
const VERDICTS = ["same", "different", "undecided"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Two memories of one realm, and digests of what they said when the pair was found. */
export type MemoryPair = {
  databaseId: number;
  realm: string;
  /** The lower id. */
  firstId: string;
  secondId: string;
  firstKey: string;
  secondKey: string;
};

/** A pair that nobody has judged, and how often that failed. */
export type OpenPair = MemoryPair & { failures: number };

/** What the model said of a pair, and which model that was. */
export type Judged = { verdict: Verdict; model: string };

/** The pair of two memories, whichever of them comes first. */
export function pairOf(databaseId: number, one: NodeRecord, other: NodeRecord): MemoryPair {
  const [first, second] = one.id < other.id ? [one, other] : [other, one];
  const keys = { firstKey: vectorKeyOf(first), secondKey: vectorKeyOf(second) };
  return { databaseId, realm: first.realm, firstId: first.id, secondId: second.id, ...keys };
}

const OPEN = "open";
const DAY_MS = 86_400_000;
/** Pairs of one transaction: others write to the memory meanwhile. */
const AT_ONCE = 100;
const COLUMNS = "database_id, realm, first_id, second_id, first_key, second_key, verdict, failures";
const IS_PAIR = "database_id = ? AND first_id = ? AND second_id = ? AND first_key = ? AND second_key = ?";

/**
 * Pairs of memories that may say the same, and what a language model said of them. A verdict is about two texts: once one
 * of them changes it counts no more, and the pair may be asked about again.
 */
export class Verdicts {
  readonly #records: RecordStore;

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /**
   * Notes pairs that are to be judged. A pair whose texts are as they were is left as it is, and so is one of which a
   * memory was erased meanwhile; pairs beyond what a database may have waiting are not noted.
   */
  async open(databaseId: number, pairs: readonly MemoryPair[]): Promise<void> {
    if (pairs.length === 0) return;
    const sql = "SELECT count(*) AS n FROM memory_verdicts WHERE database_id = ? AND verdict = ?";
    const [row] = await this.#records.rows(sql, [databaseId, OPEN]);
    const room = Math.max(0, MEMORY_LIMITS.openPairs - Number(row?.["n"]));
    const noted = pairs.slice(0, room);
    for (let from = 0; from < noted.length; from += AT_ONCE) {
      await this.#records.transact(noted.slice(from, from + AT_ONCE).map(openStatement));
    }
  }

  /** What was said of pairs among these memories, as far as they still say what they said then. */
  async among(databaseId: number, nodes: readonly NodeRecord[]): Promise<KnownVerdicts> {
    const found = new Map<string, MemoryPair & { verdict: Verdict }>();
    for (const chunk of chunksOf(nodes.map(({ id }) => id))) {
      const places = chunk.map(() => "?").join(", ");
      const sql = `SELECT ${COLUMNS} FROM memory_verdicts WHERE database_id = ? AND verdict <> ? AND first_id IN (${places})`;
      for (const each of await this.#records.rows(sql, [databaseId, OPEN, ...chunk])) {
        const pair = toPair(each);
        const verdict = VERDICTS.find((known) => known === each["verdict"]);
        if (verdict !== undefined) found.set(keyOf(pair), { ...pair, verdict });
      }
    }
    return new KnownVerdicts(databaseId, found);
  }

  /** Of a realm: a text that differs once something else was said of its pairs. */
  async stamp(databaseId: number, realm: string): Promise<string> {
    const sql =
      "SELECT count(*) AS n, max(judged_at_ms) AS newest FROM memory_verdicts " +
      "WHERE database_id = ? AND realm = ? AND verdict <> ?";
    const [row] = await this.#records.rows(sql, [databaseId, realm, OPEN]);
    return `${Number(row?.["n"])} ${Number(row?.["newest"] ?? 0)}`;
  }

  /** Pairs that may be asked about now, of all databases: those that have waited longest first. */
  async due(limit: number): Promise<OpenPair[]> {
    const sql =
      `SELECT ${COLUMNS} FROM memory_verdicts WHERE verdict = '${OPEN}' AND due_ms <= ? ` +
      "ORDER BY due_ms, database_id, first_id, second_id LIMIT ?";
    const rows = await this.#records.rows(sql, [NOW, limit]);
    return rows.map((row) => Object.assign(toPair(row), { failures: Number(row["failures"]) }));
  }

  /** Notes what was said of a pair, if it still is about the same texts. */
  judgeStatement(pair: MemoryPair, { verdict, model }: Judged): Statement {
    const sql = `UPDATE memory_verdicts SET verdict = ?, model = ?, judged_at_ms = ? WHERE ${IS_PAIR}`;
    return { sql, values: [verdict, model, NOW, ...valuesOf(pair)] };
  }

  /** Nobody could say: the pair is asked about again after a while. */
  async postpone(pairs: readonly { pair: MemoryPair; ms: number }[]): Promise<void> {
    const sql = `UPDATE memory_verdicts SET failures = failures + 1, due_ms = ? WHERE ${IS_PAIR}`;
    const late = pairs.map(({ pair, ms }) => ({ sql, values: [{ nowPlusMs: ms }, ...valuesOf(pair)] }));
    if (late.length > 0) await this.#records.transact(late);
  }

  /** Forgets pairs that nobody need be asked about. */
  async drop(pairs: readonly MemoryPair[]): Promise<void> {
    const sql = `DELETE FROM memory_verdicts WHERE ${IS_PAIR}`;
    if (pairs.length > 0) await this.#records.transact(pairs.map((pair) => ({ sql, values: valuesOf(pair) })));
  }

  /** Forgets what was noted of memories that say something else now. */
  async dropChanged(databaseId: number, changed: readonly NodeRecord[]): Promise<void> {
    const keys = new Map(changed.map((node) => [node.id, vectorKeyOf(node)]));
    const old = new Map<string, MemoryPair>();
    for (const end of ["first_id", "second_id"] as const) {
      for (const chunk of chunksOf([...keys.keys()])) {
        const places = chunk.map(() => "?").join(", ");
        const sql = `SELECT ${COLUMNS} FROM memory_verdicts WHERE database_id = ? AND ${end} IN (${places})`;
        for (const row of await this.#records.rows(sql, [databaseId, ...chunk])) {
          const pair = toPair(row);
          const isOld = (id: string, key: string): boolean => (keys.get(id) ?? key) !== key;
          if (isOld(pair.firstId, pair.firstKey) || isOld(pair.secondId, pair.secondKey)) old.set(keyOf(pair), pair);
        }
      }
    }
    await this.drop([...old.values()]);
  }

  /** Takes so many pairs from what may be asked about in a day, of all databases; false where fewer are left. */
  async take(pairs: number, { nowMs, perDay }: { nowMs: number; perDay: number }): Promise<boolean> {
    const day = Math.floor(nowMs / DAY_MS);
    const sql =
      "INSERT INTO memory_verdict_days (day, pairs) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET " +
      "pairs = memory_verdict_days.pairs + excluded.pairs WHERE memory_verdict_days.pairs + excluded.pairs <= ? " +
      "RETURNING pairs";
    const { done } = await this.#records.transact([
      { sql: "DELETE FROM memory_verdict_days WHERE day < ?", values: [day - 1] },
      { sql, values: [day, pairs, perDay], mustReturn: 1 },
    ]);
    return done;
  }
}

/** Verdicts that were read. */
export class KnownVerdicts {
  readonly #databaseId: number;
  readonly #byPair: ReadonlyMap<string, MemoryPair & { verdict: Verdict }>;

  constructor(databaseId: number, byPair: ReadonlyMap<string, MemoryPair & { verdict: Verdict }>) {
    this.#databaseId = databaseId;
    this.#byPair = byPair;
  }

  /** Undefined where nobody has judged those texts. */
  of(one: NodeRecord, other: NodeRecord): Verdict | undefined {
    const pair = pairOf(this.#databaseId, one, other);
    const known = this.#byPair.get(keyOf(pair));
    return known?.firstKey === pair.firstKey && known.secondKey === pair.secondKey ? known.verdict : undefined;
  }
}

/** Looks for both memories in the same transaction: of one that is erased meanwhile no pair stays. */
function openStatement(pair: MemoryPair): Statement {
  const { databaseId, realm, firstId, secondId, firstKey, secondKey } = pair;
  const texts = [realm, firstId, secondId, firstKey, secondKey];
  const sql =
    "INSERT INTO memory_verdicts (database_id, realm, first_id, second_id, first_key, second_key, verdict, failures, due_ms) " +
    `SELECT CAST(? AS bigint), ${texts.map(() => "CAST(? AS text)").join(", ")}, '${OPEN}', 0, CAST(? AS bigint) ` +
    "WHERE (SELECT count(*) FROM memory_records WHERE database_id = ? AND kind = 'node' AND id IN (?, ?) " +
    "AND ended_seq IS NULL AND erased = 0) = 2 ON CONFLICT (database_id, first_id, second_id) DO UPDATE SET " +
    "realm = excluded.realm, first_key = excluded.first_key, second_key = excluded.second_key, " +
    "verdict = excluded.verdict, failures = 0, due_ms = excluded.due_ms, model = NULL, judged_at_ms = NULL " +
    "WHERE memory_verdicts.first_key <> excluded.first_key OR memory_verdicts.second_key <> excluded.second_key";
  return { sql, values: [databaseId, ...texts, NOW, databaseId, firstId, secondId] };
}

function valuesOf({ databaseId, firstId, secondId, firstKey, secondKey }: MemoryPair) {
  return [databaseId, firstId, secondId, firstKey, secondKey];
}

function toPair(row: RecordRow): MemoryPair {
  return {
    databaseId: Number(row["database_id"]),
    realm: String(row["realm"]),
    firstId: String(row["first_id"]),
    secondId: String(row["second_id"]),
    firstKey: String(row["first_key"]),
    secondKey: String(row["second_key"]),
  };
}

/** Of ids, which have no line feeds. */
function keyOf({ firstId, secondId }: MemoryPair): string {
  return `${firstId}\n${secondId}`;
}
