/** Where panels are on the grid: columns and rows from 0, and how panels make room for each other. */
export type Place = { x: number; y: number; w: number; h: number };
export type Placed = { id: string; grid: Place };

export const COLUMNS = 24;
export const ROW_PX = 32;
export const GAP_PX = 8;

/** The API's bounds (docs/dashboards.md). */
const LAST_ROW = 100_000;
const MOST_ROWS = 1_000;
/** A smaller panel has no room for its title and the handles. */
const LEAST_COLUMNS = 2;
const LEAST_ROWS = 2;

/** The nearest place within the grid. */
export function bounded({ x, y, w, h }: Place): Place {
  const width = between(w, LEAST_COLUMNS, COLUMNS);
  return {
    x: between(x, 0, COLUMNS - width),
    y: between(y, 0, LAST_ROW),
    w: width,
    h: between(h, LEAST_ROWS, MOST_ROWS),
  };
}

function between(value: number, least: number, most: number): number {
  return Math.min(Math.max(Math.round(value), least), most);
}

/**
 * The panels with one of them at another place, where it stays: those that it would cover go down, and those that they
 * would cover in turn. The order of the panels stays, so that elements keep their focus.
 */
export function placedAt<T extends Placed>(panels: readonly T[], id: string, to: Place): T[] {
  const place = bounded(to);
  const moved = panels.find((panel) => panel.id === id);
  if (moved === undefined) return [...panels];
  return withPlaces(
    panels,
    settle(
      [{ id, grid: place }],
      panels.filter((panel) => panel !== moved),
    ),
  );
}

/** The panels with room between them: a document may have panels that overlap. */
export function withRoom<T extends Placed>(panels: readonly T[]): T[] {
  return withPlaces(panels, settle([], panels));
}

function withPlaces<T extends Placed>(panels: readonly T[], places: ReadonlyMap<string, Place>): T[] {
  return panels.map((panel) => {
    const grid = places.get(panel.id) ?? panel.grid;
    return samePlace(grid, panel.grid) ? panel : { ...panel, grid };
  });
}

function settle(settled: Placed[], others: readonly Placed[]): Map<string, Place> {
  for (const { id, grid } of inReadingOrder(others)) {
    let { y } = grid;
    for (;;) {
      const below = settled.filter(({ grid: other }) => overlap({ ...grid, y }, other));
      if (below.length === 0) break;
      y = Math.max(...below.map(({ grid: other }) => other.y + other.h));
    }
    settled.push({ id, grid: { ...grid, y } });
  }
  return new Map(settled.map(({ id, grid }) => [id, grid]));
}

export function overlap(a: Place, b: Place): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

export function samePlace(a: Place, b: Place): boolean {
  return a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;
}

/** From top to bottom, from left to right: as they are read out, and stacked on a narrow screen. */
export function inReadingOrder<T extends Placed>(panels: readonly T[]): T[] {
  return panels.toSorted((a, b) => a.grid.y - b.grid.y || a.grid.x - b.grid.x);
}

/** The first place, in reading order, where a panel of that size covers no other. */
export function freePlace(panels: readonly Placed[], { w, h }: Pick<Place, "w" | "h">): Place {
  const bottom = Math.max(0, ...panels.map(({ grid }) => grid.y + grid.h));
  // Only beside or below another panel can the first free place be.
  const rows = [0, ...panels.map(({ grid }) => grid.y), ...panels.map(({ grid }) => grid.y + grid.h)];
  const columns = [0, ...panels.map(({ grid }) => grid.x + grid.w)].filter((x) => x + w <= COLUMNS);
  for (const y of rows.toSorted((a, b) => a - b)) {
    for (const x of columns.toSorted((a, b) => a - b)) {
      const place = { x, y, w, h };
      if (!panels.some(({ grid }) => overlap(place, grid))) return place;
    }
  }
  return { x: 0, y: bottom, w, h };
}

/** What an arrow key does to a place: it moves, with Shift it resizes. Undefined for other keys. */
export function placeAfterKey(place: Place, key: string, isShift: boolean): Place | undefined {
  const step = STEPS[key];
  if (step === undefined) return undefined;
  const [columns, rows] = step;
  return bounded(isShift ? grown(place, columns, rows) : { ...place, x: place.x + columns, y: place.y + rows });
}

const STEPS: Readonly<Record<string, readonly [columns: number, rows: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Wider and taller by so many columns and rows; the right edge stops at that of the grid. */
export function grown(place: Place, columns: number, rows: number): Place {
  return bounded({ ...place, w: Math.min(place.w + columns, COLUMNS - place.x), h: place.h + rows });
}

/** Columns and rows that a pointer has passed over. */
export function stepsOf(dxPx: number, dyPx: number, gridWidthPx: number): { columns: number; rows: number } {
  const columnPx = (gridWidthPx + GAP_PX) / COLUMNS;
  return { columns: Math.round(dxPx / columnPx), rows: Math.round(dyPx / (ROW_PX + GAP_PX)) };
}

/** A place in words, counted from 1. */
export function placeInWords({ x, y, w, h }: Place): string {
  return `column ${x + 1}, row ${y + 1}, ${w} ${w === 1 ? "column" : "columns"} wide, ${h} ${h === 1 ? "row" : "rows"} high`;
}
