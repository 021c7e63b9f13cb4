import { join } from "node:path";
import type { MadeFile, Maker } from "./maker.ts";
import { TARGETS, nameOf } from "./targets.ts";
import { runTool } from "./tools.ts";

/** The single file of each architecture of Linux, made by the Node that goes into it. */
export const singleFileMaker: Maker = {
  name: "single-files",
  async make({ repository, version, out, targets }) {
    const made: MadeFile[] = [];
    for (const target of TARGETS.filter((one) => one.os === "linux" && targets.includes(nameOf(one)))) {
      const build = join(repository, "scripts/release/single-file/build.ts");
      await runTool(process.execPath, [build, "--arch", target.arch, "--out", out]);
      made.push({ name: `engine-${version}-${nameOf(target)}`, kind: "single-file", ...target });
    }
    return made;
  },
};
