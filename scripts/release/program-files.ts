import { mkdir, mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { closureOf } from "./lock-file.ts";
import { INSTALLED, INSTALLED_IF_THERE, VENDORED, readLock } from "./components.ts";
import { nodeRuntime } from "./node-runtimes.ts";
import { entriesIn, type TarEntry } from "./tar.ts";
import type { Target } from "./targets.ts";
import { runTool } from "./tools.ts";

export type ProgramSources = {
  repository: string;
  cache: string;
  /** A folder that exists, for folders of this run. */
  work: string;
  npmFiles: readonly TarEntry[];
};

/** Finds its folder through links, so that one in a folder of the path will do, and the folder may be moved. */
const LAUNCHER = `#!/bin/sh
self=$0
while [ -L "$self" ]; do
  link=$(readlink -- "$self")
  case $link in
    /*) self=$link ;;
    *) self=$(dirname -- "$self")/$link ;;
  esac
done
root=$(cd -- "$(dirname -- "$self")/.." && pwd -P) || exit
exec "$root/node" "$root/lib/engine/bin/engine.js" "$@"
`;

/** What no start reads: types, maps, tests of others. */
const UNUSED = /(^|\/)(\.bin|\.package-lock\.json|.*\.d\.[cm]?ts|.*\.map)$/;

/** Whoever looks into an archive reads these first. */
const AT_TOP: ReadonlySet<string> = new Set(["LICENSE", "README.md", "THIRD-PARTY-LICENSES.txt"]);

/** The files of an archive, without its top folder. */
export async function programFiles(sources: ProgramSources, target: Target): Promise<TarEntry[]> {
  const { node, license } = await nodeRuntime(target, sources.cache);
  const installed = await install(sources, target);
  const packages = await entriesIn(join(installed, "node_modules"), "node_modules", (path) => UNUSED.test(path));
  const own = [...sources.npmFiles, ...packages].map(({ path, source, isExecutable }): TarEntry => ({
    path: `lib/engine/${path}`,
    source,
    isExecutable,
  }));
  const atTop = sources.npmFiles.filter(({ path }) => AT_TOP.has(path));
  return [
    text("bin/engine", LAUNCHER, true),
    { path: "node", source: node, isExecutable: true },
    { path: "LICENSE.node", source: license, isExecutable: false },
    ...atTop,
    ...own,
    text("lib/engine/dist/distribution.json", '{"kind":"archive"}\n'),
  ];
}

function text(path: string, content: string, isExecutable = false): TarEntry {
  return { path, source: Buffer.from(content), isExecutable };
}

/** Installs what the npm package needs on the platform, as its shrinkwrap says. Resolves to the folder above. */
async function install({ work, npmFiles, repository }: ProgramSources, target: Target): Promise<string> {
  const folder = await mkdtemp(join(work, `${target.os}-${target.arch}-`));
  const { bundleDependencies: _, ...manifest } = readJson(npmFiles, "package.json") as Manifest;
  delete manifest.dependencies[VENDORED.name];
  const lock = readJson(npmFiles, "npm-shrinkwrap.json") as { packages: Record<string, unknown> };
  delete lock.packages[`node_modules/${VENDORED.name}`];
  lock.packages[""] = manifest;
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lock));
  const platform = [`--os=${target.os}`, `--cpu=${target.arch}`, ...(target.os === "linux" ? ["--libc=glibc"] : [])];
  await runTool("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", ...platform], {
    cwd: folder,
  });
  await checkBinaries(repository, folder, target);
  return folder;
}

type Manifest = { dependencies: Record<string, string>; bundleDependencies: readonly string[] };

function readJson(files: readonly TarEntry[], path: string): unknown {
  return JSON.parse(String(files.find((file) => file.path === path)?.source));
}

/** npm leaves out a binary that it cannot have without a word. @throws Error */
async function checkBinaries(repository: string, installed: string, { os, arch }: Target): Promise<void> {
  const lock = await readLock(repository);
  const nodeMajor = process.versions.node.split(".")[0];
  for (const folder of closureOf(lock, [...INSTALLED, ...INSTALLED_IF_THERE])) {
    const entry = lock.packages[folder];
    if (entry?.os === undefined || !entry.os.includes(os) || entry.cpu?.includes(arch) === false) continue;
    if (folder.includes("musl") || (entry.libc !== undefined && !entry.libc.includes("glibc"))) continue;
    const wanted = /^>=(\d+)\.0\.0 </.exec(entry.engines?.["node"] ?? "")?.[1];
    if (wanted !== undefined && wanted !== nodeMajor) continue;
    await stat(join(installed, folder, "package.json")).catch((error: unknown) => {
      throw new Error(`npm did not install ${folder} for ${os}-${arch}: see whether the registry has it`, {
        cause: error,
      });
    });
  }
}

/** Writes the files out into a folder that is made. */
export async function writeFolder(folder: string, entries: readonly TarEntry[]): Promise<void> {
  for (const { path, source, isExecutable } of entries) {
    const file = join(folder, path);
    await mkdir(join(file, ".."), { recursive: true });
    const options = { mode: isExecutable ? 0o755 : 0o644 };
    await writeFile(file, typeof source === "string" ? await readFile(source) : source, options);
  }
}
