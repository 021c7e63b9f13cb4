import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf, StartupError } from "../../core/errors.ts";
import { isolateFile, nodeProgram } from "../../core/isolate.ts";
import type { Log } from "../../core/log.ts";
import { noConfinement, type Confinement, type Driver } from "./confinement.ts";
import { processEnv } from "./environment.ts";
import { CANARY_VARIABLE } from "./fence.ts";
import { findLandlock } from "./landlock.ts";

const PROBE_TIMEOUT_MS = 60_000;

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
export function openConfinement({ log, tempDir }: Options, driver = findLandlock()): Confinement {
  if ("missing" in driver) return noConfinement(driver.missing);
  try {
    probe(driver, tempDir);
    return { isOn: true, name: driver.name, wrap: (command, folders) => driver.wrap(command, folders) };
  } catch (error) {
    log.error({ err: error, driver: driver.name }, "the confinement of query processes failed its test");
    return noConfinement(`the test of ${driver.name} failed`);
  }
}

/** Throws unless a process under it can do what a query process has to, and nothing else of what it tries. */
function probe(driver: Driver, tempDir: string): void {
  mkdirSync(tempDir, { recursive: true, mode: 0o700 });
  // By its name the next server sweeps it, when this one is killed before it can.
  const folder = mkdtempSync(join(tempDir, `query-${process.pid}-probe-`));
  try {
    const [inside, outside] = [join(folder, "in"), join(folder, "out")];
    mkdirSync(inside);
    mkdirSync(outside);
    const canary = join(folder, "canary");
    for (const file of [canary, join(inside, "file")]) writeFileSync(file, "text", { mode: 0o600 });
    const node = [nodeProgram(), isolateFile(new URL("./probe-child.ts", import.meta.url)), "--isolate", "query-probe"];
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
