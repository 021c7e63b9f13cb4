/**
 * The states of a session, and everything that may move it from one to another. The verbs of sessions, the model of the
 * tests and the table of `docs/sandboxes.md` read this table; there is no other. A session goes with its sandbox.
 */
export const SESSION_STATES = ["active", "processing", "failed"] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** How a turn ends: what its node says, or `failed` when no node can say it any more. */
export const TURN_OUTCOMES = ["completed", "interrupted", "failed"] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

/** The state of a session whose turn has ended. */
export const STATE_AFTER = {
  completed: "active",
  interrupted: "active",
  failed: "failed",
} as const satisfies Record<TurnOutcome, SessionState>;

/** A session in one of these takes a message. */
export const TAKES_MESSAGE: readonly SessionState[] = ["active", "failed"];

export const SESSION_TRANSITIONS: readonly { from: readonly SessionState[]; to: SessionState; when: string }[] = [
  { from: TAKES_MESSAGE, to: "processing", when: "a message came; a session that failed starts its agent anew" },
  { from: ["processing"], to: STATE_AFTER.completed, when: "the agent has answered, or was interrupted" },
  {
    from: ["processing"],
    to: STATE_AFTER.failed,
    when: "the agent failed; or its sandbox was stopped, failed, or lost its node, before it had answered",
  },
];
