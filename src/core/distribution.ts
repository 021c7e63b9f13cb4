import { readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { StartupError, messageOf, systemCodeOf } from "./errors.ts";

/**
 * How this program came onto the machine, and how it is started again: by a service unit, by the supervisor of a local
 * cluster, by an update that tries the new version. Whoever starts the program takes `programCommand`.
 *
 * The makers of an archive, a single file and an image write `distribution.json` beside the bundle `engine.js`. Without
 * it the bundle is that of an npm package or of a checkout, and its folder tells which.
 */
export type Distribution = {
  kind: DistributionKind;
  /** The file that a service or a supervisor starts. */
  program: string;
  /** An archive's folder, the package's or the checkout's; of a single file the folder that it is unpacked into. */
  folder: string;
};

const KINDS = ["checkout", "npm", "archive", "single-file", "image"] as const;
export type DistributionKind = (typeof KINDS)[number];

/** Below an archive's folder, where `engine update` keeps later versions: the launcher in front of them stays. */
export const ARCHIVE_VERSIONS = "engine-versions";

declare const ENGINE_BUNDLED: boolean | undefined;

/** @throws StartupError for a `distribution.json` that cannot be read. */
export function distribution(): Distribution {
  const own = dirname(fileURLToPath(import.meta.url));
  if (isBundled()) return distributionOf(own, process.execPath);
  return ofPackage("checkout", packageFolder());
}

function isBundled(): boolean {
  return typeof ENGINE_BUNDLED === "boolean" && ENGINE_BUNDLED;
}

/** The folder with the files that came with this program (`files` of package.json), or that of a checkout. */
export function packageFolder(): string {
  const own = dirname(fileURLToPath(import.meta.url));
  return isBundled() ? dirname(own) : resolve(own, "../..");
}

/** The words before the arguments of a command line that starts this program. */
export function programCommand(): readonly string[] {
  return commandOf(distribution(), process.execPath);
}

export function commandOf({ kind, program }: Distribution, execPath: string): readonly string[] {
  return kind === "archive" || kind === "single-file" ? [program] : [execPath, program];
}

/** Of a bundle in `bundleFolder` that runs in the program `execPath`. @throws StartupError */
export function distributionOf(bundleFolder: string, execPath: string): Distribution {
  const kind = writtenKind(join(bundleFolder, "distribution.json"));
  const folder = dirname(bundleFolder);
  if (kind === "archive") return ofArchive(resolve(folder, "../.."));
  if (kind === "single-file") return { kind, program: execPath, folder: bundleFolder };
  const isInstalled = folder.split(/[\\/]/).includes("node_modules");
  return ofPackage(kind ?? (isInstalled ? "npm" : "checkout"), folder);
}

/** `folder` is the one that was unpacked: of a later version it lies below the one that the user knows. */
function ofArchive(folder: string): Distribution {
  const parent = dirname(folder);
  const known = basename(parent) === ARCHIVE_VERSIONS ? dirname(parent) : folder;
  return { kind: "archive", program: join(known, "bin", "engine"), folder: known };
}

function ofPackage(kind: DistributionKind, folder: string): Distribution {
  return { kind, program: join(folder, "bin", "engine.js"), folder };
}

function writtenKind(file: string): DistributionKind | undefined {
  let written: unknown;
  try {
    written = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw new StartupError(`cannot read ${file}: ${messageOf(error)}; install the program again`, 1, error);
  }
  const kind = KINDS.find((one) => one === (written as { kind?: unknown } | null)?.kind);
  if (kind !== undefined) return kind;
  throw new StartupError(`${file} names none of ${KINDS.join(", ")}: install the program again`);
}
