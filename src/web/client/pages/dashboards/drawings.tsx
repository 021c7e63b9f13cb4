import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { severityOf } from "../../base/log-fields.ts";
import { Left } from "./panel-note.tsx";
import {
  barsOf,
  heatMapOf,
  logLinesOf,
  slicesOf,
  statsOf,
  type Calculation,
  type LogLine,
  type Rows,
  type Slice,
} from "./rows.ts";

type Format = (value: number) => string;
type DrawingProps = { name: string; rows: Rows; format: Format };

const NOTHING = <p class="panel-note">There is nothing to draw: the rows have no column of numbers.</p>;

export function StatsView(props: { all: readonly Rows[]; calculation: Calculation; format: Format }): JSX.Element {
  const { all, calculation, format } = props;
  const stats = useMemo(
    () => all.flatMap((rows, query) => statsOf(rows, calculation).map((stat, i) => ({ stat, key: `${query}.${i}` }))),
    [all, calculation],
  );
  if (stats.length === 0) return NOTHING;
  return (
    <dl class="stats">
      {stats.map(({ key, stat: { title, value, trend } }) => (
        <div key={key} class="stat">
          <dt>{title}</dt>
          <dd>{value === null ? "–" : format(value)}</dd>
          {trend.length > 1 && <Trend values={trend} />}
        </div>
      ))}
    </dl>
  );
}

const TREND_POINTS = 120;

function Trend({ values }: { values: readonly number[] }): JSX.Element {
  const step = Math.max(1, Math.ceil(values.length / TREND_POINTS));
  const shown = values.filter((_value, i) => i % step === 0);
  const least = shown.reduce((a, b) => Math.min(a, b));
  const span = shown.reduce((a, b) => Math.max(a, b)) - least || 1;
  const points = shown.map(
    (value, i) => `${(i / Math.max(1, shown.length - 1)) * 100},${28 - ((value - least) / span) * 26}`,
  );
  return (
    <svg class="trend" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <polyline points={points.join(" ")} vector-effect="non-scaling-stroke" />
    </svg>
  );
}

const MOST_BARS = 100;

export function BarsView({ name, rows, format }: DrawingProps): JSX.Element {
  const { bars, left } = useMemo(() => barsOf(rows, MOST_BARS), [rows]);
  if (bars.length === 0) return NOTHING;
  const most = bars.reduce((all, { value }) => Math.max(all, Math.abs(value)), 0) || 1;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <div class="panel-scroll" tabIndex={0} role="region" aria-label={`${name}: bars`}>
      <ul class="bars">
        {bars.map(({ key, label, value }) => (
          <li key={key}>
            <span class="bar-label" title={label}>
              {label}
            </span>
            <span class="bar-track">
              <span
                class={value < 0 ? "bar-fill bar-negative" : "bar-fill"}
                style={{ width: `${(Math.abs(value) / most) * 100}%` }}
              />
            </span>
            <span class="bar-value">{format(value)}</span>
          </li>
        ))}
      </ul>
      <Left count={left} what="bars" />
    </div>
  );
}

