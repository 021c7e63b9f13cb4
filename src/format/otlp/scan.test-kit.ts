import { ColumnSet } from "../columns/column-set.ts";
import type { NdjsonBody, Scanned } from "../ndjson/scanner.ts";
import { decodeTlm } from "../tlm-decode.ts";
import { encodeTlm } from "../tlm.ts";
import type { ColumnSpec } from "../types.ts";
import { logsJsonScanner, logsScanner } from "./scanner.ts";
import { OTLP_LOGS_SHAPE } from "./shape.ts";

export type Cells = Record<string, unknown>;
export type ScanOptions = Partial<NdjsonBody> & { columns?: readonly ColumnSpec[]; form?: "protobuf" | "json" };

export const ARRIVED_NS = 1_000_000_000n;

/** What a request becomes: rows without their NULLs, and what the scan says of it. */
export function scanLogs(bytes: Uint8Array, options: ScanOptions = {}): Scanned & { cells: Cells[]; set: ColumnSet } {
  const { columns = OTLP_LOGS_SHAPE, form = "protobuf", ...more } = options;
  const set = new ColumnSet(columns);
  const scanner = form === "json" ? logsJsonScanner : logsScanner;
  const scanned = scanner.scan({ bytes, evolve: true, arrivedAtNs: ARRIVED_NS, ...more }, set);
  return { ...scanned, set, cells: cellsOf(set) };
}

export function cellsOf(set: ColumnSet): Cells[] {
  if (set.rows === 0) return [];
  const decoded = decodeTlm(encodeTlm(set));
  return Array.from({ length: decoded.rows }, (_, row) => {
    const cells = decoded.columns.map(({ spec, values }) => [spec.name, values[row] ?? null] as const);
    return Object.fromEntries(cells.filter(([, value]) => value !== null));
  });
}
