import { ANONYMOUS } from "../auth/caller.ts";
import type { LogLine, RunningJob } from "./handler.ts";

/** A job for a handler to run, without a fabric: what the handler said of it, and how to stop it. */
export type StandInJob = RunningJob & { snapshots: unknown[]; lines: LogLine[]; stop: AbortController };

export function standInJob(job: Partial<RunningJob> & Pick<RunningJob, "kind" | "payload">): StandInJob {
  const [snapshots, lines, stop]: [unknown[], LogLine[], AbortController] = [[], [], new AbortController()];
  return {
    id: "01900000-0000-7000-8000-000000000001",
    database: undefined,
    owner: ANONYMOUS,
    traceContext: undefined,
    attempt: 1,
    fence: 1,
    holder: "test",
    leaseMs: 30_000,
    credentials: [],
    signal: stop.signal,
    lease: { untilMs: Infinity, onRenewed: () => undefined },
    progress: (snapshot) => void snapshots.push(snapshot),
    log: (level, message) => void lines.push({ level, message }),
    credential: () => Promise.reject(new Error("the job names no credential")),
    ...job,
    snapshots,
    lines,
    stop,
  };
}
