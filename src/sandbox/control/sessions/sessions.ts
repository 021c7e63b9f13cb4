import type { AuditAction, AuditLog, Origin } from "../../../auth/audit.ts";
import { mayReach, type Asker } from "../../../auth/owner.ts";
import { NOW, type RecordStore, type Statement } from "../../../catalog/records.ts";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import { optionalText } from "../../../fabric/job.ts";
import { changeStatements, type ChangeLimits } from "../scheduler/change.ts";
import { getSandbox } from "../scheduler/find.ts";
import { ATTEMPTS } from "../scheduler/ports.ts";
import { invalidState, tooBusy } from "../refusals.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { SandboxSignals } from "../signals.ts";
import type { ContentBlock } from "../../contract/content.ts";
import { newestMessages, seqOfMessage, type SessionMessage } from "../turns/messages.ts";
import { invalidSessionState, sessionNotFound } from "./refusals.ts";
import { SESSION_COLUMNS, toSession, type Session } from "../turns/session.ts";
import { turnEnd, type BegunTurn, type EndedTurn } from "./turn-end.ts";

export type SessionPorts = ChangeLimits & {
  records: RecordStore;
  signals: SandboxSignals;
  audit: AuditLog;
  clock: Clock;
  newId: IdSource;
};

/** Of one sandbox. */
export const MOST_SESSIONS = 256;
/** Of the contents of messages that are read at once. */
const MOST_READ_BYTES = 16 * 1024 * 1024;

/**
 * Conversations with the agents of sandboxes. A message and the turn in which the agent answers it are stored in one
 * transaction, and so are the answer and the end of the turn (`turn-ends.ts`): whoever dies between, the records say what
 * is under way. The node that has the sandbox finds the turn in its order. `session-states.ts` has the states.
 */
export class Sessions {
  readonly #ports: SessionPorts;

  constructor(ports: SessionPorts) {
    this.#ports = ports;
  }

  /**
   * A new session of a sandbox. Rejects with `sandbox_not_found`, `sandbox_invalid_state` for one that failed, and
   * `conflict` for one that has `MOST_SESSIONS`.
   */
  async create(sandboxId: string, metadata: Readonly<Record<string, unknown>>, asker: Asker): Promise<Session> {
    const { records, signals, newId } = this.#ports;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const sandbox = await getSandbox(records, sandboxId, asker);
      if (sandbox.state === "failed") throw invalidState(sandbox.state, "its agent cannot be spoken to");
      const id = newId();
      const event = { type: "session_created", at: NOW, data: { session_id: id }, sessionId: id } as const;
      const insertion = sessionInsertion(id, sandbox, metadata);
      const statements = [
        countGuard(sandboxId),
        ...changeStatements(sandbox, { events: [event] }, this.#ports),
        insertion,
      ];
      const outcome = await records.transact(statements);
      if (outcome.done) {
        signals.eventsAdded(sandboxId);
        return onlyOne(outcome.rows.at(-1)?.map(toSession));
      }
      if (outcome.failed === 0) throw new EngineError("conflict", `a sandbox has at most ${MOST_SESSIONS} sessions`);
    }
    throw tooBusy(sandboxId);
  }

  /** Those of a sandbox, newest first; `before`: the id of the last one of the page before. Rejects with `sandbox_not_found`. */
  async list(
    sandboxId: string,
    { limit, before }: { limit: number; before?: string | undefined },
    asker: Asker,
  ): Promise<Session[]> {
    await getSandbox(this.#ports.records, sandboxId, asker);
    const older = before === undefined ? "" : "AND id < ? ";
    const rows = await this.#ports.records.rows(
      `SELECT ${SESSION_COLUMNS} FROM sandbox_sessions WHERE sandbox_id = ? ${older}ORDER BY id DESC LIMIT ?`,
      [sandboxId, ...(before === undefined ? [] : [before]), limit],
    );
    return rows.map(toSession);
  }

