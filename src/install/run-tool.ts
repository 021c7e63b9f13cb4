import { spawn } from "node:child_process";
import { systemCodeOf } from "../core/errors.ts";
import { CliError } from "../client/failure.ts";

/** A program of the system that ran to its end. */
export type ToolResult = { code: number; stdout: string; stderr: string };

/** Runs programs of the system: `systemctl`, `launchctl`, the program's own next version. */
export type RunTool = (program: string, args: readonly string[], options?: ToolOptions) => Promise<ToolResult>;

export type ToolOptions = {
  /** Beside the variables of this process. */
  env?: Readonly<Record<string, string>>;
  timeoutMs?: number;
};

const TIMEOUT_MS = 120_000;
const OUTPUT_CHARS = 65_536;
/** As shells say that there is no such program. */
export const NOT_FOUND = 127;

/** @param env the variables that programs are found and run with */
export function toolRunner(env: Readonly<Record<string, string | undefined>>): RunTool {
  return (program, args, options = {}) =>
    new Promise((resolve, reject) => {
      const child = spawn(program, args, {
        env: { ...env, ...options.env },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: options.timeoutMs ?? TIMEOUT_MS,
        killSignal: "SIGKILL",
      });
      const texts = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const) {
        child[name].setEncoding("utf8").on("data", (text: string) => {
          texts[name] = (texts[name] + text).slice(0, OUTPUT_CHARS);
        });
      }
      child.once("error", (error) => {
        if (systemCodeOf(error) === "ENOENT") resolve({ code: NOT_FOUND, stdout: "", stderr: error.message });
        else reject(new CliError(`cannot run ${program}: ${error.message}`, 1, { cause: error }));
      });
      child.once("close", (code, signal) => {
        resolve({ ...texts, code: code ?? 1, ...(signal !== null && { stderr: `${texts.stderr}ended by ${signal}` }) });
      });
    });
}

/** The last line that a program said of its failure. */
export function reasonOf({ code, stdout, stderr }: ToolResult): string {
  const lines = (stderr.trim() || stdout.trim()).split("\n");
  return lines.at(-1)?.trim() || `exit code ${code}`;
}
