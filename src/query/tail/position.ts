/**
 * A place in what commits brought to a table: the rows of earlier snapshots come before it, and the first `row` rows of
 * this one. Written `<snapshot>.<row>`, it is the `id` of the event that has the last row before it.
 *
 * The rows of a snapshot have one order for ever: that of its extents in the catalog, and within each that of its file.
 * Both stay after a merge, for the rows of a snapshot are read in the extents that its commit brought. So a position means
 * the same to every node, whatever was merged since and whatever filter the rows pass.
 */
export type TailPosition = { snapshot: number; row: number };

/** Digits that a double holds exactly. */
const PATTERN = /^(\d{1,15})\.(\d{1,15})$/;

export function formatPosition({ snapshot, row }: TailPosition): string {
  return `${snapshot}.${row}`;
}

/** Undefined for a text that is no position. */
export function parsePosition(text: string): TailPosition | undefined {
  const [, snapshot, row] = PATTERN.exec(text) ?? [];
  return snapshot === undefined || row === undefined ? undefined : { snapshot: Number(snapshot), row: Number(row) };
}

/** The place before all that comes after a snapshot. */
export function afterSnapshot(snapshot: number): TailPosition {
  return { snapshot: snapshot + 1, row: 0 };
}
