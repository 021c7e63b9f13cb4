import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { messageOf } from "../../src/core/errors.ts";
import { median } from "../../src/capacity/quantile.ts";
import { printTable, shown } from "../support/report.ts";
import type { BenchQuery } from "./queries.ts";
import { mustBeSame } from "./same-rows.ts";
import type { RunningSide, Side } from "./side.ts";

/** Milliseconds by side, then by query. */
export type Times = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Before the first round every side has answered a query so often: query processes take turns. */
const WARM_UPS = 3;

/** Starts all sides, checks their answers against each other, and times them in turn on every query. */
export async function measureWarm(
  sides: readonly Side[],
  queries: readonly BenchQuery[],
  rounds: number,
): Promise<Times> {
  const samples = new Samples();
  await withRunning(sides, async (running) => {
    for (const query of queries) {
      await checkAnswers(running, query);
      for (const { side } of running) for (let i = 0; i < WARM_UPS; i++) await side.time(query);
      for (let round = 0; round < rounds; round++) {
        for (const { name, side } of running) samples.add(name, query, await side.time(query));
      }
    }
  });
  return samples.medians();
}

/** Times every query as the first that a fresh process answers over the tables. */
export async function measureFirst(
  sides: readonly Side[],
  queries: readonly BenchQuery[],
  { rounds, beforeStart, beforeQuery }: FirstOptions,
): Promise<Times> {
  const samples = new Samples();
  for (let round = 0; round < rounds; round++) {
    for (const query of queries) {
      for (const side of sides) {
        await beforeStart();
        const running = await side.start();
        try {
          for (let i = 0; i < WARM_UPS; i++) await running.time(READY);
          beforeQuery();
          samples.add(side.name, query, await running.time(query));
        } finally {
          await running.stop();
        }
      }
    }
  }
  return samples.medians();
}

export type FirstOptions = {
  rounds: number;
  /** Before each process is started. */
  beforeStart: () => Promise<void>;
  /** Between a process's start and its query. */
  beforeQuery: () => void;
};

/** What a process is there for, on no table: that the query processes of a server are still starting is no answer. */
const READY: BenchQuery = {
  name: "ready",
  sql: "SELECT 1 AS one",
  chdb: "SELECT 1 AS one",
  kind: "scan",
  ordered: true,
};

const DROP_CACHES = "/proc/sys/vm/drop_caches";

/** Makes the kernel forget file contents; false, with a line, where this process may not ask for that. */
export function dropPageCache(): boolean {
  try {
    execFileSync("sync");
    writeFileSync(DROP_CACHES, "3");
    return true;
  } catch (error) {
    console.log(`cold: skipped, the page cache cannot be dropped (${messageOf(error)})`);
    return false;
  }
}

type Named = { name: string; side: RunningSide };

async function withRunning(sides: readonly Side[], task: (running: readonly Named[]) => Promise<void>): Promise<void> {
  const running: Named[] = [];
  try {
    for (const side of sides) running.push({ name: side.name, side: await side.start() });
    await task(running);
  } finally {
    for (const { side } of running) await side.stop();
  }
}

async function checkAnswers([first, ...others]: readonly Named[], query: BenchQuery): Promise<void> {
  const expected = await first?.side.rows(query);
  if (first === undefined || expected === undefined) throw new Error("there are no sides to compare");
  for (const { name, side } of others) {
    const actual = await side.rows(query);
    mustBeSame(`${query.name}, ${name} against ${first.name}`, { actual, expected, ordered: query.ordered });
  }
}

export class Samples {
  readonly #ms = new Map<string, Map<string, number[]>>();

  add(side: string, { name }: BenchQuery, ms: number): void {
    const queries = this.#ms.get(side) ?? new Map<string, number[]>();
    this.#ms.set(side, queries);
    const samples = queries.get(name) ?? [];
    queries.set(name, samples);
    samples.push(ms);
  }

  medians(): Times {
    const medians = [...this.#ms].map(([side, queries]) => {
      return [side, new Map([...queries].map(([query, samples]) => [query, median(samples)]))] as const;
    });
    return new Map(medians);
  }
}

/** A line per query with the medians and the ratio of the first side to the second; below, geometric means of these. */
export function printTimes(title: string, queries: readonly BenchQuery[], times: Times): void {
  const sides = [...times.keys()];
  const [first = "", second = ""] = sides;
  const ratio = ({ name }: BenchQuery) => msOf(times, first, name) / msOf(times, second, name);
  console.log(`\n${title}: milliseconds`);
  printTable(
    ["", ...sides, `${first} / ${second}`],
    queries.map((query) => {
      return [query.name, ...sides.map((side) => shown(msOf(times, side, query.name))), `${shown(ratio(query))}×`];
    }),
  );
  const summary = (name: string, kept: readonly BenchQuery[]) => {
    const value = geometricMean(kept.map(ratio));
    console.log(`${name}: ${first} / ${second} = ${shown(value)}× (geometric mean of ${kept.length})`);
  };
  summary("all queries", queries);
  summary(
    "needle and narrow-window queries",
    queries.filter(({ kind }) => kind !== "scan"),
  );
  summary(
    "the others",
    queries.filter(({ kind }) => kind === "scan"),
  );
}

function msOf(times: Times, side: string, query: string): number {
  return times.get(side)?.get(query) ?? Number.NaN;
}

function geometricMean(ratios: readonly number[]): number {
  return Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
}
