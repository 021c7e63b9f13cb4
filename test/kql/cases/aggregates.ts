import type { KqlCases } from "../cases.test-kit.ts";

const NULLS = "datatable(x: long, r: real)[1, 1.5, long(null), real(null), 3, 2.5]";
const FLAGS = "datatable(x: long, b: bool)[1, true, 2, false, 3, true, 4, bool(null), long(null), true]";
const NO_ROWS = "datatable(x: long, r: real, s: string, b: bool, t: datetime, p: timespan, j: dynamic)[]";
const TEN = "range x from 1 to 10 step 1";
const LATENCY = "datatable(n: long, ms: long)[8, 10, 6, 20, 3, 30, 1, 40]";
const MANY_NULLS = "datatable(x: long)[long(null), long(null)]";

const counts: KqlCases = {
  "count()": [
    { query: `${NULLS} | summarize n = count()`, rows: [{ n: 3 }], types: { n: "long" } },
    { query: "datatable(x: long)[long(null)] | summarize count()", rows: [{ count_: 1 }] },
    { query: `${NULLS} | summarize count(x)`, refused: { code: "invalid_query", message: "bool" } },
  ],
  "countif()": [
    { query: `${FLAGS} | summarize countif(b)`, rows: [{ countif_b: 3 }], types: { countif_b: "long" } },
    { query: `${FLAGS} | summarize countif(x > 1)`, rows: [{ countif_: 3 }] },
    { query: `${FLAGS} | summarize n = countif(isnull(b))`, rows: [{ n: 1 }] },
    { query: `${FLAGS} | summarize n = countif(false)`, rows: [{ n: 0 }] },
    { query: `${FLAGS} | summarize n = countif(x != 1)`, rows: [{ n: 4 }] },
    {
      query:
        "datatable(name: string, day: long)['John', 9, 'Paul', 18, 'George', 25, 'Ringo', 7] | summarize countif(strlen(name) > 4)",
      rows: [{ countif_: 2 }],
    },
    { query: `${FLAGS} | summarize countif(x)`, refused: { code: "invalid_query", message: "bool" } },
  ],
  "dcount()": [
    {
      query: "datatable(s: string)['a', 'A', 'a', ''] | summarize dcount(s)",
      rows: [{ dcount_s: 3 }],
      types: { dcount_s: "long" },
    },
    { query: "datatable(x: long)[1, 1, long(null), 2] | summarize dcount(x)", rows: [{ dcount_x: 2 }] },
    { query: `${MANY_NULLS} | summarize dcount(x)`, rows: [{ dcount_x: 0 }] },
    {
      query: "range x from 1 to 5000 step 1 | summarize a = dcount(x), b = dcount(x % 100, 4), c = dcount(x, 0)",
      rows: [{ a: 5000, b: 100, c: 5000 }],
    },
    {
      query:
        "datatable(t: datetime, p: timespan, b: bool)[datetime(2024-01-01), 1h, true, datetime(2024-01-01), 60m, false] | summarize a = dcount(t), b1 = dcount(p), c = dcount(b)",
      rows: [{ a: 1, b1: 1, c: 2 }],
    },
    {
      query: "datatable(j: dynamic)[] | summarize count_distinct(j)",
      refused: { code: "invalid_query", message: "dynamic" },
    },
    { query: "datatable(x: long)[] | summarize dcount(*)", refused: { code: "invalid_query", message: "*" } },
  ],
  "dcountif()": [
    { query: `${FLAGS} | summarize dcountif(x, b)`, rows: [{ dcountif_x: 2 }], types: { dcountif_x: "long" } },
    { query: `${FLAGS} | summarize n = dcountif(x % 2, x > 1)`, rows: [{ n: 2 }] },
    { query: `${FLAGS} | summarize n = dcountif(x, false)`, rows: [{ n: 0 }] },
    { query: `${FLAGS} | summarize n = dcountif(x, b, 2)`, rows: [{ n: 2 }] },
  ],
  "count_distinct(), count_distinctif()": [
    {
      query:
        "datatable(s: string, x: long)['a', 1, 'b', 1, 'a', 2, '', 3] | summarize count_distinct(s), count_distinctif(s, x < 2)",
      rows: [{ count_distinct_s: 3, count_distinctif_s: 2 }],
      types: { count_distinct_s: "long", count_distinctif_s: "long" },
    },
    { query: "datatable(x: long)[1, long(null), 1] | summarize count_distinct(x)", rows: [{ count_distinct_x: 1 }] },
    { query: `${FLAGS} | summarize n = count_distinctif(x, b)`, rows: [{ n: 2 }] },
    {
      query:
        "datatable(k: string, v: long)['a', 1, 'a', 1, 'b', 1, 'b', 2] | summarize n = count_distinct(v) by k | order by k asc",
      rows: [
        { k: "a", n: 1 },
        { k: "b", n: 2 },
      ],
    },
  ],
};

