import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

export type Ran = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** Runs `engine backup …`; `until` resolves when the process is to be killed. */
export async function backup(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  until?: (isOver: () => boolean) => Promise<void>,
): Promise<Ran> {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  const child = endsWithThisProcess(
    spawn(process.execPath, [ENTRY, "backup", ...words], { env: { ...cleanEnv(), ...env }, stdio }),
  );
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  void until?.(() => child.exitCode !== null || child.signalCode !== null).then(() => child.kill("SIGKILL"));
  const [code, signal] = await closed;
  return { code, signal, stdout, stderr };
}

/** What a command printed with `--json`; throws with what it said when it failed. */
export async function backupJson(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await backup([...words, "--json"], env);
  if (code !== 0) throw new Error(`engine backup ${words.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}
