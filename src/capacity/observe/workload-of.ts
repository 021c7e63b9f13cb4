import type { CostModel } from "../costs/cost-model.ts";
import { demandOf, ROLES, type Role } from "../model/demand.ts";
import type { PlannedRole } from "../model/plan.ts";
import { threeDigits } from "../units.ts";
import type { Workload } from "../workload/workload.ts";
import type { Observed, ObservedNode } from "./span.ts";

/** A workload as servers tell of it. What their metrics do not say stands there as a guess, with a word on it. */
export function workloadTextOf(observed: Observed, shape: string): string {
  const { seconds, nodes } = observed;
  const count = (counter: string) => nodes.reduce((sum, { growth }) => sum + (growth.get(counter) ?? 0), 0);
  const requests = count("engine_ingest_requests_total");
  const rows = byDatabase(nodes, ({ rows: own }) => own);
  const bytes = byDatabase(nodes, ({ bytes: own }) => own);
  const all = [...rows.values()].reduce((sum, each) => sum + each, 0);
  if (all === 0) throw new Error(`no row came in within ${threeDigits(seconds)} s; take a longer --span`);
  const perRequest = Math.max(1, Math.round(all / Math.max(1, requests)));
  const streams = [...rows].flatMap(([database, own], i) =>
    own === 0
      ? []
      : [
          `[[ingest]]
name = ${JSON.stringify(nameOf(database, i))}
tables = 1 # not in the metrics
shape = ${JSON.stringify(shape)} # the nearest of those measured
rows = "${rateText(own / seconds)}/s"
bytes_per_row = "${Math.max(1, Math.round((bytes.get(database) ?? 0) / own))} B"
rows_per_request = ${perRequest}
clients = 16 # not in the metrics
retention = "30 d" # not in the metrics
`,
        ],
  );
  const queries = count("engine_query_duration_seconds_count");
  const [hits, misses] = [count("engine_query_cache_hits_total"), count("engine_query_cache_misses_total")];
  const cached = hits + misses === 0 ? 1 : hits / (hits + misses);
  const [first] = [...rows].flatMap(([database, own], i) => (own === 0 ? [] : [nameOf(database, i)]));
  const asked =
    queries === 0
      ? ""
      : `
[[queries]]
name = "queries"
class = "window" # not in the metrics
reads = ${JSON.stringify(first)}
rate = "${rateText(queries / seconds)}/s"
range = "1 h" # not in the metrics
concurrency = ${Math.max(1, Math.ceil(queries / seconds))}
cached = ${cached.toFixed(2)}
`;
  const jobs = count("engine_job_attempts_ended_total");
  const worked =
    jobs === 0 ? "" : `\n[jobs]\nrate = "${rateText(jobs / seconds)}/s"\ntakes = "1 s" # not in the metrics\n`;
  const mode = nodes.some(({ roles }) => roles.includes("all_in_one")) ? "single" : "staged";
  return `# What ${nodes.length} servers did in ${threeDigits(seconds)} s.
name = "observed"

[deployment]
mode = "${mode}"${mode === "single" ? "" : " # or sync: it is not in the metrics"}

${streams.join("\n")}${asked}${worked}`;
}

function rateText(perSecond: number): string {
  return perSecond.toPrecision(4).includes("e") ? perSecond.toFixed(4) : String(Number(perSecond.toPrecision(4)));
}

function byDatabase(nodes: readonly ObservedNode[], of: (node: ObservedNode) => ReadonlyMap<string, number>) {
  const sums = new Map<string, number>();
  for (const node of nodes) for (const [key, value] of of(node)) sums.set(key, (sums.get(key) ?? 0) + value);
  return sums;
}

/** Names of databases may have what names of streams may not. */
function nameOf(database: string, i: number): string {
  return /^[a-z][a-z0-9_-]{0,39}$/.test(database) ? database : `database-${i + 1}`;
}

export type Comparison = {
  role: Role;
  nodes: number;
  cores: number;
  /** Busy cores: seen, and as the model says of the same load. */
  used: number;
  expected: number;
  verdict: string;
};

const TOO_BUSY = 0.8;
const TOO_IDLE = 0.3;

/** By role: what is there, what it uses, what the model says, and whether it is too much or too little. */
export function compareRoles(
  observed: Observed,
  model: CostModel,
  workload: Workload,
  planned: readonly PlannedRole[],
): Comparison[] {
  const ingestNodes = observed.nodes.filter(({ roles }) => roles.includes("ingest")).length;
  const demand = demandOf(workload, model, { at: "mean", factor: 1 }, { ingestNodes: Math.max(1, ingestNodes) });
  return ROLES.flatMap((role): Comparison[] => {
    const nodes = observed.nodes.filter((each) => roleOf(each) === role);
    if (nodes.length === 0) return [];
    const cores = nodes.reduce((sum, each) => sum + each.cores, 0);
    const used = nodes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) / observed.seconds;
    const plan = planned.find((each) => each.role === role);
    return [
      {
        role,
        nodes: nodes.length,
        cores,
        used,
        expected: demand.cores[role],
        verdict: verdictOf({ used, cores }, plan),
      },
    ];
  });
}

/** A process of several roles counts as the first of them. */
function roleOf({ roles }: ObservedNode): Role | undefined {
  if (roles.includes("all_in_one")) return "server";
  return ROLES.find((role) => roles.includes(role));
}

function verdictOf({ used, cores }: { used: number; cores: number }, plan: PlannedRole | undefined): string {
  const wanted = plan === undefined ? "" : `; ${plan.nodes} × ${plan.cores} cores would do`;
  if (used > TOO_BUSY * cores) return `too small${wanted}`;
  const enough = plan === undefined ? cores : plan.nodes * plan.cores;
  return used < TOO_IDLE * cores && enough < cores ? `too large${wanted}` : "fits";
}
