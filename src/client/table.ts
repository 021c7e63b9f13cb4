import { cutToWidth, displayWidth, pad, visible, type Style } from "./text.ts";

export type Cell = { text: string; align: "left" | "right" };

const GAP = "  ";
/** No column is squeezed below this, rather columns are left out at the right. */
const MIN_WIDTH = 6;

/** How a table is laid out: the columns that fit and their widths. */
export type TableLayout = {
  widths: readonly number[];
  /** Cells longer than their column are cut; otherwise they push the rest of their line to the right. */
  cuts: boolean;
  /** Columns at the right that do not fit. */
  hiddenColumns: number;
};

export function textCell(text: string): Cell {
  return { text: visible(text), align: "left" };
}

/**
 * Lays out a table from its header and some of its rows. With a `terminalWidth` the widest columns are squeezed until
 * the line fits; without, nothing is cut.
 */
export function layoutTable(
  header: readonly Cell[],
  rows: readonly (readonly Cell[])[],
  terminalWidth?: number,
): TableLayout {
  const natural = header.map((title, i) =>
    rows.reduce((width, row) => Math.max(width, displayWidth(row[i]?.text ?? "")), displayWidth(title.text)),
  );
  if (terminalWidth === undefined) return { widths: natural, cuts: false, hiddenColumns: 0 };
  const kept = fittingColumns(natural, terminalWidth);
  const widths = squeeze(natural.slice(0, kept), terminalWidth - GAP.length * (kept - 1));
  return { widths, cuts: true, hiddenColumns: natural.length - kept };
}

/** How many columns fit when each is squeezed as far as it may be; the first is shown in any case. */
function fittingColumns(natural: readonly number[], terminalWidth: number): number {
  let used = 0;
  for (const [i, width] of natural.entries()) {
    used += Math.min(width, MIN_WIDTH) + (i === 0 ? 0 : GAP.length);
    if (used > terminalWidth && i > 0) return i;
  }
  return natural.length;
}

/** Cuts the widest columns to a common width so that all together take at most `total`. */
function squeeze(natural: readonly number[], total: number): number[] {
  let limit = Math.max(0, ...natural);
  const taken = () => natural.reduce((sum, width) => sum + Math.min(width, limit), 0);
  let low = 0;
  let high = limit;
  while (low < high) {
    limit = Math.ceil((low + high) / 2);
    if (taken() <= total) low = limit;
    else high = limit - 1;
  }
  limit = Math.max(low, 1);
  return natural.map((width) => Math.min(width, limit));
}

/** One line of the table, without the spaces at its end. */
export function renderRow(cells: readonly Cell[], layout: TableLayout): string {
  return layout.widths
    .map((width, i) => {
      const cell = cells[i] ?? { text: "", align: "left" };
      return pad(layout.cuts ? cutToWidth(cell.text, width) : cell.text, width, cell.align);
    })
    .join(GAP)
    .trimEnd();
}

export function renderHeader(titles: readonly Cell[], layout: TableLayout, style: Style): string {
  const rule = layout.widths.map((width) => "─".repeat(width)).join(GAP);
  return `${style("bold", renderRow(titles, layout))}\n${style("dim", rule)}`;
}

/** A whole small table. */
export function renderTable(titles: readonly string[], rows: readonly (readonly Cell[])[], style: Style): string {
  const header = titles.map((title, i) => ({ text: visible(title), align: rows[0]?.[i]?.align ?? "left" }));
  const layout = layoutTable(header, rows);
  return [renderHeader(header, layout, style), ...rows.map((row) => renderRow(row, layout))].join("\n");
}
