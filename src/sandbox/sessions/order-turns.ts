import type { RecordStore } from "../../catalog/records.ts";
import { messageAt, newestMessages } from "./messages.ts";
import type { Session } from "./session.ts";
import { busySessions } from "./turn-ends.ts";
import type { Turn } from "./turn.ts";

/** Of what was said before, as much as a node is told. */
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
  const before = await newestMessages(records, id, { ...HISTORY, beforeSeq: lastMessage });
  // Some have nothing: the agent failed before it said anything.
  const history = before.filter(({ content }) => content.length > 0).map(({ role, content }) => ({ role, content }));
  return { sessionId: id, turnId, content: message.content, agentSessionId, history, isInterrupted };
}
