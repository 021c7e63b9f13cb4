import { expect, it } from "vitest";
import { mayMove, SANDBOX_STATES, SANDBOX_WANTS, type SandboxState } from "../states.ts";
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

it.each(ALL)("comes to rest from $state, to be $wanted, with a machine that is $machine", (sight) => {
  let seen = sight;
  const states: SandboxState[] = [seen.state];
  for (let steps = 0; ; steps++) {
    expect(steps).toBeLessThan(8);
    const step = nextStep(seen);
    if (step === "remove") {
      expect(seen.wanted === "deleted" || seen.state === "deleting").toBe(true);
      return;
    }
    if (step === "rest") break;
    seen = { ...seen, ...AFTER[step] };
    if (seen.state !== states.at(-1)) states.push(seen.state);
  }
  const [first, ...others] = states;
  let before = first ?? "pending";
  for (const state of others) {
    expect(mayMove(before, state, "node"), `${before} to ${state}`).toBe(true);
    before = state;
  }
  const expected = { running: "running", paused: "paused" }[String(seen.state)] ?? "absent";
  expect(seen.machine).toBe(expected);
});
