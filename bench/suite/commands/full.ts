import { runFull } from "../../costs/command.ts";
import { revisionHere } from "../revision.ts";
import type { Command } from "./command.ts";

/** What `engine plan` reads: see `bench/costs/`. */
export const full: Command = {
  usage: "[--out FILE] [--seed N] [--brief]",
  doc: "measures what this machine spends, in at most ten minutes, for `engine plan`",
  run: async (args, signal) => {
    const { commit } = await revisionHere();
    return await runFull(args, { commit, signal, say: (line) => console.log(line) });
  },
};
