import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** The Node in the single file: one release for both architectures, from the packages that hold nothing else. */
export const NODE_VERSION = "22.23.3";

export const ARCHITECTURES = ["x64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

const INTEGRITY: Readonly<Record<Architecture, string>> = {
  x64: "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
  arm64: "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
};

/** The executable and the licence, below `cache`, where they stay for the next time. */
export async function nodeBinary(
  architecture: Architecture,
  cache: string,
): Promise<{ node: string; license: string }> {
  const name = `node-linux-${architecture}`;
  const folder = join(cache, `${name}-${NODE_VERSION}`);
  const files = { node: join(folder, "node"), license: join(folder, "LICENSE") };
  if (await isThere(files.license)) return files;
  await mkdir(cache, { recursive: true });
  const made = await mkdtemp(join(cache, `${name}-`));
  try {
    execFileSync("npm", ["pack", "--silent", `${name}@${NODE_VERSION}`], {
      cwd: made,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const packed = join(made, `${name}-${NODE_VERSION}.tgz`);
    const integrity = `sha512-${createHash("sha512")
      .update(await readFile(packed))
      .digest("base64")}`;
    if (integrity !== INTEGRITY[architecture]) {
      throw new Error(
        `${name}@${NODE_VERSION} has the integrity ${integrity}, not the pinned ${INTEGRITY[architecture]}`,
      );
    }
    execFileSync("tar", ["-xzf", packed, "-C", made, "package/bin/node", "package/LICENSE"]);
    const taken = join(made, "taken");
    await mkdir(taken);
    await copyFile(join(made, "package/bin/node"), join(taken, "node"));
    await chmod(join(taken, "node"), 0o755);
    await copyFile(join(made, "package/LICENSE"), join(taken, "LICENSE"));
    await rm(folder, { recursive: true, force: true });
    await rename(taken, folder);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return files;
}

async function isThere(file: string): Promise<boolean> {
  try {
    await readFile(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
