import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { announce, toast } from "../base/announce.ts";
import { copyText } from "../base/copy-text.ts";
import { formatCount } from "../base/format.ts";
import type { RunningResult } from "../results/running-result.ts";
import type { CellRange, CopyFormat, ResultColumn, ShownCell } from "../results/result-store.ts";
import {
  boundedWidth,
  columnsInView,
  contentPx,
  firstWidth,
  isSelected,
  moved,
  ROW_PX,
  scrollPxOf,
  selectedRange,
  topRow,
  type Cell,
  type Selection,
} from "./grid-layout.ts";
import "./grid.css";

export type GridSort = { column: number; isDescending: boolean };

export type GridProps = {
  label: string;
  result: RunningResult;
  /** Columns that are not shown. */
  hidden: ReadonlySet<number>;
  sort: GridSort | undefined;
  onSort: (sort: GridSort | undefined) => void;
  /** Enter, or a double click. */
  onOpen: (cell: Cell) => void;
  /** Is given what copies the selection. */
  onReady?: (copy: (format: CopyFormat) => Promise<void>) => void;
};

/** Rows above and below those in view that are drawn, too. */
const AROUND_ROWS = 12;
/** What is copied at once: more is an export. */
const MOST_COPIED_CELLS = 500_000;

type Window = { from: number; columns: readonly number[]; rows: ShownCell[][] };

/**
 * The rows of a result. Only what is in view is drawn: the rows are asked of the worker that keeps them as they come into
 * view, so a million rows and two thousand columns cost no more than those of one screen. Cells are reached by the arrow
 * keys, selected with Shift or by dragging, and copied with Mod-C.
 */
