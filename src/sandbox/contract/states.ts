/**
 * The states of a sandbox, and everything that may move it from one to another. The verbs of the control plane, the
 * node, the model of the tests and the table of `docs/sandboxes.md` all read this table; there is no other.
 *
 * `state` is what a sandbox is, `wanted` what it is to become. Clients change what is wanted (and, at once, the state to
 * the one that says so); the node that has the sandbox makes it so, and writes the state that it observed.
 */
export const SANDBOX_STATES = [
  "pending",
  "creating",
  "running",
  "pausing",
  "paused",
  "stopping",
  "stopped",
  "failed",
  "deleting",
] as const;
export type SandboxState = (typeof SANDBOX_STATES)[number];

/** What may be wanted of a sandbox: where it is to rest. */
export const SANDBOX_WANTS = ["running", "paused", "stopped", "deleted"] as const;
export type SandboxWant = (typeof SANDBOX_WANTS)[number];

/** What clients ask for. In another state than those of `from` it is refused with `sandbox_invalid_state`. */
export const SANDBOX_ACTIONS = {
  start: { from: ["stopped"], wanted: "running", to: "creating", rests: "running" },
  stop: { from: ["running", "paused"], wanted: "stopped", to: "stopping", rests: "stopped" },
  pause: { from: ["running"], wanted: "paused", to: "pausing", rests: "paused" },
  resume: { from: ["paused"], wanted: "running", to: "paused", rests: "running" },
  delete: { from: SANDBOX_STATES, wanted: "deleted", to: "deleting", rests: "deleted" },
} as const satisfies Record<
  string,
  { from: readonly SandboxState[]; wanted: SandboxWant; to: SandboxState; rests: SandboxWant }
>;
export type SandboxAction = keyof typeof SANDBOX_ACTIONS;

/** A change of state that nobody asks for: the node observes it, or the control plane notices it. */
export type SandboxTransition = {
  from: readonly SandboxState[];
  to: SandboxState;
  by: "node" | "control plane";
  when: string;
};

export const SANDBOX_TRANSITIONS: readonly SandboxTransition[] = [
  { from: ["pending"], to: "creating", by: "node", when: "a node has it, and begins to make it" },
  { from: ["creating"], to: "running", by: "node", when: "it is there, and its provisioning scripts have ended" },
  { from: ["paused"], to: "running", by: "node", when: "it was to be resumed, and runs again" },
  { from: ["pausing"], to: "paused", by: "node", when: "no process in it runs" },
  { from: ["stopping"], to: "stopped", by: "node", when: "no process is left" },
  {
    from: ["running", "pausing", "paused"],
    to: "stopping",
    by: "node",
    when: "`timeout_secs` have passed; or its machine ended by itself, and it is persistent",
  },
  {
    from: ["pending", "creating", "running", "pausing", "paused", "stopping", "stopped"],
    to: "failed",
    by: "node",
    when: "it could not be made, a provisioning script failed, or its machine ended by itself, and it is ephemeral",
  },
  {
    from: ["pending", "creating", "running", "pausing", "paused", "stopping", "stopped"],
    to: "failed",
    by: "control plane",
    when: "its image could not be built; no node had room for it in time; or its node was lost, and it is ephemeral",
  },
  {
    from: ["creating", "running", "pausing", "paused"],
    to: "pending",
    by: "control plane",
    when: "its node was lost, and it is persistent: it waits for the node that has its disk",
  },
  {
    from: ["stopping"],
    to: "stopped",
    by: "control plane",
    when: "its node was lost, and it is persistent: no process is left, and its disk is on the node",
  },
];

/** Whether a node or the control plane may move a sandbox so. */
export function mayMove(from: SandboxState, to: SandboxState, by: SandboxTransition["by"]): boolean {
  return SANDBOX_TRANSITIONS.some((row) => row.by === by && row.to === to && row.from.includes(from));
}

/** Whether clients may ask for this in that state. */
export function mayAsk(action: SandboxAction, state: SandboxState): boolean {
  const from: readonly SandboxState[] = SANDBOX_ACTIONS[action].from;
  return from.includes(state);
}
