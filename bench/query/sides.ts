import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { messageOf } from "../../src/core/errors.ts";
import type { OpenBenchmark, Side as MeasuredSide } from "../suite/benchmark.ts";
import { passOver, rowComparison, type PassOptions } from "./pass.ts";
import type { BenchQuery } from "./queries.ts";
import type { RunningSide, Side } from "./side.ts";

/** Sides that answer the queries, as the runner wants them. */

/** Each keeps its process for all rounds. */
export async function warmSides(
  sides: readonly Side[],
  queries: readonly BenchQuery[],
  options: PassOptions,
): Promise<OpenBenchmark> {
  const compared = rowComparison(queries);
  const running: RunningSide[] = [];
  const close = async () => {
    for (const side of running) await side.stop();
  };
  const measured: MeasuredSide[] = [];
  try {
    for (const one of sides) {
      const { name } = one;
      const side = await one.start();
      running.push(side);
      measured.push({
        name,
        answers: async () => await compared(name, (query) => side.rows(query)),
        round: async () => await passOver(queries, options, (query) => side.time(query)),
        processes: () => ({ [name]: side.pid }),
      });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { sides: measured, close };
}

export type FirstTouch = {
  /** Before each process is started. */
  beforeStart: () => Promise<void>;
  /** Between a process's start and its query. */
  beforeQuery: () => void;
};

/** Every query is the first that a fresh process answers over the tables. */
export function firstTouchSides(
  sides: readonly Side[],
  queries: readonly BenchQuery[],
  { each, beforeStart, beforeQuery }: FirstTouch & Pick<PassOptions, "each">,
): OpenBenchmark {
  const compared = rowComparison(queries);
  const withFresh = async <T>(side: Side, use: (running: RunningSide) => Promise<T>): Promise<T> => {
    await beforeStart();
    const running = await side.start();
    try {
      return await use(running);
    } finally {
      await running.stop();
    }
  };
  const timeOf = (side: Side, query: BenchQuery) =>
    withFresh(side, async (running) => {
      for (let i = 0; i < READY_TIMES; i++) await running.time(READY);
      beforeQuery();
      return await running.time(query);
    });
  return {
    sides: sides.map((side) => ({
      name: side.name,
      answers: () => withFresh(side, (running) => compared(side.name, (query) => running.rows(query))),
      round: () => passOver(queries, { times: 1, each }, (query) => timeOf(side, query)),
    })),
  };
}

/** Asked of no table: a server whose query processes are still starting is not what is measured. */
const READY: BenchQuery = {
  name: "ready",
  sql: "SELECT 1 AS one",
  chdb: "SELECT 1 AS one",
  kind: "scan",
  ordered: true,
};
/** Query processes take turns. */
const READY_TIMES = 3;

const DROP_CACHES = "/proc/sys/vm/drop_caches";

/** Makes the kernel forget file contents. Throws where this process may not ask for that. */
export function dropPageCache(): void {
  execFileSync("sync");
  try {
    writeFileSync(DROP_CACHES, "3");
  } catch (error) {
    throw new Error(`the page cache cannot be dropped (${messageOf(error)}): run it as root, or warm`, {
      cause: error,
    });
  }
}
