import { APPLICATIONS } from "./apply.ts";
import { EVALUATIONS, EVALUATION_SOURCES } from "./evaluate.ts";
import { EXPANSIONS } from "./expand.ts";
import { INVOCATIONS } from "./invoke.ts";
import { JOINS } from "./join.ts";
import { SERIES } from "./make-series.ts";
import { KEY_PARSERS } from "./parse-kv.ts";
import { PARSERS } from "./parse.ts";
import { PARTITIONS } from "./partition.ts";
import { PROJECTIONS } from "./projections.ts";
import { RANGES } from "./range.ts";
import { REFUSED } from "./refused.ts";
import { ROWS, ROW_SOURCES } from "./rows.ts";
import { SAMPLES } from "./samples.ts";
import { SCHEMAS } from "./schema.ts";
import { SEARCHES, SEARCH_SOURCES } from "./search.ts";
import { SUMMARIES } from "./summarize.ts";
import { TOP_NESTED } from "./top-nested.ts";
import { UNIONS, UNION_SOURCES } from "./union.ts";
import type { OperatorTable, SourceTable } from "./table.ts";

/** All operators of the language, by the class of their node. */
export const OPERATORS: OperatorTable = {
  ...APPLICATIONS,
  ...EVALUATIONS,
  ...EXPANSIONS,
  ...INVOCATIONS,
  ...JOINS,
  ...KEY_PARSERS,
  ...PARSERS,
  ...PARTITIONS,
  ...PROJECTIONS,
  ...REFUSED,
  ...ROWS,
  ...SAMPLES,
  ...SCHEMAS,
  ...SEARCHES,
  ...SERIES,
  ...SUMMARIES,
  ...TOP_NESTED,
  ...UNIONS,
};

/** All that may stand at the beginning of a pipe, by the class of its node. */
export const SOURCES: SourceTable = {
  ...EVALUATION_SOURCES,
  ...RANGES,
  ...ROW_SOURCES,
  ...SEARCH_SOURCES,
  ...UNION_SOURCES,
};
