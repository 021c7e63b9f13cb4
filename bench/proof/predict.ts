import { costModel } from "../../src/capacity/costs/cost-model.ts";
import type { Costs } from "../../src/capacity/costs/costs.ts";
import { bottlenecksOf } from "../../src/capacity/model/bottlenecks.ts";
import { amountOf, busyCores, demandOf, ROLES, type Role } from "../../src/capacity/model/demand.ts";
import { ingestLatency } from "../../src/capacity/model/latency.ts";
import type { Workload } from "../../src/capacity/workload/workload.ts";
import { synthetic } from "../support/shapes.ts";
import type { Case } from "./cases.ts";
import type { Prediction } from "./proof-file.ts";

const SAMPLE_ROWS = 200;
const SECONDS_PER_DAY = 86_400;

/** Before it is run. */
export function predictionOf(each: Case, costs: Costs): Prediction {
  const measured = costModel(costs);
  // The runs are too short for merges, which are switched off.
  const model = { ...measured, compaction: (shape: string) => ({ ...measured.compaction(shape), cpuPerRawByte: 0 }) };
  const workload = workloadOf(each);
  const demand = demandOf(workload, model, { at: "mean", factor: 1 }, { ingestNodes: 1 });
  const crowd = demandOf(workload, model, { at: "mean", factor: 1, isCrowded: true }, { ingestNodes: 1 });
  const busy = (role: Role) => busyCores({ usual: demand.cores[role], crowded: crowd.cores[role], cores: each.quota });
  const used = ROLES.filter((role) => demand.cores[role] > 0);
  const planned = used.map((role) => ({ role, nodes: 1, cores: each.quota }));
  const [first] = bottlenecksOf(workload, model, planned);
  if (first === undefined) throw new Error(`${each.name} has no bottleneck`);
  const [stream] = workload.ingest;
  if (stream === undefined) throw new Error(`${each.name} has no rows`);
  const roles = planned.map(({ role, nodes, cores }) => ({
    role,
    nodes,
    cores,
    utilization: { peak: busy(role) / cores },
  }));
  const ingest = model.ingest(each.mode);
  const amount = amountOf(stream, { at: "mean", factor: 1 }, ingest, 1);
  const put = demand.storeRequestsPerSecond["put"];
  const { p99 } = ingestLatency({ workload, model, stream, roles });
  return {
    cores: Object.fromEntries(used.map((role) => [role, busy(role)])),
    saturation: { perSecond: first.factor * each.requestsPerSecond, name: first.name },
    p99Ms: Number.isFinite(p99) ? p99 * 1_000 : null,
    storedPerRawByte: ingest.storedBytes(amount) / amount.bytes,
    putsPerSecond: each.mode === "single" ? null : (put ?? 0),
  };
}

function workloadOf(each: Case): Workload {
  const bytesPerRow = synthetic(each.shape, SAMPLE_ROWS).ndjson.length / SAMPLE_ROWS;
  const rows = each.requestsPerSecond * each.rowsPerRequest;
  return {
    name: each.name,
    deployment: { mode: each.mode, zones: 1, survive: "nothing", max_utilization: 1, max_cores: 16 },
    ingest: [
      {
        name: "rows",
        tables: each.tables,
        shape: each.shape,
        rows,
        bytes_per_row: bytesPerRow,
        rows_per_request: each.rowsPerRequest,
        clients: each.clients,
        peak_factor: 1,
        peak_length: 3_600,
        retention: SECONDS_PER_DAY,
      },
    ],
    queries:
      each.queries === undefined
        ? []
        : [
            {
              name: "asked",
              // Nothing is merged here.
              class: "fresh",
              reads: "rows",
              rate: each.queries.perSecond,
              // The rows that are there before, as if they had come at this rate.
              range: (each.queries.rowsBefore / rows) * each.tables,
              concurrency: 1,
              peak_factor: 1,
              cached: 1,
            },
          ],
  };
}
