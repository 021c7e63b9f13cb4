import type { CostModel } from "../costs/cost-model.ts";
import { bytesText, GIB, MIB, SECONDS_PER_MONTH } from "../units.ts";
import type { Workload } from "../workload/workload.ts";
import { bottlenecksOf, type Bottleneck } from "./bottlenecks.ts";
import { demandOf, queryLoad, ROLES, type Demand, type Role } from "./demand.ts";
import { ingestLatency, queryLatency, type Latency } from "./latency.ts";
import { needsOf } from "./needs.ts";
import { MAX_MAIN, sizeOf, type Loss, type RoleNeed, type RoleSize } from "./sizing.ts";
import { storageOf, type Storage } from "./storage.ts";

/** The answer. Everything at the peak has the peaks of all streams at once. */
export type Plan = {
  workload: string;
  mode: Workload["deployment"]["mode"];
  roles: readonly PlannedRole[];
  postgres: {
    cores: number;
    connections: number;
    commitsPerSecond: number;
    walBytesPerMonth: number;
    iops: number;
  } | null;
  storage: Storage;
  /** To the object store, by kind; null without one. */
  requestsPerMonth: Readonly<Record<string, number>> | null;
  ingest: readonly (Latency & { name: string; rowsPerSecond: number; requestsPerSecond: number })[];
  queries: readonly (Latency & { name: string; rangeBytes: number })[];
  /** Seconds from an acknowledgement until queries see the rows, as it usually is and at most after a quiet time. */
  freshness: { usual: number; most: number };
  /** The first three, by the factor of the peak at which each binds. */
  bottlenecks: readonly Bottleneck[];
  /** What twice the load would change, a sentence each. */
  twice: readonly string[];
  /** What the plan does not keep, a sentence each. */
  unreached: readonly string[];
  /** Where it goes beyond what was measured, and what was given and not measured. */
  assumptions: readonly string[];
};

export type PlannedRole = {
  role: Role;
  nodes: number;
  cores: number;
  memoryBytes: number;
  diskBytes: number;
  /** Busy share of the cores. */
  utilization: { mean: number; peak: number; afterLoss: number };
  /** Nodes and cores where the costs are as high as once in ten; null where nothing within bounds is enough. */
  p90: { nodes: number; cores: number } | null;
};

/** Throws a sentence where the costs do not have what the workload needs. */
export function planFor(workload: Workload, model: CostModel): Plan {
  const sized = sizesFor(workload, model, 1);
  const { peak, mean } = sized;
  const roles = sized.roles.map((each): PlannedRole => {
    const meanCores = mean.cores[each.role] / (each.size.nodes * each.size.cores);
    const working = each.isLed ? each.size.nodes : 1;
    return {
      role: each.role,
      nodes: each.size.nodes,
      cores: each.size.cores,
      memoryBytes: each.memoryBytes,
      diskBytes: each.diskBytes,
      utilization: { mean: meanCores * working, peak: each.size.peak, afterLoss: each.size.afterLoss },
      p90: each.p90 ?? null,
    };
  });
  const ingest = workload.ingest.map((stream) => ingestLatency({ workload, model, stream, roles }));
  const queries = workload.queries.map((query) => ({
    ...queryLatency({ workload, model, query, roles }),
    rangeBytes: queryLoad(workload, query, { at: "mean", factor: 1 }).rangeBytes,
  }));
  const isSingle = workload.deployment.mode === "single";
  return {
    workload: workload.name,
    mode: workload.deployment.mode,
    roles,
    postgres: isSingle ? null : postgresOf(peak, mean, roles, workload.deployment.max_utilization),
    storage: storageOf(workload, model, mean),
    requestsPerMonth: isSingle
      ? null
      : Object.fromEntries(
          Object.entries(withMerges(workload, model, mean)).map(([kind, each]) => [kind, each * SECONDS_PER_MONTH]),
        ),
    ingest,
    queries,
    freshness: freshnessOf(workload),
    bottlenecks: bottlenecksOf(workload, model, roles),
    twice: changesOf(roles, sizesFor(workload, model, 2)),
    unreached: [...sized.unreached, ...missedTargets(workload, ingest, queries), ...staleRows(workload)],
    assumptions: assumptionsOf(workload, model),
  };
}

