import "../core/warnings.ts";
import { readdirSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { constants, setPriority } from "node:os";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import { keepFilesPrivate } from "../core/isolate.ts";
import { loadDuckDb } from "../io/duckdb/duckdb.ts";
import { mergeFiles } from "./merge-files.ts";
import type { ProcessMessage, ProcessTask } from "./merge-protocol.ts";
import { DamagedInputs } from "./merge.ts";
import { verifyFiles } from "./verify-files.ts";

/** See `merge-process.ts`: does the tasks that it is sent, one after the other, and is ended by the server. */

/** Everybody else passes it on the processor, and (on Linux, where that follows from it) on the disk. */
function lowerPriority(): void {
  // Linux knows priorities of threads only; one that is started later has that of the one that starts it.
  for (const thread of process.platform === "linux" ? readdirSync("/proc/self/task").map(Number) : [0]) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch (error) {
      // A thread that just ended is no failure.
      if (systemCodeOf((error as { info?: unknown }).info) !== "ESRCH") throw error;
    }
  }
}

/** When the machine runs out of memory, what can be done again is what should go first. Linux only. */
function volunteerForTheOomKiller(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch (error) {
    process.stderr.write(`cannot set oom_score_adj: ${messageOf(error)}\n`);
  }
}

async function answer(task: ProcessTask): Promise<ProcessMessage> {
  try {
    const duckdb = await loadDuckDb();
    if (task.kind === "verify") return { kind: "verified", problems: await verifyFiles(duckdb, task) };
    return { kind: "merged", files: await mergeFiles(duckdb, task) };
  } catch (error) {
    const damaged = error instanceof DamagedInputs ? [...error.extentIds] : [];
    return { kind: "failed", message: messageOf(error), damaged };
  }
}

function send(message: ProcessMessage): void {
  process.send?.(message);
}

keepFilesPrivate();
volunteerForTheOomKiller();
lowerPriority();
// A terminal's Ctrl-C goes to the whole group; when this process ends is for the server to say.
process.on("SIGINT", () => {});
// The server is gone. An ordinary exit would wait for DuckDB's threads.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.on("message", (task) => {
  void answer(task as ProcessTask).then((message) => {
    // Once it has answered it may be killed. With nothing to add, and without a folder for it, this does nothing.
    flushCompileCache();
    send(message);
  });
});
send({ kind: "ready" });
