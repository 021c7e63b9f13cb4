import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { isolateFile } from "../../src/core/isolate.ts";
import type { S3Connection } from "../../src/io/objectstore/s3/client.ts";
import { systemClock } from "../../src/core/clock.ts";
import { cpuSecondsOf, residentBytesOf } from "../support/process-stats.ts";

/** Where the data is: a home that no server uses, or a cluster's catalog and store. */
export type SettlePlace = { kind: "home"; home: string } | { kind: "cluster"; catalogUrl: string; store: S3Connection };

/** The place, a folder for the merges, and the table of which the answer tells. */
export type SettleJob = { place: SettlePlace; tempDir: string; table: string };

/** What the child is told, and says. It runs when it is told to, so that opening is not counted. */
export type ToSettler = ({ kind: "open" } & SettleJob) | { kind: "run" };
export type FromSettler = { kind: "open" } | ({ kind: "done" } & SettledBytes);

export type SettledBytes = {
  /** Of the table's live extents. */
  sizeBytes: number;
  /** Of all extents that merges have written. */
  writtenBytes: number;
};

const CHILD = isolateFile(new URL("./settle-child.ts", import.meta.url));

/** How often the memory of the merging processes is looked at. */
const LOOK_MS = 50;

/**
 * Does what compaction does to days that have been quiet for long, so that all their rows are in Parquet; a benchmark
 * cannot wait until they are. Resolves to the CPU seconds that it took, the most resident memory that it had, in both the
 * merging processes included, and to bytes.
 */
export async function settle(job: SettleJob): Promise<SettledBytes & { cpuSeconds: number; peakBytes: number }> {
  const child = fork(CHILD, { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit");
  try {
    await told(child, { kind: "open", ...job });
    const pid = Number(child.pid);
    const before = cpuSecondsOf(pid);
    let peakBytes = 0;
    const look = () => (peakBytes = Math.max(peakBytes, residentBytesOf(pid)));
    const looking = systemClock.every(LOOK_MS, look);
    const done = await told(child, { kind: "run" }).finally(() => looking.cancel());
    if (done.kind !== "done") throw new Error("the settling process did not run");
    look();
    const { sizeBytes, writtenBytes } = done;
    return { cpuSeconds: cpuSecondsOf(pid) - before, peakBytes, sizeBytes, writtenBytes };
  } finally {
    if (child.connected) child.disconnect();
    await ended;
  }
}

function told(child: ChildProcess, message: ToSettler): Promise<FromSettler> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error("the settling process failed"));
    child.once("disconnect", fail);
    child.once("message", (answer) => {
      child.off("disconnect", fail);
      resolve(answer as FromSettler);
    });
    child.send(message);
  });
}
