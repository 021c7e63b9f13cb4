import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../../base/format.ts";
import type { Zone } from "../../time/calendar.ts";
import { formatTimestamp, type Moments } from "../../time/time-range.ts";
import type { HistogramCounts, Sample } from "./counts.ts";
import { markOf } from "./sample-note.tsx";

/** The rows of one value in each bar; `key` is one text for each series, which titles may not be. */
export type BarSeries = { key: string; title: string; values: readonly number[]; sum: number };

type HistogramTableProps = {
  histogram: HistogramCounts;
  series: readonly BarSeries[];
  moments: Moments;
  sample: Sample | undefined;
  zone: Zone;
  onRange: (moments: Moments) => void;
};

/** The bars as numbers, for who does not see them; a bar becomes the range without being drawn over. */
export function HistogramTable(props: HistogramTableProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="histogram-summary">Counts as a table</summary>
      {isOpen && <Bars {...props} />}
    </details>
  );
}

function Bars({ histogram, series, moments, sample, zone, onRange }: HistogramTableProps): JSX.Element {
  const { buckets, by } = histogram;
  const told = by === null ? [] : series;
  const mark = markOf(sample);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <div class="histogram-table" role="region" aria-label="Rows of each bar" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">Rows</th>
            {told.map(({ key, title }) => (
              <th key={key} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, i) => (
            <tr key={bucket.from}>
              <th scope="row">
                <button
                  type="button"
                  class="histogram-from"
                  title="Make it the range"
                  onClick={() => onRange(momentsOfBar(buckets, i, moments))}
                >
                  <time dateTime={bucket.from}>{formatTimestamp(bucket.from, zone).replace(/\.?0+$/, "")}</time>
                </button>
              </th>
              <td>{mark + formatCount(bucket.rows)}</td>
              {told.map(({ key, values }) => (
                <td key={key}>{mark + formatCount(values[i] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Bucket = HistogramCounts["buckets"][number];

/** A bar at an end of the range has rows of the range only. Exported for tests. */
export function momentsOfBar(buckets: readonly Bucket[], i: number, { fromMs, toMs }: Moments): Moments {
  const from = Math.max(Date.parse(buckets[i]?.from ?? ""), fromMs);
  const next = buckets[i + 1];
  const to = next === undefined ? toMs : Math.min(Date.parse(next.from), toMs);
  return { fromMs: from, toMs: Math.max(to, from + 1) };
}
