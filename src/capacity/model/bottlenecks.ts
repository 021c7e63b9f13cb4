import type { CostModel } from "../costs/cost-model.ts";
import type { Workload } from "../workload/workload.ts";
import { demandOf, type Demand, type Role } from "./demand.ts";

export type Bottleneck = {
  /** What runs out. */
  name: string;
  /** Times the planned peak at which it does. */
  factor: number;
  rowsPerSecond: number;
  /** What helps. */
  remedy: string;
};

type Planned = readonly { role: Role; nodes: number; cores: number }[];

type Resource = { name: string; remedy: string; used: (demand: Demand) => number };

/** Beyond this many times the peak nothing is said. */
const FARTHEST = 1_000;
const SHOWN = 3;
const STEPS = 60;

/** The resources that run out first when everything grows alike, the first one first. */
export function bottlenecksOf(workload: Workload, model: CostModel, planned: Planned): Bottleneck[] {
  const ingestNodes = planned.find(({ role }) => role === "ingest")?.nodes ?? 1;
  // What is full is short of something, so that what comes gathers.
  const at = (factor: number) => demandOf(workload, model, { at: "peak", factor, isCrowded: true }, { ingestNodes });
  return resourcesOf(workload, model, planned)
    .flatMap(({ name, remedy, used }): Bottleneck[] => {
      const factor = whereFull((f) => used(at(f)));
      if (factor === undefined) return [];
      return [{ name, factor, rowsPerSecond: at(factor).rowsPerSecond, remedy }];
    })
    .sort((a, b) => a.factor - b.factor)
    .slice(0, SHOWN);
}

/** The factor at which the use reaches 1, by bisection: use grows with the load. */
function whereFull(used: (factor: number) => number): number | undefined {
  if (used(FARTHEST) < 1) return undefined;
  let [low, high] = [0, FARTHEST];
  for (let step = 0; step < STEPS; step++) {
    const middle = (low + high) / 2;
    if (used(middle) < 1) low = middle;
    else high = middle;
  }
  return high;
}

function resourcesOf(workload: Workload, model: CostModel, planned: Planned): Resource[] {
  const { mode } = workload.deployment;
  const resources = planned.flatMap(({ role, nodes, cores }): Resource[] => {
    // Where one leads, the others only wait.
    const working = role === "committer" || role === "compaction" ? 1 : nodes;
    const isLed = working === 1 && role !== "server";
    return [
      {
        name: `cores of ${role}`,
        remedy: isLed ? "more cores for it; a second node does not help" : "more nodes or cores",
        used: ({ cores: busy }) => busy[role] / (working * cores),
      },
      {
        name: `first thread of ${role}`,
        remedy: isLed || role === "server" ? "larger requests; a second core does not help" : "more nodes",
        used: ({ main }) => main[role] / working,
      },
    ];
  });
  const most = commitsPerSecondOf(model, mode === "single" ? "sqlite" : "postgres");
  if (most !== undefined)
    resources.push({
      name: "commits of the catalog",
      remedy: mode === "sync" ? "mode staged, or larger requests" : "larger requests, or fewer tables",
      used: ({ commitsPerSecond }) => commitsPerSecond / most,
    });
  return resources;
}

/** All commits stand in one line, so this is a limit of the whole deployment. */
function commitsPerSecondOf({ costs }: CostModel, catalog: "sqlite" | "postgres"): number | undefined {
  if (catalog === "postgres" && costs.given.catalogCommitsPerSecond !== undefined)
    return costs.given.catalogCommitsPerSecond;
  const rates = costs.commits.filter((each) => each.catalog === catalog).map((each) => each.commits / each.seconds);
  return rates.length === 0 ? undefined : Math.max(...rates);
}
