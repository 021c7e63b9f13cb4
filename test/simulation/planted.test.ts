import { expect, test } from "vitest";
import { PLANTED } from "./planted.ts";
import { simulate } from "./simulate.ts";
import type { Given } from "./world.ts";

/**
 * Mistakes that are put in on purpose: the simulation finds each, by a rule that it breaks, within a few seeds. Every
 * change of the program gives other histories, so each is aimed at until a tenth of all seeds find it.
 */
const SEEDS = 60;

type Name = keyof typeof PLANTED;
const CASES: readonly [name: Name, rules: readonly string[], given?: Given][] = [
  ["the ledger is not asked", ["nothing is doubled"], { keyedShare: 0.9 }],
  ["a commit that was held up is let in", ["nothing is doubled"], { mode: "sync", keyedShare: 0.9, stallRate: 0.3 }],
  [
    "a staged write that was held up is let in",
    ["nothing is doubled"],
    // Between the look-up of the keys and the write, which the driver repeats on waking.
    { mode: "staged", keyedShare: 0.9, stallRate: 0.3, stallAt: /_staged.* refused$/, repeatedRate: 0.6 },
  ],
  ["staged objects are not recorded", ["nothing is doubled"], { mode: "staged", keyedShare: 0, unheardRate: 0.2 }],
  [
    "orphans are deleted by age",
    ["no extent without bytes", "no needed object is deleted"],
    { mode: "sync", keyedShare: 0, stallRate: 0.3 },
  ],
  ["deletion does not wait", ["no needed object is deleted", "only what nobody can read is forgotten"]],
  ["the grace is too short", ["snapshots stay readable for the grace"]],
  ["a merge that comes too late is published", ["nothing is doubled", "rows come from requests"]],
  [
    "what is not known is taken for nothing stored",
    ["no needed object is deleted", "no extent without bytes"],
    { mode: "staged", unheardRate: 0.2 },
  ],
  [
    "writes are acknowledged early",
    ["nothing acknowledged is lost", "no extent without bytes", "no extent with other bytes"],
  ],
  [
    "torn writes are taken for whole ones",
    ["no extent with other bytes", "nothing acknowledged is lost", "what is acknowledged becomes visible"],
  ],
  ["retention is too early", ["retention takes no row that is young"]],
];

test.each(CASES)("%s", { timeout: 120_000 }, async (name, rules, given = {}) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { failure } = await simulate({ seed, planted: PLANTED[name], given });
    if (failure === undefined) continue;
    expect(rules).toContain(failure.message.split(":")[0]);
    return;
  }
  expect.unreachable(`not found in ${SEEDS} seeds`);
});

test("every planted mistake is looked for", () => {
  expect(CASES.map(([name]) => name).toSorted()).toEqual(Object.keys(PLANTED).toSorted());
});
