import { formatColumnType, type ColumnSpec } from "../types.ts";
import { createColumn, type AnyColumn } from "./create.ts";

/**
 * Builders that have served keep their buffers for the next extent of this thread. Growing them anew took two fifths of
 * the time of scanning a megabyte: most of it zeroing and page faults.
 *
 * Kept by name and type, because the columns of one table fill up alike from flush to flush. Bounded: what a single
 * large body has blown up is let go.
 */
const MAX_COLUMN_BYTES = 20 * 1024 * 1024;
const MAX_IDLE_BYTES = 48 * 1024 * 1024;

const idle = new Map<string, AnyColumn>();
let idleBytes = 0;

/** A builder without rows: one that has served, or a new one. */
export function takeColumn(spec: ColumnSpec): AnyColumn {
  const key = keyOf(spec);
  const column = idle.get(key);
  if (column === undefined) return createColumn(spec);
  idle.delete(key);
  idleBytes -= column.capacityBytes;
  return column;
}

/** Takes a builder back that nobody will use again. */
export function recycleColumn(column: AnyColumn): void {
  const { capacityBytes } = column;
  const key = keyOf(column.spec);
  if (capacityBytes > MAX_COLUMN_BYTES || idleBytes + capacityBytes > MAX_IDLE_BYTES || idle.has(key)) return;
  column.reset();
  idle.set(key, column);
  idleBytes += capacityBytes;
}

function keyOf({ name, type, inferred }: ColumnSpec): string {
  return `${formatColumnType(type)} ${inferred === true} ${name}`;
}
