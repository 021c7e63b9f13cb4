import { join } from "node:path";
import type { Maker } from "./maker.ts";
import { TARGETS, nameOf } from "./targets.ts";
import { runTool } from "./tools.ts";

/** The single file of each Linux platform; by a process of its own, since the Node that goes in must be the one that runs it. */
export const singleFileMaker: Maker = {
  name: "single-files",
  async make({ repository, version, out, targets }) {
    const made = [];
    const build = join(repository, "scripts/release/single-file/build.ts");
    for (const target of TARGETS.filter((one) => one.os === "linux" && targets.includes(nameOf(one)))) {
      await runTool(process.execPath, [build, "--arch", target.arch, "--out", out]);
      made.push({ name: `engine-${version}-${nameOf(target)}`, kind: "single-file" as const, ...target });
    }
    return made;
  },
};
