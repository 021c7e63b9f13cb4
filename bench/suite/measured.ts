import { join } from "node:path";
import { withTemporaryFolder } from "../support/data-file.ts";
import type { Benchmark } from "./benchmark.ts";
import { TOO_NOISY } from "./commands/command.ts";
import type { Flags } from "./commands/flags.ts";
import { printResult } from "./print.ts";
import { writeResult, type Result } from "./result.ts";
import { revisionHere } from "./revision.ts";
import { runBenchmark, type RunOptions } from "./run.ts";

/** Runs a benchmark, prints what came of it, and writes its file. */
export async function measured(
  benchmark: Benchmark,
  { rounds, warmsUp, seed, out, options }: Flags,
  { revision, signal }: Pick<RunOptions, "revision" | "signal">,
): Promise<Result> {
  const result = await withTemporaryFolder((folder) =>
    runBenchmark(benchmark, { options, rounds, warmsUp, seed, folder, revision, signal }),
  );
  printResult(result);
  const path = join(out, `${benchmark.name.replace("/", "-")}-${result.startedAt.replaceAll(":", "")}.json`);
  await writeResult(path, result);
  console.log(`\n${path}\n`);
  return result;
}

/** Runs benchmarks of this revision, one after the other. Resolves to the exit code. */
export async function measureAll(
  runs: readonly { benchmark: Benchmark; flags: Flags }[],
  signal: AbortSignal,
): Promise<number> {
  const revision = await revisionHere();
  let code = 0;
  for (const { benchmark, flags } of runs) {
    const { noise } = await measured(benchmark, flags, { revision, signal });
    if (noise.problems.length > 0) code = TOO_NOISY;
  }
  return code;
}
