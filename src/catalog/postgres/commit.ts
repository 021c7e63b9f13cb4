import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import type {
  Dropped,
  ExtentMerge,
  ExtentSummary,
  FlushCommit,
  FlushOutcome,
  Lease,
  NewExtent,
  RowDeletion,
  Snapshot,
} from "../catalog.ts";
import { isStorableText } from "../invariants.ts";
import type { Statement } from "../../db/records.ts";
import { toSummary } from "../rows.ts";
import {
  CommitPlan,
  flushesOfDropped,
  lateFlushes,
  refusedFlushes,
  tablesOf,
  type CommitAnswer,
  type DroppedAnswer,
  type LateAnswer,
  type OutdatedAnswer,
} from "./commit-plan.ts";
import type { Connection, Parameter } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";
import { FIELDS } from "./extents.ts";
import { NewExtents } from "./new-extents.ts";
import { takenAtAcceptance } from "./ledger.ts";
import { translate } from "../../db/postgres/records.ts";
import { isTakenExtent, leaseParameter, toRefusal } from "./refusals.ts";
import type { SchemaReader, StoredTable } from "./schema.ts";
import type { MovedAnswer } from "./source-chain.ts";

// The time is taken once the head is locked, and is the one that the commit goes by: no waiting is left between the
// comparison with `$11` (no key was looked up so long ago that it may be forgotten) and what is judged by it. Under the
// lock it is also asked whether one of the tables `$12` was dropped, or got a vector column that the rows must fill, and
// whether the inputs `$13` are where their steps begin; functions see what was committed by then, which the statement itself does not.
const COMMIT =
  "WITH head AS MATERIALIZED (SELECT 1 FROM engine.head FOR UPDATE), " +
  "clock AS MATERIALIZED (SELECT engine.now_ms($1::bigint) AS now_ms, engine.dropped_of($12::text::json) AS dropped " +
  "FROM head) " +
  "SELECT CASE WHEN now_ms >= $11::bigint THEN json_build_object('kind', 'late', 'nowMs', now_ms) " +
  "WHEN dropped IS NOT NULL THEN json_build_object('kind', 'dropped', 'tables', dropped) ELSE " +
  "coalesce(engine.flushes_before_vectors($5::text::json), engine.flushes_before_widening($5::text::json), " +
  "engine.positions_moved($13::text::json), engine.advance_positions($13::text::json, " +
  "engine.commit_flushes(now_ms, $2::bigint, $3::uuid, $4::text::json, $5::text::json, $6::text::json, " +
  "$7::text::json, $8::text::json, $9::text::json, $10::text::json))) END AS answer FROM clock";

const MERGE =
  "SELECT engine.merge_extents($1::bigint, $2::uuid, $3::text::json, $4::bigint, $5::text::json, $6::text::json, " +
  "$7::text::json) AS answer";

const DELETE_ROWS =
  "SELECT engine.delete_rows($1::bigint, $2::uuid, $3::bigint, $4::text::json, $5::bigint, $6::text::json, " +
  "$7::text::json) AS answer";

const DROP = "SELECT engine.drop_named($1::bigint, $2::uuid, $3::bigint, $4::bigint) AS answer";

const END = `SELECT ${FIELDS} FROM engine.end_extents($1::bigint, $2::uuid, $3::text::json, $4::bigint, $5::text::json) e`;

const ENDED_WITH = `SELECT ${FIELDS} FROM engine.extents e WHERE e.table_id = $1 AND e.deleted_at_ms = $2 AND e.end_snapshot = $3`;

/**
 * A commit whose tables have moved since it looked at them looks again. After so many times it keeps others from
 * committing while it looks: those that are always faster would keep it out for ever.
 */
const OPTIMISTIC_ATTEMPTS = 3;

/** What a snapshot was made with, as the database remembers it. */
type Answer = { snapshotId: number; committedAtMs: number };

type Answered = CommitAnswer | LateAnswer | DroppedAnswer | OutdatedAnswer | MovedAnswer;

/** Everything that makes snapshots. */
export class SnapshotWriter {
  readonly #database: Database;
  readonly #schema: SchemaReader;

  constructor(database: Database, schema: SchemaReader) {
    this.#database = database;
    this.#schema = schema;
  }

