import { SERIES } from "./make-series.ts";
import { TOP_NESTED } from "./top-nested.ts";
import { PARTITIONS } from "./partition.ts";
import { PROJECTIONS } from "./projections.ts";
import { ROWS, ROW_SOURCES } from "./rows.ts";
import { SAMPLES } from "./samples.ts";
import { SUMMARIES } from "./summarize.ts";
import type { OperatorTable, SourceTable } from "./table.ts";

/** All operators of the language, by the class of their node. */
export const OPERATORS: OperatorTable = {
  ...PARTITIONS,
  ...PROJECTIONS,
  ...ROWS,
  ...SAMPLES,
  ...SERIES,
  ...SUMMARIES,
  ...TOP_NESTED,
};

/** All that may stand at the beginning of a pipe, by the class of its node. */
export const SOURCES: SourceTable = {
  ...ROW_SOURCES,
};
