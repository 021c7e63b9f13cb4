import { foldName } from "../core/names.ts";

/**
 * Queued jobs wait in lanes. All jobs of a lane are the same to whoever claims: one kind, one database, one set of
 * workers that may have them, one priority. So a claim looks at the heads of lanes and never walks past jobs that are
 * not for it, and no lane waits behind another. Turns are taken among groups of lanes, those of one kind and database:
 * neither a million jobs of one database nor its high priorities keep those of another waiting.
 */
export type Lane = {
  kind: string;
  database: string | undefined;
  workerId: string | undefined;
  selector: Labels | undefined;
  priority: number;
};

/** Names with values, as an operator gives them to workers. */
export type Labels = Readonly<Record<string, string>>;

/** Who asks for jobs. */
export type Claimant = { kinds: ReadonlySet<string>; labels: Labels; workerId: string | undefined };

/** The same text for the same lane. */
export function laneKey({ kind, database, workerId, selector, priority }: Lane): string {
  const labels = selector === undefined ? null : Object.entries(selector).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([kind, database === undefined ? null : foldName(database), workerId ?? null, labels, priority]);
}

export function parseLane(key: string): Lane {
  const [kind, database, workerId, labels, priority] = JSON.parse(key) as [
    string,
    string | null,
    string | null,
    [string, string][] | null,
    number,
  ];
  return {
    kind,
    database: database ?? undefined,
    workerId: workerId ?? undefined,
    selector: labels === null ? undefined : Object.fromEntries(labels),
    priority,
  };
}

/** Among which turns are taken. */
export function groupOf({ kind, database }: Lane): string {
  return JSON.stringify([kind, database ?? null]);
}

export function mayClaim({ kinds, labels, workerId }: Claimant, lane: Lane): boolean {
  if (!kinds.has(lane.kind)) return false;
  if (lane.workerId !== undefined && lane.workerId !== workerId) return false;
  return Object.entries(lane.selector ?? {}).every(([name, value]) => labels[name] === value);
}
