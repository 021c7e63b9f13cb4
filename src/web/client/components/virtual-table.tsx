import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import "./virtual-table.css";

export type VirtualColumn<T> = {
  id: string;
  title: string;
  cell: (row: T) => ComponentChildren;
  /** As in `grid-template-columns`. */
  width: string;
  isNumber?: boolean;
  /** Left out where there is little room. */
  isMinor?: boolean;
  isSortable?: boolean;
};

export type VirtualSort = { by: string; isDescending: boolean };

export type VirtualTableProps<T> = {
  label: string;
  columns: readonly VirtualColumn<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  sort?: VirtualSort;
  onSort?: (sort: VirtualSort) => void;
};

const ROW_PX = 34;
const MORE_ROWS = 10;

/** A table of thousands of rows, all of one height, of which only those in view are drawn. */
export function VirtualTable<T>({ label, columns, rows, keyOf, sort, onSort }: VirtualTableProps<T>): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const { current: element } = place;
    if (element === null) return;
    const read = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const watcher = new ResizeObserver(read);
    watcher.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);
  const from = Math.max(0, Math.floor(view.top / ROW_PX) - MORE_ROWS);
  const to = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW_PX) + MORE_ROWS);
  const style = {
    "--virtual-columns": columns.map(({ width }) => width).join(" "),
    "--virtual-columns-narrow": columns
      .filter(({ isMinor }) => isMinor !== true)
      .map(({ width }) => width)
      .join(" "),
  };
  return (
    <div
      class="virtual-table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      ref={place}
      style={style}
    >
      <div class="virtual-head" role="rowgroup">
        <div class="virtual-row" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Head key={column.id} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
      </div>
      <div role="rowgroup" style={{ paddingTop: `${from * ROW_PX}px`, height: `${rows.length * ROW_PX}px` }}>
        {rows.slice(from, to).map((row, i) => (
          <div key={keyOf(row)} class="virtual-row virtual-data" role="row" aria-rowindex={from + i + 2}>
            {columns.map((column) => (
              <div key={column.id} role="cell" class={classOf(column)}>
                {column.cell(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

type HeadProps<T> = {
  column: VirtualColumn<T>;
  sort: VirtualSort | undefined;
  onSort: ((sort: VirtualSort) => void) | undefined;
};

function Head<T>({ column, sort, onSort }: HeadProps<T>): JSX.Element {
  const { id, title, isNumber = false, isSortable = false } = column;
  const isSorted = sort?.by === id;
  const order = isSorted ? (sort.isDescending ? "descending" : "ascending") : "none";
  return (
    <div role="columnheader" class={classOf(column)} {...(isSortable && { "aria-sort": order })}>
      {isSortable ? (
        <button
          type="button"
          class="virtual-sort"
          // Sizes are looked at from the largest on.
          onClick={() => onSort?.({ by: id, isDescending: isSorted ? !sort.isDescending : isNumber })}
        >
          {title}
          <span aria-hidden="true">{order === "none" ? "" : order === "descending" ? " ↓" : " ↑"}</span>
        </button>
      ) : (
        title
      )}
    </div>
  );
}

function classOf<T>({ isNumber, isMinor }: VirtualColumn<T>): string {
  return `virtual-cell${isNumber === true ? " number" : ""}${isMinor === true ? " minor" : ""}`;
}
