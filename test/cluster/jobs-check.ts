import { readFileSync } from "node:fs";
import type { ListedJob } from "./jobs-client.ts";

/** What the files of the daemons say, against the jobs. */
export type JobCheck = {
  jobs: number;
  /** What handlers did, in all. */
  effects: number;
  /** Those that came to nothing: a later holder did the job again. */
  repeated: number;
  /** Jobs that had more than one holder. */
  takenOver: number;
  problems: string[];
};

type Line = { what: "did" | "told"; id: string; fence: number };

/**
 * - Every job that was acknowledged is there, and done.
 * - What was done last was done under the fence with which the job is done.
 * - Whoever was told that its completion is accepted has that fence: no other completion was.
 */
export function checkJobs(
  jobs: readonly ListedJob[],
  acknowledged: ReadonlySet<string>,
  files: readonly string[],
): JobCheck {
  const problems: string[] = [];
  const byId = new Map(jobs.map((job) => [job.id, job]));
  for (const id of acknowledged) if (!byId.has(id)) problems.push(`job ${id} was acknowledged and is lost`);
  for (const { id, status, error } of jobs) if (status !== "done") problems.push(`job ${id} is ${status}: ${error}`);
  const lines = files.flatMap(linesOf);
  const done = new Set<string>();
  let effects = 0;
  for (const { what, id, fence } of lines) {
    const job = byId.get(id);
    if (what === "did") effects++;
    if (job === undefined) problems.push(`job ${id} was run and is unknown`);
    else if (what === "did" && fence > job.fence)
      problems.push(`job ${id} ran with fence ${fence}, beyond ${job.fence}`);
    else if (what === "told" && fence !== job.fence) {
      problems.push(`job ${id}: the completion with fence ${fence} was accepted, and that with ${job.fence}`);
    }
    if (what === "did" && fence === job?.fence) {
      if (done.has(id)) problems.push(`job ${id} ran twice with fence ${fence}`);
      done.add(id);
    }
  }
  for (const { id, fence } of jobs) {
    if (!done.has(id)) problems.push(`job ${id} is done with fence ${fence}, under which nothing was done`);
  }
  const takenOver = jobs.filter(({ fence }) => fence > 1).length;
  return { jobs: jobs.length, effects, repeated: effects - done.size, takenOver, problems };
}

/** A line that a kill cut short was never said. */
function linesOf(file: string): Line[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Line);
}
