import type { AuditLog, Origin } from "../../../auth/audit.ts";
import { mayUseDatabase, type Caller } from "../../../auth/caller.ts";
import { mayReachWithin, ownerFilterWithin, ownerOf, type Asker } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import { foldName } from "../../../core/names.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../../db/records.ts";
import { AGENT_LIMITS } from "../limits.ts";
import { cutToBytes, lineOf, storable } from "./text.ts";

/**
 * Sessions of the agent: conversations in one database, which belong to the caller who began them. A run takes its
 * session when it begins, appends the question, and lets the session go with the answer when it ends.
 */
export type Session = {
  id: string;
  /** The first line of the first question, until `saveTitle` gives a better one. */
  title: string;
  database: string;
  source: string | undefined;
  /** What was said in the turns before `summarizedTurns`. */
  rollingSummary: string | undefined;
  summarizedTurns: number;
  turnCount: number;
  createdAtMs: number;
  lastActiveMs: number;
};

export type SessionTurn = {
  turnIndex: number;
  role: "user" | "assistant";
  content: string;
  /** The run that the turn was said in. */
  runId: string | undefined;
  createdAtMs: number;
};

export type BeginRequest = {
  /** The session to go on with; a new one where none is named. */
  sessionId?: string | undefined;
  caller: Caller;
  /** As the catalog spells it. */
  database: string;
  /** A label of a new session. */
  source: string | undefined;
  question: string;
  runId: string;
  /**
   * Statements of the same transaction, given the id of the session. They insert the run: without that, a process that
   * dies in this moment leaves a session that no run ever lets go.
   */
  along: (sessionId: string) => readonly Statement[];
};

export type Begun = {
  sessionId: string;
  isNew: boolean;
  summary: string | undefined;
  /** What was said before the question and is not in the summary, oldest first, at most `AGENT_LIMITS.historyBytes`. */
  turns: SessionTurn[];
};

export type SessionsDeps = { records: RecordStore; newId: IdSource; audit: AuditLog };

export class Sessions {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a session for a run and appends the question, in one transaction.
   *
   * @throws EngineError `session_not_found` for one that the caller does not reach, `invalid_parameter` where it is about
   * another database, `conflict` while another run has it
   */
  async begin(request: BeginRequest): Promise<Begun> {
    const { sessionId } = request;
    return sessionId === undefined ? await this.#beginNew(request) : await this.#resume(sessionId, request);
  }

  /**
   * For the transaction that ends a run: appends the answer, where there is one, and releases the session. Does nothing
   * where the session was deleted meanwhile, or the run has ended before.
   */
  endStatements({
    sessionId,
    runId,
    answer,
  }: {
    sessionId: string;
    runId: string;
    answer: string | undefined;
  }): Statement[] {
    const taken = "id = ? AND running_run = ?";
    const release: Statement = {
      sql: `UPDATE agent_sessions SET running_run = NULL, last_active_ms = ? WHERE ${taken}`,
      values: [NOW, sessionId, runId],
    };
    const content = storable(answer ?? "");
    if (content === "") return [release];
    return [
      {
        sql:
          "INSERT INTO agent_turns (session_id, turn_index, role, content, run_id, created_at_ms) " +
          `SELECT id, turn_count, 'assistant', ?, ?, ? FROM agent_sessions WHERE ${taken}`,
        values: [content, runId, NOW, sessionId, runId],
      },
      {
        sql: `UPDATE agent_sessions SET turn_count = turn_count + 1 WHERE ${taken}`,
        values: [sessionId, runId],
      },
      release,
    ];
  }

