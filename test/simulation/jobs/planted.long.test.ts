import { expect, test } from "vitest";
import { PLANTED_IN_JOBS } from "./planted.ts";
import { simulateJobs } from "./simulate.ts";

/** Mistakes that are put in on purpose: the simulation finds each, by a rule that it breaks, within a few seeds. */
const SEEDS = 100;

const SETTLED = "every job is settled";
const TAKEN_AWAY = "a valid lease is not taken away";
const TOO_LATE = "no write after the end of a lease";
const CANCELLED = "a cancelled job does not run again";
const HOLDER_ONLY = "only its holder writes to a job";
const FINISHED = "finished stays finished";

type Name = keyof typeof PLANTED_IN_JOBS;
const CASES: readonly [name: Name, rules: readonly string[]][] = [
  ["the fence is not checked", [TAKEN_AWAY, TOO_LATE, FINISHED, HOLDER_ONLY]],
  ["the end of a lease is not checked", [TOO_LATE, "only the holder ends its attempt"]],
  ["the sweep forgets cancellations", ["the sweep gives jobs on", CANCELLED]],
  ["the sweep does not count attempts", ["the sweep gives jobs on", "attempts are bounded"]],
  ["nodes sweep by their own clocks", [TAKEN_AWAY, TOO_LATE, SETTLED]],
  ["keys do not keep jobs away", ["one unfinished job of a key"]],
  [
    "a claim does not look at the status",
    ["a job has one valid lease", "attempts are bounded", "an ended lease is swept first"],
  ],
  ["fences do not grow", ["fences grow with each claim"]],
  ["a claim is early", ["no job is claimed before it is due"]],
  ["a second completion replaces the first", [FINISHED]],
  ["jobs that run are retried", [TAKEN_AWAY, TOO_LATE, CANCELLED, "only a claim moves a job that waits"]],
  ["a failure that may be retried loses a cancellation", [CANCELLED]],
  ["answers of a batch are mixed up", ["answers are for what was asked"]],
  ["a job is acknowledged although it is not stored", ["no job is lost"]],
  ["nobody sweeps", [SETTLED]],
  ["a claim relies on what it was told", [SETTLED]],
];

test.each(CASES)("%s", async (name, rules) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { failure } = await simulateJobs({ seed, planted: PLANTED_IN_JOBS[name] });
    if (failure === undefined) continue;
    expect(rules).toContain(failure.message.split(":")[0]);
    return;
  }
  expect.unreachable(`not found in ${SEEDS} seeds`);
});

test("every planted mistake is looked for", () => {
  expect(CASES.map(([name]) => name).toSorted()).toEqual(Object.keys(PLANTED_IN_JOBS).toSorted());
});
