import type { Caller } from "../../../auth/caller.ts";
import { mayUseDatabase } from "../../../auth/caller.ts";
import { mayReachWithin, ownerOf, type Asker } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../../db/records.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { storable } from "../sessions/text.ts";
import type { Citations, NumberedEvent, RunErrorCode, RunStatus, Usage } from "./events.ts";

/** A question and what came of it, as it is stored. */
export type StoredRun = {
  id: string;
  sessionId: string | undefined;
  database: string;
  question: string;
  /** Undefined where there was no engine. */
  engine: { kind: string; model: string } | undefined;
  status: RunStatus;
  error: { code: RunErrorCode; message: string } | undefined;
  answer: string | undefined;
  promptHash: string | undefined;
  toolCalls: number;
  usage: Usage;
  queries: Citations["queries"];
  startedAtMs: number;
  finishedAtMs: number | undefined;
};

export type StoredEvent = NumberedEvent & { atMs: number };

export type NewRun = {
  runId: string;
  caller: Caller;
  database: string;
  question: string;
  engine: { kind: string; model: string } | undefined;
};

/** How a run ended. */
export type RunEnd = {
  runId: string;
  sessionId: string;
  status: Exclude<RunStatus, "running">;
  error?: { code: RunErrorCode; message: string } | undefined;
  /** What was answered, or begun to be. */
  answer: string | undefined;
  promptHash: string | undefined;
  toolCalls: number;
  usage: Usage;
  queries: Citations["queries"];
};

export type RunStoreDeps = {
  records: RecordStore;
  sessions: Pick<Sessions, "endStatements">;
  /** Of this process, and of no other. */
  holder: string;
  /** No other process works on the catalog: whatever runs under another holder is of one that is gone. */
  isAlone: boolean;
};

/** Rows of events in one statement. */
const EVENTS_AT_ONCE = 50;
const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
/** Runs without a holder that are ended at a time. */
const ENDED_AT_ONCE = 100;

/** The runs of all nodes, and their events. */
export class RunStore {
  readonly #deps: RunStoreDeps;

  constructor(deps: RunStoreDeps) {
    this.#deps = deps;
  }

