import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { VERSION } from "../../../src/core/version.ts";
import { nodeRuntime, nodeVersionOf } from "../node-runtimes.ts";
import { packSingleFile } from "./pack.ts";
import { programFiles } from "./program-files.ts";

/**
 * Makes the single file of one architecture, on Linux of either:
 *
 *     npm run build && node scripts/release/single-file/build.ts --arch x64 --out FOLDER
 *
 * `--level N`: of zstd. `--packages FOLDER`: a `node_modules` to take instead of installing one by the lock file.
 */
const repository = fileURLToPath(new URL("../../..", import.meta.url));
const cache = join(repository, ".cache/release");
const ARCHITECTURES = ["x64", "arm64"] as const;

/** Of 97 MB: level 3 takes 1.9 s of CPU for 28.4 MB, 9 takes 4.8 s for 25.7, 19 takes 46 s for 22.5 (2026-11-27, `--level`). */
const LEVEL = "9";

const { values } = parseArgs({
  options: {
    arch: { type: "string" },
    out: { type: "string" },
    level: { type: "string", default: LEVEL },
    packages: { type: "string" },
  },
});
const architecture = ARCHITECTURES.find((name) => name === values.arch);
const host = ARCHITECTURES.find((name) => name === process.arch);
const level = Number(values.level);
if (architecture === undefined || values.out === undefined || !(level >= 1 && level <= 22)) {
  console.error(`error: --arch ${ARCHITECTURES.join("|")} and --out FOLDER are needed; --level is 1 to 22`);
  process.exit(2);
}
if (process.platform !== "linux" || host === undefined) {
  console.error("error: the single file is made on Linux, x64 or arm64");
  process.exit(1);
}

const target = { os: "linux", arch: architecture } as const;
if (process.version === `v${nodeVersionOf(target)}`) {
  const { node, license } = await nodeRuntime(target, cache);
  await mkdir(values.out, { recursive: true });
  const out = join(values.out, `engine-${VERSION}-linux-${architecture}`);
  const files = await programFiles({
    repository,
    architecture,
    nodeLicense: license,
    packages: values.packages === undefined ? undefined : resolve(values.packages),
  });
  await packSingleFile({ files, node, level, out });
  console.log(out);
} else {
  // The blob's layout and zstd's output are those of one release of Node: the one that goes in.
  const own = await nodeRuntime({ os: "linux", arch: host }, cache);
  execFileSync(own.node, process.argv.slice(1), { stdio: "inherit" });
}
