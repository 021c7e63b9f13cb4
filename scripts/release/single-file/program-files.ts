import { existsSync } from "node:fs";
import { copyFile, lstat, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { checkPath } from "../../../src/single-file/contents.ts";
import { componentsOf, licenceTexts } from "../components.ts";
import { listedFiles } from "../npm-package.ts";
import { entriesIn, type TarEntry } from "../tar.ts";
import type { Target } from "../targets.ts";
import { runTool } from "../tools.ts";

/** A file of the program, and where its bytes are now. */
export type ProgramFile = { path: string; bytes: Uint8Array; isExecutable: boolean };

/** Packages that the bundle loads from beside it (`scripts/build.ts`), and those whose files it reads. */
const PACKAGES = [
  "@duckdb/node-api",
  "@duckdb/node-bindings",
  "@kusto/language-service-next",
  "@node-rs/argon2",
  "kafkajs",
  "piscina",
  "postgres",
];

/** Binaries that npm leaves out without a word where it finds none. */
const BINARIES: Readonly<Record<Target["arch"], readonly string[]>> = {
  x64: ["@duckdb/node-bindings-linux-x64", "@node-rs/argon2-linux-x64-gnu", "@uwsjs/linux-x64-22"],
  arm64: ["@duckdb/node-bindings-linux-arm64", "@node-rs/argon2-linux-arm64-gnu"],
};

/** What no start reads, and each start would look at: types, maps, modules for bundlers. */
const UNUSED = [
  /\.[cm]?ts$/,
  /\.map$/,
  /^node_modules\/(?!.*\/(licen[cs]e|notice)[^/]*$).*\.md$/i,
  /^node_modules\/.*\/dist-(es|types)\//,
  /^node_modules\/piscina\/(benchmark|docs|examples|src|test)\//,
  // The two files that it is loaded from are a sixth of the package.
  /^node_modules\/@kusto\/language-service-next\/(?!package\.json$|(bridge|Kusto\.Language\.Bridge)\.min\.js$)/,
];

export type Sources = {
  repository: string;
  architecture: Target["arch"];
  /** The licence of the Node that goes with the program. */
  nodeLicense: string;
  /** A `node_modules` that holds the packages; else they are installed as the lock file says. */
  packages?: string | undefined;
};

/** The files of the program, by their paths: what the npm package has, and the packages that it needs. */
export async function programFiles(sources: Sources): Promise<ProgramFile[]> {
  const { repository, architecture, nodeLicense, packages } = sources;
  const own = [
    ...(await ownFiles(repository)),
    { path: "LICENSE.node", bytes: await readFile(nodeLicense), isExecutable: false },
  ];
  const installed = packages ?? (await install(repository, architecture));
  try {
    const names = [...PACKAGES, ...(await binariesIn(installed, architecture))];
    const files = [...own, ...(await filesOfPackages(installed, names))];
    for (const { path } of files) checkPath(path);
    return files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  } finally {
    if (packages === undefined) await rm(dirname(installed), { recursive: true, force: true });
  }
}

async function ownFiles(repository: string): Promise<ProgramFile[]> {
  const { name, version, license } = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license: string;
  };
  const licences = await licenceTexts(repository, await componentsOf(repository));
  const about = JSON.stringify({ name, version, license, type: "module" });
  return [
    ...(await read(await listedFiles(repository))),
    { path: "package.json", bytes: Buffer.from(`${about}\n`), isExecutable: false },
    { path: "THIRD-PARTY-LICENSES.txt", bytes: Buffer.from(licences), isExecutable: false },
    // How the program knows that it was unpacked from a single file: `src/core/distribution.ts`.
    { path: "dist/distribution.json", bytes: Buffer.from('{"kind":"single-file"}\n'), isExecutable: false },
  ];
}

async function read(entries: readonly TarEntry[]): Promise<ProgramFile[]> {
  return await Promise.all(
    entries
      .filter(({ path }) => !isUnused(path))
      .map(async ({ path, source, isExecutable }) => ({
        path,
        bytes: typeof source === "string" ? await readFile(source) : source,
        isExecutable,
      })),
  );
}

function isUnused(path: string): boolean {
  return UNUSED.some((pattern) => pattern.test(path));
}

/** Installs what the lock file says for the architecture. Returns the `node_modules`, in a folder of its own. */
async function install(repository: string, architecture: Target["arch"]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "engine-packages-"));
  for (const name of ["package.json", "package-lock.json", ".npmrc"]) {
    await copyFile(join(repository, name), join(folder, name));
  }
  const target = ["--os=linux", `--cpu=${architecture}`, "--libc=glibc"];
  await runTool("npm", ["ci", "--silent", "--omit=dev", "--ignore-scripts", ...target], { cwd: folder });
  return join(folder, "node_modules");
}

async function binariesIn(packages: string, architecture: Target["arch"]): Promise<readonly string[]> {
  for (const name of BINARIES[architecture]) {
    await lstat(join(packages, name)).catch((error: unknown) => {
      throw new Error(`${name} is not installed: the lock file has none for this architecture, or npm skipped it`, {
        cause: error,
      });
    });
  }
  return BINARIES[architecture];
}

/** All files of the packages and of those that they depend on. */
async function filesOfPackages(packages: string, names: readonly string[]): Promise<ProgramFile[]> {
  const root = dirname(packages);
  const folders = new Set(names.map((name) => join(packages, name)));
  // The set grows while it is walked.
  for (const folder of folders) {
    const { dependencies = {} } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
      dependencies?: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) folders.add(folderOf(name, folder));
  }
  const paths = Array.from(folders, (folder) => relative(root, folder));
  const found = await Promise.all(paths.map((path) => entriesIn(join(root, path), path, isSkipped)));
  return await read(found.flat());
}

/** Packages inside of packages are taken by name. */
function isSkipped(path: string): boolean {
  return basename(path) === "node_modules" || isUnused(path);
}

/** Where Node finds the package that one in `folder` asks for. */
function folderOf(name: string, folder: string): string {
  const places = createRequire(join(folder, "package.json")).resolve.paths(name) ?? [];
  const found = places.map((place) => join(place, name)).find((place) => existsSync(join(place, "package.json")));
  if (found === undefined) throw new Error(`${name}, which ${folder} needs, is not installed`);
  return found;
}
