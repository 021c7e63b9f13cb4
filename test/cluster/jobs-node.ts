import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanEnv } from "../support/engine.ts";
import { Program } from "./program.ts";

const PROGRAM = fileURLToPath(new URL("jobs-daemon.ts", import.meta.url));
const SLOTS = 4;

export type DaemonPlace = { name: string; token: string; url: string; folder: string; longMs: number };

/** A node daemon as a process that can be killed, frozen and started again; it writes what it does to `<name>.done`. */
export function makeDaemon({ name, token, url, folder, longMs }: DaemonPlace): Program {
  return new Program({
    name,
    command: () => [process.execPath, "--disable-warning=ExperimentalWarning", PROGRAM],
    env: {
      ...cleanEnv(),
      JOBS_URL: url,
      JOBS_TOKEN: token,
      JOBS_NAME: name,
      JOBS_FILE: join(folder, `${name}.done`),
      JOBS_SLOTS: String(SLOTS),
      JOBS_LONG_MS: String(longMs),
    },
    log: join(folder, `${name}.log`),
    stopSignal: "SIGTERM",
    stopTimeoutMs: 30_000,
    // It asks until the control plane answers.
    isReady: async () => true,
  });
}
