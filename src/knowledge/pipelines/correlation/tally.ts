import { z } from "zod";
import { PIPELINE_LIMITS } from "../limits.ts";
import type { Observation } from "./observation.ts";

/** How often a failure was seen, and what had been committed and touched before. */
export const tallySchema = z.object({
  occurrences: z.int().min(1),
  first_seen: z.string(),
  last_seen: z.string(),
  /** The latest ones last. */
  commits: z.array(z.string()),
  files: z.array(z.string()),
});
export type Tally = z.output<typeof tallySchema>;

export function tallyOf({ at, commits, files }: Pick<Observation, "at" | "commits" | "files">): Tally {
  return { occurrences: 1, first_seen: at, last_seen: at, commits, files };
}

/** Rows arrive in any order of their times. */
export function added(before: Tally | undefined, more: Tally): Tally {
  if (before === undefined) return more;
  return {
    occurrences: Math.min(before.occurrences + more.occurrences, PIPELINE_LIMITS.occurrences),
    first_seen: before.first_seen < more.first_seen ? before.first_seen : more.first_seen,
    last_seen: before.last_seen > more.last_seen ? before.last_seen : more.last_seen,
    commits: latest(before.commits, more.commits, PIPELINE_LIMITS.commits),
    files: latest(before.files, more.files, PIPELINE_LIMITS.files),
  };
}

/** Each once; what comes again is the latest. */
export function latest(before: readonly string[], more: readonly string[], most: number): string[] {
  const all = new Set(before);
  for (const each of more) {
    all.delete(each);
    all.add(each);
  }
  return [...all].slice(-most);
}
