import { cutWithin } from "../../../core/cut-text.ts";
import { z } from "zod";
import { PIPELINE_LIMITS } from "../limits.ts";
import { fingerprintOf } from "./fingerprint.ts";
import type { Observation } from "./observation.ts";
import { added, latest, tallyOf, tallySchema } from "./tally.ts";

/** The last commits and files of each repository, the one that was seen last at the end. */
export const recentWork = z.array(
  z.tuple([z.string(), z.object({ commits: z.array(z.string()), files: z.array(z.string()) })]),
);
export type RecentWork = z.output<typeof recentWork>;

export const failureSchema = z.object({
  fingerprint: z.string(),
  repository: z.string(),
  excerpt: z.string(),
  tally: tallySchema,
});
export type Failure = z.output<typeof failureSchema>;

/** Failures of rows as they come, by what is the same, with the work that came before them. */
export class Gathering {
  rows = 0;
  failures = 0;
  readonly #recent: Map<string, { commits: string[]; files: string[] }>;
  readonly #byFingerprint = new Map<string, Failure>();

  constructor(recent: RecentWork) {
    this.#recent = new Map(recent);
  }

  get found(): readonly Failure[] {
    return [...this.#byFingerprint.values()];
  }

  get recent(): RecentWork {
    return [...this.#recent].slice(-PIPELINE_LIMITS.repositories);
  }

  add(row: Observation): void {
    this.rows++;
    this.#noteWork(row);
    const { failure, repository } = row;
    if (failure === undefined) return;
    this.failures++;
    const fingerprint = fingerprintOf(repository, failure.message);
    const work = this.#recent.get(repository) ?? { commits: [], files: [] };
    // What the row names itself says more than what came before it.
    const commits = row.commits.length > 0 ? row.commits : work.commits.slice(-1);
    const files = row.files.length > 0 ? row.files : work.files;
    const before = this.#byFingerprint.get(fingerprint);
    const excerpt = before?.excerpt ?? cutWithin(failure.message, PIPELINE_LIMITS.excerptChars);
    const tally = added(before?.tally, tallyOf({ at: row.at, commits, files }));
    this.#byFingerprint.set(fingerprint, { fingerprint, repository, excerpt, tally });
  }

  #noteWork({ repository, commits, files }: Observation): void {
    if (commits.length === 0 && files.length === 0) return;
    const before = this.#recent.get(repository) ?? { commits: [], files: [] };
    this.#recent.delete(repository);
    this.#recent.set(repository, {
      commits: latest(before.commits, commits, PIPELINE_LIMITS.commits),
      files: latest(before.files, files, PIPELINE_LIMITS.files),
    });
  }
}
