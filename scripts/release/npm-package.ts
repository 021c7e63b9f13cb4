import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { INSTALLED, INSTALLED_IF_THERE, VENDORED, componentsOf, licenceTexts, readLock } from "./components.ts";
import { closureOf, type LockFile, type LockedPackage } from "./lock-file.ts";
import type { Maker } from "./maker.ts";
import { entriesIn, writeTar, type TarEntry } from "./tar.ts";

/**
 * The npm package. Its dependencies are only what the bundle loads from beside it, and a shrinkwrap holds them, and all
 * below them, to the versions and bytes of the lock file.
 */
export const npmMaker: Maker = {
  name: "npm",
  async make({ version, out, timeSecs, npmFiles }) {
    const name = `engine-${version}.tgz`;
    await writeTar(join(out, name), "package", await npmFiles(), timeSecs);
    return [{ name, kind: "npm" }];
  },
};

type RootPackage = {
  name: string;
  version: string;
  files: string[];
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
} & Record<string, unknown>;

/**
 * What says what the bundle was made of, maps for debuggers, and releases that were made before; of Terraform tests, and
 * what somebody's own runs left: state, variables, providers.
 */
const LEFT_OUT =
  /^(dist\/((web-)?manifest\.json|packages\.json|.*\.map|release)|terraform\/(.*\/)?(tests|\.terraform.*|.*\.tfstate.*|plan|(?!capacity\.auto\.)[^/]*\.tfvars.*))$/;

/** The files of the package, without the folder `package/` in front. */
export async function npmPackageFiles(repository: string, packageName: string): Promise<TarEntry[]> {
  const root = await rootPackage(repository);
  const manifest = manifestOf(root, packageName);
  const shrinkwrap = shrinkwrapOf(await readLock(repository), manifest);
  const vendored = `node_modules/${VENDORED.name}`;
  return [
    ...(await listedFiles(repository)),
    ...VENDORED.files.map((file) => plain(`${vendored}/${file}`, join(repository, vendored, file))),
    plain("package.json", json(manifest)),
    plain("npm-shrinkwrap.json", json(shrinkwrap)),
    plain("THIRD-PARTY-LICENSES.txt", Buffer.from(await licenceTexts(repository, await componentsOf(repository)))),
  ];
}

/** The program's own files: those that package.json lists. */
export async function listedFiles(repository: string): Promise<TarEntry[]> {
  const { files } = await rootPackage(repository);
  return (await Promise.all(files.map((path) => entriesAt(repository, path)))).flat();
}

async function rootPackage(repository: string): Promise<RootPackage> {
  return JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as RootPackage;
}

async function entriesAt(repository: string, path: string): Promise<TarEntry[]> {
  // A file, by the error that reading it as a folder gives.
  try {
    return await entriesIn(join(repository, path), path, (inner) => LEFT_OUT.test(inner));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") throw error;
    return [plain(path, join(repository, path))];
  }
}

function plain(path: string, source: string | Buffer): TarEntry {
  return { path, source, isExecutable: false };
}

function json(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`);
}

type Manifest = {
  name: string;
  version: string;
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

/** Without what serves development: scripts, tools, and the packages whose code is in the bundle. */
function manifestOf(root: RootPackage, name: string): Manifest & Record<string, unknown> {
  const { version, description, license, bin, type, engines } = root;
  return {
    name,
    version,
    description,
    license,
    bin,
    type,
    engines,
    dependencies: versionsOf(root.dependencies, [...INSTALLED, VENDORED.name].toSorted()),
    optionalDependencies: versionsOf(root.optionalDependencies, INSTALLED_IF_THERE),
    bundleDependencies: [VENDORED.name],
    // What npm's own packer notes where there is a shrinkwrap, and its installer looks for.
    _hasShrinkwrap: true,
  };
}

function versionsOf(versions: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, versionIn(versions, name)]));
}

function versionIn(versions: Record<string, string>, name: string): string {
  const version = versions[name];
  if (version === undefined) throw new Error(`package.json does not have ${name}, which the bundle loads`);
  return version;
}

function shrinkwrapOf(lock: LockFile, manifest: Manifest & Record<string, unknown>) {
  const folders = closureOf(lock, [...INSTALLED, ...INSTALLED_IF_THERE]);
  const vendored = `node_modules/${VENDORED.name}`;
  const entries = folders.map((folder) => [folder, withoutMarks(lock.packages[folder])] as const);
  const { name, version } = manifest;
  return {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: Object.fromEntries([
      ["", manifest],
      ...entries,
      [vendored, { ...withoutMarks(lock.packages[vendored]), inBundle: true }],
    ]),
  };
}

/** Whether others need it for development too is a matter of the checkout. */
function withoutMarks(entry: LockedPackage | undefined): Partial<LockedPackage> {
  const { dev: _dev, devOptional: _devOptional, ...rest } = entry ?? { version: "" };
  return rest;
}
