import type { CostModel, IngestAmount, IngestCosts } from "../costs/cost-model.ts";
import type { CostPart } from "../costs/costs.ts";
import type { IngestStream, QueryStream, Workload } from "../workload/workload.ts";

/** What runs on a node of its own in a cluster, or is the one process. */
export const ROLES = ["server", "edge", "ingest", "query", "committer", "compaction", "worker", "sandbox"] as const;
export type Role = (typeof ROLES)[number];

/** Cores that are busy, and what a second of the workload asks of the rest. */
export type Demand = {
  /** Cores of a role, busy on average. */
  cores: Readonly<Record<Role, number>>;
  /** Of that, first threads: one of them is all that a process has. */
  main: Readonly<Record<Role, number>>;
  /** Share by which each may be exceeded, once in ten. */
  errorP90: Readonly<Record<Role, number>>;
  postgresCores: number;
  commitsPerSecond: number;
  requestsPerSecond: number;
  rowsPerSecond: number;
  walBytesPerSecond: number;
  /** By kind, those of compaction and of queries included. */
  storeRequestsPerSecond: Readonly<Record<string, number>>;
};

/** When: on average, or at the peaks of all streams at once. `factor` times as much of everything. */
export type When = {
  at: "mean" | "peak";
  factor: number;
  /** Whether nodes have more to do than they can, and so gather more into each commit. */
  isCrowded?: boolean;
};

/** How many nodes share the ingest of a table: each commits what it has gathered. */
export type Spread = { ingestNodes: number };

export function demandOf(workload: Workload, model: CostModel, when: When, { ingestNodes }: Spread): Demand {
  const { mode } = workload.deployment;
  const costs = model.ingest(mode);
  const tally = new Tally();
  let [commits, requests, rows, wal, postgres] = [0, 0, 0, 0, 0];
  const store = new Map<string, number>();
  const count = (kind: string, perSecond: number) => store.set(kind, (store.get(kind) ?? 0) + perSecond);
  // What a process spends on nothing but being there is counted once, not for each stream.
  const idle: IngestAmount = {
    requests: 0,
    bytes: 0,
    commits: 0,
    flushes: 0,
    seconds: 1,
    shape: workload.ingest[0]?.shape ?? "",
  };
  const nodes = mode === "single" ? 1 : ingestNodes;
  const streams = [idle, ...workload.ingest.map((stream) => amountOf(stream, when, costs, nodes))];
  for (const stream of workload.ingest) {
    rows += rateOf(stream, when);
    const merge = model.compaction(stream.shape);
    const compactor: Role = mode === "single" ? "server" : "compaction";
    // Rows of a short peak are merged after it.
    const due = stream.peak_length > MERGES_WAIT_SECONDS ? when.at : "mean";
    const merged = stream.bytes_per_row * rateOf(stream, { ...when, at: due });
    tally.add(compactor, merged * merge.cpuPerRawByte, 0);
  }
  for (const amount of streams) {
    for (const part of costs.parts) {
      const role = roleOf(part);
      const spent = costs.cpu(part, amount);
      if (role !== undefined) tally.add(role, spent, costs.main(part, amount), costs.errorP90(part));
      else if (part === "postgres") postgres += spent;
    }
    commits += amount.commits;
    requests += amount.requests;
    wal += costs.walBytes(amount);
    for (const [kind, perSecond] of Object.entries(costs.storeRequests(amount))) count(kind, perSecond);
  }
  for (const query of workload.queries) {
    const { rate, rangeBytes } = queryLoad(workload, query, when);
    const own = model.query(query.class);
    tally.add(mode === "single" ? "server" : "query", rate * own.cpu(rangeBytes, query.cached), 0, own.errorP90);
    if (mode !== "single") count("get", rate * (1 - query.cached));
  }
  if (workload.jobs !== undefined) {
    const { rate, cpu } = workload.jobs;
    tally.add(mode === "single" ? "server" : "worker", rate * when.factor * (model.jobCpu() + cpu), 0);
  }
  if (workload.sandboxes !== undefined && model.costs.sandboxes !== null) {
    const start = model.costs.sandboxes.startCpuSeconds;
    tally.add(mode === "single" ? "server" : "sandbox", workload.sandboxes.created * when.factor * start, 0);
  }
  return {
    ...tally.byRole(),
    postgresCores: postgres,
    commitsPerSecond: commits,
    requestsPerSecond: requests,
    rowsPerSecond: rows,
    walBytesPerSecond: wal,
    storeRequestsPerSecond: Object.fromEntries(store),
  };
}

