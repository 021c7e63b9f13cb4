import type { CostModel } from "../costs/cost-model.ts";
import { GIB, SECONDS_PER_DAY } from "../units.ts";
import { SANDBOXES_PER_NODE, type Workload } from "../workload/workload.ts";
import type { Demand, Role } from "./demand.ts";
import { lostOf, type RoleNeed } from "./sizing.ts";

/** What a role needs, with memory and disk of a node when `nodes` of them share it. */
export type NodeNeed = RoleNeed & { memoryBytes: (nodes: number) => number; diskBytes: (nodes: number) => number };

/** Logs, temporary files and the program; what Fargate gives at least. */
const LEAST_DISK = 21 * GIB;
/** Merges spill up to 32 GiB. */
const COMPACTION_DISK = 60 * GIB;
/** For the page cache and what the measured peak did not see. */
const MEMORY_MARGIN = 1.5;
const LEAST_MEMORY = 2 * GIB;
/** Of a role that was not measured idle, and of a worker, whose handlers are unknown. */
const IDLE_BYTES = 0.5 * GIB;

export function needsOf(workload: Workload, model: CostModel, peak: Demand): NodeNeed[] {
  const { mode, survive, zones } = workload.deployment;
  const several = survive === "nothing" ? 1 : survive === "zone" ? Math.max(2, zones) : 2;
  const need = (role: Role, more: Partial<NodeNeed> & { variableBytes: number }): NodeNeed => {
    const { variableBytes, ...rest } = more;
    const idle = idleBytes(model, role);
    return {
      role,
      cores: peak.cores[role],
      main: peak.main[role],
      isLed: false,
      leastNodes: several,
      leastCores: 1,
      memoryBytes: (nodes) => Math.max(LEAST_MEMORY, MEMORY_MARGIN * (idle + variableBytes / nodes)),
      diskBytes: () => LEAST_DISK,
      ...rest,
    };
  };
  const ingestBytes = ingestMemory(workload, model);
  const queryBytes = queryMemory(workload, model);
  const mergeBytes = Math.max(...workload.ingest.map(({ shape }) => model.compaction(shape).peakBytes));
  const sandboxBytes = sandboxMemory(workload, model);
  if (mode === "single") {
    const everything = ingestBytes + queryBytes + mergeBytes + sandboxBytes;
    const stored = DISK_MARGIN * storedBytes(workload, model);
    return [
      need("server", { variableBytes: everything, leastNodes: 1, isLed: true, diskBytes: () => LEAST_DISK + stored }),
    ];
  }
  const standby = survive === "nothing" ? 1 : 2;
  return [
    need("edge", { variableBytes: ingestBytes }),
    need("ingest", { variableBytes: ingestBytes }),
    need("query", {
      variableBytes: queryBytes,
      leastCores: 2,
      diskBytes: () => LEAST_DISK + cacheBytes(workload, model),
    }),
    need("committer", { variableBytes: mode === "staged" ? ingestBytes : 0, isLed: true, leastNodes: standby }),
    need("compaction", {
      variableBytes: mergeBytes,
      isLed: true,
      leastNodes: standby,
      diskBytes: () => COMPACTION_DISK,
    }),
    need("worker", { variableBytes: 0, leastNodes: Math.max(several, workersFor(workload)) }),
    ...(sandboxBytes === 0
      ? []
      : [need("sandbox", { variableBytes: sandboxBytes, ...sandboxNodes(sandboxBytes, workload, several) })]),
  ];
}

/** `ENGINE_FABRIC_WORKERS` as it comes, and how many of them may be taken on average. */
const SLOTS = 4;
const BUSY_SLOTS = 0.7;

function workersFor({ jobs }: Workload): number {
  return jobs === undefined ? 0 : Math.ceil((jobs.rate * jobs.takes) / (SLOTS * BUSY_SLOTS));
}

/** General-purpose machines have this much for each core. */
const BYTES_PER_CORE = 4 * GIB;
/** Of it, for sandboxes. */
const SANDBOX_SHARE = 0.8;

/** Enough memory and places for all sandboxes, still when as many nodes are gone as may be. */
function sandboxNodes(total: number, { deployment, sandboxes }: Workload, several: number): Partial<NodeNeed> {
  const places = sandboxes?.at_once ?? 0;
  const { max_cores: maxCores } = deployment;
  const perCore = BYTES_PER_CORE * SANDBOX_SHARE;
  let leastNodes = several;
  const left = () => leastNodes - lostOf(leastNodes, deployment);
  while (left() * maxCores * perCore < total || left() * SANDBOXES_PER_NODE < places) leastNodes++;
  return {
    leastNodes,
    leastCores: Math.ceil(total / (left() * perCore)),
    memoryBytes: (nodes) => total / (nodes * SANDBOX_SHARE),
  };
}

/** Merges write what they read anew before they let it go. */
const DISK_MARGIN = 1.3;

function idleBytes({ costs }: CostModel, role: Role): number {
  if (role === "worker" || role === "sandbox") return IDLE_BYTES;
  return costs.memory.idleBytes[role] ?? IDLE_BYTES;
}

/** Connections, and the bodies of all clients at once. */
function ingestMemory({ ingest }: Workload, { costs }: CostModel): number {
  const { perConnectionBytes, perInFlightByte } = costs.memory;
  return ingest.reduce(
    (sum, { clients, rows_per_request, bytes_per_row }) =>
      sum + clients * (perConnectionBytes + rows_per_request * bytes_per_row * perInFlightByte),
    0,
  );
}

function queryMemory({ queries }: Workload, model: CostModel): number {
  return queries.reduce((sum, each) => sum + each.concurrency * model.query(each.class).peakBytes, 0);
}

function sandboxMemory({ sandboxes }: Workload, { costs }: CostModel): number {
  if (sandboxes === undefined) return 0;
  return sandboxes.at_once * (sandboxes.memory + (costs.sandboxes?.idleBytes ?? 0));
}

/** At rest, merged. */
export function storedBytes({ ingest }: Workload, model: CostModel): number {
  return ingest.reduce(
    (sum, { rows, bytes_per_row, retention, shape }) =>
      sum + rows * bytes_per_row * retention * model.compaction(shape).storedPerRawByte,
    0,
  );
}

/** What the queries that hit the cache span, as it is stored after merging; no less than a day of it. */
function cacheBytes({ ingest, queries }: Workload, model: CostModel): number {
  return ingest.reduce((sum, { name, rows, bytes_per_row, retention, shape }) => {
    const spans = queries.filter((each) => each.reads === name && each.cached > 0).map(({ range }) => range);
    const span = Math.min(retention, Math.max(SECONDS_PER_DAY, ...spans));
    return sum + rows * bytes_per_row * span * model.compaction(shape).storedPerRawByte;
  }, 0);
}
