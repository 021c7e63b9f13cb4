import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { lazyPart, usePart } from "../base/lazy-part.ts";
import { useIsDark } from "../base/theme.ts";
import { PartFailed } from "../components/part-failed.tsx";
import { Spinner } from "../components/spinner.tsx";
import type { ChartHandle, ChartSettings } from "./plot.ts";

export type ChartProps = Omit<ChartSettings, "parent" | "onRange"> & {
  /** What the chart shows, in words, for those who do not see it. */
  label: string;
  heightPx?: number;
  /** Is told of a part of the x axis that was drawn over with the mouse; seconds, where the axis is one of time. */
  onRange?: (from: number, to: number) => void;
};

const part = lazyPart(() => import("./plot.ts"));

/**
 * Lines, areas or bars over one axis, by uPlot. It has the width of its place, and the colours of the theme. `series` and
 * `data` must be the same values for as long as nothing has changed.
 */
export function Chart({ label, heightPx = 180, onRange, ...settings }: ChartProps): JSX.Element {
  const { data, series } = settings;
  const { part: library, hasFailed } = usePart(part);
  const isDark = useIsDark();
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ChartHandle | undefined>(undefined);
  const latest = useRef({ settings, onRange });
  latest.current = { settings, onRange };
  const { isTime, look, unit, zone, isStacked } = settings;
  useEffect(() => {
    const { current: parent } = place;
    if (library === undefined || parent === null) return;
    const made = library.createChart({
      ...latest.current.settings,
      parent,
      heightPx,
      ...(latest.current.onRange !== undefined && {
        onRange: (from: number, to: number) => latest.current.onRange?.(from, to),
      }),
    });
    chart.current = made;
    const watcher = new ResizeObserver(() => made.resize(parent.clientWidth));
    watcher.observe(parent);
    return () => {
      watcher.disconnect();
      chart.current = undefined;
      made.destroy();
    };
    // Colours are drawn, not styled: another theme is another chart.
  }, [library, isDark, series, isTime, look, unit, zone, isStacked, heightPx]);
  useEffect(() => chart.current?.setData(data), [data]);
  if (hasFailed) return <PartFailed />;
  return (
    <div class="chart" role="img" aria-label={label} ref={place} style={{ minHeight: `${heightPx}px` }}>
      {library === undefined && <Spinner label="Loading the chart…" />}
    </div>
  );
}