const sums: KqlCases = {
  "sum()": [
    {
      query: `${NULLS} | summarize sum(x), sum(r)`,
      rows: [{ sum_x: 4, sum_r: 4 }],
      types: { sum_x: "long", sum_r: "real" },
    },
    {
      query: "datatable(i: int)[2147483647, 1] | summarize sum(i)",
      rows: [{ sum_i: 2147483648 }],
      types: { sum_i: "long" },
    },
    {
      query: "datatable(x: long)[9223372036854775807, 1] | summarize t = sum(x)",
      rows: [{ t: -9223372036854775808n }],
      types: { t: "long" },
    },
    { query: "datatable(x: long)[9223372036854775807, -9223372036854775807] | summarize t = sum(x)", rows: [{ t: 0 }] },
    { query: "datatable(x: long)[9223372036854775806, 1] | summarize t = sum(x)", rows: [{ t: 9223372036854775807n }] },
    {
      query: "datatable(p: timespan)[1h, 30m, -15m] | summarize sum(p)",
      rows: [{ sum_p: "01:15:00" }],
      types: { sum_p: "timespan" },
    },
    { query: "datatable(p: timespan)[20h, 10h, timespan(null)] | summarize sum(p)", rows: [{ sum_p: "1.06:00:00" }] },
    {
      query: "datatable(d: decimal)[decimal(0.1), decimal(0.2)] | summarize sum(d)",
      rows: [{ sum_d: 0.3 }],
      types: { sum_d: "decimal" },
    },
    { query: `${MANY_NULLS} | summarize sum(x)`, rows: [{ sum_x: 0 }] },
    {
      query: "datatable(k: string, x: long)['a', long(null), 'b', 2] | summarize sum(x) by k | order by k asc",
      rows: [
        { k: "a", sum_x: 0 },
        { k: "b", sum_x: 2 },
      ],
    },
    { query: `${NO_ROWS} | summarize sum(x), sum(r), sum(p)`, rows: [{ sum_x: 0, sum_r: 0, sum_p: "00:00:00" }] },
    { query: "datatable(s: string)[] | summarize sum(s)", refused: { code: "invalid_query", message: "summable" } },
    { query: "datatable(b: bool)[] | summarize sum(b)", refused: { code: "invalid_query", message: "summable" } },
  ],
  "sumif()": [
    { query: `${FLAGS} | summarize sumif(x, b)`, rows: [{ sumif_x: 4 }], types: { sumif_x: "long" } },
    { query: `${FLAGS} | summarize sumif(x, x > 100)`, rows: [{ sumif_x: 0 }] },
    {
      query:
        "datatable(name: string, day: long)['John', 9, 'Paul', 18, 'George', 25, 'Ringo', 7] | summarize sumif(day, strlen(name) > 4)",
      rows: [{ sumif_day: 32 }],
    },
    {
      query: "datatable(p: timespan, b: bool)[1h, true, 2h, false, 3h, true] | summarize sumif(p, b)",
      rows: [{ sumif_p: "04:00:00" }],
      types: { sumif_p: "timespan" },
    },
    {
      query: "datatable(i: int, b: bool)[2147483647, true, 2147483647, true] | summarize t = sumif(i, b)",
      rows: [{ t: 4294967294 }],
      types: { t: "long" },
    },
  ],
  "avg()": [
    {
      query: `${NULLS} | summarize avg(x), avg(r)`,
      rows: [{ avg_x: 2, avg_r: 2 }],
      types: { avg_x: "real", avg_r: "real" },
    },
    { query: "datatable(x: long)[1, 2] | summarize avg(x)", rows: [{ avg_x: 1.5 }] },
    { query: "datatable(i: int)[-1, 0] | summarize avg(i)", rows: [{ avg_i: -0.5 }], types: { avg_i: "real" } },
    {
      query: "datatable(p: timespan)[1h, 2h, timespan(null)] | summarize avg(p)",
      rows: [{ avg_p: "01:30:00" }],
      types: { avg_p: "timespan" },
    },
    { query: "datatable(p: timespan)[-1h, -2h] | summarize avg(p)", rows: [{ avg_p: "-01:30:00" }] },
    {
      query: "datatable(t: datetime)[datetime(2024-01-01), datetime(2024-01-03)] | summarize avg(t)",
      rows: [{ avg_t: "2024-01-02T00:00:00Z" }],
      types: { avg_t: "datetime" },
    },
    {
      query: "datatable(t: datetime)[datetime(1969-12-31), datetime(1970-01-02)] | summarize avg(t)",
      rows: [{ avg_t: "1970-01-01T00:00:00Z" }],
    },
    {
      query: "datatable(d: decimal)[decimal(1), decimal(2)] | summarize avg(d)",
      rows: [{ avg_d: 1.5 }],
      types: { avg_d: "decimal" },
    },
    {
      query: "range x from 1 to 4 step 1 | extend y = iff(x == 1, real(null), real(5)) | summarize sum(y), avg(y)",
      rows: [{ sum_y: 15, avg_y: 5 }],
    },
    {
      query: "datatable(x: long)[9223372036854775807, 9223372036854775807] | summarize avg(x)",
      rows: [{ avg_x: 2 ** 63 }],
    },
    { query: `${MANY_NULLS} | summarize avg(x)`, rows: [{ avg_x: null }] },
    {
      query: `${NO_ROWS} | summarize avg(p), avg(t)`,
      rows: [{ avg_p: null, avg_t: null }],
      types: { avg_p: "timespan", avg_t: "datetime" },
    },
    { query: "datatable(s: string)[] | summarize avg(s)", refused: { code: "invalid_query", message: "avg" } },
  ],
  "avgif()": [
    { query: `${FLAGS} | summarize avgif(x, b)`, rows: [{ avgif_x: 2 }], types: { avgif_x: "real" } },
    { query: `${FLAGS} | summarize avgif(x, x > 100)`, rows: [{ avgif_x: null }] },
    {
      query: "datatable(p: timespan, b: bool)[1h, true, 2h, false, 3h, true] | summarize avgif(p, b)",
      rows: [{ avgif_p: "02:00:00" }],
      types: { avgif_p: "timespan" },
    },
  ],
  "min(), max()": [
    {
      query: `${NULLS} | summarize min(x), max(x), min(r), max(r)`,
      rows: [{ min_x: 1, max_x: 3, min_r: 1.5, max_r: 2.5 }],
      types: { min_x: "long", max_x: "long", min_r: "real", max_r: "real" },
    },
    {
      query: "datatable(i: int)[3, -3, int(null)] | summarize min(i), max(i)",
      rows: [{ min_i: -3, max_i: 3 }],
      types: { min_i: "int", max_i: "int" },
    },
    {
      query: "datatable(s: string)['b', 'B', 'a'] | summarize min(s), max(s)",
      rows: [{ min_s: "B", max_s: "b" }],
      types: { min_s: "string", max_s: "string" },
    },
    { query: "datatable(s: string)['b', '', 'a'] | summarize min(s)", rows: [{ min_s: "" }] },
    { query: `${NO_ROWS} | summarize min(s), max(s)`, rows: [{ min_s: "", max_s: "" }] },
    {
      query: "datatable(b: bool)[true, false, bool(null)] | summarize min(b), max(b)",
      rows: [{ min_b: false, max_b: true }],
      types: { min_b: "bool", max_b: "bool" },
    },
    {
      query: "datatable(p: timespan)[1h, -1h, 2d] | summarize min(p), max(p)",
      rows: [{ min_p: "-01:00:00", max_p: "2.00:00:00" }],
      types: { min_p: "timespan", max_p: "timespan" },
    },
    {
      query:
        "datatable(t: datetime)[datetime(1960-01-01), datetime(2024-01-01T00:00:00.0000001Z)] | summarize min(t), max(t)",
      rows: [{ min_t: "1960-01-01T00:00:00Z", max_t: "2024-01-01T00:00:00.0000001Z" }],
    },
    {
      query: "datatable(d: decimal)[decimal(1.5), decimal(-2)] | summarize min(d), max(d)",
      rows: [{ min_d: -2, max_d: 1.5 }],
      types: { min_d: "decimal", max_d: "decimal" },
    },
    { query: `${MANY_NULLS} | summarize min(x), max(x)`, rows: [{ min_x: null, max_x: null }] },
    { query: "datatable(j: dynamic)[] | summarize min(j)", refused: { code: "invalid_query", message: "orderable" } },
    { query: "datatable(g: guid)[] | summarize max(g)", refused: { code: "invalid_query", message: "orderable" } },
    { query: "datatable(x: long)[] | summarize min(*)", refused: { code: "invalid_query", message: "*" } },
  ],
  "minif(), maxif()": [
    {
      query: `${FLAGS} | summarize minif(x, b), maxif(x, b)`,
      rows: [{ minif_x: 1, maxif_x: 3 }],
      types: { minif_x: "long", maxif_x: "long" },
    },
    { query: `${FLAGS} | summarize minif(x, x > 100), maxif(x, false)`, rows: [{ minif_x: null, maxif_x: null }] },
    {
      query: "datatable(s: string, b: bool)['b', true, 'a', false] | summarize minif(s, b), maxif(s, not(b))",
      rows: [{ minif_s: "b", maxif_s: "a" }],
    },
  ],
};

