import type { Additions, PlannedExtent } from "../../catalog/catalog.ts";
import { atPlace, placeOf } from "../scan/numbered-rows.ts";
import { afterSnapshot, type TailPosition } from "./position.ts";

/** What of a table one scan reads for its tails. */
export type Slice = {
  extents: readonly PlannedExtent[];
  /** The place (`numbered-rows.ts`) from which on rows are wanted. */
  from: number;
  /** Where tails are that have seen all of it. */
  end: TailPosition;
  /** Where tails are that have seen it up to the row at that place, and with it. */
  after(place: number): TailPosition;
};

/** What a slice has at most, unless its first extent alone has more. */
export type SliceLimits = { extents: number; rows: number; sizeBytes: number };

/** An extent, and how many rows of its snapshot come before it. */
type Added = { extent: PlannedExtent; before: number };

/** The first extents of those that commits brought since the position's snapshot that have rows after the position. */
export function sliceOf({ extents, upTo }: Additions, position: TailPosition, limits: SliceLimits): Slice {
  const open = addedSince(extents).filter((added) => hasRowsAfter(added, position));
  const taken = open.slice(0, countWithin(open, limits));
  const [first] = taken;
  const last = taken.at(-1);
  const skipped = first?.extent.beginSnapshot === position.snapshot ? Math.max(0, position.row - first.before) : 0;
  return {
    extents: taken.map(({ extent }) => extent),
    from: placeOf(0, skipped),
    end: taken.length === open.length || last === undefined ? afterSnapshot(upTo) : endOf(last),
    after(place) {
      const { extent: index, row } = atPlace(place);
      const added = taken[index];
      if (added === undefined) throw new Error(`place ${place} is in no extent of the slice`);
      return { snapshot: added.extent.beginSnapshot, row: added.before + row + 1 };
    },
  };
}

function hasRowsAfter({ extent, before }: Added, { snapshot, row }: TailPosition): boolean {
  const { beginSnapshot, rows } = extent;
  return beginSnapshot > snapshot || (beginSnapshot === snapshot && before + rows > row);
}

function addedSince(extents: readonly PlannedExtent[]): Added[] {
  let [snapshot, before] = [-1, 0];
  return extents.map((extent) => {
    if (extent.beginSnapshot !== snapshot) [snapshot, before] = [extent.beginSnapshot, 0];
    const added = { extent, before };
    before += extent.rows;
    return added;
  });
}

function countWithin(open: readonly Added[], limits: SliceLimits): number {
  let [rows, sizeBytes] = [0, 0];
  const over = open.findIndex(({ extent }, i) => {
    rows += extent.rows;
    sizeBytes += extent.sizeBytes;
    return i > 0 && (i >= limits.extents || rows > limits.rows || sizeBytes > limits.sizeBytes);
  });
  return over === -1 ? open.length : over;
}

function endOf({ extent, before }: Added): TailPosition {
  return { snapshot: extent.beginSnapshot, row: before + extent.rows };
}