/** Rows a second. */
export function rateOf(stream: IngestStream, { at, factor }: When): number {
  return stream.rows * factor * (at === "peak" ? stream.peak_factor : 1);
}

/** Each node gathers what comes to it; in staged mode one committer commits what all have gathered. */
export function amountOf(stream: IngestStream, when: When, costs: IngestCosts, nodes: number): IngestAmount {
  const rows = rateOf(stream, when);
  const requests = rows / stream.rows_per_request;
  const bodyBytes = stream.rows_per_request * stream.bytes_per_row;
  const { tables, clients } = stream;
  const rowsPerRequest = stream.rows_per_request;
  const load = { requestsPerSecond: requests / nodes, bodyBytes, rowsPerRequest, tables, clients: clients / nodes };
  const { commits, flushes } = when.isCrowded === true ? costs.crowded(load) : costs.gathered(load);
  const together = { ...load, requestsPerSecond: requests, tables: 1, clients: Infinity };
  return {
    requests,
    bytes: rows * stream.bytes_per_row,
    commits: costs.isCommittedByOne ? costs.gathered(together).commits : commits * nodes,
    flushes: flushes * nodes,
    seconds: 0,
    shape: stream.shape,
  };
}

/** Queries a second, and the raw bytes of the rows that one of them spans. */
export function queryLoad(workload: Workload, query: QueryStream, { at, factor }: When) {
  const stream = workload.ingest.find(({ name }) => name === query.reads);
  if (stream === undefined) throw new Error(`${query.reads} is no group of tables`);
  const perSecond = (stream.rows * factor * stream.bytes_per_row) / stream.tables;
  return {
    rate: query.rate * factor * (at === "peak" ? query.peak_factor : 1),
    rangeBytes: perSecond * Math.min(query.range, stream.retention),
  };
}

/** From this share of its cores on a node is short of them, and gathers more. */
const SHORT = 0.9;

/** Busy cores of a node that has `cores`, by what its load takes as it usually comes, and in a crowd. */
export function busyCores({ usual, crowded, cores }: Record<"usual" | "crowded" | "cores", number>): number {
  return usual < SHORT * cores ? usual : Math.max(Math.min(usual, SHORT * cores), crowded);
}

/** PostgreSQL and the object store are no roles of ours. */
function roleOf(part: CostPart): Role | undefined {
  return part === "postgres" || part === "store" ? undefined : part;
}

/** Sums by role. The error of a role is that of its parts, by how much each takes. */
class Tally {
  readonly #cores = zeros();
  readonly #main = zeros();
  readonly #uncertain = zeros();

  add(role: Role, cores: number, main: number, errorP90 = MERGE_ERROR): void {
    this.#cores[role] += cores;
    this.#main[role] += main;
    this.#uncertain[role] += cores * errorP90;
  }

  byRole(): Pick<Demand, "cores" | "main" | "errorP90"> {
    const errorP90 = zeros();
    for (const role of ROLES) errorP90[role] = this.#cores[role] === 0 ? 0 : this.#uncertain[role] / this.#cores[role];
    return { cores: this.#cores, main: this.#main, errorP90 };
  }
}

/** Extents may wait so long for their merge before queries feel their number. */
const MERGES_WAIT_SECONDS = 7_200;

/** Of what has one figure and no fit: two runs of a merge differ by as much. */
const MERGE_ERROR = 0.1;

function zeros(): Record<Role, number> {
  return { server: 0, edge: 0, ingest: 0, query: 0, committer: 0, compaction: 0, worker: 0, sandbox: 0 };
}
