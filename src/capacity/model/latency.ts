import type { CostModel } from "../costs/cost-model.ts";
import type { IngestStream, QueryStream, Workload } from "../workload/workload.ts";
import { queryLoad, rateOf, type Role } from "./demand.ts";
import { waitQuantile } from "./queueing.ts";

/** Seconds, at the peak. */
export type Latency = { p50: number; p99: number };

type Asked = {
  workload: Workload;
  model: CostModel;
  roles: readonly { role: Role; nodes: number; cores: number; utilization: { peak: number } }[];
};

const MS = 1e-3;

/** From sending to acknowledgement: what it takes on a quiet machine, the way there, and waiting for cores. */
export function ingestLatency({ workload, model, stream, roles }: Asked & { stream: IngestStream }) {
  const { mode } = workload.deployment;
  const rowsPerSecond = rateOf(stream, { at: "peak", factor: 1 });
  const requestsPerSecond = rowsPerSecond / stream.rows_per_request;
  const bodyBytes = stream.rows_per_request * stream.bytes_per_row;
  const costs = model.ingest(mode);
  const quiet = costs.latency(bodyBytes);
  const part = mode === "single" ? "server" : "ingest";
  const one = { requests: 1, bytes: bodyBytes, commits: 1, flushes: 1, seconds: 0, shape: stream.shape };
  const serviceSeconds = costs.cpu(part, one);
  const wait = (q: number) => waitOf(roles, part, serviceSeconds, q);
  const { storePutMs = 0, networkMs = 0 } = model.costs.given;
  // To the edge, from there to the node; its object, then its commit.
  const away = mode === "single" ? networkMs * MS : (3 * networkMs + storePutMs) * MS;
  return {
    name: stream.name,
    rowsPerSecond,
    requestsPerSecond,
    p50: quiet.p50 + away + wait(0.5),
    p99: quiet.p99 + away + wait(0.99),
  };
}

export function queryLatency({ workload, model, query, roles }: Asked & { query: QueryStream }) {
  const { mode } = workload.deployment;
  const role = mode === "single" ? "server" : "query";
  const cores = roles.find((each) => each.role === role)?.cores ?? 1;
  const { rangeBytes } = queryLoad(workload, query, { at: "peak", factor: 1 });
  const quiet = model.query(query.class).latency(rangeBytes, query.cached, cores);
  const { storeGetMs = 0, networkMs = 0 } = model.costs.given;
  const away = mode === "single" ? networkMs * MS : (2 * networkMs + (1 - query.cached) * storeGetMs) * MS;
  const wait = (q: number) => waitOf(roles, role, quiet.p50, q);
  return { name: query.name, p50: quiet.p50 + away + wait(0.5), p99: quiet.p99 + away + wait(0.99) };
}

/** For one of the cores of one node: requests go to a node first, and wait there. */
function waitOf(roles: Asked["roles"], role: Role, serviceSeconds: number, q: number): number {
  const size = roles.find((each) => each.role === role);
  if (size === undefined) return Infinity;
  // A part of a core is one that takes longer.
  const servers = Math.max(1, Math.floor(size.cores));
  const perServer = size.cores / servers;
  return waitQuantile({ servers, utilization: size.utilization.peak, serviceSeconds: serviceSeconds / perServer }, q);
}
