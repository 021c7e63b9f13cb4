import type { IngestObservation } from "../../src/capacity/costs/costs.ts";
import { prepareLoad } from "../support/generator.ts";
import { planOf } from "../support/ingest-run.ts";
import type { Cut, LoadPlan, LoadResult } from "../support/load-plan.ts";
import { endedPart, startMeter, type IngestTarget } from "./ingest-target.ts";
import { rowsIn } from "./questions.ts";
import type { RowsFile } from "./rows-file.ts";

/** One load: who sends what. */
export type IngestLoad = {
  /** Letters, digits and `_`: its tables are named after it. */
  name: string;
  data: RowsFile;
  cut: Cut;
  clients: number;
  tables: number;
  /** Requests a second that fall due; unless given, each client sends its next request when it has its answer. */
  perSecond?: number;
  durationMs: number;
  warmUpMs: number;
};

/**
 * Runs a load, after the same as a warm-up, and checks that its tables then hold what was acknowledged. Rejects with a
 * sentence where requests fail or a process of the target ends.
 */
export async function observeIngest(target: IngestTarget, load: IngestLoad): Promise<IngestObservation> {
  try {
    return await observe(target, load);
  } catch (error) {
    const part = endedPart(target);
    if (part === undefined) throw error;
    throw new Error(
      `the process of the ${part} ended during the load ${load.name}: ` +
        "look whether memory ran out (`dmesg`), and measure again",
      { cause: error },
    );
  }
}

async function observe(target: IngestTarget, load: IngestLoad): Promise<IngestObservation> {
  const tables = Array.from({ length: load.tables }, (_, i) => `${load.name}_t${i}`);
  for (const table of tables) await target.createTable(table, load.data);
  const warmed = await warmUp(target, load, tables);
  const generator = await prepareLoad(loadPlan(target, load, tables));
  const endMeter = await startMeter(target);
  const startedMs = performance.now();
  const result = await generator.run();
  if (result.failed > 0) throw new Error(`requests failed: ${result.firstFailure ?? ""}`);
  await target.untilVisible(tables, warmed.accepted + result.accepted);
  const seconds = (performance.now() - startedMs) / 1_000;
  const spent = await endMeter();
  await mustHold(target, tables, warmed.rowsAcknowledged + result.rowsAcknowledged);
  return {
    deployment: target.deployment,
    viaEdge: target.viaEdge,
    shape: load.data.shape,
    rows: result.rowsAcknowledged,
    rawBytes: result.bytesAccepted,
    requests: result.accepted,
    bodyBytes: result.bytesAccepted / result.accepted,
    clients: load.clients,
    tables: load.tables,
    offeredPerSecond: load.perSecond ?? null,
    seconds,
    latencyMs: { p50: result.latencyMs.p50, p99: result.latencyMs.p99 },
    ...spent,
  };
}

/** The same for a while, under other keys: code is compiled, and connections to the catalog are open. */
async function warmUp(
  target: IngestTarget,
  load: IngestLoad,
  tables: readonly string[],
): Promise<Pick<LoadResult, "accepted" | "rowsAcknowledged">> {
  if (load.warmUpMs === 0) return { accepted: 0, rowsAcknowledged: 0 };
  const generator = await prepareLoad({ ...planFor(target, load, tables, "warm"), repeatForMs: load.warmUpMs });
  const result = await generator.run();
  await target.untilVisible(tables, result.accepted);
  return result;
}

function loadPlan(target: IngestTarget, load: IngestLoad, tables: readonly string[]): LoadPlan {
  const plan = planFor(target, load, tables, "load");
  const { perSecond, durationMs } = load;
  if (perSecond === undefined) return { ...plan, repeatForMs: durationMs };
  return { ...plan, pace: { perSecond, durationMs } };
}

function planFor(target: IngestTarget, load: IngestLoad, tables: readonly string[], run: string): LoadPlan {
  const { data, cut, clients } = load;
  return planOf(target.url, { file: data.path, cut, connections: clients, tables, keyPrefix: `${load.name}-${run}` });
}

async function mustHold(target: IngestTarget, tables: readonly string[], rows: number): Promise<void> {
  let held = 0;
  for (const table of tables) held += await rowsIn(target.queryUrl, table);
  if (held !== rows) throw new Error(`${tables.join(", ")} hold ${held} rows, and ${rows} were acknowledged`);
}
