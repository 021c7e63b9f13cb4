import type { HttpDriver } from "../../src/io/http/create.ts";
import type { Cut } from "../support/load-plan.ts";
import { MIB } from "../support/report.ts";

/**
 * Who says of which types the columns are: `declared`, as the data's; `settled`, as an earlier request has inferred them;
 * `inferred`, by the first request; `text`, by the first request, which makes all of them text.
 */
export const TYPES = ["declared", "settled", "inferred", "text"] as const;
export type Types = (typeof TYPES)[number];

/** A case of `load/ingest`: who sends what to which tables. */
export type LoadCase = {
  name: string;
  /** A dataset, or `kinds10` for logs of ten kinds. */
  data: string;
  rows: number;
  cut: Cut;
  connections: number;
  /** Tables that the requests go to in turn. */
  tables: number;
  /** Columns of the tables that no row has a value for. */
  extraColumns: number;
  /** Extents that the table has before; with these all rounds write to one table. */
  extents: number;
  types: Types;
  /** The server's HTTP driver. */
  driver: HttpDriver;
};

const BASE: LoadCase = {
  name: "mib",
  data: "logs",
  rows: 300_000,
  cut: { sizeBytes: MIB },
  connections: 4,
  tables: 1,
  extraColumns: 0,
  extents: 0,
  types: "declared",
  driver: "auto",
};

/** By preset: its cases, run side by side in rounds, so that their ratio is not the machine's mood. */
export const PRESETS: Readonly<Record<string, readonly LoadCase[]>> = {
  mib: [BASE],
  undeclared: [{ ...BASE, name: "undeclared", types: "text" }, BASE],
  settled: [{ ...BASE, name: "settled", types: "settled" }, BASE],
  inferred: [{ ...BASE, name: "inferred", types: "inferred" }, BASE],
  big: [{ ...BASE, name: "big", rows: 1_600_000, cut: { sizeBytes: 64 * MIB } }],
  rows10: [{ ...BASE, name: "rows10", rows: 200_000, cut: { rows: 10 }, connections: 32 }],
  rows1: [{ ...BASE, name: "rows1", rows: 50_000, cut: { rows: 1 }, connections: 64 }],
  conns512: [{ ...BASE, name: "conns512", rows: 200_000, cut: { rows: 1 }, connections: 512 }],
  lone: [{ ...BASE, name: "lone", rows: 2_000, cut: { rows: 1 }, connections: 1 }],
  drivers: [
    { ...BASE, name: "uws", driver: "uws" },
    { ...BASE, name: "node", driver: "node" },
  ],
  tables: [{ ...BASE, name: "tables ×10", tables: 10 }, BASE],
  columns: [{ ...BASE, name: "columns ×10, unused", extraColumns: 90 }, BASE],
  kinds: [{ ...BASE, name: "columns ×10, ten kinds", data: "kinds10" }, BASE],
  extents: [{ ...BASE, name: "extents ×100", extents: 10_000 }, BASE],
};
