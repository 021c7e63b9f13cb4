/**
 * How often the committer lists what is staged. Each time is a LIST request, which object stores charge for, also when
 * nothing is there: at four a second 10 million a month, at one in two seconds 1.3 million.
 *
 * While rows come, and for 10 s after, it is `COMMIT_POLL_MS`, whatever the load. Rows that come after a quiet time wait
 * for as long as the last interval was, at most: 0.5 s after 10 s of quiet, 1 s after 20 s, 2 s after 10 minutes. Only
 * the first ones do; the listing that finds them brings `COMMIT_POLL_MS` back.
 */
export const COMMIT_POLL_MS = 250;

/** Intervals from so long a quiet time on, the shortest first. */
const IDLE_POLLS = [
  { idleMs: 0, pollMs: COMMIT_POLL_MS },
  { idleMs: 10_000, pollMs: 500 },
  { idleMs: 20_000, pollMs: 1_000 },
  { idleMs: 600_000, pollMs: 2_000 },
];

/** Until the next listing, when nothing has been found for `idleMs`. */
export function idleCommitPollMs(idleMs: number): number {
  return IDLE_POLLS.findLast((poll) => idleMs >= poll.idleMs)?.pollMs ?? COMMIT_POLL_MS;
}
