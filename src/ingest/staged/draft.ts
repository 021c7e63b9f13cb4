import { foldName } from "../../core/names.ts";
import { tlmRowsAsNdjson } from "../../format/tlm-rows.ts";
import { sameColumnType, type ColumnSpec } from "../../format/types.ts";
import { readingOf } from "../ingest.ts";
import type { SealedExtent } from "../seal.ts";
import type { ListedObject } from "./listing.ts";
import { decompressBody, type StagedExtent, type StagedObject, type StagedRequest } from "./object.ts";
import type { AcknowledgedBody } from "./seal-staged.ts";

/** A staged object on its way into the catalog. */
export type Draft = {
  listed: ListedObject;
  /** The object as it was read. */
  bytes: Uint8Array;
  object: StagedObject;
  /** Keys of it that somebody else has committed: their rows are left out. */
  taken: ReadonlySet<string>;
  /**
   * Columns that the catalog was asked to widen for its fractions, by folded name: one that is still too narrow stays so.
   * Another one may come with the next attempt, when a draft before this has brought it.
   */
  askedToWiden?: readonly string[];
};

/** What a draft comes to under some columns: extents to be committed as they are, and bodies to be sealed before. */
export type Content = { extents: SealedExtent[]; bodies: AcknowledgedBody[] };

/** The requests that are to be committed. */
export function requestsOf({ object, taken }: Draft): StagedRequest[] {
  return object.requests.filter(({ key }) => key === undefined || !taken.has(key));
}

/** Whether any of it has to be sealed under columns that are not certain. */
export async function contentOf(draft: Draft, columns: readonly ColumnSpec[]): Promise<Content> {
  const content: Content = { extents: [], bodies: [] };
  let from = 0;
  for (const extent of draft.object.extents) {
    const keep = rowsKept(draft, from, extent.rows);
    if (keep === undefined && hasColumns(columns, extent.columns)) content.extents.push(withoutColumns(extent));
    else content.bodies.push(...rowsAsBody(extent, keep ?? (() => true)));
    from += extent.rows;
  }
  for (const { place, evolve, inferTypes = false, arrivedAtNs, rows } of requestsOf(draft)) {
    if (place.kind === "rows") continue;
    const bytes = await decompressBody(place.body);
    content.bodies.push({ bytes, ...readingOf(place), evolve, inferTypes, arrivedAtNs, rows });
  }
  return content;
}

/** Which rows of the extent that starts at row `from` of all are kept; undefined when all are. */
function rowsKept({ object, taken }: Draft, from: number, rows: number): ((row: number) => boolean) | undefined {
  const left = object.requests.flatMap(({ key, place, rows: length }) => {
    if (place.kind === "body" || key === undefined || !taken.has(key)) return [];
    const range = { start: place.from - from, end: place.from - from + length };
    return range.end > 0 && range.start < rows ? [range] : [];
  });
  if (left.length === 0) return undefined;
  return (row) => !left.some(({ start, end }) => row >= start && row < end);
}

/** Always so while the catalog is the one that the node knew: columns never vanish and never change their type. */
function hasColumns(columns: readonly ColumnSpec[], wanted: readonly ColumnSpec[]): boolean {
  const byName = new Map(columns.map((column) => [foldName(column.name), column.type]));
  return wanted.every(({ name, type }) => {
    const present = byName.get(foldName(name));
    return present !== undefined && sameColumnType(present, type);
  });
}

function withoutColumns(extent: StagedExtent): SealedExtent {
  const { columns: _columns, ...sealed } = extent;
  return sealed;
}

/** Rows of an extent as a body, to be sealed anew. */
function rowsAsBody(extent: StagedExtent, keep: (row: number) => boolean): AcknowledgedBody[] {
  let rows = 0;
  for (let row = 0; row < extent.rows; row++) if (keep(row)) rows++;
  if (rows === 0) return [];
  // Its own buffer: Arrow reads words, which must be aligned.
  const bytes = tlmRowsAsNdjson(Uint8Array.from(extent.bytes), keep);
  return [{ bytes, evolve: true, arrivedAtNs: extent.minAtNs, rows }];
}