const percentiles: KqlCases = {
  "percentile()": [
    {
      query: `${TEN} | summarize percentile(x, 50)`,
      rows: [{ percentile_x_50: 5 }],
      types: { percentile_x_50: "long" },
    },
    {
      query: `${TEN} | summarize a = percentile(x, 51), b = percentile(x, 90), c = percentile(x, 91)`,
      rows: [{ a: 6, b: 9, c: 10 }],
    },
    { query: `${TEN} | summarize a = percentile(x, 0), b = percentile(x, 100)`, rows: [{ a: 1, b: 10 }] },
    {
      query:
        "datatable(x: long)[15, 20, 35, 40, 50] | summarize a = percentile(x, 5), b = percentile(x, 30), c = percentile(x, 40), d = percentile(x, 50), e = percentile(x, 100)",
      rows: [{ a: 15, b: 20, c: 20, d: 35, e: 50 }],
    },
    { query: "datatable(x: long)[1, 100] | summarize m = percentile(x, 50)", rows: [{ m: 1 }] },
    {
      query: "datatable(r: real)[0.5, 1.5, 2.5, real(null)] | summarize percentile(r, 50)",
      rows: [{ percentile_r_50: 1.5 }],
      types: { percentile_r_50: "real" },
    },
    {
      query: "datatable(i: int)[1, 2] | summarize percentile(i, 99)",
      rows: [{ percentile_i_99: 2 }],
      types: { percentile_i_99: "long" },
    },
    { query: "range x from 1 to 1000 step 1 | summarize percentile(x, 99.9)", rows: [{ percentile_x_99_9: 999 }] },
    {
      query:
        "range x from 1 to 100 step 1 | summarize a = percentile(x, 7), b = percentile(x, 29), c = percentile(x, 58)",
      rows: [{ a: 7, b: 29, c: 58 }],
    },
    {
      query: "datatable(p: timespan)[1h, 2h, 3h] | summarize percentile(p, 50)",
      rows: [{ percentile_p_50: "02:00:00" }],
      types: { percentile_p_50: "timespan" },
    },
    {
      query: "datatable(t: datetime)[datetime(2024-01-01), datetime(2024-01-02)] | summarize percentile(t, 75)",
      rows: [{ percentile_t_75: "2024-01-02T00:00:00Z" }],
      types: { percentile_t_75: "datetime" },
    },
    { query: "let p = 50; datatable(x: long)[1, 2, 3] | summarize percentile(x, p)", rows: [{ percentile_x_50: 2 }] },
    { query: `${MANY_NULLS} | summarize percentile(x, 50)`, rows: [{ percentile_x_50: null }] },
    {
      query:
        "datatable(k: string, x: long)['a', 1, 'a', 9, 'b', 4] | summarize m = percentile(x, 99) by k | order by k asc",
      rows: [
        { k: "a", m: 9 },
        { k: "b", m: 4 },
      ],
    },
    { query: "datatable(x: long)[-5, -3, 1] | summarize m = percentile(x, 10)", rows: [{ m: -5 }] },
    { query: "datatable(x: long)[1, 2, 3, 4] | summarize m = percentile(x * 2, 75)", rows: [{ m: 6 }] },
    {
      query: "datatable(x: long)[] | summarize percentile(x, '50')",
      refused: { code: "invalid_query", message: "number" },
    },
    {
      query: "datatable(x: long)[1] | summarize percentile(x, 101)",
      refused: { code: "invalid_query", message: "percentile" },
    },
    {
      query: "datatable(x: long, r: real)[1, 5.0] | summarize percentile(x, r)",
      refused: { code: "invalid_query", message: "percentile" },
    },
  ],
  "percentiles()": [
    {
      query: `${TEN} | summarize percentiles(x, 5, 50, 95)`,
      rows: [{ percentile_x_5: 1, percentile_x_50: 5, percentile_x_95: 10 }],
      types: { percentile_x_5: "long", percentile_x_50: "long", percentile_x_95: "long" },
    },
    { query: `${TEN} | summarize P = percentiles(x, 50, 95)`, rows: [{ P: 5, percentile_x_95: 10 }] },
    { query: `${TEN} | summarize (A, B) = percentiles(x, 50, 95)`, rows: [{ A: 5, B: 10 }] },
    {
      query: `${TEN} | summarize percentiles_array(x, 5, 50, 95)`,
      rows: [{ percentiles_x: [1, 5, 10] }],
      types: { percentiles_x: "dynamic" },
    },
    { query: `${TEN} | summarize percentiles_array(x, dynamic([95, 50, 5]))`, rows: [{ percentiles_x: [10, 5, 1] }] },
    { query: "datatable(r: real)[0.5, 1.5] | summarize l = percentiles_array(r, 50, 100)", rows: [{ l: [0.5, 1.5] }] },
  ],
  "percentiles that are computed": [
    {
      query: `${TEN} | summarize percentiles_array(x, range(0, 100, 25))`,
      rows: [{ percentiles_x: [1, 3, 5, 8, 10] }],
    },
    {
      query: "let ps = dynamic([50, 99.9]); range x from 1 to 1000 step 1 | summarize l = percentiles_array(x, ps)",
      rows: [{ l: [500, 999] }],
    },
    { query: `${TEN} | summarize l = percentiles_array(x, range(1.5s, 100, 25))`, rows: [{ l: [] }] },
    {
      query: `${TEN} | summarize l = percentiles_array(x, dynamic([101]))`,
      refused: { code: "invalid_query", message: "percentile" },
    },
  ],
  "percentilew(), percentilesw()": [
    {
      query: `${LATENCY} | summarize percentilesw(ms, n, 50, 75, 99.9)`,
      rows: [{ percentile_ms_50: 20, percentile_ms_75: 20, percentile_ms_99_9: 40 }],
      types: { percentile_ms_50: "long", percentile_ms_75: "long", percentile_ms_99_9: "long" },
    },
    {
      query: `${LATENCY} | summarize percentilew(ms, n, 44)`,
      rows: [{ percentile_ms_44: 10 }],
      types: { percentile_ms_44: "long" },
    },
    { query: `${LATENCY} | summarize p = percentilew(ms, n, 45)`, rows: [{ p: 20 }] },
    {
      query: `${LATENCY} | summarize a = percentilew(ms, n, 0), b = percentilew(ms, n, 100)`,
      rows: [{ a: 10, b: 40 }],
    },
    {
      query: `${LATENCY} | summarize percentilesw_array(ms, n, 50, 75, 99.9)`,
      rows: [{ percentiles_ms: [20, 20, 40] }],
      types: { percentiles_ms: "dynamic" },
    },
    {
      query: `${LATENCY} | summarize percentilesw_array(ms, n, dynamic([50, 75, 99.9]))`,
      rows: [{ percentiles_ms: [20, 20, 40] }],
    },
    {
      query: "datatable(x: long, w: long)[long(null), 100, 1, 1, 2, 1] | summarize p = percentilew(x, w, 50)",
      rows: [{ p: 1 }],
    },
    { query: "datatable(x: long, w: long)[] | summarize p = percentilew(x, w, 50)", rows: [{ p: null }] },
  ],
};

