import { measureAll } from "../measured.ts";
import { benchmarksNamed, type Registry } from "../named.ts";
import { UsageError, type Command } from "./command.ts";
import { flagsOf, valuesByFlag } from "./flags.ts";

export function runOf(registry: Registry): Command {
  return {
    usage: "NAME [--rounds N] [--warmUpRounds 0] [--seed N] [--out FOLDER] [--OPTION VALUE]…",
    doc: "measures one benchmark, or all of a group, and writes a file of each",
    run: async ([name, ...words], signal) => {
      if (name === undefined) throw new UsageError("run takes the name of a benchmark or of a group");
      const flags = flagsOf(valuesByFlag(words));
      const benchmarks = await benchmarksNamed(name, registry);
      return await measureAll(
        benchmarks.map((benchmark) => ({ benchmark, flags })),
        signal,
      );
    },
  };
}
