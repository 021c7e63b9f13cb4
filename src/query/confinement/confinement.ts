import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf, StartupError } from "../../core/errors.ts";
import { isolateFile } from "../../core/isolate.ts";
import type { Log } from "../../core/log.ts";
import { processEnv } from "./environment.ts";
import { CANARY_VARIABLE } from "./fence.ts";
import { findLandlock } from "./landlock.ts";

/**
 * The operating system's part in keeping a query to its own files: whatever a statement makes DuckDB do, its process
 * can open only what Node and DuckDB need to run, its `in` to read and its `out` to write, has no network, starts no
 * program and reaches no other process.
 *
 * It counts as on after a process under it has tried (`probe-child.ts`), and each query process tries again before it
 * takes queries (`fence.ts`).
 */
export type Confinement = {
  readonly isOn: boolean;
  /** For the log and `engine status`; names no path. */
  readonly name: string;
  /** The command that runs a command with no rights but to these folders. */
  wrap(command: readonly string[], folders: ProcessFolders): string[];
};

export type ProcessFolders = {
  readable: readonly string[];
  writable: readonly string[];
};

/** A way to confine, before it is tried; or why this machine has not got it. */
export type Driver = Omit<Confinement, "isOn"> | { missing: string };

const PROBE_TIMEOUT_MS = 20_000;

export type ConfinementMode = "auto" | "required" | "off";

type Options = { log: Log; tempDir: string };

/** That which the operator wants. Throws where it is required and not to be had. */
export function configuredConfinement(mode: ConfinementMode, options: Options, open = openConfinement): Confinement {
  if (mode === "off") return noConfinement("switched off");
  const confinement = open(options);
  if (mode === "auto" || confinement.isOn) return confinement;
  throw new StartupError(`ENGINE_QUERY_CONFINEMENT is required, and query confinement is ${confinement.name}`, 1);
}

/** The confinement of this machine, tried. Takes the time of starting a process. */
export function openConfinement({ log, tempDir }: Options, driver: Driver = findLandlock()): Confinement {
  if ("missing" in driver) return noConfinement(driver.missing);
  try {
    probe(driver, tempDir);
    return { isOn: true, name: driver.name, wrap: (command, folders) => driver.wrap(command, folders) };
  } catch (error) {
    log.error({ err: error, driver: driver.name }, "the confinement of query processes failed its test");
    return noConfinement(`the test of ${driver.name} failed`);
  }
}

export function noConfinement(reason: string): Confinement {
  return { isOn: false, name: `none (${reason})`, wrap: (command) => [...command] };
}

/** Throws unless a process under it can do what a query process has to, and nothing else of what it tries. */
function probe(driver: Exclude<Driver, { missing: string }>, tempDir: string): void {
  mkdirSync(tempDir, { recursive: true, mode: 0o700 });
  const folder = mkdtempSync(join(tempDir, "confinement-"));
  try {
    const [inside, outside] = [join(folder, "in"), join(folder, "out")];
    mkdirSync(inside);
    mkdirSync(outside);
    const canary = join(folder, "canary");
    for (const file of [canary, join(inside, "file")]) writeFileSync(file, "text", { mode: 0o600 });
    const node = [
      process.execPath,
      isolateFile(new URL("./probe-child.ts", import.meta.url)),
      "--isolate",
      "query-probe",
    ];
    const [file = "", ...args] = driver.wrap(node, { readable: [inside], writable: [outside] });
    const env = { ...processEnv(), [CANARY_VARIABLE]: canary };
    const { error, status, signal, stderr } = spawnSync(file, args, {
      env,
      cwd: outside,
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
      timeout: PROBE_TIMEOUT_MS,
    });
    if (error !== undefined) throw new Error(`cannot run ${file}: ${messageOf(error)}`, { cause: error });
    if (status !== 0) throw new Error(`the process ended with ${signal ?? `code ${status}`}: ${stderr.trim()}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