  /** For whoever may see its sandbox. Rejects with `session_not_found`. */
  async get(id: string, asker: Asker): Promise<Session> {
    const [row] = id.includes("\0")
      ? []
      : await this.#ports.records.rows(
          `SELECT ${SESSION_COLUMNS}, sandboxes.tenant AS tenant FROM sandbox_sessions ` +
            "JOIN sandboxes ON sandboxes.id = sandbox_sessions.sandbox_id " +
            "WHERE sandbox_sessions.id = ? AND sandboxes.deleted_at_ms IS NULL",
          [id],
        );
    if (row === undefined || !mayReach(asker, String(row["tenant"]))) throw sessionNotFound(id);
    return toSession(row);
  }

  /** The newest messages, or those before one, oldest first; fewer than asked for where they are large. */
  async messages(
    { id, lastMessage }: Session,
    { limit, before }: { limit: number; before?: string | undefined },
  ): Promise<SessionMessage[]> {
    const { records } = this.#ports;
    const beforeSeq = before === undefined ? lastMessage + 1 : await seqOfMessage(records, id, before);
    if (beforeSeq === undefined) throw new EngineError("invalid_parameter", "before: the session has no such message");
    return await newestMessages(records, id, { beforeSeq, most: limit, mostBytes: MOST_READ_BYTES });
  }

  /**
   * Stores what a user says, with the turn in which it is answered. Rejects with `session_invalid_state` while another
   * one is under way, and `sandbox_invalid_state` unless its sandbox runs.
   */
  async begin(
    session: Session,
    content: readonly ContentBlock[],
    by: { asker: Asker; origin: Origin },
  ): Promise<BegunTurn> {
    const { records, signals, newId } = this.#ports;
    const { id, sandboxId } = session;
    const turnId = newId();
    const statements = [
      versionStep(sandboxId, true),
      turnBeginning(id, turnId),
      messageInsertion({ id, turnId, messageId: newId(), content }),
      this.#auditEntry("sandbox.message", session, by.origin),
    ];
    // Nothing is acknowledged before the turn has ended, in a transaction after this one.
    const outcome = await records.transact(statements, { early: true });
    if (outcome.done) {
      const [[sandbox] = [], [row] = []] = outcome.rows;
      const [userSeq, agentSessionId] = [Number(row?.["last_message"]), optionalText(row ?? {}, "agent_session_id")];
      const begun = {
        sessionId: id,
        turnId,
        content,
        agentSessionId,
        messagesBefore: userSeq - 1,
        isInterrupted: false,
      };
      signals.orderChanged(sandboxId, String(sandbox?.["node_id"]), { version: Number(sandbox?.["version"]), begun });
      return { sessionId: id, turnId, answerSeq: userSeq + 1, eventSeq: Number(row?.["turn_event_seq"]) };
    }
    const now = await this.get(id, by.asker);
    if (outcome.failed === 0) {
      const { state } = await getSandbox(records, sandboxId, by.asker);
      throw invalidState(state, "messages need running");
    }
    throw invalidSessionState(now.state, "one message after the other: wait until it is answered, or interrupt it");
  }

  /** How a turn ended; undefined when the signal is aborted first. See `turnEnd`. */
  ended(turn: BegunTurn, options: { signal: AbortSignal; isNew?: boolean }): Promise<EndedTurn | undefined> {
    return turnEnd(this.#ports, turn, options);
  }

  /** Has the turn that is under way end. Rejects with `session_invalid_state` where none is. */
  async interrupt(session: Session, by: { asker: Asker; origin: Origin }): Promise<Session> {
    const { records, signals } = this.#ports;
    const { id, sandboxId } = session;
    const outcome = await records.transact([
      versionStep(sandboxId, false),
      {
        sql:
          "UPDATE sandbox_sessions SET is_interrupted = 1, updated_at_ms = ? WHERE id = ? AND turn_id IS NOT NULL " +
          `RETURNING ${SESSION_COLUMNS}`,
        values: [NOW, id],
        mustReturn: 1,
      },
      this.#auditEntry("sandbox.interrupt", session, by.origin),
    ]);
    if (outcome.done) {
      signals.orderChanged(sandboxId, String(outcome.rows[0]?.[0]?.["node_id"]));
      return onlyOne(outcome.rows[1]?.map(toSession));
    }
    throw invalidSessionState((await this.get(id, by.asker)).state, "nothing is under way");
  }

  /** Nothing of what was said. */
  #auditEntry(action: AuditAction, { id, sandboxId }: Session, origin: Origin): Statement {
    return this.#ports.audit.statement({
      origin,
      action,
      target: sandboxId,
      outcome: "ok",
      details: { session_id: id },
    });
  }
}

function countGuard(sandboxId: string): Statement {
  return {
    sql: "SELECT 1 AS fits WHERE (SELECT count(*) FROM sandbox_sessions WHERE sandbox_id = ?) < CAST(? AS bigint)",
    values: [sandboxId, MOST_SESSIONS],
    mustReturn: 1,
  };
}

function sessionInsertion(id: string, { id: sandboxId, tenant }: Sandbox, metadata: object): Statement {
  return {
    sql:
      "INSERT INTO sandbox_sessions (id, sandbox_id, tenant, state, metadata, turn_event_seq, is_interrupted, " +
      "last_message, created_at_ms, updated_at_ms) VALUES (?, ?, ?, 'active', ?, 0, 0, 0, ?, ?) " +
      `ON CONFLICT DO NOTHING RETURNING ${SESSION_COLUMNS}`,
    values: [id, sandboxId, tenant, JSON.stringify(metadata), NOW, NOW],
    mustReturn: 1,
  };
}

/** The order of the sandbox has changed: turns are a part of it. */
function versionStep(sandboxId: string, needsRunning: boolean): Statement {
  return {
    sql:
      "UPDATE sandboxes SET version = version + 1 WHERE id = ? AND deleted_at_ms IS NULL " +
      `${needsRunning ? "AND state = 'running' AND wanted = 'running' " : ""}RETURNING node_id, version`,
    values: [sandboxId],
    mustReturn: 1,
  };
}

function turnBeginning(sessionId: string, turnId: string): Statement {
  return {
    sql:
      "UPDATE sandbox_sessions SET state = 'processing', turn_id = ?, is_interrupted = 0, error = NULL, " +
      "turn_event_seq = (SELECT last_seq FROM sandboxes WHERE sandboxes.id = sandbox_sessions.sandbox_id), " +
      "last_message = last_message + 1, updated_at_ms = ? WHERE id = ? AND turn_id IS NULL " +
      "RETURNING last_message, agent_session_id, turn_event_seq",
    values: [turnId, NOW, sessionId],
    mustReturn: 1,
  };
}

type UserMessage = { id: string; turnId: string; messageId: string; content: readonly ContentBlock[] };

function messageInsertion({ id, turnId, messageId, content }: UserMessage): Statement {
  return {
    sql:
      "INSERT INTO sandbox_messages (session_id, seq, id, turn_id, role, content, created_at_ms) " +
      "SELECT id, last_message, CAST(? AS text), turn_id, 'user', CAST(? AS text), CAST(? AS bigint) " +
      "FROM sandbox_sessions WHERE id = ? AND turn_id = ? ON CONFLICT DO NOTHING RETURNING seq",
    values: [messageId, JSON.stringify(content), NOW, id, turnId],
    mustReturn: 1,
  };
}

function onlyOne<T>(rows: readonly T[] | undefined): T {
  const [row] = rows ?? [];
  if (row === undefined) throw new Error("a change of a session returned nothing");
  return row;
}
