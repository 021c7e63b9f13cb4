import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runFull } from "./costs/command.ts";
import type { Benchmark } from "./suite/benchmark.ts";
import { againstEachOther, buildRevision, exitCodeOf, verdictsOf, type Verdict } from "./suite/compare.ts";
import { printList, printResult } from "./suite/print.ts";
import { benchmarksNamed } from "./suite/registry.ts";
import { readResult, writeResult, type Result } from "./suite/result.ts";
import { runBenchmark, type RunOptions } from "./suite/run.ts";
import { withTemporaryFolder } from "./support/data-file.ts";

const USAGE = `npm run bench -- COMMAND

  list [NAME]                   what there is, with questions, options and measures
  run NAME [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…
                                measures one benchmark, or all of a group, and writes a file of each
  compare BEFORE AFTER [--only NAME] [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…
                                builds two revisions and lets their servers take turns; ends with 1 for a loss
                                of more than 5 % that is certain, with 3 where the machine was too noisy to tell
  full [--out FILE] [--seed N] [--brief]
                                measures what this machine spends, in at most ten minutes, for \`engine plan\`
  show FILE                     prints the result of an earlier run
`;

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));
const RESULTS = join(REPOSITORY, ".cache", "bench-results");

/** Resolves to the exit code: 0, or 3 where a machine was too noisy for a result. Throws a sentence for what is wrong. */
export async function main(
  args: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<number> {
  const [command, name, ...rest] = args;
  if (command === "list") return list(name);
  if (command === "run" && name !== undefined) return await run(name, flagsIn(rest), signal);
  if (command === "compare" && name !== undefined && rest[0] !== undefined) {
    return await compare([name, rest[0]], flagsIn(rest.slice(1)), signal);
  }
  if (command === "full") {
    const { commit } = await revisionHere();
    return await runFull(args.slice(1), { commit, signal, say: (line) => console.log(line) });
  }
  if (command === "show" && name !== undefined) return await show(name);
  throw new Error(
    `${command === undefined ? "say what to do" : `${[command, name].join(" ").trim()} is no command`}:\n\n${USAGE}`,
  );
}

async function list(name: string | undefined): Promise<number> {
  printList(await benchmarksNamed(name));
  return 0;
}

async function show(path: string): Promise<number> {
  printResult(await readResult(path));
  return 0;
}

type Flags = { rounds: number | undefined; seed: number; out: string; options: Record<string, string> };

/** What is neither of ours is an option of the benchmark, which checks it. */
function flagsIn(words: readonly string[]): Flags {
  const found = new Map<string, string>();
  for (let at = 0; at < words.length; at += 2) {
    const [word = "", value] = [words[at], words[at + 1]];
    const name = /^--([a-z][A-Za-z]*)$/.exec(word)?.[1];
    if (name === undefined || value === undefined) throw new Error(`${word} is no option with a value:\n\n${USAGE}`);
    found.set(name, value);
  }
  const { rounds, seed, out, ...options } = Object.fromEntries(found);
  return {
    rounds: rounds === undefined ? undefined : countIn("rounds", rounds),
    seed: seed === undefined ? Date.now() % 1_000_000_007 : countIn("seed", seed),
    out: out ?? RESULTS,
    options,
  };
}

function countIn(name: string, text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new Error(`--${name} takes a positive whole number, not ${text}`);
  return count;
}

async function run(name: string, flags: Flags, signal: AbortSignal): Promise<number> {
  const revision = await revisionHere();
  let code = 0;
  for (const benchmark of await benchmarksNamed(name)) {
    const result = await measured(benchmark, flags, { revision, signal });
    if (result.noise.problems.length > 0) code = TOO_NOISY;
  }
  return code;
}

const TOO_NOISY = 3;

/** Runs a benchmark, prints what came of it, and writes its file. */
async function measured(
  benchmark: Benchmark,
  { rounds, seed, out, options }: Flags,
  { revision, signal }: Pick<RunOptions, "revision" | "signal">,
): Promise<Result> {
  const result = await withTemporaryFolder((folder) =>
    runBenchmark(benchmark, { options, rounds, seed, folder, revision, signal }),
  );
  printResult(result);
  const path = join(out, `${benchmark.name.replace("/", "-")}-${result.startedAt.replaceAll(":", "")}.json`);
  await writeResult(path, result);
  console.log(`\n${path}\n`);
  return result;
}

async function compare(
  [before, after]: readonly [string, string],
  { options: { only, ...options }, ...flags }: Flags,
  signal: AbortSignal,
): Promise<number> {
  const found = (await benchmarksNamed(only)).filter(({ startsServer }) => startsServer === true);
  if (found.length === 0) throw new Error(`${only} starts no server, and cannot be compared`);
  const verdicts: Verdict[] = [];
  await withTemporaryFolder(async (folder) => {
    const old = await buildRevision(REPOSITORY, before, join(folder, "before"));
    try {
      const own = await buildRevision(REPOSITORY, after, join(folder, "after"));
      try {
        for (const benchmark of found) {
          const both = againstEachOther(benchmark, { before: old.entry, after: own.entry });
          const revision = { commit: own.commit, isClean: true };
          const result = await measured(both, { ...flags, options }, { revision, signal });
          for (const { measure, verdict } of verdictsOf(result)) {
            verdicts.push(verdict);
            console.log(`${benchmark.name} ${measure}: ${SAID[verdict]}`);
          }
          console.log("");
        }
      } finally {
        await own.remove();
      }
    } finally {
      await old.remove();
    }
  });
  return exitCodeOf(verdicts);
}

const SAID: Readonly<Record<Verdict, string>> = {
  loss: "slower by more than 5 %, for certain",
  none: "no loss of 5 %",
  unknown: "too noisy to tell",
};

const git = async (...args: string[]) => (await promisify(execFile)("git", args, { cwd: REPOSITORY })).stdout.trim();

/** Of this folder's repository; a release has none. */
async function revisionHere(): Promise<{ commit: string | null; isClean: boolean }> {
  try {
    return { commit: await git("rev-parse", "HEAD"), isClean: (await git("status", "--porcelain")) === "" };
  } catch {
    // Neither git nor a repository has to be there.
    return { commit: null, isClean: false };
  }
}

if (import.meta.main) {
  const stop = new AbortController();
  // The round that is under way ends first: its processes and folders are gone then.
  process.once("SIGINT", () => stop.abort(new Error("stopped")));
  try {
    process.exitCode = await main(process.argv.slice(2), stop.signal);
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = stop.signal.aborted ? 130 : 1;
  }
}
