import type { ComponentChildren, JSX } from "preact";

export type DataColumn<T> = {
  title: string;
  cell: (row: T) => ComponentChildren;
  isNumber?: boolean;
  /** Left out where there is little room. */
  isMinor?: boolean;
};

export type DataTableProps<T> = {
  /** Read out before the table, and not shown. */
  label: string;
  columns: readonly DataColumn<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
};

/** A table of some hundred rows at most; results of queries have the grid. */
export function DataTable<T>({ label, columns, rows, keyOf }: DataTableProps<T>): JSX.Element {
  const classOf = ({ isNumber, isMinor }: DataColumn<T>) =>
    [isNumber === true ? "number" : "", isMinor === true ? "minor" : ""].join(" ").trim() || undefined;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
