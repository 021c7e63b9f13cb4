import { expect, it } from "vitest";
import { mayMove, SANDBOX_STATES, SANDBOX_WANTS, type SandboxState } from "../../contract/states.ts";
import { nextStep, type Sight, type Step } from "./steps.ts";

/** What each step makes of what a node sees, when nothing goes wrong. */
const AFTER: Record<Exclude<Step, "rest" | "remove">, Partial<Sight>> = {
  begin: { state: "creating" },
  make: { state: "running", machine: "running" },
  pause: { state: "paused", machine: "paused" },
  resume: { state: "running", machine: "running" },
  freeze: { machine: "paused" },
  thaw: { machine: "running" },
  leave: { state: "stopping", wanted: "stopped" },
  stop: { state: "stopped", machine: "absent" },
  quench: { machine: "absent" },
  mourn: { state: "stopping", wanted: "stopped" },
  "give up": { machine: "absent", keepsDisk: true },
};

const ALL: Sight[] = SANDBOX_STATES.flatMap((state) =>
  SANDBOX_WANTS.flatMap((wanted) =>
    (["absent", "running", "paused"] as const).flatMap((machine) =>
      [true, false].map((keepsDisk) => ({ state, wanted, machine, keepsDisk })),
    ),
  ),
);

/** The states that the steps lead through; and what is seen at the end, or that the sandbox was removed. */
function follow(from: Sight): { states: SandboxState[]; last: Sight; isRemoved: boolean } {
  const last = { ...from };
  const states = [last.state];
  for (let steps = 0; steps < 8; steps++) {
    const step = nextStep(last);
    if (step === "rest" || step === "remove") return { states, last, isRemoved: step === "remove" };
    Object.assign(last, AFTER[step]);
    if (last.state !== states.at(-1)) states.push(last.state);
  }
  throw new Error(`it does not come to rest: ${states.join(", ")}`);
}

const MACHINES: Partial<Record<SandboxState, Sight["machine"]>> = { running: "running", paused: "paused" };

it.each(ALL)("comes to rest from $state, to be $wanted, with a machine that is $machine", (sight) => {
  const { states, last, isRemoved } = follow(sight);
  expect(isRemoved).toBe(last.wanted === "deleted" || last.state === "deleting");
  const moves = states.slice(1).map((to, i) => ({ from: states[i] ?? "pending", to }));
  expect(moves.filter(({ from, to }) => !mayMove(from, to, "node"))).toEqual([]);
  expect(isRemoved || last.machine === (MACHINES[last.state] ?? "absent")).toBe(true);
});
