import type { KqlCases } from "./cases.test-kit.ts";
import { aggregates } from "./cases/aggregates.ts";
import { arrays } from "./cases/arrays.ts";
import { bags } from "./cases/bags.ts";
import { conversions } from "./cases/conversions.ts";
import { dates } from "./cases/dates.ts";
import { distinctAndCount } from "./cases/distinct-count.ts";
import { dynamic } from "./cases/dynamic.ts";
import { evaluatedOnce } from "./cases/evaluated-once.ts";
import { exact } from "./cases/exact.ts";
import { expansions } from "./cases/expansions.ts";
import { gatheringAggregates } from "./cases/gathering-aggregates.ts";
import { joins } from "./cases/joins.ts";
import { lets } from "./cases/lets.ts";
import { literals } from "./cases/literals.ts";
import { makeSeries } from "./cases/make-series.ts";
import { nulls } from "./cases/nulls.ts";
import { numbers } from "./cases/numbers.ts";
import { otherOperators } from "./cases/other-operators.ts";
import { parse } from "./cases/parse.ts";
import { parsing } from "./cases/parsing.ts";
import { places } from "./cases/places.ts";
import { projections } from "./cases/projections.ts";
import { refusals } from "./cases/refusals.ts";
import { series } from "./cases/series.ts";
import { sizes } from "./cases/sizes.ts";
import { statements } from "./cases/statements.ts";
import { stringOperators } from "./cases/string-operators.ts";
import { strings } from "./cases/strings.ts";
import { summarize } from "./cases/summarize.ts";
import { timespans } from "./cases/timespans.ts";
import { topAndSort } from "./cases/top.ts";
import { unions } from "./cases/unions.ts";
import { units } from "./cases/units.ts";
import { windows } from "./cases/windows.ts";

/** The cases of each file of `cases/`, named one by one, so that any program can read them. */
export const CASE_FILES: Readonly<Record<string, readonly KqlCases[]>> = {
  aggregates: [aggregates],
  arrays: [arrays],
  bags: [bags],
  conversions: [conversions],
  dates: [dates],
  "distinct-count": [distinctAndCount],
  dynamic: [dynamic],
  "evaluated-once": [evaluatedOnce],
  exact: [exact],
  expansions: [expansions],
  "gathering-aggregates": [gatheringAggregates],
  joins: [joins],
  lets: [lets],
  literals: [literals],
  "make-series": [makeSeries],
  nulls: [nulls],
  numbers: [numbers],
  "other-operators": [otherOperators],
  parse: [parse],
  parsing: [parsing],
  places: [places],
  projections: [projections],
  refusals: [refusals],
  series: [series],
  sizes: [sizes],
  statements: [statements],
  "string-operators": [stringOperators],
  strings: [strings],
  summarize: [summarize],
  timespans: [timespans],
  top: [topAndSort],
  unions: [unions],
  units: [units],
  windows: [windows],
};
