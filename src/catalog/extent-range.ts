import type { ExtentSummary, TimeRange } from "./catalog.ts";

/** The times between which all rows of these extents are. */
export function timeRangeOf(extents: readonly Pick<ExtentSummary, "minAtNs" | "maxAtNs">[]): Required<TimeRange> {
  return {
    minNs: extents.reduce((least, { minAtNs }) => (minAtNs < least ? minAtNs : least), extents[0]?.minAtNs ?? 0n),
    maxNs: extents.reduce((most, { maxAtNs }) => (maxAtNs > most ? maxAtNs : most), extents[0]?.maxAtNs ?? 0n),
  };
}
