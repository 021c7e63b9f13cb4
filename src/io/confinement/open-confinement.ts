import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
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

/** That which the operator wants. Rejects where it is required and not to be had. */
export async function configuredConfinement(
  mode: ConfinementMode,
  options: Options,
  open: (options: Options) => Promise<Confinement> = openConfinement,
): Promise<Confinement> {
  if (mode === "off") return noConfinement("switched off");
  const confinement = await open(options);
  if (mode === "auto" || confinement.isOn) return confinement;
  throw new StartupError(`ENGINE_QUERY_CONFINEMENT is required, and query confinement is ${confinement.name}`, 1);
}

/** The confinement of this machine, tried: in the time of starting a process, while this one goes on. */
export async function openConfinement({ log, tempDir }: Options, driver = findLandlock()): Promise<Confinement> {
  if ("missing" in driver) return noConfinement(driver.missing);
  try {
    await probe(driver, tempDir);
    return { isOn: true, name: driver.name, wrap: (command, folders) => driver.wrap(command, folders) };
  } catch (error) {
    log.error({ err: error, driver: driver.name }, "the confinement of query processes failed its test");
    return noConfinement(`the test of ${driver.name} failed`);
  }
}

/** Rejects unless a process under it can do what a query process has to, and nothing else of what it tries. */
async function probe(driver: Driver, tempDir: string): Promise<void> {
  await mkdir(tempDir, { recursive: true, mode: 0o700 });
  // By its name the next server sweeps it, when this one is killed before it can.
  const folder = await mkdtemp(join(tempDir, `query-${process.pid}-probe-`));
  try {
    const [inside, outside] = [join(folder, "in"), join(folder, "out")];
    await Promise.all([mkdir(inside), mkdir(outside)]);
    const canary = join(folder, "canary");
    for (const file of [canary, join(inside, "file")]) await writeFile(file, "text", { mode: 0o600 });
    const node = [nodeProgram(), isolateFile(new URL("./probe-child.ts", import.meta.url)), "--isolate", "query-probe"];
    const [file = "", ...args] = driver.wrap(node, { readable: [inside], writable: [outside] });
    const env = { ...processEnv(), [CANARY_VARIABLE]: canary };
    await run(file, args, { env, cwd: outside });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Rejects with how the process ended, and what it said, unless it did well. */
async function run(
  file: string,
  args: readonly string[],
  where: { env: NodeJS.ProcessEnv; cwd: string },
): Promise<void> {
  try {
    await promisify(execFile)(file, args, { ...where, timeout: PROBE_TIMEOUT_MS });
  } catch (error) {
    const { code, signal, stderr = "" } = error as { code?: number | string; signal?: string | null; stderr?: string };
    // Of a process that ended it is a number, or there is a signal.
    if (typeof code === "string") throw new Error(`cannot run ${file}: ${messageOf(error)}`, { cause: error });
    throw new Error(`the process ended with ${signal ?? `code ${code}`}: ${stderr.trim()}`, { cause: error });
  }
}
