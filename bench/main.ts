import { growth } from "./growth/command.ts";
import { proof } from "./proof/command.ts";
import { report } from "./report/command.ts";
import { compare } from "./suite/commands/compare.ts";
import { full } from "./suite/commands/full.ts";
import { listOf } from "./suite/commands/list.ts";
import { peers } from "./suite/commands/peers.ts";
import { quick } from "./suite/commands/quick.ts";
import { runOf } from "./suite/commands/run.ts";
import { show } from "./suite/commands/show.ts";
import { runLine, runProcess, type BenchProgram } from "./suite/program.ts";
import { BENCHMARKS } from "./suite/registry.ts";

const PROGRAM: BenchProgram = {
  name: "npm run bench --",
  commands: {
    list: listOf(BENCHMARKS),
    run: runOf(BENCHMARKS),
    quick,
    full,
    peers,
    compare,
    show,
    growth,
    report,
    proof,
  },
};

/** See `runLine`. */
export function main(args: readonly string[], signal: AbortSignal = new AbortController().signal): Promise<number> {
  return runLine(PROGRAM, args, signal);
}

if (import.meta.main) await runProcess(PROGRAM);
