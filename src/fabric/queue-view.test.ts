import { expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { laneKey } from "./lanes.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { QueueView } from "./queue-view.ts";

const lane = (n: number) =>
  laneKey({
    kind: "k",
    database: undefined,
    workerId: undefined,
    selector: { n: String(n) },
    priority: 0,
    owner: "local",
  });

test("what is announced where nobody looks does not pile up, and the newest is known", () => {
  const view = new QueueView(new ManualClock());
  for (let n = 0; n <= FABRIC_LIMITS.lanes; n++) view.announce(lane(n));
  const turnsOf = (n: number) =>
    view
      .turns({ kinds: new Set(["k"]), labels: { n: String(n) }, workerId: undefined, jobsOf: "everybody" })
      .map(({ key }) => key);
  expect(turnsOf(0)).toEqual([]);
  expect(turnsOf(FABRIC_LIMITS.lanes)).toEqual([lane(FABRIC_LIMITS.lanes)]);
});
