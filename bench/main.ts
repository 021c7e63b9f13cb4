import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { printList, printResult } from "./suite/print.ts";
import { benchmarksNamed } from "./suite/registry.ts";
import { readResult, writeResult } from "./suite/result.ts";
import { runBenchmark } from "./suite/run.ts";
import { withTemporaryFolder } from "./support/data-file.ts";

const USAGE = `npm run bench -- COMMAND

  list [NAME]                   what there is, with questions, options and measures
  run NAME [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…
                                measures one benchmark, or all of a group, and writes a file of each
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

async function run(name: string, { rounds, seed, out, options }: Flags, signal: AbortSignal): Promise<number> {
  const revision = await revisionHere();
  let code = 0;
  for (const benchmark of await benchmarksNamed(name)) {
    const result = await withTemporaryFolder((folder) =>
      runBenchmark(benchmark, { options, rounds, seed, folder, revision, signal }),
    );
    printResult(result);
    const path = join(out, `${benchmark.name.replace("/", "-")}-${result.startedAt.replaceAll(":", "")}.json`);
    await writeResult(path, result);
    console.log(`\n${path}\n`);
    if (result.noise.problems.length > 0) code = TOO_NOISY;
  }
  return code;
}

const TOO_NOISY = 3;

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
