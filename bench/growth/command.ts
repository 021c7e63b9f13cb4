import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UsageError, type Command } from "../suite/commands/command.ts";
import { flagsWithoutOptions } from "../suite/commands/flags.ts";
import { revisionHere } from "../suite/revision.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { printGrowth } from "./print.ts";
import { curvesNamed } from "./registry.ts";
import { runCurve } from "./run.ts";

/** What costs how much when there is more of something; see `curve.ts`. */
export const growth: Command = {
  usage: "[NAME…] [--out FOLDER] [--seed N] [--brief]",
  doc: "measures how costs grow with tables, columns, extents, clients, jobs and more; 1 for what grows faster than promised",
  run: async (args, signal) => {
    const brief = args.includes("--brief");
    const words = args.filter((word) => word !== "--brief");
    const first = words.findIndex((word) => word.startsWith("--"));
    const names = first < 0 ? words : words.slice(0, first);
    const { out, seed, rounds } = flagsWithoutOptions("growth", first < 0 ? [] : words.slice(first));
    if (rounds !== undefined) throw new UsageError("growth takes no --rounds");
    const curves = await curvesNamed(names);
    const { commit } = await revisionHere();
    await mkdir(out, { recursive: true });
    let code = 0;
    for (const curve of curves) {
      const lack = await curve.lacks?.();
      if (lack !== undefined) {
        console.log(`${curve.name}: skipped, for ${lack}`);
        continue;
      }
      const grown = await withTemporaryFolder((folder) =>
        runCurve(curve, { folder, seed, brief, signal, commit, say: (line) => console.log(line) }),
      );
      printGrowth(grown);
      const path = join(out, `growth-${curve.name}-${grown.startedAt.replaceAll(":", "")}.json`);
      await writeFile(path, `${JSON.stringify(grown, undefined, 2)}\n`);
      console.log(`\n${path}\n`);
      if (grown.series.some(({ verdict, because }) => verdict === "exceeds" && because === null)) code = 1;
    }
    return code;
  },
};
