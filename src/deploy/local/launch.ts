import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { ProgramSpec } from "./state.ts";

export type Launched = {
  child: ChildProcess;
  /** Lets the program run. */
  begin: () => void;
};

/**
 * Starts a program in a process group of its own; its output goes to the end of its log. A shell waits for a line and then
 * becomes the program, so the process id is known before anything runs. Where whoever started it is gone before `begin`,
 * the shell ends and nothing ran.
 */
export function launch({ command, env, log }: Pick<ProgramSpec, "command" | "env" | "log">): Launched {
  const output = openSync(log, "a", 0o600);
  try {
    const child = spawn("/bin/sh", ["-c", 'read -r go && exec "$@" </dev/null', "engine", ...command], {
      env,
      cwd: "/",
      detached: true,
      stdio: ["pipe", output, output],
    });
    // It may end before it has read its line.
    child.stdin?.on("error", () => undefined);
    return { child, begin: () => void child.stdin?.end("go\n") };
  } finally {
    closeSync(output);
  }
}