  /** Those that the caller reaches, the last active first. */
  async list(caller: Asker): Promise<Session[]> {
    const tests: string[] = [];
    const values: RecordValue[] = [];
    const owner = ownerFilterWithin(caller);
    if (owner !== undefined) {
      tests.push("owner = ?");
      values.push(owner);
    }
    const { databases } = caller;
    if (databases?.length === 0) return [];
    if (databases !== undefined) {
      tests.push(`lower(database) IN (${databases.map(() => "?").join(", ")})`);
      values.push(...databases);
    }
    const where = tests.length === 0 ? "" : `WHERE ${tests.join(" AND ")} `;
    const sql = `SELECT * FROM agent_sessions ${where}ORDER BY last_active_ms DESC, id DESC LIMIT ?`;
    return (await this.#deps.records.rows(sql, [...values, AGENT_LIMITS.sessions])).map(sessionOfRow);
  }

  /** @throws EngineError `session_not_found` */
  async get(sessionId: string, caller: Asker): Promise<Session> {
    return sessionOfRow(await this.#reached(sessionId, caller));
  }

  /**
   * The turns after one of them, oldest first; from the beginning where none is named. `truncated`: there are more, which
   * the next call brings.
   *
   * @throws EngineError `session_not_found`
   */
  async turns(
    sessionId: string,
    caller: Asker,
    { after = -1 }: { after?: number | undefined } = {},
  ): Promise<{ turns: SessionTurn[]; truncated: boolean }> {
    await this.#reached(sessionId, caller);
    const { turns: most, turnBytes } = AGENT_LIMITS;
    // The first one is there however long it is.
    const sql =
      "SELECT turn_index, role, content, run_id, created_at_ms FROM (" +
      "SELECT turn_index, role, content, run_id, created_at_ms, " +
      "sum(octet_length(content)) OVER (ORDER BY turn_index) - octet_length(content) AS bytes_before FROM (" +
      "SELECT * FROM agent_turns WHERE session_id = ? AND turn_index > ? ORDER BY turn_index LIMIT ?" +
      ") AS page) AS sized WHERE bytes_before < ? ORDER BY turn_index";
    const rows = await this.#deps.records.rows(sql, [sessionId, after, most, turnBytes]);
    const turns = rows.map(turnOfRow);
    const last = turns.at(-1)?.turnIndex ?? after;
    const next = "SELECT turn_index FROM agent_turns WHERE session_id = ? AND turn_index > ? LIMIT 1";
    return { turns, truncated: (await this.#deps.records.rows(next, [sessionId, last])).length > 0 };
  }

  /**
   * Deletes a session with its turns. Its runs stay, of no session; one that is under way goes on.
   *
   * @throws EngineError `session_not_found`
   */
  async remove(sessionId: string, origin: Origin & { caller: Caller }): Promise<void> {
    await this.#reached(sessionId, origin.caller);
    const action = "agent.session_delete";
    const outcome = await this.#deps.records.transact([
      { sql: "DELETE FROM agent_sessions WHERE id = ? RETURNING id", values: [sessionId], mustReturn: 1 },
      { sql: "DELETE FROM agent_turns WHERE session_id = ?", values: [sessionId] },
      { sql: "UPDATE agent_runs SET session_id = NULL WHERE session_id = ?", values: [sessionId] },
      this.#deps.audit.statement({ origin, action, target: sessionId, outcome: "ok" }),
    ]);
    if (!outcome.done) throw notFound(sessionId);
  }

  /**
   * Saves what was said in the turns before `upToTurn`. Resolves to whether it did: a session that was deleted, or that
   * has a summary of as many turns, stays as it is.
   */
  async saveSummary({
    sessionId,
    summary,
    upToTurn,
  }: {
    sessionId: string;
    summary: string;
    upToTurn: number;
  }): Promise<boolean> {
    const sql =
      "UPDATE agent_sessions SET rolling_summary = ?, summarized_turns = ? " +
      "WHERE id = ? AND summarized_turns < ? AND turn_count >= ? RETURNING id";
    const values = [storable(summary), upToTurn, sessionId, upToTurn, upToTurn];
    return await this.#changes({ sql, values });
  }

  /** Resolves to whether there is such a session. */
  async saveTitle({ sessionId, title }: { sessionId: string; title: string }): Promise<boolean> {
    const sql = "UPDATE agent_sessions SET title = ? WHERE id = ? RETURNING id";
    return await this.#changes({ sql, values: [lineOf(title, AGENT_LIMITS.titleChars), sessionId] });
  }

  /** Whether the statement returned a row. A transaction, since a repeated statement would find its own change. */
  async #changes(statement: Statement): Promise<boolean> {
    return (await this.#deps.records.transact([{ ...statement, mustReturn: 1 }])).done;
  }

  async #beginNew({ caller, database, source, question, runId, along }: BeginRequest): Promise<Begun> {
    const sessionId = this.#deps.newId();
    const title = lineOf(question, AGENT_LIMITS.titleChars);
    const label = source === undefined ? null : lineOf(source, AGENT_LIMITS.sourceChars);
    const outcome = await this.#deps.records.transact([
      {
        sql:
          "INSERT INTO agent_sessions (id, owner, database, title, source, summarized_turns, turn_count, running_run, " +
          "created_at_ms, last_active_ms) VALUES (?, ?, ?, ?, ?, 0, 1, ?, ?, ?)",
        values: [sessionId, ownerOf(caller), database, title, label, runId, NOW, NOW],
      },
      questionTurn({ sessionId, runId, question }),
      ...along(sessionId),
    ]);
    if (!outcome.done) throw runNotAdded(runId);
    return { sessionId, isNew: true, summary: undefined, turns: [] };
  }

  async #resume(sessionId: string, { caller, database, question, runId, along }: BeginRequest): Promise<Begun> {
    const row = await this.#reached(sessionId, caller);
    const its = String(row["database"]);
    if (foldName(its) !== foldName(database)) {
      throw new EngineError(
        "invalid_parameter",
        `the session ${sessionId} is about the database ${JSON.stringify(its)}, not ${JSON.stringify(database)}; ` +
          "ask about that database, or begin a new session",
      );
    }
    const taking: Statement = {
      // Whom it belongs to may have changed since it was read.
      sql:
        "UPDATE agent_sessions SET running_run = ?, turn_count = turn_count + 1, last_active_ms = ? " +
        "WHERE id = ? AND owner = ? AND running_run IS NULL RETURNING rolling_summary",
      values: [runId, NOW, sessionId, String(row["owner"])],
      mustReturn: 1,
    };
    const outcome = await this.#deps.records.transact([
      taking,
      questionTurn({ sessionId, runId, question }),
      historyOf(sessionId),
      ...along(sessionId),
    ]);
    if (!outcome.done) {
      if (outcome.failed > 0) throw runNotAdded(runId);
      await this.#reached(sessionId, caller);
      throw new EngineError(
        "conflict",
        `the session ${sessionId} is answering another question; wait for its end, or begin a new session`,
      );
    }
    const [[taken] = [], , history = []] = outcome.rows;
    const turns = fitting(history.map(turnOfRow), AGENT_LIMITS.historyBytes);
    return { sessionId, isNew: false, summary: textOrNone(taken?.["rolling_summary"]), turns };
  }

  /** @throws EngineError `session_not_found` */
  async #reached(sessionId: string, caller: Asker): Promise<RecordRow> {
    if (sessionId.includes("\0")) throw notFound(sessionId);
    const [row] = await this.#deps.records.rows("SELECT * FROM agent_sessions WHERE id = ?", [sessionId]);
    if (row === undefined || !mayReachWithin(caller, String(row["owner"]))) throw notFound(sessionId);
    if (!mayUseDatabase(caller, String(row["database"]))) throw notFound(sessionId);
    return row;
  }
}

