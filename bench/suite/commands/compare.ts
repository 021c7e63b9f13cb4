import { join } from "node:path";
import { withTemporaryFolder } from "../../support/data-file.ts";
import type { Benchmark } from "../benchmark.ts";
import { againstEachOther, buildRevision, exitCodeOf, verdictsOf, type Build, type Verdict } from "../compare.ts";
import { measured } from "../measured.ts";
import { benchmarksNamed } from "../named.ts";
import { BENCHMARKS } from "../registry.ts";
import { REPOSITORY } from "../revision.ts";
import { UsageError, type Command } from "./command.ts";
import { flagsOf, valuesByFlag, type Flags } from "./flags.ts";

export const compare: Command = {
  usage: "BEFORE AFTER [--only NAME]… [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…",
  doc:
    "builds two revisions and lets their servers take turns; ends with 1 for a loss of more than 5 % that is " +
    "certain, with 3 where the machine was too noisy to tell",
  run: async ([before, after, ...words], signal) => {
    if (before === undefined || after === undefined) throw new UsageError("compare takes two revisions");
    const values = valuesByFlag(words);
    const benchmarks = await comparable(values.get("only"));
    values.delete("only");
    const flags = flagsOf(values);
    const verdicts: Verdict[] = [];
    await withTemporaryFolder((folder) =>
      withBuilds({ before, after, folder }, async (builds) => {
        for (const benchmark of benchmarks) verdicts.push(...(await verdictsOn(benchmark, builds, flags, signal)));
      }),
    );
    return exitCodeOf(verdicts);
  },
};

/** Those that start a server, of all or of those names. */
async function comparable(names: readonly string[] | undefined): Promise<Benchmark[]> {
  const named = await Promise.all((names ?? [undefined]).map((name) => benchmarksNamed(name, BENCHMARKS)));
  const found = [...new Set(named.flat())].filter(({ startsServer }) => startsServer === true);
  if (found.length === 0) throw new Error(`${names?.join(", ")}: no server is started, so nothing can be compared`);
  return found;
}

type Builds = { before: Build; after: Build };

async function withBuilds(
  { before, after, folder }: { before: string; after: string; folder: string },
  task: (builds: Builds) => Promise<void>,
): Promise<void> {
  const old = await buildRevision(REPOSITORY, before, join(folder, "before"));
  try {
    const own = await buildRevision(REPOSITORY, after, join(folder, "after"));
    try {
      await task({ before: old, after: own });
    } finally {
      await own.remove();
    }
  } finally {
    await old.remove();
  }
}

async function verdictsOn(
  benchmark: Benchmark,
  { before, after }: Builds,
  flags: Flags,
  signal: AbortSignal,
): Promise<Verdict[]> {
  const both = againstEachOther(benchmark, { before: before.entry, after: after.entry });
  const revision = { commit: after.commit, isClean: true };
  const verdicts = verdictsOf(await measured(both, flags, { revision, signal }));
  for (const { measure, verdict } of verdicts) console.log(`${benchmark.name} ${measure}: ${SAID[verdict]}`);
  console.log("");
  return verdicts.map(({ verdict }) => verdict);
}

const SAID: Readonly<Record<Verdict, string>> = {
  loss: "slower by more than 5 %, for certain",
  none: "no loss of 5 %",
  unknown: "too noisy to tell",
};
