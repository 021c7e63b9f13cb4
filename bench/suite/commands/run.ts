import { measured } from "../measured.ts";
import { benchmarksNamed } from "../registry.ts";
import { revisionHere } from "../revision.ts";
import { TOO_NOISY, UsageError, type Command } from "./command.ts";
import { flagsOf, valuesByFlag } from "./flags.ts";

export const run: Command = {
  usage: "NAME [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…",
  doc: "measures one benchmark, or all of a group, and writes a file of each",
  run: async ([name, ...words], signal) => {
    if (name === undefined) throw new UsageError("run takes the name of a benchmark or of a group");
    const flags = flagsOf(valuesByFlag(words));
    const revision = await revisionHere();
    let code = 0;
    for (const benchmark of await benchmarksNamed(name)) {
      const result = await measured(benchmark, flags, { revision, signal });
      if (result.noise.problems.length > 0) code = TOO_NOISY;
    }
    return code;
  },
};