/** Appends the question where the run has the session, which counts it already. */
function questionTurn({
  sessionId,
  runId,
  question,
}: {
  sessionId: string;
  runId: string;
  question: string;
}): Statement {
  const sql =
    "INSERT INTO agent_turns (session_id, turn_index, role, content, run_id, created_at_ms) " +
    "SELECT id, turn_count - 1, 'user', ?, ?, ? FROM agent_sessions WHERE id = ? AND running_run = ?";
  return { sql, values: [storable(question), runId, NOW, sessionId, runId] };
}

/**
 * The newest turns before the question that the summary does not tell of, oldest first. The oldest of them is the one that
 * passes the limit.
 */
function historyOf(sessionId: string): Statement {
  const sql =
    "SELECT turn_index, role, content, run_id, created_at_ms FROM (" +
    "SELECT turn_index, role, content, run_id, created_at_ms, " +
    "sum(octet_length(content)) OVER (ORDER BY turn_index DESC) - octet_length(content) AS bytes_after FROM (" +
    "SELECT t.* FROM agent_turns AS t JOIN agent_sessions AS s ON s.id = t.session_id WHERE s.id = ? " +
    "AND t.turn_index >= s.summarized_turns AND t.turn_index < s.turn_count - 1 ORDER BY t.turn_index DESC LIMIT ?" +
    ") AS newest) AS sized WHERE bytes_after < ? ORDER BY turn_index";
  return { sql, values: [sessionId, AGENT_LIMITS.turns, AGENT_LIMITS.historyBytes] };
}

/** Without the oldest one where it does not fit; the newest is cut rather than left out. */
function fitting(turns: SessionTurn[], maxBytes: number): SessionTurn[] {
  const bytes = turns.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  const [oldest, ...newer] = turns;
  if (bytes <= maxBytes || oldest === undefined) return turns;
  return newer.length > 0 ? newer : [{ ...oldest, content: cutToBytes(oldest.content, maxBytes) }];
}

function sessionOfRow(row: RecordRow): Session {
  return {
    id: String(row["id"]),
    title: String(row["title"]),
    database: String(row["database"]),
    source: textOrNone(row["source"]),
    rollingSummary: textOrNone(row["rolling_summary"]),
    summarizedTurns: Number(row["summarized_turns"]),
    turnCount: Number(row["turn_count"]),
    createdAtMs: Number(row["created_at_ms"]),
    lastActiveMs: Number(row["last_active_ms"]),
  };
}

function turnOfRow(row: RecordRow): SessionTurn {
  return {
    turnIndex: Number(row["turn_index"]),
    role: row["role"] === "assistant" ? "assistant" : "user",
    content: String(row["content"]),
    runId: textOrNone(row["run_id"]),
    createdAtMs: Number(row["created_at_ms"]),
  };
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function notFound(sessionId: string): EngineError {
  return new EngineError("session_not_found", `there is no session ${JSON.stringify(sessionId.slice(0, 100))}`);
}

function runNotAdded(runId: string): EngineError {
  return new EngineError("internal", `the run ${runId} could not be recorded`);
}
