import type { Costs } from "../../src/capacity/costs/costs.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { anExtent, aTable, commit } from "../support/commits.ts";
import type { MeasuredCatalog } from "./catalogs.ts";
import type { StepContext } from "./step.ts";

export type CommitsObservation = Costs["commits"][number];

const WRITERS = [1, 8, 32];
const WARM_UP_MS = 100;

/** Commits of one extent and one key each, by writers that wait for theirs. The CPU is that of the database alone. */
export async function measureCommits(
  { signal, brief }: Pick<StepContext, "signal" | "brief">,
  on: MeasuredCatalog,
): Promise<CommitsObservation[]> {
  const observations: CommitsObservation[] = [];
  for (const writers of WRITERS) {
    signal.throwIfAborted();
    observations.push(await observeCommits(on, writers, brief ? 100 : 2_000));
  }
  return observations;
}

async function observeCommits(on: MeasuredCatalog, writers: number, durationMs: number): Promise<CommitsObservation> {
  const { kind, catalog, walBytes } = on;
  const table = await aTable([catalog], `commits_${writers}`);
  const commitFor = async (ms: number) => {
    const startedMs = performance.now();
    const over = new AbortController();
    let commits = 0;
    const writer = async () => {
      for (; !over.signal.aborted; commits++) await commit(catalog, table, [anExtent(0n)]);
    };
    const running = Promise.all(Array.from({ length: writers }, writer));
    // One that fails must not leave the others writing.
    await Promise.race([running, sleep(systemClock, ms)]).finally(() => over.abort());
    await running;
    return { commits, seconds: (performance.now() - startedMs) / 1_000 };
  };
  await commitFor(WARM_UP_MS);
  const walBefore = await walBytes();
  const cpuBefore = databaseSecondsOf(on);
  const { commits, seconds } = await commitFor(durationMs);
  const cpuSeconds = databaseSecondsOf(on) - cpuBefore;
  const walAfter = await walBytes();
  return {
    catalog: kind,
    writers,
    commits,
    seconds,
    cpuSeconds,
    walBytes: walBefore === null || walAfter === null ? null : walAfter - walBefore,
  };
}

/** SQLite runs in this process, whose other work here is next to nothing. */
function databaseSecondsOf({ kind, ownCpuSeconds, databaseCpuSeconds }: MeasuredCatalog): number {
  return kind === "sqlite" ? ownCpuSeconds() : databaseCpuSeconds();
}