const deviations: KqlCases = {
  "stdev(), stdevif(), stdevp()": [
    { query: "range x from 1 to 3 step 1 | summarize stdev(x)", rows: [{ stdev_x: 1 }], types: { stdev_x: "real" } },
    { query: "range x from 1 to 5 step 1 | summarize s = round(stdev(x), 10)", rows: [{ s: 1.5811388301 }] },
    {
      query: "datatable(x: long)[2, 4, 4, 4, 5, 5, 7, 9] | summarize stdevp(x)",
      rows: [{ stdevp_x: 2 }],
      types: { stdevp_x: "real" },
    },
    { query: "datatable(r: real)[1.0, real(null), 2.0, 3.0] | summarize stdev(r)", rows: [{ stdev_r: 1 }] },
    {
      query: "range x from 1 to 100 step 1 | summarize s = round(stdevif(x, x % 2 == 0), 10)",
      rows: [{ s: 29.1547594742 }],
    },
    { query: "range x from 1 to 3 step 1 | summarize stdevif(x, x > 100)", rows: [{ stdevif_x: 0 }] },
    {
      query:
        "datatable(r: real)[1.0, real(nan), 3.0] | summarize a = isnan(stdev(r)), b = isnan(variance(r)), c = isnan(avg(r))",
      rows: [{ a: true, b: true, c: true }],
    },
    {
      query:
        "datatable(r: real)[1.0, real(+inf)] | summarize a = isnan(stdev(r)), b = isinf(avg(r)), c = isinf(max(r))",
      rows: [{ a: true, b: true, c: true }],
    },
    { query: "datatable(p: timespan)[1h] | summarize stdev(p)", refused: { code: "invalid_query", message: "stdev" } },
    { query: "datatable(x: long)[5, 5, 5] | summarize stdev(x), stdevp(x)", rows: [{ stdev_x: 0, stdevp_x: 0 }] },
    { query: "datatable(s: string)[] | summarize stdev(s)", refused: { code: "invalid_query", message: "summable" } },
  ],
  "variance(), varianceif(), variancep(), variancepif()": [
    {
      query: "range x from 1 to 5 step 1 | summarize variance(x), variancep(x)",
      rows: [{ variance_x: 2.5, variancep_x: 2 }],
      types: { variance_x: "real", variancep_x: "real" },
    },
    {
      query: "range x from 1 to 100 step 1 | summarize varianceif(x, x % 2 == 0)",
      rows: [{ varianceif_x: 850 }],
      types: { varianceif_x: "real" },
    },
    {
      query: "range x from 1 to 5 step 1 | summarize variancepif(x, x <= 3 and x != 2)",
      rows: [{ variancepif_x: 1 }],
      types: { variancepif_x: "real" },
    },
    {
      query: "datatable(x: long)[1, long(null), 3] | summarize variance(x), variancep(x)",
      rows: [{ variance_x: 2, variancep_x: 1 }],
    },
    { query: `${MANY_NULLS} | summarize variance(x)`, rows: [{ variance_x: 0 }] },
    {
      query:
        "datatable(k: string, x: long)['a', 1, 'a', 3, 'b', 5, 'b', 9] | summarize v = variance(x) by k | order by k asc",
      rows: [
        { k: "a", v: 2 },
        { k: "b", v: 8 },
      ],
    },
  ],
  "covariance(), covarianceif(), covariancep(), covariancepif()": [
    {
      query:
        "datatable(x: real, y: real)[1.0, 14.0, 2.0, 10.0, 3.0, 17.0, 4.0, 20.0, 5.0, 50.0] | summarize c = covariance(x, y), p = covariancep(x, y)",
      rows: [{ c: 20.5, p: 16.4 }],
      types: { c: "real", p: "real" },
    },
    {
      query:
        "range x from 1 to 100 step 1 | extend y = iff(x % 2 == 0, x * 2, x * 3) | summarize c = round(covarianceif(x, y, x % 3 == 0), 6), p = round(covariancepif(x, y, x % 3 == 0), 6)",
      rows: [{ c: 2142, p: 2077.090909 }],
    },
    {
      query: "datatable(x: long, y: long)[1, 1, 2, long(null), long(null), 5, 3, 3] | summarize c = covariance(x, y)",
      rows: [{ c: 2 }],
    },
    { query: "datatable(x: long, y: long)[] | summarize c = covariance(x, y)", rows: [{ c: null }] },
  ],
};

