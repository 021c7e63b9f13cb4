import { COUNTS } from "./counts.ts";
import { DEVIATIONS } from "./deviations.ts";
import { LISTS } from "./lists.ts";
import { PERCENTILES } from "./percentiles.ts";
import { PICKS } from "./picks.ts";
import { SUMS } from "./sums.ts";
import { no, type AggregateTable } from "./table.ts";

const SKETCH = "sketches are a format of their own; dcount() and percentile() are exact here";

/** All aggregates of the language, by name. Nulls do not count. */
export const AGGREGATES: AggregateTable = {
  ...COUNTS,
  ...DEVIATIONS,
  ...LISTS,
  ...PERCENTILES,
  ...PICKS,
  ...SUMS,
  hll: no(SKETCH),
  hll_if: no(SKETCH),
  hll_merge: no(SKETCH),
  tdigest: no(SKETCH),
  tdigest_merge: no(SKETCH),
  merge_tdigest: no(SKETCH),
  passthrough: no("it is internal to the language"),
};
