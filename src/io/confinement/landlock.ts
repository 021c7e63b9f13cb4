import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { seccompFilter } from "../seccomp/filter.ts";
import { SECCOMP_ARCHITECTURES } from "../seccomp/numbers.ts";
import { QUERY_PROCESSES } from "./calls.ts";
import type { Driver, ProcessFolders } from "./confinement.ts";
import { processEnv } from "./environment.ts";
import { executableFiles, readableFiles, kernelFiles } from "./system-files.ts";

const PROGRAM = fileURLToPath(new URL("./confine.pl", import.meta.url));

/** Where Perl is on systems whose services have no path. */
const SYSTEM_PATH = ["/usr/bin", "/bin"];

/**
 * Landlock and seccomp, by a launcher in Perl (`confine.pl`), which every Linux distribution has: Node has no call for
 * either, and nothing is compiled where this is installed. Or why this machine has not got them, in a few words.
 */
export function findLandlock(): Driver | { missing: string } {
  if (process.platform !== "linux") return { missing: "this system has no Landlock" };
  const architecture = SECCOMP_ARCHITECTURES.find((name) => name === process.arch);
  if (architecture === undefined) return { missing: `there is no list of system calls for ${process.arch}` };
  const perl = findPerl();
  if (perl === undefined) return { missing: "perl is not installed" };
  const { status, stdout } = spawnSync(perl, [PROGRAM, "abi"], { encoding: "utf8", env: processEnv() });
  if (status !== 0) return { missing: "this kernel has no Landlock" };
  const filter = Buffer.from(seccompFilter(architecture, QUERY_PROCESSES)).toString("hex");
  const fixed = [perl, PROGRAM, architecture, filter, ...rulesOfAll()];
  return {
    name: `landlock (ABI ${stdout.trim()}) + seccomp`,
    wrap: ([program = "", ...args], folders) => [...fixed, "run", program, ...rulesOf(folders), "--", program, ...args],
  };
}

/** What every query process may open, for the launcher. */
function rulesOfAll(): string[] {
  return [
    readableFiles().flatMap((path) => ["read", path]),
    executableFiles().flatMap((path) => ["run", path]),
    ["write", "/dev/null"],
    kernelFiles().flatMap((path) => ["keep", path]),
  ].flat();
}

function rulesOf({ readable, writable }: ProcessFolders): string[] {
  return [...readable.flatMap((path) => ["read", path]), ...writable.flatMap((path) => ["write", path])];
}

function findPerl(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder.startsWith("/"));
  return [...folders, ...SYSTEM_PATH].map((folder) => join(folder, "perl")).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