type SizedRole = {
  role: Role;
  isLed: boolean;
  size: RoleSize;
  memoryBytes: number;
  diskBytes: number;
  p90: { nodes: number; cores: number } | undefined;
};
type Sized = { roles: SizedRole[]; unreached: string[]; peak: Demand; mean: Demand };

/** Enough for the group commit of ingest nodes to settle at the number of them that is planned. */
const PASSES = 3;

function sizesFor(workload: Workload, model: CostModel, factor: number): Sized {
  const { survive, zones, max_utilization: maxUtilization, max_cores: maxCores } = workload.deployment;
  const loss: Loss = { survive, zones, maxUtilization, maxCores };
  let ingestNodes = 1;
  let sized: Sized | undefined;
  for (let pass = 0; pass < PASSES; pass++) {
    const [peak, mean] = (["peak", "mean"] as const).map((at) =>
      demandOf(workload, model, { at, factor }, { ingestNodes }),
    );
    if (peak === undefined || mean === undefined) break;
    sized = { roles: [], unreached: [], peak, mean };
    for (const need of needsOf(workload, model, peak)) {
      const error = 1 + peak.errorP90[need.role];
      const size = sizeOf(need, loss);
      const p90 = sizeOf({ ...need, cores: need.cores * error, main: need.main * error }, loss);
      if (size === undefined) {
        sized.unreached.push(unreachable(need, loss));
        continue;
      }
      const perNode = need.isLed ? 1 : size.nodes;
      const memoryBytes = roundUp(need.memoryBytes(perNode), GIB);
      const diskBytes = roundUp(need.diskBytes(perNode), GIB);
      sized.roles.push({ role: need.role, isLed: need.isLed, size, memoryBytes, diskBytes, p90 });
    }
    ingestNodes = sized.roles.find(({ role }) => role === "ingest")?.size.nodes ?? 1;
  }
  if (sized === undefined) throw new Error("no pass was made");
  return sized;
}

function roundUp(bytes: number, step: number): number {
  return Math.ceil(bytes / step) * step;
}

function unreachable({ role, isLed, cores, main }: RoleNeed, { maxCores }: Loss): string {
  const needed = `${role} needs ${cores.toFixed(1)} busy cores at the peak`;
  if (!isLed) return `${needed}: more than the nodes within bounds have; raise max_cores`;
  const limit =
    main > MAX_MAIN ? `its first thread would be ${(main * 100).toFixed(0)} % busy` : `${maxCores} cores are the most`;
  return `${needed}, and one node does all of its work: ${limit}; send larger requests, or split the tables over two deployments`;
}

/** `ENGINE_CATALOG_MAX_CONNS` as it comes, and what recall opens beside it. */
const POSTGRES_CONNECTIONS_PER_NODE = 16;
const QUERY_NODE_EXTRA = 3;
const ADMINISTRATORS = 10;
/** A commit is a sync of the log; a page of it is 8 KiB. */
const WAL_PAGE = 8_192;

function postgresOf(
  peak: Demand,
  mean: Demand,
  roles: readonly PlannedRole[],
  maxUtilization: number,
): Plan["postgres"] {
  const servers = roles.filter(({ role }) => role !== "edge");
  const connections = servers.reduce(
    (sum, { role, nodes }) => sum + nodes * (POSTGRES_CONNECTIONS_PER_NODE + (role === "query" ? QUERY_NODE_EXTRA : 0)),
    ADMINISTRATORS,
  );
  return {
    cores: Math.max(2, 2 ** Math.ceil(Math.log2(peak.postgresCores / maxUtilization))),
    connections,
    commitsPerSecond: peak.commitsPerSecond,
    walBytesPerMonth: mean.walBytesPerSecond * SECONDS_PER_MONTH,
    iops: Math.ceil(peak.commitsPerSecond + peak.walBytesPerSecond / WAL_PAGE),
  };
}

