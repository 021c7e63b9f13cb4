import { measureAll } from "../measured.ts";
import { benchmarksNamed } from "../named.ts";
import { BENCHMARKS } from "../registry.ts";
import type { Command } from "./command.ts";
import { flagsWithoutOptions } from "./flags.ts";

export const peers: Command = {
  usage: "[--rounds N] [--seed N] [--out FOLDER]",
  doc: "measures every benchmark of the suite that has a side of others, with its own options",
  run: async (words, signal) => {
    const flags = flagsWithoutOptions("peers", words);
    const benchmarks = (await benchmarksNamed(undefined, BENCHMARKS)).filter(({ hasPeers }) => hasPeers === true);
    return await measureAll(
      benchmarks.map((benchmark) => ({ benchmark, flags })),
      signal,
    );
  },
};
