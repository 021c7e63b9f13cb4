import type { Costs, IngestObservation } from "../../src/capacity/costs/costs.ts";
import { loadProblems, percent, type ForeignLoad } from "../suite/load.ts";

/** By which two runs of the same load may differ in CPU seconds per request. */
const SCATTER = 0.2;

/** How often a load may be measured again. */
const MORE_RUNS = 2;

/** A load as it was measured, and how it is measured again. */
export type LoadRun = { observation: IngestObservation; again: () => Promise<IngestObservation> };

/** Measures a load; each time under another name, after which its tables are named. */
export async function measuredRun(
  name: string,
  measure: (name: string) => Promise<IngestObservation>,
): Promise<LoadRun> {
  let runs = 0;
  const again = () => measure(`${name}_${runs++}`);
  return { observation: await again(), again };
}

/**
 * The observations of those runs. Where two of one load differ too much it is measured again, up to twice, and the two
 * that are the closest count: on a machine that others share, a core is slower at times.
 */
export async function settled(runs: readonly LoadRun[]): Promise<IngestObservation[]> {
  const observations: IngestObservation[] = [];
  for (const group of Map.groupBy(runs, ({ observation }) => loadOf(observation)).values()) {
    const [first, ...others] = group;
    if (first === undefined) continue;
    const own = [first.observation, ...others.map(({ observation }) => observation)];
    for (let more = 0; more < MORE_RUNS && own.length > 1 && scatterOf(closest(own)) > SCATTER; more++) {
      own.push(await first.again());
    }
    observations.push(...closest(own));
  }
  return observations;
}

/** The two whose costs differ the least, or the only one. */
function closest(runs: readonly IngestObservation[]): readonly IngestObservation[] {
  const sorted = runs.toSorted((a, b) => costOf(a) - costOf(b));
  const pairs = sorted.slice(1).map((run, i) => [sorted[i] ?? run, run]);
  return pairs.toSorted((a, b) => scatterOf(a) - scatterOf(b))[0] ?? runs;
}

function scatterOf(runs: readonly IngestObservation[]): number {
  const costs = runs.map(costOf);
  return Math.max(...costs) / Math.min(...costs) - 1;
}

/** Why the observations say nothing, in sentences; none when they do. */
export function noiseIn(ingest: Costs["ingest"], load: ForeignLoad): string[] {
  const problems = loadProblems(load);
  for (const runs of Map.groupBy(ingest, loadOf).values()) {
    const [first] = runs;
    const scatter = scatterOf(runs);
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