  /** For the transaction that takes the session. */
  insertion({ runId, caller, database, question, engine }: NewRun, sessionId: string): Statement {
    const sql =
      "INSERT INTO agent_runs (id, session_id, owner, database, question, engine_kind, model, status, tool_calls, usage, " +
      "queries, holder, lease_until_ms, started_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, 'running', 0, ?, '[]', ?, ?, ?)";
    const asked = [runId, sessionId, ownerOf(caller), database, storable(question)];
    const answering = [engine?.kind ?? "", engine?.model ?? "", JSON.stringify(NO_USAGE), this.#deps.holder];
    return { sql, values: [...asked, ...answering, { nowPlusMs: AGENT_LIMITS.leaseMs }, NOW] };
  }

  /** Stores events and extends the lease. Resolves to whether the run is still this process's: others end what is late. */
  async append(runId: string, events: readonly NumberedEvent[]): Promise<boolean> {
    const outcome = await this.#deps.records.transact([this.#stillHeld(runId), ...insertions(runId, events)]);
    return outcome.done;
  }

  /** The last events, the answer in its session, and the end, together. Resolves to whether the run was still held. */
  async finish(end: RunEnd, events: readonly NumberedEvent[]): Promise<boolean> {
    const { runId, sessionId, answer } = end;
    const outcome = await this.#deps.records.transact([
      this.#stillHeld(runId),
      ...insertions(runId, events),
      ending(end),
      ...this.#deps.sessions.endStatements({ sessionId, runId, answer }),
    ]);
    return outcome.done;
  }

  /**
   * Ends runs whose holder has not been heard of: of a process that died, or that cannot reach the catalog. Resolves to
   * how many.
   */
  async endForsaken(): Promise<number> {
    const { sql: forsaken, values } = this.#forsaken();
    const sql = `SELECT id, session_id, tool_calls, usage FROM agent_runs WHERE ${forsaken} LIMIT ?`;
    const rows = await this.#deps.records.rows(sql, [...values, ENDED_AT_ONCE]);
    let ended = 0;
    const problems: unknown[] = [];
    for (const row of rows) {
      try {
        if (await this.#endForsaken(String(row["id"]), row)) ended++;
      } catch (error) {
        // The others are not to wait for one that cannot be ended.
        problems.push(error);
      }
    }
    if (problems.length > 0) throw new AggregateError(problems, `${problems.length} runs could not be ended`);
    return ended;
  }

  #forsaken(): { sql: string; values: RecordValue[] } {
    const { isAlone, holder } = this.#deps;
    if (isAlone) return { sql: "status = 'running' AND (lease_until_ms < ? OR holder <> ?)", values: [NOW, holder] };
    return { sql: "status = 'running' AND lease_until_ms < ?", values: [NOW] };
  }

  async #endForsaken(runId: string, row: RecordRow): Promise<boolean> {
    const { records, sessions } = this.#deps;
    const [last] = await records.rows("SELECT max(seq) AS seq FROM agent_run_events WHERE run_id = ?", [runId]);
    const seq = Number(last?.["seq"] ?? 0);
    const said = "SELECT data FROM agent_run_events WHERE run_id = ? AND event = 'answer_delta' ORDER BY seq LIMIT ?";
    const deltas = await records.rows(said, [runId, MAX_DELTAS]);
    const answer = deltas.map(({ data }) => (JSON.parse(String(data)) as { text: string }).text).join("");
    const message = "the process that answered ended";
    const { sql: forsaken, values } = this.#forsaken();
    const toolCalls = Number(row["tool_calls"]);
    const events: NumberedEvent[] = [
      { seq: seq + 1, event: "run_error", data: { code: "interrupted", message, retryable: true } },
      {
        seq: seq + 2,
        event: "run_finished",
        data: { run_id: runId, status: "failed", duration_ms: 0, tool_calls: toolCalls, usage: usageOf(row["usage"]) },
      },
    ];
    const over: Statement = {
      sql:
        "UPDATE agent_runs SET status = 'failed', error_code = 'interrupted', error_message = ?, answer = ?, " +
        `finished_at_ms = ? WHERE id = ? AND ${forsaken} RETURNING id`,
      values: [message, answer === "" ? null : storable(answer), NOW, runId, ...values],
      mustReturn: 1,
    };
    const sessionId = row["session_id"];
    const released = typeof sessionId === "string" ? sessions.endStatements({ sessionId, runId, answer }) : [];
    return (await records.transact([over, ...insertions(runId, events), ...released])).done;
  }

  /** @throws EngineError `not_found`, also of another's */
  async get(runId: string, caller: Asker): Promise<StoredRun> {
    const [row] = await this.#deps.records.rows("SELECT * FROM agent_runs WHERE id = ?", [runId]);
    const isReached =
      row !== undefined &&
      mayReachWithin(caller, String(row["owner"])) &&
      mayUseDatabase(caller, String(row["database"]));
    if (!isReached) throw new EngineError("not_found", `there is no run ${JSON.stringify(runId.slice(0, 100))}`);
    return runOfRow(row);
  }

  /** Events after that one, in order, at most so many. */
  async events(runId: string, { after, limit }: { after: number; limit: number }): Promise<StoredEvent[]> {
    const sql = "SELECT * FROM agent_run_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?";
    return (await this.#deps.records.rows(sql, [runId, after, limit])).map(eventOfRow);
  }

  #stillHeld(runId: string): Statement {
    const sql =
      "UPDATE agent_runs SET lease_until_ms = ? WHERE id = ? AND holder = ? AND status = 'running' RETURNING id";
    return { sql, values: [{ nowPlusMs: AGENT_LIMITS.leaseMs }, runId, this.#deps.holder], mustReturn: 1 };
  }
}

/** Of the part of an answer that a run which was interrupted had given. */
const MAX_DELTAS = 10_000;

function insertions(runId: string, events: readonly NumberedEvent[]): Statement[] {
  const statements: Statement[] = [];
  for (let i = 0; i < events.length; i += EVENTS_AT_ONCE) {
    const some = events.slice(i, i + EVENTS_AT_ONCE);
    const rows = some.map(() => "(?, ?, ?, ?, ?)").join(", ");
    // Written again where the answer of the transaction was lost.
    const sql = `INSERT INTO agent_run_events (run_id, seq, event, data, at_ms) VALUES ${rows} ON CONFLICT DO NOTHING`;
    const values = some.flatMap(({ seq, event, data }) => [runId, seq, event, JSON.stringify(data), NOW]);
    statements.push({ sql, values });
  }
  return statements;
}

function ending(end: RunEnd): Statement {
  const sql =
    "UPDATE agent_runs SET status = ?, error_code = ?, error_message = ?, answer = ?, prompt_hash = ?, tool_calls = ?, " +
    "usage = ?, queries = ?, finished_at_ms = ? WHERE id = ?";
  const { status, error, answer, promptHash, toolCalls, usage, queries, runId } = end;
  const said = [error?.message, answer].map((text) => (text === undefined ? null : storable(text)));
  const outcome = [status, error?.code ?? null, ...said, promptHash ?? null];
  return { sql, values: [...outcome, toolCalls, JSON.stringify(usage), JSON.stringify(queries), NOW, runId] };
}

function runOfRow(row: RecordRow): StoredRun {
  const text = (name: string) => (typeof row[name] === "string" && row[name] !== "" ? row[name] : undefined);
  const [kind, model, code] = [text("engine_kind"), text("model"), text("error_code")];
  const finishedAt = row["finished_at_ms"];
  return {
    id: String(row["id"]),
    sessionId: text("session_id"),
    database: String(row["database"]),
    question: String(row["question"]),
    engine: kind === undefined ? undefined : { kind, model: model ?? "" },
    status: String(row["status"]) as RunStatus,
    error: code === undefined ? undefined : { code: code as RunErrorCode, message: text("error_message") ?? "" },
    answer: text("answer"),
    promptHash: text("prompt_hash"),
    toolCalls: Number(row["tool_calls"]),
    usage: usageOf(row["usage"]),
    queries: JSON.parse(String(row["queries"])) as Citations["queries"],
    startedAtMs: Number(row["started_at_ms"]),
    finishedAtMs: finishedAt === null ? undefined : Number(finishedAt),
  };
}

function usageOf(value: unknown): Usage {
  return JSON.parse(String(value)) as Usage;
}

function eventOfRow(row: RecordRow): StoredEvent {
  const data: unknown = JSON.parse(String(row["data"]));
  return { seq: Number(row["seq"]), event: row["event"], data, atMs: Number(row["at_ms"]) } as StoredEvent;
}
