import type { KqlCases } from "./cases.test-kit.ts";
import * as aggregates from "./cases/aggregates.ts";
import * as arrays from "./cases/arrays.ts";
import * as bags from "./cases/bags.ts";
import * as conversions from "./cases/conversions.ts";
import * as dates from "./cases/dates.ts";
import * as distinctCount from "./cases/distinct-count.ts";
import * as dynamic from "./cases/dynamic.ts";
import * as evaluatedOnce from "./cases/evaluated-once.ts";
import * as expansions from "./cases/expansions.ts";
import * as gatheringAggregates from "./cases/gathering-aggregates.ts";
import * as joins from "./cases/joins.ts";
import * as lets from "./cases/lets.ts";
import * as literals from "./cases/literals.ts";
import * as makeSeries from "./cases/make-series.ts";
import * as nulls from "./cases/nulls.ts";
import * as numbers from "./cases/numbers.ts";
import * as otherOperators from "./cases/other-operators.ts";
import * as parse from "./cases/parse.ts";
import * as parsing from "./cases/parsing.ts";
import * as places from "./cases/places.ts";
import * as projections from "./cases/projections.ts";
import * as refusals from "./cases/refusals.ts";
import * as series from "./cases/series.ts";
import * as sizes from "./cases/sizes.ts";
import * as statements from "./cases/statements.ts";
import * as stringOperators from "./cases/string-operators.ts";
import * as strings from "./cases/strings.ts";
import * as summarize from "./cases/summarize.ts";
import * as timespans from "./cases/timespans.ts";
import * as top from "./cases/top.ts";
import * as unions from "./cases/unions.ts";
import * as units from "./cases/units.ts";
import * as windows from "./cases/windows.ts";

/** The files of `cases/`, and what each exports: named one by one, so that any program can read them. */
export const CASE_FILES: Readonly<Record<string, Readonly<Record<string, KqlCases>>>> = {
  aggregates,
  arrays,
  bags,
  conversions,
  dates,
  "distinct-count": distinctCount,
  dynamic,
  "evaluated-once": evaluatedOnce,
  expansions,
  "gathering-aggregates": gatheringAggregates,
  joins,
  lets,
  literals,
  "make-series": makeSeries,
  nulls,
  numbers,
  "other-operators": otherOperators,
  parse,
  parsing,
  places,
  projections,
  refusals,
  series,
  sizes,
  statements,
  "string-operators": stringOperators,
  strings,
  summarize,
  timespans,
  top,
  unions,
  units,
  windows,
};
