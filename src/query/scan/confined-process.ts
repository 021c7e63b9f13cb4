import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import { isolateFile, nodeProgram } from "../../core/isolate.ts";
import type { Confinement } from "../../io/confinement/confinement.ts";
import { processEnv } from "../../io/confinement/environment.ts";
import { inputFolder, outputFolder } from "./process-folders.ts";

/** A process that works on what strangers wrote: what it may take and open is the kernel's to hold, on Linux. */
export type ConfinedProcess = {
  program: {
    source: URL;
    /** Its name where the whole program is one file: see `core/isolate.ts`. */
    isolate: string;
    nodeOptions?: readonly string[];
  };
  /** Its own, empty: see `process-folders.ts`. */
  folder: string;
  /** What it may read besides. */
  readable: readonly string[];
  confinement: Confinement;
  limits: { dataBytes: number; fileBytes: number };
  env: Readonly<Record<string, string>>;
};

/** Starts it, with a channel for messages, of which numbers of any size are a part. */
export function startConfined({ program, folder, confinement, limits, ...options }: ConfinedProcess): ChildProcess {
  for (const own of [inputFolder(folder), outputFolder(folder)]) mkdirSync(own, { mode: 0o700 });
  const { source, isolate, nodeOptions = [] } = program;
  const node = [nodeProgram(), ...nodeOptions, isolateFile(source), "--isolate", isolate];
  const readable = [inputFolder(folder), ...options.readable];
  const command = confinement.wrap(node, { readable, writable: [outputFolder(folder)] });
  const env = {
    ...processEnv(),
    ENGINE_QUERY_CHILD_FOLDER: folder,
    ENGINE_QUERY_CHILD_CONFINED: String(confinement.isOn),
    ...options.env,
    // Memory of many arenas is not given back between queries, and counts against the limit.
    MALLOC_ARENA_MAX: "4",
  };
  const [file, ...args] = process.platform === "win32" ? command : [...underLimits(limits), ...command];
  if (file === undefined) throw new Error("no command");
  return spawn(file, args, {
    env,
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    serialization: "advanced",
    cwd: outputFolder(folder),
  });
}

/**
 * `sh` sets the limits and becomes the process. macOS has the limits but keeps only some; there `kill` must do. When
 * the machine runs out of memory a query is what should go first: only Linux has that file, and it is closed to a
 * process that is confined.
 */
function underLimits({ dataBytes, fileBytes }: ConfinedProcess["limits"]): string[] {
  const dataKib = Math.ceil(dataBytes / 1024);
  const fileBlocks = Math.ceil(fileBytes / 512);
  const limits = `ulimit -c 0; ulimit -d ${dataKib} 2>/dev/null; ulimit -f ${fileBlocks} 2>/dev/null`;
  const volunteer = "{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null";
  return ["/bin/sh", "-c", `${limits}; ${volunteer}; exec "$0" "$@"`];
}
