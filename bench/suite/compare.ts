import { execFile } from "node:child_process";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BenchContext, Benchmark, OpenBenchmark, Side } from "./benchmark.ts";
import type { Result, Summary } from "./result.ts";

/**
 * Two revisions of the program against each other: each is built into a folder of its own, and their servers take turns on
 * one machine with the same bytes. The program that measures is this one in both cases, so only benchmarks that start a
 * server can be compared.
 */

/** A loss below this is none. */
const LOSS = 0.05;

export type Build = { commit: string; entry: string; remove: () => Promise<void> };

const run = promisify(execFile);

/** Builds a revision of a repository in `folder`, which is made. Rejects with a sentence for one that is not there. */
export async function buildRevision(repository: string, revision: string, folder: string): Promise<Build> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: repository })).stdout.trim();
  const commit = await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`).catch(() => {
    throw new Error(`${revision} is no revision of this repository`);
  });
  await git("worktree", "add", "--detach", folder, commit);
  const remove = async () => void (await git("worktree", "remove", "--force", folder));
  try {
    const isSame = (await git("diff", "--name-only", commit, "--", "package-lock.json")) === "";
    if (isSame) await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
    else await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder });
    await run(process.execPath, [join("scripts", "build.ts")], { cwd: folder });
    return { commit, entry: join(folder, "bin", "engine.js"), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The benchmark's own side twice: the new program first, so that ratios are new over old. */
export function againstEachOther(benchmark: Benchmark, builds: { before: string; after: string }): Benchmark {
  return {
    ...benchmark,
    question: `${benchmark.question} And what has changed between two revisions?`,
    open: async (options, context) => {
      const opened: OpenBenchmark[] = [];
      const close = async () => void (await Promise.all(opened.map(async (one) => await one.close?.())));
      try {
        const sides: Side[] = [];
        for (const [name, entry] of [["after", builds.after] as const, ["before", builds.before] as const]) {
          const own: BenchContext = { ...context, folder: join(context.folder, name), entry };
          const one = await benchmark.open(options, own);
          opened.push(one);
          const [side] = one.sides;
          if (side === undefined) throw new Error(`${benchmark.name} has no side`);
          sides.push({ ...side, name });
        }
        return { sides, close };
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}

export type Verdict = "loss" | "none" | "unknown";

/** Of each measure, what the ratio of new to old says at 95 %. */
export function verdictsOf({ summary }: Pick<Result, "summary">): { measure: string; verdict: Verdict }[] {
  return summary.flatMap((row) => (row.ratio === null ? [] : { measure: row.measure, verdict: verdictOf(row) }));
}

function verdictOf({ ratio, better }: Summary): Verdict {
  if (ratio === null) return "unknown";
  const { low, high } = ratio.interval;
  // As a factor by which the new one is worse, from the kindest to the harshest.
  const [kindest, harshest] = better === "less" ? [low, high] : [1 / high, 1 / low];
  if (kindest > 1 + LOSS) return "loss";
  return harshest < 1 + LOSS ? "none" : "unknown";
}

/** 1 for a loss that is certain, 3 where it could not be told, 0 where there is none. */
export function exitCodeOf(verdicts: readonly Verdict[]): number {
  if (verdicts.includes("loss")) return 1;
  return verdicts.includes("unknown") ? 3 : 0;
}
