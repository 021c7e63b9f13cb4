import type { Costs, IngestObservation } from "../../src/capacity/costs/costs.ts";
import { loadProblems, percent, type ForeignLoad } from "../suite/load.ts";

/** By which two runs of the same load may differ in CPU seconds per request. */
const SCATTER = 0.2;

/** Why the observations say nothing, in sentences; none when they do. */
export function noiseIn(ingest: Costs["ingest"], load: ForeignLoad): string[] {
  const problems = loadProblems(load);
  for (const runs of Map.groupBy(ingest, loadOf).values()) {
    const [first] = runs;
    const costs = runs.map(costOf);
    const scatter = Math.max(...costs) / Math.min(...costs) - 1;
    if (first !== undefined && scatter > SCATTER) {
      problems.push(`${nameOf(first)} took ${percent(scatter)} more CPU in one run than in another`);
    }
  }
  return problems;
}

/** The same for loads that should cost the same. */
function loadOf(load: IngestObservation): string {
  const { deployment, viaEdge, shape, clients, tables, offeredPerSecond, bodyBytes } = load;
  // Bodies that are cut alike differ by a little on average.
  const size = Math.round(Math.log2(bodyBytes));
  return JSON.stringify([deployment, viaEdge, shape, clients, tables, offeredPerSecond, size]);
}

function nameOf({ deployment, viaEdge, shape, clients, bodyBytes }: IngestObservation): string {
  const way = deployment === "single" ? deployment : `${deployment} ${viaEdge ? "through the edge" : "past the edge"}`;
  return `ingest of ${shape} (${way}, ${clients} clients, bodies of ${(bodyBytes / 1024).toFixed(1)} KiB)`;
}

/** CPU seconds of a request, of all processes. */
function costOf({ cpuSeconds, requests }: IngestObservation): number {
  return Object.values(cpuSeconds).reduce((sum, seconds) => sum + seconds, 0) / requests;
}