/** A merge reads each of its extents and writes one: requests of the mean, for merges follow it. */
function withMerges(workload: Workload, model: CostModel, mean: Demand): Record<string, number> {
  const requests: Record<string, number> = { ...mean.storeRequestsPerSecond };
  for (const stream of workload.ingest) {
    const { writtenPerRawByte } = model.compaction(stream.shape);
    const written = stream.rows * stream.bytes_per_row * writtenPerRawByte;
    requests["put"] = (requests["put"] ?? 0) + written / MERGED_PART_BYTES;
  }
  requests["get"] = (requests["get"] ?? 0) + mean.commitsPerSecond;
  return requests;
}

/** Merged files go to the store in parts of this size. */
const MERGED_PART_BYTES = 8 * MIB;

function changesOf(roles: readonly PlannedRole[], doubled: Sized): string[] {
  const changes = ROLES.flatMap((role) => {
    const now = roles.find((each) => each.role === role);
    const then = doubled.roles.find((each) => each.role === role);
    if (now === undefined || then === undefined) return [];
    const { nodes, cores } = then.size;
    if (nodes === now.nodes && cores === now.cores) return [];
    return [`${role}: ${nodes} × ${cores} cores in place of ${now.nodes} × ${now.cores}`];
  });
  return [...changes, ...doubled.unreached];
}

function missedTargets(workload: Workload, ingest: Plan["ingest"], queries: Plan["queries"]): string[] {
  const targets = [...workload.ingest, ...workload.queries].flatMap(({ name, p99 }) =>
    p99 === undefined ? [] : [{ name, p99 }],
  );
  return targets.flatMap(({ name, p99 }) => {
    const expected = [...ingest, ...queries].find((each) => each.name === name)?.p99 ?? 0;
    // A role that could not be sized is said already.
    return expected <= p99 || expected === Infinity
      ? []
      : [
          `${name}: p99 is expected at ${(expected * 1_000).toFixed(0)} ms at the peak, ${(p99 * 1_000).toFixed(0)} ms are wanted`,
        ];
  });
}

/** See docs/operations.md, "Sync or staged". */
const STAGED_FRESHNESS = { usual: 1, most: 3 };

function freshnessOf({ deployment }: Workload): Plan["freshness"] {
  return deployment.mode === "staged" ? STAGED_FRESHNESS : { usual: 0, most: 0 };
}

function staleRows(workload: Workload): string[] {
  const { freshness } = workload.deployment;
  const { usual } = freshnessOf(workload);
  if (freshness === undefined || freshness >= usual) return [];
  return [`rows are seen after ${usual} s, ${freshness} s are wanted; mode sync shows them at once`];
}

function assumptionsOf(workload: Workload, model: CostModel): string[] {
  const { costs } = model;
  const said: string[] = [];
  const { bodyBytes } = model.ingest(workload.deployment.mode);
  const shapes = new Set(costs.ingest.map(({ shape }) => shape));
  for (const { name, rows_per_request, bytes_per_row, shape } of workload.ingest) {
    const body = rows_per_request * bytes_per_row;
    if (body < bodyBytes.least || body > bodyBytes.most)
      said.push(
        `${name}: bodies of ${bytesText(body)} are extrapolated, ${bytesText(bodyBytes.least)} to ${bytesText(bodyBytes.most)} were measured`,
      );
    if (!shapes.has(shape)) said.push(`${name}: rows of ${shape} were not measured`);
  }
  for (const query of workload.queries) {
    const { rangeBytes } = queryLoad(workload, query, { at: "mean", factor: 1 });
    const { most } = model.query(query.class).rangeBytes;
    if (rangeBytes > most)
      said.push(`${query.name}: ${bytesText(rangeBytes)} are extrapolated, up to ${bytesText(most)} were measured`);
  }
  const given = Object.entries(costs.given);
  for (const [key, value] of given) said.push(`${key} = ${value} is given, not measured`);
  if (workload.deployment.mode !== "single" && costs.given.storePutMs === undefined)
    said.push("the object store and the network are those of the machine measured; give storePutMs and networkMs");
  if (workload.sandboxes !== undefined && costs.sandboxes === null)
    said.push("sandboxes were not measured: their nodes are planned by memory alone");
  return said;
}
