import type { ContentBlock } from "./content.ts";

/** A message that an agent is to answer, or is answering: what a node is told of it, with every order of its sandbox. */
export type Turn = {
  sessionId: string;
  turnId: string;
  /** What the user says. */
  content: readonly ContentBlock[];
  /** The session by the agent's own name, where an earlier turn gave it one. */
  agentSessionId: string | undefined;
  /** How much was said in the session before. */
  messagesBefore: number;
  /** Somebody wants it to end. */
  isInterrupted: boolean;
};

/** What was said in a session before: a node asks for it where its agent does not know the session any more. */
export type TurnMessage = { role: "user" | "assistant"; content: readonly ContentBlock[] };

/** How a turn ended: written once, in the batch that has the last events of it. */
export type TurnReport = {
  sessionId: string;
  turnId: string;
  outcome: "completed" | "interrupted" | "failed";
  /** Of a failed one, for people. */
  error?: string;
  /** What the assistant said, also where it was cut short. */
  content: readonly ContentBlock[];
  agentSessionId?: string;
};