  async commit(flushes: readonly FlushCommit[], lease: Lease | undefined): Promise<FlushOutcome[]> {
    const settled = await takenAtAcceptance(this.#database, flushes);
    let tables = await this.#seenTables(flushes);
    for (let attempt = 1; attempt <= LIMITS.commitAttempts; attempt++) {
      let plan = await this.#plan(flushes, tables, settled);
      const send = async (connection: Connection, commitId: string): Promise<Answered> => {
        if (attempt <= OPTIMISTIC_ATTEMPTS) return await this.#send(connection, plan, { commitId, lease });
        return await withHead(connection, async () => {
          plan = await this.#plan(flushes, await this.#freshTables(flushes), settled);
          return await this.#send(connection, plan, { commitId, lease });
        });
      };
      const answer = await this.#refusing(
        lease,
        flushes.flatMap(({ extents }) => extents),
        () => this.#database.commitOnce<Answered>(send, async (_, recalled) => recalled as CommitAnswer),
      );
      if (answer.kind === "done") return plan.outcomes(answer);
      if (answer.kind === "late") {
        for (const [flush, outcome] of lateFlushes(flushes, answer.nowMs)) settled.set(flush, outcome);
        continue;
      }
      if (answer.kind === "dropped") {
        for (const [flush, outcome] of flushesOfDropped(flushes, new Set(answer.tables))) settled.set(flush, outcome);
        continue;
      }
      if (answer.kind === "before_vectors" || answer.kind === "before_widening") {
        for (const flush of answer.flushes) settled.set(flush, { kind: "schema_conflict" });
        continue;
      }
      if (answer.kind === "moved") {
        for (const [flush, outcome] of plan.moved(answer)) settled.set(flush, outcome);
        continue;
      }
      if (answer.kind === "stale") tables = await this.#freshTables(flushes);
      for (const [flush, outcome] of refusedFlushes(flushes, answer)) settled.set(flush, outcome);
    }
    this.#database.countGivenUp();
    const message = `the tables of the commit moved ${LIMITS.commitAttempts} times before it; nothing was stored`;
    throw new EngineError("ingest_failed", message);
  }

  /** Extents that died, in the order of the ids. */
  async endExtents(tableId: number, ids: readonly string[], lease: Lease | undefined): Promise<ExtentSummary[]> {
    const list = JSON.stringify(ids.filter(isStorableText));
    const rows = await this.#refusing(lease, [], () =>
      this.#database.commitOnce(
        (connection, commitId) =>
          connection.query(END, [this.#database.now, commitId, leaseParameter(lease), tableId, list]),
        (connection, recalled) => {
          const { snapshotId, committedAtMs } = recalled as Answer;
          return connection.query(ENDED_WITH, [tableId, committedAtMs, snapshotId]);
        },
      ),
    );
    const ended = new Map(rows.map((row) => [String(row["id"]), toSummary(row)]));
    return [...new Set(ids)].flatMap((id) => ended.get(id) ?? []);
  }

