import type { RecordRow, RecordStore } from "../db/records.ts";
import { isStorableText } from "./invariants.ts";

/**
 * Input positions: how far an input that can be read again (a partition of a topic, a dropped file) is in the catalog.
 *
 * A position moves in the transaction that commits the rows read up to it, and only from where the reader believes it to
 * be. So rows and position never differ, whatever crashes, and a reader that lost its input without noticing cannot
 * store anything. What a position says is the input's own affair; the catalog compares texts.
 */
export type SourceStep = {
  /** The source, unique among all inputs: at most 1,024 bytes, as `kafka:orders:3`. */
  name: string;
  /** Where the position is; undefined where there is none yet. */
  from?: string;
  /** Where it is once the rows are committed: at most 64 KiB. */
  to: string;
};

/** Where a source was when a commit was judged; undefined where it had no position. */
export type SourcePosition = { name: string; position: string | undefined };

export type InputPosition = {
  source: string;
  position: string;
  /** The snapshot that moved it there, and when that was. */
  snapshotId: number;
  movedAtMs: number;
};

const SOURCE_BYTES = 1_024;
const POSITION_BYTES = 64 * 1024;

/** What a caller of `Catalog.commit` must have seen to: throws for a step that cannot be stored. */
export function checkSteps(steps: readonly SourceStep[]): void {
  for (const { name, from, to } of steps) {
    checkText("source", name, SOURCE_BYTES);
    if (from !== undefined) checkText("position", from, POSITION_BYTES);
    checkText("position", to, POSITION_BYTES);
  }
}

function checkText(what: string, text: string, maxBytes: number): void {
  const isFine = isStorableText(text) && Buffer.byteLength(text) <= maxBytes;
  if (!isFine) throw new Error(`the ${what} ${JSON.stringify(text.slice(0, 200))} of an input cannot be stored`);
}

/**
 * Which steps can be taken one after the other from these positions, a flag for each. A step that cannot is passed over,
 * and so are those that rest on it.
 */
export function stepsThatFit(steps: readonly SourceStep[], positions: readonly SourcePosition[]): boolean[] {
  const current = new Map(positions.map(({ name, position }) => [name, position]));
  return steps.map(({ name, from, to }) => {
    const fits = current.get(name) === from;
    if (fits) current.set(name, to);
    return fits;
  });
}

const FIELDS = "SELECT source, position, snapshot_id, moved_at_ms FROM input_positions";

export async function readInputPosition(
  records: Pick<RecordStore, "rows">,
  source: string,
): Promise<InputPosition | undefined> {
  if (!isStorableText(source)) return undefined;
  const [row] = await records.rows(`${FIELDS} WHERE source = ?`, [source]);
  return row === undefined ? undefined : toInputPosition(row);
}

/** Positions of the sources whose names begin so, by name, from the first after `after` on; at most `limit`. */
export async function listInputPositions(
  records: Pick<RecordStore, "rows">,
  { prefix = "", after = "", limit }: { prefix?: string; after?: string; limit: number },
): Promise<InputPosition[]> {
  const sql = `${FIELDS} WHERE source >= ? AND source < ? AND source > ? ORDER BY source LIMIT ?`;
  const rows = await records.rows(sql, [prefix, `${prefix}\u{10FFFF}`, after, limit]);
  return rows.map(toInputPosition);
}

/** Forgets a position: the input begins anew. False when there was none. */
export async function resetInputPosition(records: Pick<RecordStore, "write">, source: string): Promise<boolean> {
  if (!isStorableText(source)) return false;
  const sql = "DELETE FROM input_positions WHERE source = ? RETURNING source";
  return (await records.write({ sql, values: [source] })).length > 0;
}

function toInputPosition(row: RecordRow): InputPosition {
  return {
    source: String(row["source"]),
    position: String(row["position"]),
    snapshotId: Number(row["snapshot_id"]),
    movedAtMs: Number(row["moved_at_ms"]),
  };
}
