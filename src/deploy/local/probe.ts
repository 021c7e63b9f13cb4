import { execFile } from "node:child_process";
import type { Clock } from "../../core/clock.ts";
import type { ProgramSpec } from "./state.ts";

const TIMEOUT_MS = 2_000;

/** Whether a program serves now. */
export async function serves(probe: ProgramSpec["probe"], clock: Clock): Promise<boolean> {
  return await (probe.kind === "http" ? answers(probe.url, clock) : succeeds(probe.command));
}

/** Whether an address answers GET with a status of success. */
export async function answers(url: string, clock: Clock): Promise<boolean> {
  const late = new AbortController();
  const timer = clock.after(TIMEOUT_MS, () => late.abort());
  try {
    const { ok, body } = await fetch(url, { signal: late.signal });
    await body?.cancel();
    return ok;
  } catch {
    return false;
  } finally {
    timer.cancel();
  }
}

function succeeds([file, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: TIMEOUT_MS, killSignal: "SIGKILL" }, (error) => resolve(error === null));
  });
}
