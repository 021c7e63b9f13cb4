import type { JSX } from "preact";
import { formatCount, formatShortCount, plural } from "../../base/format.ts";
import { Icon } from "../../components/icons.tsx";
import type { Sample } from "./counts.ts";

/** Says that counts are those of a sample, of which part, and what that makes of the numbers. */
export function SampleNote({ sample }: { sample: Sample }): JSX.Element {
  const { rows_read: read, rows_total: total, extents_read: extents, extents_total: allExtents } = sample;
  return (
    <p class="sample-note" role="status">
      <Icon name="info" />
      <span>
        <strong>Counts from a sample, {shareOf(read, total)} of the rows.</strong> The query was allowed to read{" "}
        {formatCount(read)} of {plural(total, "row")}, in {formatCount(extents)} of {plural(allExtents, "extent")}.
        Counts are not scaled up: the real ones are the same or higher (≥). Shorten the range or add filters to count
        everything.
      </span>
    </p>
  );
}

/** `12%`; what is not all of it is never 100%, and what is something never 0%. Exported for tests. */
export function shareOf(part: number, whole: number): string {
  const percent = whole === 0 ? 0 : Math.round((100 * part) / whole);
  if (part > 0 && percent === 0) return "less than 1%";
  return part < whole && percent === 100 ? "more than 99%" : `${percent}%`;
}

/** What stands before each count of a sample. */
export function markOf(sample: Sample | undefined): string {
  return sample === undefined ? "" : "≥ ";
}

/** A count in few characters; one of a sample is marked, and whole, as it may not be rounded up. */
export function shortCount(count: number, sample: Sample | undefined): string {
  return sample === undefined ? formatShortCount(count) : `${markOf(sample)}${formatCount(count)}`;
}

/** `1,234 rows`, or `≥ 1,234 rows` of a sample. */
export function countedAs(count: number, one: string, sample: Sample | undefined): string {
  return `${markOf(sample)}${plural(count, one)}`;
}
