import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import { StartupSnapshot } from "./startup-snapshot.ts";

/**
 * The start-up snapshot of the KQL translator that all tests share. Without one the translator of each server of a test
 * takes 1.5 s of a processor to start, and 3 s more to build a snapshot that the next test does not see.
 */
export const SHARED_SNAPSHOTS = fileURLToPath(new URL("../../../node_modules/.cache/kql", import.meta.url));

/** The environment variable with the path of the snapshot, which the run's process builds before the first test. */
const SHARED_SNAPSHOT = "TEST_KQL_SNAPSHOT";

/** Builds the snapshot unless it is there, and tells the processes of the run where it is. */
export async function buildSharedSnapshot(): Promise<void> {
  // Each project of the run sets up, and so does a run that a test starts.
  if (process.env[SHARED_SNAPSHOT] !== undefined) return;
  const snapshot = new StartupSnapshot({ folder: SHARED_SNAPSHOTS, log: silentLog, clock: systemClock });
  if ((await snapshot.find()) === undefined) await snapshot.build();
  process.env[SHARED_SNAPSHOT] = (await snapshot.find()) ?? "";
}

/** Gives a server that is not started yet the shared snapshot. */
export function lendSnapshot(home: string): void {
  const path = process.env[SHARED_SNAPSHOT] ?? "";
  if (path === "") return;
  const lent = join(home, "cache", "kql", basename(path));
  if (existsSync(lent)) return;
  mkdirSync(join(home, "cache", "kql"), { recursive: true, mode: 0o700 });
  symlinkSync(path, lent);
}
