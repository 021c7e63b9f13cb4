import { measureAll } from "../measured.ts";
import { benchmarksNamed } from "../registry.ts";
import { UsageError, type Command } from "./command.ts";
import { flagsOf, valuesByFlag } from "./flags.ts";

export const run: Command = {
  usage: "NAME [--rounds N] [--seed N] [--out FOLDER] [--OPTION VALUE]…",
  doc: "measures one benchmark, or all of a group, and writes a file of each",
  run: async ([name, ...words], signal) => {
    if (name === undefined) throw new UsageError("run takes the name of a benchmark or of a group");
    const flags = flagsOf(valuesByFlag(words));
    const benchmarks = await benchmarksNamed(name);
    return await measureAll(
      benchmarks.map((benchmark) => ({ benchmark, flags })),
      signal,
    );
  },
};
