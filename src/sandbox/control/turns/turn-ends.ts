import { NOW, type RecordStore, type Statement } from "../../../catalog/records.ts";
import type { IdSource } from "../../../core/ids.ts";
import { boundedText } from "../../../fabric/refusals.ts";
import type { StoredEvent } from "../../contract/event.ts";
import { eventsOfSession } from "../events/read-events.ts";
import type { SandboxState } from "../../contract/states.ts";
import type { ContentBlock } from "../../contract/content.ts";
import { SESSION_COLUMNS, toSession, type Session } from "./session.ts";
import { STATE_AFTER, type TurnOutcome } from "../../contract/session-states.ts";
import { boundedContent, CONTENT_EVENTS, ToldContent } from "./told-content.ts";
import type { TurnReport } from "../../contract/turn.ts";

/** Turns that end in one transaction: what is to be written beside the change of their sandbox. */
export type TurnEnds = {
  ended: readonly { sessionId: string; outcome: TurnOutcome }[];
  events: readonly StoredEvent[];
  /** They undo the transaction when a turn has ended meanwhile. */
  statements: readonly Statement[];
  /** How many go on; absent where that was not looked up. */
  left?: number;
};

export const NO_TURN_ENDS: TurnEnds = { ended: [], events: [], statements: [] };

type Ports = { records: Pick<RecordStore, "rows">; newId: IdSource };

/** What ends turns of a sandbox. */
type Cause = {
  /** What the node says; a report of a turn that is not under way is passed over. */
  reports?: readonly TurnReport[] | undefined;
  /** Those that are written in the same transaction. */
  events?: readonly StoredEvent[];
  /** Why all others end as failed; undefined: they go on. */
  why?: string | undefined;
};

const MOST_ERROR_CHARS = 4_096;
const MOST_AGENT_ID_CHARS = 4_096;
const EVENTS_AT_ONCE = 1_000;

/** A sandbox in one of these has no agent, and no turn under way. */
const WITHOUT_AGENT: ReadonlySet<SandboxState> = new Set(["pending", "stopped", "failed", "deleting"]);

/** Why turns end when their sandbox gets into a state; undefined where they go on. */
export function whyTurnsEnd(to: SandboxState | undefined, reason?: string): string | undefined {
  if (to === undefined || !WITHOUT_AGENT.has(to)) return undefined;
  if (to === "deleting") return "the sandbox was deleted";
  const told = reason === undefined ? "" : `: ${reason}`;
  // Of one that waits for its node, the reason says it all.
  return to === "pending" ? (reason ?? "the sandbox is made anew") : `the sandbox is ${to}${told}`;
}

export async function busySessions(records: Pick<RecordStore, "rows">, sandboxId: string): Promise<Session[]> {
  return (
    await records.rows(
      `SELECT ${SESSION_COLUMNS} FROM sandbox_sessions WHERE sandbox_id = ? AND turn_id IS NOT NULL ORDER BY id`,
      [sandboxId],
    )
  ).map(toSession);
}

/**
 * Ends turns of a sandbox. Written together with a change that depends on the sandbox's version, they are all that are
 * under way then: each that begins moves the version.
 */
export async function turnEnds(ports: Ports, sandboxId: string, cause: Cause): Promise<TurnEnds> {
  const { reports = [], why } = cause;
  if (reports.length === 0 && why === undefined) return NO_TURN_ENDS;
  const ended: { sessionId: string; outcome: TurnOutcome }[] = [];
  const events: StoredEvent[] = [];
  const statements: Statement[] = [];
  const busy = await busySessions(ports.records, sandboxId);
  for (const session of busy) {
    const report = reports.find(({ sessionId, turnId }) => sessionId === session.id && turnId === session.turnId);
    if (report === undefined && why === undefined) continue;
    const end = report ?? { outcome: "failed" as const, error: why ?? "", content: [] };
    const content = end.content.length > 0 ? boundedContent(end.content) : await toldContent(ports, session, cause);
    const error = end.outcome === "failed" ? boundedText(end.error ?? "the agent failed", MOST_ERROR_CHARS) : undefined;
    ended.push({ sessionId: session.id, outcome: end.outcome });
    events.push(...eventsOf(session.id, error));
    statements.push(...statementsOf(ports, session, { ...end, error, content }));
  }
  return { ended, events, statements, left: busy.length - ended.length };
}

/** What the events of the turn say. */
async function toldContent(
  { records }: Ports,
  { id, sandboxId, turnEventSeq }: Session,
  { events = [] }: Cause,
): Promise<ContentBlock[]> {
  const told = new ToldContent();
  for (let afterSeq = turnEventSeq; !told.isFull;) {
    const types = CONTENT_EVENTS;
    const page = await eventsOfSession(records, sandboxId, { sessionId: id, types, afterSeq, limit: EVENTS_AT_ONCE });
    for (const event of page) told.add(event);
    afterSeq = page.at(-1)?.seq ?? afterSeq;
    if (page.length < EVENTS_AT_ONCE) break;
  }
  for (const event of events) if (event.sessionId === id) told.add(event);
  return told.blocks();
}

/** Of one that failed also what its sender gets as a status, where the answer has not begun: the stream has no status. */
function eventsOf(sessionId: string, error: string | undefined): StoredEvent[] {
  const common = { at: NOW, sessionId };
  if (error === undefined) return [{ ...common, type: "session_completed", data: { session_id: sessionId } }];
  return [
    { ...common, type: "error", data: { code: "agent_communication_error", message: error } },
    { ...common, type: "session_failed", data: { session_id: sessionId, error } },
  ];
}

type End = { outcome: TurnOutcome; error: string | undefined; content: readonly ContentBlock[] } & Pick<
  TurnReport,
  "agentSessionId"
>;

function statementsOf(
  { newId }: Ports,
  session: Session,
  { outcome, error, content, agentSessionId }: End,
): Statement[] {
  const { id, turnId = "", lastMessage } = session;
  // A part of a name is none.
  const isName = agentSessionId !== undefined && agentSessionId.length <= MOST_AGENT_ID_CHARS;
  const name = isName ? boundedText(agentSessionId, MOST_AGENT_ID_CHARS) : null;
  return [
    {
      sql:
        "UPDATE sandbox_sessions SET state = ?, turn_id = NULL, is_interrupted = 0, error = ?, " +
        "agent_session_id = coalesce(CAST(? AS text), agent_session_id), last_message = last_message + 1, " +
        "updated_at_ms = ? WHERE id = ? AND turn_id = ? RETURNING id",
      values: [STATE_AFTER[outcome], error ?? null, name, NOW, id, turnId],
      mustReturn: 1,
    },
    {
      sql:
        "INSERT INTO sandbox_messages (session_id, seq, id, turn_id, role, content, error, created_at_ms) " +
        "VALUES (?, ?, ?, ?, 'assistant', ?, ?, ?) ON CONFLICT DO NOTHING",
      values: [id, lastMessage + 1, newId(), turnId, JSON.stringify(content), error ?? null, NOW],
    },
  ];
}
