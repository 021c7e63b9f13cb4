import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT, type ExitCode } from "../../client/failure.ts";
import { createLog } from "../../core/log.ts";
import { onStopSignal } from "../../core/stop-signal.ts";
import { tryLock } from "../../db/sqlite/process-lock.ts";
import { DESIRED_FILE, desiredSchema, STATE_FILE, stateSchema } from "../local/state.ts";
import { Supervisor } from "../local/supervisor.ts";
import type { Workspace } from "../workspace.ts";

/** Keeps the processes of a local deployment running, until it is stopped; one at a time does. */
export async function supervise(context: CliContext, workspace: Workspace): Promise<ExitCode> {
  await workspace.spec();
  const lock = tryLock(workspace.path("local/supervisor.lock"));
  if (lock === undefined) throw new CliError(`${workspace.name} has a supervisor already`);
  const stop = new AbortController();
  onStopSignal(() => stop.abort());
  const { clock, random, version, stderr } = context.deps;
  try {
    await Supervisor.run({
      clock,
      random,
      version,
      log: createLog("info", { write: (line) => void stderr.write(line) }),
      ownLog: workspace.path("local/logs/supervisor.log"),
      stopped: stop.signal,
      readDesired: () => workspace.readJson(DESIRED_FILE, desiredSchema),
      readState: () => workspace.readJson(STATE_FILE, stateSchema),
      writeState: (state) => workspace.writeJson(STATE_FILE, state),
    });
    return EXIT.ok;
  } finally {
    lock.release();
  }
}
