import { spawn } from "node:child_process";
import { once } from "node:events";
import type { RegisterCommand } from "../../client/command.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError } from "../../client/failure.ts";
import { nodeProgram, releasedProgram } from "../../core/isolate.ts";

/** A program of its own: it starts servers and loads them, and brings what nothing else here has a need of. */
const PROGRAM = "engine-bench";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("bench")
    .description("Measure this machine: what the program spends on it, how costs grow, what it makes of a load.")
    .argument("[words...]", "a command of the benchmarks with its options; none says which there are")
    .allowUnknownOption();
  withExamples(command, [
    "engine bench list",
    "engine bench full --out costs.json",
    "engine bench run load/profile --file load.toml",
    "engine bench growth extents",
  ]).action(context.action(run));
};

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Resolves to the exit code of the program. */
async function run(words: readonly string[]): Promise<number> {
  const program = releasedProgram(PROGRAM);
  if (program === undefined)
    throw new CliError("the sources have all benchmarks: run `npm run bench -- list`, or build (`npm run build`)");
  const child = spawn(nodeProgram(), [program, ...words], { stdio: "inherit" });
  // It ends when its servers have ended and its folders are gone, and this process must not end before.
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    return code ?? 1;
  } finally {
    for (const signal of SIGNALS) process.off(signal, pass);
  }
}
