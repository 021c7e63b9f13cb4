import type { ContentBlock } from "./content.ts";

/** A message that an agent is to answer, or is answering: what a node is told of it, with every order of its sandbox. */
export type Turn = {
  sessionId: string;
  turnId: string;
  /** What the user says. */
  content: readonly ContentBlock[];
  /** The session by the agent's own name, where an earlier turn gave it one. */
  agentSessionId: string | undefined;
  /** Messages before this one, oldest first: for an agent that does not know the session any more. */
  history: readonly TurnMessage[];
  /** Somebody wants it to end. */
  isInterrupted: boolean;
};

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
