import { mkdirSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../core/clock.ts";
import { systemCodeOf } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { StartupSnapshot } from "./startup-snapshot.ts";

/**
 * The start-up snapshot of the KQL translator that all tests share. Without one the translator of each server of a test
 * takes 1.5 s of a processor to start, and 3 s more to build a snapshot that the next test does not see.
 */
const SHARED_SNAPSHOTS = fileURLToPath(new URL("../../../node_modules/.cache/kql", import.meta.url));

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

/**
 * Links the shared snapshot into a folder, which it returns. Who finds it of no use deletes the link: tests kill translators
 * that start, and it would be gone for all others.
 */
export function lendSnapshot(folder: string): string {
  const path = process.env[SHARED_SNAPSHOT] ?? "";
  if (path === "") return folder;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    symlinkSync(path, join(folder, basename(path)));
  } catch (error) {
    // A server that is started again has it.
    if (systemCodeOf(error) !== "EEXIST") throw error;
  }
  return folder;
}
