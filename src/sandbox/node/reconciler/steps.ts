import type { SandboxState, SandboxWant } from "../../contract/states.ts";

/** What a node sees of a sandbox, and what it knows to be wanted. */
export type Sight = {
  state: SandboxState;
  wanted: SandboxWant;
  machine: "absent" | "running" | "paused";
  keepsDisk: boolean;
};

/**
 * What a node does next for a sandbox:
 *
 * | step | what |
 * |---|---|
 * | `begin` | say `creating` |
 * | `make` | make the machine, run what provisions it, say `running` |
 * | `pause`, `resume` | so, and say it |
 * | `freeze`, `thaw` | make the machine what the state says already |
 * | `leave` | say `stopping`: another stop than one that was asked for |
 * | `stop` | end the machine, say `stopped` |
 * | `quench` | end a machine that should not be |
 * | `mourn` | say what follows from the end of the machine |
 * | `give up` | end the machine of a sandbox that failed |
 * | `remove` | put everything away, and say so |
 * | `rest` | nothing until something changes |
 */
export type Step =
  | "begin"
  | "make"
  | "pause"
  | "resume"
  | "freeze"
  | "thaw"
  | "leave"
  | "stop"
  | "quench"
  | "mourn"
  | "give up"
  | "remove"
  | "rest";

/**
 * One look, one step: whatever was wished in whichever order, and wherever an earlier process of the node was when it
 * died, repeated steps lead to where the sandbox is to rest.
 */
export function nextStep(sight: Sight): Step {
  if (sight.wanted === "deleted") return "remove";
  switch (sight.state) {
    case "pending":
      return "begin";
    case "creating":
      return "make";
    case "running":
      return whileRunning(sight);
    case "pausing":
      return sight.machine === "absent" ? "mourn" : "pause";
    case "paused":
      return whilePaused(sight);
    case "stopping":
      return "stop";
    case "stopped":
      return sight.machine === "absent" ? "rest" : "quench";
    case "failed":
      // The disk of a persistent one waits until the sandbox is deleted.
      return sight.machine === "absent" && sight.keepsDisk ? "rest" : "give up";
    case "deleting":
      return "remove";
  }
}

function whileRunning({ wanted, machine }: Sight): Step {
  if (machine === "absent") return "mourn";
  if (wanted === "stopped") return "leave";
  return machine === "paused" ? "thaw" : "rest";
}

function whilePaused({ wanted, machine }: Sight): Step {
  if (machine === "absent") return "mourn";
  if (wanted === "stopped") return "leave";
  if (wanted === "running") return "resume";
  return machine === "paused" ? "rest" : "freeze";
}
