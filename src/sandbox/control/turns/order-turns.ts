import type { RecordStore } from "../../../catalog/records.ts";
import { messageAt, newestMessages } from "./messages.ts";
import type { Session } from "./session.ts";
import { busySessions } from "./turn-ends.ts";
import type { Turn, TurnMessage } from "../../contract/turn.ts";

/** As much as a node is told. */
const HISTORY = { most: 1_000, mostBytes: 1024 * 1024, strictly: true } as const;

/** The turns that are under way in a sandbox, as its node is told of them. */
export async function turnsOf(records: Pick<RecordStore, "rows">, sandboxId: string): Promise<Turn[]> {
  const turns: Turn[] = [];
  for (const session of await busySessions(records, sandboxId)) {
    const turn = await turnOf(records, session);
    if (turn !== undefined) turns.push(turn);
  }
  return turns;
}

/** Undefined where it has ended meanwhile. */
async function turnOf(records: Pick<RecordStore, "rows">, session: Session): Promise<Turn | undefined> {
  const { id, turnId, lastMessage, agentSessionId, isInterrupted } = session;
  const message = await messageAt(records, id, lastMessage);
  if (message === undefined || turnId === undefined) return undefined;
  const messagesBefore = lastMessage - 1;
  return { sessionId: id, turnId, content: message.content, agentSessionId, messagesBefore, isInterrupted };
}

/** What was said in a session of a sandbox before the turn that is under way, oldest first; nothing where none is. */
export async function historyOf(
  records: Pick<RecordStore, "rows">,
  sandboxId: string,
  sessionId: string,
): Promise<TurnMessage[]> {
  const session = (await busySessions(records, sandboxId)).find(({ id }) => id === sessionId);
  if (session === undefined) return [];
  const before = await newestMessages(records, sessionId, { ...HISTORY, beforeSeq: session.lastMessage });
  // Some have nothing: the agent failed before it said anything.
  return before.filter(({ content }) => content.length > 0).map(({ role, content }) => ({ role, content }));
}