export function PieView({ name, rows, format }: DrawingProps): JSX.Element {
  const { slices, left } = useMemo(() => slicesOf(rows), [rows]);
  if (slices.length === 0) return NOTHING;
  let from = 0;
  const arcs = slices.map((slice, i) => {
    const start = from;
    from += slice.share;
    return { ...slice, path: arcPath(start, from), colour: colourOf(i), key: `${i} ${slice.label}` };
  });
  return (
    <div class="pie">
      <svg viewBox="-1.05 -1.05 2.1 2.1" role="img" aria-label={`${name}: ${slices.map(inWords).join(", ")}`}>
        {arcs.map(({ key, path, colour }) => (
          <path key={key} d={path} style={{ fill: colour }} />
        ))}
      </svg>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard */}
      <div class="panel-scroll" tabIndex={0} role="region" aria-label={`${name}: parts`}>
        <ul class="pie-legend">
          {arcs.map(({ key, label, value, share, colour }) => (
            <li key={key}>
              <span class="pie-colour" style={{ background: colour }} />
              <span class="bar-label" title={label}>
                {label}
              </span>
              <span class="bar-value">
                {format(value)} · {percent(share)}
              </span>
            </li>
          ))}
        </ul>
        {left > 0 && <p class="panel-more">{left} rows with zero or negative values are left out.</p>}
      </div>
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function inWords({ label, share }: Slice): string {
  return `${label} ${percent(share)}`;
}

/** A ninth colour is the first one again, so the last part of nine stands beside another one. */
function colourOf(index: number): string {
  return `var(--series-${(index % 8) + 1})`;
}

/** From one part of the circle to another, clockwise from the top. A whole circle is drawn as two halves. */
function arcPath(from: number, to: number): string {
  if (to - from > 0.9999) return "M0-1A1 1 0 1 1 0 1A1 1 0 1 1 0-1Z";
  const [x1, y1] = pointAt(from);
  const [x2, y2] = pointAt(to);
  return `M0 0L${x1} ${y1}A1 1 0 ${to - from > 0.5 ? 1 : 0} 1 ${x2} ${y2}Z`;
}

function pointAt(share: number): [string, string] {
  const angle = share * 2 * Math.PI;
  return [Math.sin(angle).toFixed(4), (-Math.cos(angle)).toFixed(4)];
}

export function HeatMapView({ name, rows, format }: DrawingProps): JSX.Element {
  const map = useMemo(() => heatMapOf(rows), [rows]);
  if (map === undefined) {
    return <p class="panel-note">There is nothing to draw: a heat map needs two columns, and one of numbers.</p>;
  }
  const { xs, ys, cells, most, isCut } = map;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <div class="panel-scroll" tabIndex={0} role="region" aria-label={`${name}: heat map`}>
      <table class="heat">
        <tbody>
          {ys.map((y, line) => (
            <tr key={y}>
              <th scope="row">{y}</th>
              {xs.map((x, column) => (
                <HeatCell key={x} x={x} y={y} value={cells[line]?.[column]} most={most} format={format} />
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td />
            <td colSpan={xs.length}>
              <span class="heat-ends">
                <span>{xs[0]}</span>
                <span>{xs.at(-1)}</span>
              </span>
            </td>
          </tr>
        </tfoot>
      </table>
      {isCut && <p class="panel-more">Not all of it: the first columns and lines.</p>}
    </div>
  );
}

type HeatCellProps = { x: string; y: string; value: number | undefined; most: number; format: Format };

function HeatCell({ x, y, value, most, format }: HeatCellProps): JSX.Element {
  const strength = value === undefined || most === 0 ? 0 : Math.max(0, value / most);
  const colour = `color-mix(in srgb, var(--series-1) ${Math.round(8 + strength * 92)}%, transparent)`;
  const text = value === undefined ? "none" : format(value);
  return (
    <td title={`${x}, ${y}: ${text}`} {...(value !== undefined && { style: { background: colour } })}>
      <span class="unseen">{text}</span>
    </td>
  );
}

const MOST_LINES = 1_000;

export function LogsView({ name, rows }: Omit<DrawingProps, "format">): JSX.Element {
  const lines = useMemo(() => logLinesOf(rows, MOST_LINES), [rows]);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <div class="panel-scroll" tabIndex={0} role="region" aria-label={`${name}: lines`}>
      <ol class="log-lines">
        {lines.map((line) => (
          <LogLineView key={line.key} line={line} />
        ))}
      </ol>
      {(rows.isTruncated || rows.count > MOST_LINES) && <p class="panel-more">The first {lines.length} lines.</p>}
    </div>
  );
}

function LogLineView({ line: { at, level, message, fields } }: { line: LogLine }): JSX.Element {
  return (
    <li>
      {at !== "" && <time dateTime={at}>{at}</time>}
      {level !== "" && <span class={`log-level log-level-${severityOf(level)}`}>{level}</span>}
      <span class="log-message">{message}</span>
      {fields.map(([field, text]) => (
        <span key={field} class="log-field">
          {field}={text}
        </span>
      ))}
    </li>
  );
}
