import type { ColumnSpec } from "../types.ts";
import { BoolColumn } from "./bool-column.ts";
import { IntColumn } from "./int-column.ts";
import { LongColumn } from "./long-column.ts";
import { RealColumn } from "./real-column.ts";
import { TextColumn } from "./text-column.ts";
import { VectorColumn } from "./vector-column.ts";

/** A builder of any type; `storage` tells which. */
export type AnyColumn = BoolColumn | IntColumn | LongColumn | RealColumn | TextColumn | VectorColumn;

export function createColumn(spec: ColumnSpec): AnyColumn {
  switch (spec.type.kind) {
    case "bool":
      return new BoolColumn(spec);
    case "int":
      return new IntColumn(spec);
    case "long":
    case "timestamp":
      return new LongColumn(spec);
    case "real":
      return new RealColumn(spec);
    case "string":
    case "dynamic":
      return new TextColumn(spec);
    case "vector":
      return new VectorColumn(spec, spec.type.dimensions);
  }
}
