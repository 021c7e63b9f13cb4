import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { COSTS_SCHEMA, costsSchema, type Costs } from "../../src/capacity/costs/costs.ts";
import { messageOf } from "../../src/core/errors.ts";
import { VERSION } from "../../src/core/version.ts";
import { Watch } from "../suite/load.ts";
import { probeMachine } from "../suite/probe.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { MIB } from "../support/report.ts";
import { compactedBytesOf, loadHome, measureCompaction } from "./compaction.ts";
import { measureIngest } from "./ingest.ts";
import { measureMemory } from "./memory.ts";
import { noiseIn } from "./noise.ts";
import { measureQueries } from "./queries.ts";
import type { StepContext } from "./step.ts";

export type MeasureOptions = Omit<StepContext, "folder"> & {
  /** Of the program that is measured; null where it is not known. */
  commit: string | null;
  /** Takes a line of progress. */
  say: (line: string) => void;
};

export type Measured = {
  costs: Costs;
  /** Why they say nothing, in sentences; none when they do. */
  problems: string[];
};

/**
 * Measures what this machine spends, in at most ten minutes on two cores. Rejects with a sentence that begins with the
 * name of the step that failed; in any case nothing is left of processes and folders.
 */
export async function measureCosts({ commit, say, ...options }: MeasureOptions): Promise<Measured> {
  return await withTemporaryFolder(async (folder) => {
    await mustHaveRoom(folder, options.brief);
    const context: StepContext = { ...options, folder };
    const step = stepper(say, options.signal);
    const measuredAt = new Date().toISOString();
    const machine = await step("machine", () => probeMachine(join(folder, "probe")));
    const watch = new Watch();
    const memory = await step("memory", () => measureMemory(context));
    const ingest = await step("ingest", () => measureIngest(context));
    const sizeBytes = compactedBytesOf(context).large;
    const queried = await step("rows for queries", () =>
      loadHome(context, { name: "queried", shape: "logs", sizeBytes }),
    );
    const compaction = await step("compaction", () => measureCompaction(context, queried));
    const queries = await step("queries", () => measureQueries(context, queried));
    const costs = costsSchema.parse({
      schema: COSTS_SCHEMA,
      version: VERSION,
      commit,
      measuredAt,
      seed: options.seed,
      machine,
      ingest,
      compaction,
      commits: [],
      queries,
      memory,
      jobs: [],
      sandboxes: null,
    });
    return { costs, problems: noiseIn(costs.ingest, watch.end()) };
  });
}

/** Runs a step with a line that says how long it took. */
function stepper(say: (line: string) => void, signal: AbortSignal) {
  return async <T>(name: string, measure: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    const startedMs = performance.now();
    try {
      const measured = await measure();
      say(`${name.padEnd(20)}${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s`);
      return measured;
    } catch (error) {
      // Whatever fails because processes were told to end is the stop, not a failure of theirs.
      signal.throwIfAborted();
      throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
    }
  };
}

const NEEDED_MIB = { brief: 512, full: 8_192 };

async function mustHaveRoom(folder: string, brief: boolean): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const neededMib = brief ? NEEDED_MIB.brief : NEEDED_MIB.full;
  const freeMib = Math.floor((bavail * bsize) / MIB);
  if (freeMib >= neededMib) return;
  throw new Error(`${folder} has ${freeMib} MiB free and ${neededMib} are needed: set TMPDIR to a folder with more`);
}