export function Grid(props: GridProps): JSX.Element {
  const { label, result, hidden, sort, onSort, onOpen } = props;
  const { columns, rows, arrangement } = result;
  const shown = columns.map((_column, i) => i).filter((i) => !hidden.has(i));
  const [widths, setWidths] = useState<readonly number[]>([]);
  const [selection, setSelection] = useState<Selection | undefined>();
  const [view, setView] = useState({ left: 0, top: 0, width: 0, height: 0 });
  const [window, setWindow] = useState<Window>({ from: 0, columns: [], rows: [] });
  const scroller = useRef<HTMLDivElement>(null);
  const sortOn = useSortOn(sort, onSort);
  useMeasuredWidths(result, columns, setWidths);
  const readView = useView(scroller, setView);

  const shownWidths = shown.map((i) => widths[i] ?? 120);
  const rowsPx = Math.max(0, view.height - ROW_PX);
  const top = topRow(view.top, rows, rowsPx);
  const first = Math.max(0, Math.floor(top) - AROUND_ROWS);
  const last = Math.min(rows, Math.ceil(top + rowsPx / ROW_PX) + AROUND_ROWS);
  const inView = columnsInView(shownWidths, view.left, view.width);
  const wanted = shown.slice(inView.from, inView.to);
  useWindow(result, { from: first, to: last, columns: wanted, arrangement }, setWindow);

  const focus = selection?.focus;
  const select = (cell: Cell, isExtended: boolean): void => {
    setSelection((now) => ({ anchor: isExtended && now !== undefined ? now.anchor : cell, focus: cell }));
    bringIntoView(scroller.current, cell, { rows, rowsPx, widths: shownWidths });
    // The scroll event comes with the next frame: by then the rows have been asked for.
    readView();
  };
  const copy = async (format: CopyFormat): Promise<void> => {
    const range = selection === undefined ? undefined : selectedRange(selection);
    const asked = {
      fromRow: range?.fromRow ?? 0,
      toRow: range?.toRow ?? rows,
      columns: shown.slice(range?.from ?? 0, range?.to ?? shown.length),
    };
    await copyCells(result, asked, format);
  };
  const latest = useRef(copy);
  latest.current = copy;
  useEffect(() => {
    props.onReady?.((format) => latest.current(format));
  }, []);

  const onKeyDown = (event: KeyboardEvent): void => {
    const isMod = event.metaKey || event.ctrlKey;
    if (isMod && event.key.toLowerCase() === "c" && getSelection()?.isCollapsed !== false) {
      event.preventDefault();
      void copy("tsv");
      return;
    }
    if (isMod && event.key.toLowerCase() === "a" && rows > 0 && shown.length > 0) {
      event.preventDefault();
      setSelection({ anchor: { row: 0, column: 0 }, focus: { row: rows - 1, column: shown.length - 1 } });
      return;
    }
    const from = focus ?? { row: Math.floor(top), column: 0 };
    if (event.key === "Enter") {
      event.preventDefault();
      onOpen({ row: from.row, column: shown[from.column] ?? 0 });
      return;
    }
    const pageRows = Math.max(1, Math.floor(rowsPx / ROW_PX) - 1);
    const to = moved(from, { key: event.key, isMod }, { rows, columns: shown.length, pageRows });
    if (to === undefined) return;
    event.preventDefault();
    // The first arrow only shows where one is.
    const isFirst = focus === undefined && event.key.startsWith("Arrow") && !isMod;
    select(isFirst ? from : to, event.shiftKey);
    announceCell(window, shown, columns, to);
  };

  const placed = wanted.map((column, i): PlacedColumn => {
    const position = inView.from + i;
    return { column, position, leftPx: sum(shownWidths.slice(0, position)), width: shownWidths[position] ?? 0 };
  });
  return (
    <div
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={rows + 1}
      aria-colcount={shown.length}
      aria-multiselectable="true"
      tabIndex={0}
      ref={scroller}
      onKeyDown={onKeyDown}
    >
      <div class="grid-content" style={{ height: `${contentPx(rows) + ROW_PX}px`, width: `${sum(shownWidths)}px` }}>
        <div class="grid-head" role="row" aria-rowindex={1}>
          {placed.map((place) => (
            <Head
              key={place.column}
              {...place}
              about={columns[place.column]}
              sort={sort?.column === place.column ? sort : undefined}
              onSort={() => sortOn(place.column)}
              onWidth={(px) => setWidths((now) => now.map((old, i) => (i === place.column ? boundedWidth(px) : old)))}
            />
          ))}
        </div>
        <div class="grid-rows" style={{ transform: `translateY(${view.top - (top - first) * ROW_PX}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => (
            <Row
              key={first + i}
              row={first + i}
              window={window}
              columns={columns}
              placed={placed}
              selection={selection}
              onDown={select}
              onOver={(cell) => setSelection((now) => now && { ...now, focus: cell })}
              onOpen={onOpen}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** A column that is in view: its number, its place among those that are shown, and where it lies. */
type PlacedColumn = { column: number; position: number; leftPx: number; width: number };

type RowProps = {
  row: number;
  window: Window;
  columns: readonly ResultColumn[];
  placed: readonly PlacedColumn[];
  selection: Selection | undefined;
  onDown: (cell: Cell, isExtended: boolean) => void;
  onOver: (cell: Cell) => void;
  onOpen: (cell: Cell) => void;
};

function Row({ row, window, columns, placed, selection, onDown, onOver, onOpen }: RowProps): JSX.Element {
  const cells = window.rows[row - window.from];
  return (
    <div class={row % 2 === 0 ? "grid-row" : "grid-row grid-row-odd"} role="row" aria-rowindex={row + 2}>
      {placed.map((place) => {
        const { column, position } = place;
        const known = window.columns.indexOf(column);
        return (
          <CellView
            key={column}
            {...place}
            text={cells === undefined || known === -1 ? undefined : cells[known]}
            kind={columns[column]?.kind}
            isSelected={isSelected(selection, row, position)}
            isFocused={selection?.focus.row === row && selection.focus.column === position}
            onDown={(isExtended) => onDown({ row, column: position }, isExtended)}
            onOver={() => onOver({ row, column: position })}
            onOpen={() => onOpen({ row, column })}
          />
        );
      })}
    </div>
  );
}

type HeadProps = PlacedColumn & {
  about: ResultColumn | undefined;
  sort: GridSort | undefined;
  onSort: () => void;
  onWidth: (px: number) => void;
};

function Head({ about, position, width, leftPx, sort, onSort, onWidth }: HeadProps): JSX.Element {
  const order = sort === undefined ? "none" : sort.isDescending ? "descending" : "ascending";
  return (
    <div
      class={about?.kind === "number" ? "grid-title grid-number" : "grid-title"}
      role="columnheader"
      aria-colindex={position + 1}
      aria-sort={order}
      style={{ left: `${leftPx}px`, width: `${width}px` }}
    >
      <button
        type="button"
        class="grid-sort"
        tabIndex={-1}
        title={`${about?.name ?? ""}: ${about?.type ?? ""}`}
        onClick={onSort}
      >
        <span class="grid-name">{about?.name}</span>
        <span class="grid-arrow" aria-hidden="true">
          {order === "none" ? "" : order === "descending" ? "↓" : "↑"}
        </span>
      </button>
      <Grip width={width} onWidth={onWidth} />
    </div>
  );
}

/** Dragged, it makes the column before it wider. */
function Grip({ width, onWidth }: { width: number; onWidth: (px: number) => void }): JSX.Element {
  const start = useRef<{ x: number; width: number } | undefined>(undefined);
  return (
    <span
      class="grid-grip"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { x: event.clientX, width };
      }}
      onPointerMove={(event) => {
        if (start.current !== undefined) onWidth(start.current.width + event.clientX - start.current.x);
      }}
      onPointerUp={() => (start.current = undefined)}
    />
  );
}

type CellViewProps = PlacedColumn & {
  /** Undefined while it is asked for. */
  text: ShownCell | undefined;
  kind: ResultColumn["kind"] | undefined;
  isSelected: boolean;
  isFocused: boolean;
  onDown: (isExtended: boolean) => void;
  onOver: () => void;
  onOpen: () => void;
};

function CellView(props: CellViewProps): JSX.Element {
  const { text, kind, position, width, leftPx } = props;
  const classes = [
    "grid-cell",
    kind === "number" ? "grid-number" : "",
    text === null ? "grid-null" : "",
    props.isSelected ? "grid-selected" : "",
    props.isFocused ? "grid-focused" : "",
  ];
  return (
    <div
      class={classes.filter((one) => one !== "").join(" ")}
      role="gridcell"
      tabIndex={-1}
      aria-colindex={position + 1}
      aria-selected={props.isSelected}
      style={{ left: `${leftPx}px`, width: `${width}px` }}
      onPointerDown={(event) => {
        if (event.button === 0) props.onDown(event.shiftKey);
      }}
      onPointerEnter={(event) => {
        if (event.buttons === 1) props.onOver();
      }}
      onDblClick={props.onOpen}
    >
      {text === null ? "NULL" : text}
    </div>
  );
}

async function copyCells(result: RunningResult, asked: CellRange, format: CopyFormat): Promise<void> {
  if ((asked.toRow - asked.fromRow) * asked.columns.length > MOST_COPIED_CELLS) {
    toast(`These are more than ${formatCount(MOST_COPIED_CELLS)} cells: download the rows instead.`, "bad");
  } else if (await copyText(await result.copy(asked, format))) toast("Copied", "good");
  else toast("The browser does not allow copying.", "bad");
}

/** Of two quick clicks the second counts from the first, though nothing was drawn between them. */
function useSortOn(sort: GridSort | undefined, onSort: GridProps["onSort"]): (column: number) => void {
  const latest = useRef(sort);
  latest.current = sort;
  return (column) => {
    latest.current = nextSort(latest.current, column);
    onSort(latest.current);
  };
}

function nextSort(sort: GridSort | undefined, column: number): GridSort | undefined {
  if (sort?.column !== column) return { column, isDescending: false };
  return sort.isDescending ? undefined : { column, isDescending: true };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** By the first rows that come, and wider where the last ones ask for it; what somebody has dragged is left alone. */
function useMeasuredWidths(
  result: RunningResult,
  columns: readonly ResultColumn[],
  setWidths: (change: (now: readonly number[]) => readonly number[]) => void,
): void {
  const hasRows = result.received > 0;
  const isWhole = result.state === "done";
  // After the first rows are painted: with them it would be a task too long.
  useEffect(() => {
    let isGone = false;
    const all = columns.map((_column, i) => i);
    const from = isWhole ? Math.max(0, result.received - MEASURED_ROWS) : 0;
    void result.window(from, from + MEASURED_ROWS, all).then((rows) => {
      if (isGone) return;
      const asked = columns.map(({ name }, i) =>
        firstWidth(
          name,
          rows.map((row) => row[i] ?? null),
        ),
      );
      setWidths((now) => asked.map((width, i) => Math.max(width, now[i] ?? 0)));
    });
    return () => void (isGone = true);
  }, [result, columns, hasRows, isWhole]);
}

const MEASURED_ROWS = 20;

type View = { left: number; top: number; width: number; height: number };

/** Reads what is in view whenever that changes; the function that is returned reads it at once. */
function useView(scroller: { current: HTMLDivElement | null }, setView: (view: View) => void): () => void {
  const read = (): void => {
    const { current: element } = scroller;
    if (element === null) return;
    const { scrollLeft: left, scrollTop: top, clientWidth: width, clientHeight: height } = element;
    setView({ left, top, width, height });
  };
  useLayoutEffect(() => {
    const { current: element } = scroller;
    if (element === null) return;
    read();
    const watcher = new ResizeObserver(read);
    watcher.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, [scroller]);
  return read;
}

type Wanted = { from: number; to: number; columns: readonly number[]; arrangement: number };

/**
 * Asks for the rows in view when others come into view or their order changes, not when more rows come below them. An
 * answer that comes too late for what is in view by then is left out. The first rows are painted with the frame that asks.
 */
function useWindow(result: RunningResult, wanted: Wanted, setWindow: (window: Window) => void): void {
  const { from, to, arrangement, columns } = wanted;
  const names = columns.join();
  useLayoutEffect(() => {
    let isGone = false;
    void result.window(from, to, columns).then((rows) => {
      if (!isGone) setWindow({ from, columns, rows });
    });
    return () => void (isGone = true);
  }, [result, from, to, arrangement, names]);
}

function bringIntoView(
  element: HTMLDivElement | null,
  { row, column }: Cell,
  { rows, rowsPx, widths }: { rows: number; rowsPx: number; widths: readonly number[] },
): void {
  if (element === null) return;
  const top = topRow(element.scrollTop, rows, rowsPx);
  const visible = rowsPx / ROW_PX;
  if (row < top) element.scrollTop = scrollPxOf(row, rows, rowsPx);
  else if (row + 1 > top + visible) element.scrollTop = scrollPxOf(row + 1 - visible, rows, rowsPx);
  const left = sum(widths.slice(0, column));
  const width = widths[column] ?? 0;
  if (left < element.scrollLeft) element.scrollLeft = left;
  else if (left + width > element.scrollLeft + element.clientWidth)
    element.scrollLeft = left + width - element.clientWidth;
}

function announceCell(
  window: Window,
  shown: readonly number[],
  columns: readonly ResultColumn[],
  { row, column }: Cell,
): void {
  const index = shown[column] ?? -1;
  const text = window.rows[row - window.from]?.[window.columns.indexOf(index)];
  if (text !== undefined) announce(`${columns[index]?.name ?? ""}, row ${row + 1}: ${text ?? "NULL"}`);
}