const bits: KqlCases = {
  "binary_all_and(), binary_all_or(), binary_all_xor()": [
    {
      query:
        "datatable(x: long)[12, 10] | summarize a = binary_all_and(x), o = binary_all_or(x), e = binary_all_xor(x)",
      rows: [{ a: 8, o: 14, e: 6 }],
      types: { a: "long", o: "long", e: "long" },
    },
    {
      query: "datatable(x: long)[0xFFFFFFFF, 0xFFFFF00F, 0xCFFFFFFD, 0xFAFEFFFF] | summarize r = binary_all_and(x)",
      rows: [{ r: 3405705229 }],
    },
    {
      query: "datatable(x: long)[0x88888008, 0x42000000, 0x00767000, 0x00000005] | summarize r = binary_all_or(x)",
      rows: [{ r: 3405705229 }],
    },
    {
      query: "datatable(x: long)[0x44404440, 0x1E1E1E1E, 0x90ABBA09, 0x000B105A] | summarize r = binary_all_xor(x)",
      rows: [{ r: 3405705229 }],
    },
    {
      query: "datatable(x: long)[-1, 5] | summarize a = binary_all_and(x), o = binary_all_or(x)",
      rows: [{ a: 5, o: -1 }],
    },
    {
      query: "datatable(x: long)[long(null), 6, 3] | summarize binary_all_and(x)",
      rows: [{ x: 2 }],
      types: { x: "long" },
    },
    { query: `${NO_ROWS} | summarize binary_all_and(x)`, rows: [{ x: null }] },
    {
      query:
        "datatable(k: string, x: long)['a', 1, 'a', 2, 'b', 4] | summarize o = binary_all_or(x) by k | order by k asc",
      rows: [
        { k: "a", o: 3 },
        { k: "b", o: 4 },
      ],
    },
  ],
};

const refusals: KqlCases = {
  "sketches are refused": [
    { query: `${TEN} | summarize hll(x)`, refused: { code: "invalid_query", message: "hll" } },
    { query: `${TEN} | summarize hll_if(x, true)`, refused: { code: "invalid_query", message: "hll_if" } },
    {
      query: "datatable(j: dynamic)[] | summarize hll_merge(j)",
      refused: { code: "invalid_query", message: "hll_merge" },
    },
    { query: `${TEN} | summarize tdigest(x)`, refused: { code: "invalid_query", message: "tdigest" } },
    {
      query: "datatable(j: dynamic)[] | summarize tdigest_merge(j)",
      refused: { code: "invalid_query", message: "tdigest_merge" },
    },
    {
      query: "datatable(j: dynamic)[] | summarize merge_tdigest(j)",
      refused: { code: "invalid_query", message: "merge_tdigest" },
    },
  ],
};

export const aggregates: KqlCases = {
  ...counts,
  ...sums,
  ...percentiles,
  ...deviations,
  ...bits,
  ...refusals,
};
