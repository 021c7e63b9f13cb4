import { join } from "node:path";
import type { Maker } from "./maker.ts";
import { TARGETS, nameOf } from "./targets.ts";
import { writeTar } from "./tar.ts";

/** An archive for each platform, with Node: unpacked anywhere it runs, and needs nothing else. */
export const archiveMaker: Maker = {
  name: "archives",
  async make({ version, out, timeSecs, targets, programFiles }) {
    const made = [];
    for (const target of TARGETS.filter((one) => targets.includes(nameOf(one)))) {
      const root = `engine-${version}-${nameOf(target)}`;
      const name = `${root}.tar.gz`;
      await writeTar(join(out, name), root, await programFiles(target), timeSecs);
      made.push({ name, kind: "archive" as const, ...target });
    }
    return made;
  },
};