  async mergeExtents(merge: ExtentMerge): Promise<Snapshot | undefined> {
    const { tableId, inputs, outputs, schemaVersion, lease } = merge;
    const table = await this.#tableOf(merge);
    if (table === undefined) return undefined;
    if (inputs.length === 0 || new Set(inputs).size < inputs.length) {
      throw new Error("a merge has no input, or one twice");
    }
    const rows = new NewExtents();
    rows.add(outputs, { flush: 0, table, schemaVersion });
    if (!inputs.every(isStorableText)) return undefined;
    const sent = [tableId, JSON.stringify(inputs), rows.extents, rows.filters];
    const answer = await this.#refusing(lease, outputs, () =>
      this.#database.commitOnce<Answer | null>(
        async (connection, commitId) => {
          const parameters = [this.#database.now, commitId, leaseParameter(lease), ...sent];
          const [row] = await connection.query(MERGE, parameters);
          return (row?.["answer"] ?? null) as Answer | null;
        },
        async (_, recalled) => recalled as Answer,
      ),
    );
    return answer === null ? undefined : snapshotOf(answer);
  }

  async deleteRows(deletion: RowDeletion): Promise<Snapshot | undefined> {
    const { tableId, groups, rows, schemaVersion, also = [] } = deletion;
    const table = await this.#tableOf(deletion);
    if (table === undefined) return undefined;
    const inputs = groups.map((group) => group.inputs);
    if (new Set(inputs.flat()).size < inputs.flat().length) throw new Error("a deletion has an input twice");
    const extents = new NewExtents();
    for (const [flush, { outputs }] of groups.entries()) extents.add(outputs, { flush, table, schemaVersion });
    if (!inputs.flat().every(isStorableText)) return undefined;
    const sent = [tableId, JSON.stringify(inputs), rows, extents.extents, extents.filters];
    const answer = await this.#refusing(
      undefined,
      groups.flatMap(({ outputs }) => outputs),
      () => this.#makeWith(DELETE_ROWS, sent, also),
    );
    return answer === null ? undefined : snapshotOf(answer);
  }

  async drop(
    { tableId, databaseId }: { tableId?: number; databaseId?: number },
    also: readonly Statement[],
  ): Promise<Dropped | undefined> {
    const answer = await this.#makeWith(DROP, [tableId ?? null, databaseId ?? null], also);
    if (answer === null) return undefined;
    const { tables = 0, rows = 0, extents = 0, sizeBytes = 0 } = answer as Answer & Partial<Omit<Dropped, "snapshot">>;
    return { snapshot: snapshotOf(answer), tables, rows, extents, sizeBytes };
  }

  /** A snapshot, with what is done in the same transaction; null when there was no reason for one. */
  async #makeWith(sql: string, sent: readonly Parameter[], also: readonly Statement[]): Promise<Answer | null> {
    return await this.#database.commitOnce<Answer | null>(
      (connection, commitId) =>
        withHead(connection, async () => {
          const [row] = await connection.query(sql, [this.#database.now, commitId, ...sent]);
          const answer = (row?.["answer"] ?? null) as Answer | null;
          if (answer === null) return null;
          for (const statement of also) {
            const { text, parameters } = translate(statement, this.#database.now);
            await connection.query(text, parameters);
          }
          return answer;
        }),
      async (_, recalled) => recalled as Answer,
    );
  }

  async #send(
    connection: Connection,
    plan: CommitPlan,
    { commitId, lease }: { commitId: string; lease: Lease | undefined },
  ): Promise<Answered> {
    const fixed = [this.#database.now, LIMITS.idempotencyTtlMs, commitId, leaseParameter(lease)];
    const asked = [plan.lateFromMs, JSON.stringify(plan.tableIds), plan.steps];
    const [row] = await connection.query(COMMIT, [...fixed, ...plan.parameters, ...asked]);
    if (row === undefined) throw new Error("the catalog gave no answer to a commit");
    return row["answer"] as Answered;
  }

  /** Judges the flushes by the tables as they were last seen; what is wrong by these may be right by now. */
  async #plan(
    flushes: readonly FlushCommit[],
    tables: ReadonlyMap<number, StoredTable>,
    settled: Map<number, FlushOutcome>,
  ): Promise<CommitPlan> {
    try {
      return new CommitPlan(flushes, tables, settled);
    } catch {
      const fresh = await this.#freshTables(flushes);
      const missing = tablesOf(flushes, settled).filter((id) => !fresh.has(id));
      const dropped = flushesOfDropped(flushes, await this.#schema.dropped(missing));
      for (const [flush, outcome] of dropped) settled.set(flush, outcome);
      return new CommitPlan(flushes, fresh, settled);
    }
  }

  async #seenTables(flushes: readonly FlushCommit[]): Promise<Map<number, StoredTable>> {
    const tables = new Map<number, StoredTable>();
    for (const { tableId } of flushes) {
      const table = tables.get(tableId) ?? (await this.#schema.seenTable(tableId));
      if (table !== undefined) tables.set(tableId, table);
    }
    return tables;
  }

  async #freshTables(flushes: readonly FlushCommit[]): Promise<Map<number, StoredTable>> {
    const ids = [...new Set(flushes.map(({ tableId }) => tableId))];
    const found = await Promise.all(ids.map((id) => this.#schema.tableById(id)));
    return new Map(found.flatMap((table) => (table === undefined ? [] : [[table.id, table]])));
  }

  /** Undefined when it was dropped. */
  async #tableOf({
    tableId,
    schemaVersion,
  }: Pick<ExtentMerge, "tableId" | "schemaVersion">): Promise<StoredTable | undefined> {
    const table = await this.#schema.tableById(tableId);
    if (table === undefined && (await this.#schema.dropped([tableId])).has(tableId)) return undefined;
    if (table === undefined) throw new Error(`a merge names table id ${tableId}, which does not exist`);
    if (schemaVersion <= table.schemaVersion) return table;
    throw new Error(`a merge of table ${table.name} has schema version ${schemaVersion}, which is to come`);
  }

  async #refusing<T>(lease: Lease | undefined, extents: readonly NewExtent[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw isTakenExtent(error) ? await this.#takenExtent(extents, error) : toRefusal(error, lease);
    }
  }

  /** Names the extent whose id was taken: by one in the catalog, or by another of the call. */
  async #takenExtent(extents: readonly NewExtent[], cause: unknown): Promise<Error> {
    const ids = extents.map(({ id }) => id);
    const sql =
      "SELECT id FROM engine.extents WHERE id IN (SELECT json_array_elements_text($1::text::json)) ORDER BY id LIMIT 1";
    const [row] = await this.#database.rows(sql, [JSON.stringify(ids)]);
    const twice = ids.find((id, i) => ids.indexOf(id) < i);
    return new Error(`extent ${row === undefined ? twice : String(row["id"])} is in the catalog already`, { cause });
  }
}

function snapshotOf({ snapshotId, committedAtMs }: Answer): Snapshot {
  return { id: snapshotId, committedAtMs };
}

/** A transaction in which nobody else commits. */
async function withHead<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.script("BEGIN");
  try {
    await connection.query("SELECT 1 FROM engine.head FOR UPDATE");
    const value = await work();
    await connection.script("COMMIT");
    return value;
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}
