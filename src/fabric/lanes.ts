import { foldName } from "../core/names.ts";

/**
 * Queued jobs wait in lanes. All jobs of a lane are the same to whoever claims: one kind, one database, one owner, one
 * set of workers that may have them, one priority. So a claim looks at the heads of lanes and never walks past jobs that are
 * not for it, and no lane waits behind another. Turns are taken among groups of lanes, those of one kind and database:
 * neither a million jobs of one database nor its high priorities keep those of another waiting.
 */
export type Lane = {
  kind: string;
  database: string | undefined;
  workerId: string | undefined;
  selector: Labels | undefined;
  priority: number;
  /** Whose jobs: see `auth/owner.ts`. */
  owner: string;
};

/** Names with values, as an operator gives them to workers. */
export type Labels = Readonly<Record<string, string>>;

/** Who asks for jobs. */
export type Claimant = { kinds: ReadonlySet<string>; labels: Labels; workerId: string | undefined; jobsOf: JobsOf };

/** Whose jobs a claimant may have: everybody's, or those of one owner and, of the kinds it is admitted for, all. */
export type JobsOf = "everybody" | { owner: string; admitted: (kind: string) => boolean };

/** The same text for the same lane. */
export function laneKey({ kind, database, workerId, selector, priority, owner }: Lane): string {
  const labels = selector === undefined ? null : Object.entries(selector).toSorted(([a], [b]) => (a < b ? -1 : 1));
  // The owner comes last: a transfer of ownership changes the end of the text (`auth/owned-tables.ts`).
  const name = database === undefined ? null : foldName(database);
  return JSON.stringify([kind, name, workerId ?? null, labels, priority, owner]);
}

export function parseLane(key: string): Lane {
  const [kind, database, workerId, labels, priority, owner] = JSON.parse(key) as [
    string,
    string | null,
    string | null,
    [string, string][] | null,
    number,
    string,
  ];
  return {
    kind,
    database: database ?? undefined,
    workerId: workerId ?? undefined,
    selector: labels === null ? undefined : Object.fromEntries(labels),
    priority,
    owner,
  };
}

/** Among which turns are taken. */
export function groupOf({ kind, database }: Lane): string {
  return JSON.stringify([kind, database ?? null]);
}

export function mayClaim({ kinds, labels, workerId, jobsOf }: Claimant, lane: Lane): boolean {
  if (!kinds.has(lane.kind)) return false;
  if (jobsOf !== "everybody" && lane.owner !== jobsOf.owner && !jobsOf.admitted(lane.kind)) return false;
  if (lane.workerId !== undefined && lane.workerId !== workerId) return false;
  return Object.entries(lane.selector ?? {}).every(([name, value]) => labels[name] === value);
}
