/** Where rows and columns of a grid lie, as far as that is arithmetic. */

export const ROW_PX = 26;
/** Browsers lay out no element of more than some 17 million pixels (Firefox): beyond that the way of scrolling is scaled. */
const MOST_PX = 8_000_000;

/** How high the scrolled content is. */
export function contentPx(rows: number): number {
  return Math.min(rows * ROW_PX, MOST_PX);
}

/** The row at the top, with a part of one behind the point, of content scrolled that far. */
export function topRow(scrollPx: number, rows: number, viewPx: number): number {
  const whole = rows * ROW_PX;
  if (whole <= MOST_PX) return scrollPx / ROW_PX;
  const share = scrollPx / Math.max(1, MOST_PX - viewPx);
  return (Math.min(1, Math.max(0, share)) * (whole - viewPx)) / ROW_PX;
}

/** How far to scroll so that a row is at the top. */
export function scrollPxOf(row: number, rows: number, viewPx: number): number {
  const whole = rows * ROW_PX;
  if (whole <= MOST_PX) return row * ROW_PX;
  return ((row * ROW_PX) / Math.max(1, whole - viewPx)) * (MOST_PX - viewPx);
}

/** The first `[from, to)` of columns, by their widths, that a view from `leftPx` on shows a part of. */
export function columnsInView(
  widths: readonly number[],
  leftPx: number,
  viewPx: number,
): { from: number; to: number; fromPx: number } {
  let [x, from, fromPx] = [0, widths.length, 0];
  for (const [i, width] of widths.entries()) {
    if (from === widths.length && x + width > leftPx) [from, fromPx] = [i, x];
    if (x >= leftPx + viewPx) return { from, to: i, fromPx };
    x += width;
  }
  return { from, to: widths.length, fromPx };
}

const [LEAST_PX, MOST_FIRST_PX, CHAR_PX, AROUND_PX] = [64, 360, 7.2, 26];

/** How wide a column is at first: as its name and the first texts ask for, within bounds. */
export function firstWidth(name: string, texts: readonly (string | null)[]): number {
  const chars = Math.max(name.length + 3, ...texts.map((text) => Math.min(text?.length ?? 4, 60)));
  return Math.round(Math.min(MOST_FIRST_PX, Math.max(LEAST_PX, chars * CHAR_PX + AROUND_PX)));
}

export function boundedWidth(px: number): number {
  return Math.round(Math.min(2_000, Math.max(40, px)));
}

/** A rectangle of cells: where the selection began, and where it is now. */
export type Selection = { anchor: Cell; focus: Cell };
export type Cell = { row: number; column: number };

/** Columns are positions among those that are shown. */
export function selectedRange({ anchor, focus }: Selection): {
  fromRow: number;
  toRow: number;
  from: number;
  to: number;
} {
  return {
    fromRow: Math.min(anchor.row, focus.row),
    toRow: Math.max(anchor.row, focus.row) + 1,
    from: Math.min(anchor.column, focus.column),
    to: Math.max(anchor.column, focus.column) + 1,
  };
}

export function isSelected(selection: Selection | undefined, row: number, column: number): boolean {
  if (selection === undefined) return false;
  const { fromRow, toRow, from, to } = selectedRange(selection);
  return row >= fromRow && row < toRow && column >= from && column < to;
}

/** Where a key moves the focus; undefined for keys that do not. */
export function moved(
  { row, column }: Cell,
  key: { key: string; isMod: boolean },
  bounds: { rows: number; columns: number; pageRows: number },
): Cell | undefined {
  const { rows, columns, pageRows } = bounds;
  const to = ((): Cell | undefined => {
    switch (key.key) {
      case "ArrowUp":
        return { row: key.isMod ? 0 : row - 1, column };
      case "ArrowDown":
        return { row: key.isMod ? rows - 1 : row + 1, column };
      case "ArrowLeft":
        return { row, column: key.isMod ? 0 : column - 1 };
      case "ArrowRight":
        return { row, column: key.isMod ? columns - 1 : column + 1 };
      case "PageUp":
        return { row: row - pageRows, column };
      case "PageDown":
        return { row: row + pageRows, column };
      case "Home":
        return { row: key.isMod ? 0 : row, column: 0 };
      case "End":
        return { row: key.isMod ? rows - 1 : row, column: columns - 1 };
      default:
        return undefined;
    }
  })();
  if (to === undefined || rows === 0 || columns === 0) return undefined;
  return { row: Math.min(rows - 1, Math.max(0, to.row)), column: Math.min(columns - 1, Math.max(0, to.column)) };
}
