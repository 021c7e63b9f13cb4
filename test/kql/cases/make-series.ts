import type { KqlCases } from "../cases.test-kit.ts";

const METRIC = `datatable(timestamp: datetime, metric: real)[
  datetime(2016-12-31T06:00), 50, datetime(2017-01-01), 4, datetime(2017-01-02), 3, datetime(2017-01-03), 4,
  datetime(2017-01-03T03:00), 6, datetime(2017-01-05), 8, datetime(2017-01-05T13:40), 13, datetime(2017-01-06), 4,
  datetime(2017-01-07), 3, datetime(2017-01-08), 8, datetime(2017-01-08T21:00), 8, datetime(2017-01-09), 2,
  datetime(2017-01-09T12:00), 11, datetime(2017-01-10T05:00), 5]`;
const DAYS = ["01", "02", "03", "04", "05", "06", "07", "08", "09"].map((day) => `2017-01-${day}T00:00:00.0000000Z`);
const RANGE = "on timestamp from datetime(2017-01-01) to datetime(2017-01-10) step 1d";
const POINTS = "datatable(k: string, x: long, v: long)['a', 0, 1, 'a', 1, 2, 'a', 5, 3, 'b', 3, 10]";

export const makeSeries: KqlCases = {
  "make-series over times": [
    {
      query: `${METRIC} | make-series avg(metric) ${RANGE}`,
      rows: [{ avg_metric: [4, 3, 5, 0, 10.5, 4, 3, 8, 6.5], timestamp: DAYS }],
      types: { avg_metric: "dynamic", timestamp: "dynamic" },
    },
    { query: `${METRIC} | take 0 | make-series avg(metric) default = 1.0 ${RANGE} | count`, rows: [{ Count: 0 }] },
    {
      query: `${METRIC} | take 0 | make-series kind=nonempty avg(metric) default = 1.0 ${RANGE}`,
      rows: [{ avg_metric: [1, 1, 1, 1, 1, 1, 1, 1, 1], timestamp: DAYS }],
    },
    {
      query: `${METRIC} | make-series n = count() ${RANGE} | project n`,
      rows: [{ n: [1, 1, 2, 0, 2, 1, 1, 2, 2] }],
      types: { n: "dynamic" },
    },
    {
      query: `${METRIC} | make-series lo = min(metric), hi = max(metric) default = -1 ${RANGE} | project lo, hi`,
      rows: [{ lo: [4, 3, 4, 0, 8, 4, 3, 8, 2], hi: [4, 3, 6, -1, 13, 4, 3, 8, 11] }],
    },
    {
      query: `${METRIC} | make-series a = avg(metric) default = real(null) ${RANGE} | project a`,
      rows: [{ a: [4, 3, 5, null, 10.5, 4, 3, 8, 6.5] }],
    },
    {
      query: `let stime = datetime(2017-01-01); let etime = datetime(2017-01-04); let interval = 1d;
        ${METRIC} | make-series sum(metric) on timestamp from stime to etime step interval`,
      rows: [{ sum_metric: [4, 3, 10], timestamp: DAYS.slice(0, 3) }],
    },
    {
      query: `datatable(t: datetime, v: int, other: int)[datetime(2025-01-07), 10, 11, datetime(2025-01-16), 20, 21, datetime(2025-02-01), 30, 5]
        | make-series v = sum(v), other = -1 default = -2 on t from datetime(2025-01-06) to datetime(2025-02-09) step 7d | project v, other`,
      rows: [{ v: [10, 20, 0, 30, 0], other: [-1, -1, -2, -1, -2] }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(1969-12-30T12:00), datetime(1970-01-01T12:00)] | make-series n = count() on t from datetime(1969-12-30) to datetime(1970-01-02) step 1d",
      rows: [
        {
          n: [1, 0, 1],
          t: ["1969-12-30T00:00:00.0000000Z", "1969-12-31T00:00:00.0000000Z", "1970-01-01T00:00:00.0000000Z"],
        },
      ],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01T01:29:59), datetime(2024-01-01T01:30:00)] | make-series n = count() on t from datetime(2024-01-01T00:30:00) to datetime(2024-01-01T03:30:00) step 1h",
      rows: [
        {
          n: [1, 1, 0],
          t: ["2024-01-01T00:30:00.0000000Z", "2024-01-01T01:30:00.0000000Z", "2024-01-01T02:30:00.0000000Z"],
        },
      ],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01), datetime(2024-01-02)] | make-series n = count() on t from datetime(2024-01-01) to datetime(2024-01-02) step 1d",
      rows: [{ n: [1], t: ["2024-01-01T00:00:00.0000000Z"] }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01)] | make-series n = count() on t from datetime(2024-01-01) to datetime(2024-01-01T12:00) step 1d",
      rows: [{ n: [1], t: ["2024-01-01T00:00:00.0000000Z"] }],
    },
  ],
  "make-series over numbers and timespans": [
    {
      query: "datatable(x: long, v: long)[0, 1, 1, 2, 5, 3, 6, 100] | make-series s = sum(v) on x from 0 to 6 step 2",
      rows: [{ s: [3, 0, 3], x: [0, 2, 4] }],
      types: { s: "dynamic", x: "dynamic" },
    },
    {
      query: "datatable(x: long, v: long)[0, 1, 3, 2] | make-series s = sum(v) on x from 1 to 6 step 2",
      rows: [{ s: [0, 2, 0], x: [1, 3, 5] }],
    },
    {
      query: "datatable(x: long)[-3, -1, 0] | make-series n = count() on x from -4 to 2 step 2",
      rows: [{ n: [1, 1, 1], x: [-4, -2, 0] }],
    },
    {
      query: "datatable(r: real)[0.1, 0.6, 0.7] | make-series n = count() on r from 0.0 to 1.0 step 0.5",
      rows: [{ n: [1, 2], r: [0, 0.5] }],
    },
    {
      query: "datatable(p: timespan)[10m, 20m, 70m] | make-series n = count() on p from 0h to 3h step 1h",
      rows: [{ n: [2, 1, 0], p: ["00:00:00", "01:00:00", "02:00:00"] }],
    },
    {
      query: "datatable(x: long)[long(null), 1] | make-series n = count() on x from 0 to 2 step 1",
      rows: [{ n: [0, 1], x: [0, 1] }],
    },
  ],
  "make-series without from or to": [
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01T06:00), datetime(2024-01-03T01:00)] | make-series n = count() on t step 1d",
      rows: [
        {
          n: [1, 0, 1],
          t: ["2024-01-01T00:00:00.0000000Z", "2024-01-02T00:00:00.0000000Z", "2024-01-03T00:00:00.0000000Z"],
        },
      ],
    },
    {
      query: "datatable(x: long)[3, 7] | make-series n = count() on x step 2",
      rows: [{ n: [1, 0, 1], x: [2, 4, 6] }],
    },
    {
      query: "datatable(x: long)[3, 7] | make-series n = count() on x from 0 step 2",
      rows: [{ n: [0, 1, 0, 1], x: [0, 2, 4, 6] }],
    },
    {
      query: "datatable(x: long)[3, 7] | make-series n = count() on x to 10 step 2",
      rows: [{ n: [1, 0, 1, 0], x: [2, 4, 6, 8] }],
    },
    {
      query: "datatable(x: long)[] | make-series n = count() on x step 2",
      rows: [],
      types: { n: "dynamic", x: "dynamic" },
    },
  ],
  "make-series by keys": [
    {
      query: `${POINTS} | make-series s = sum(v) on x from 0 to 6 step 2 by k | order by k asc`,
      rows: [
        { k: "a", s: [3, 0, 3], x: [0, 2, 4] },
        { k: "b", s: [0, 10, 0], x: [0, 2, 4] },
      ],
      types: { k: "string", s: "dynamic", x: "dynamic" },
    },
    {
      query: `${POINTS} | make-series s = sum(v) on x step 2 by k | order by k asc`,
      rows: [
        { k: "a", s: [3, 0, 3], x: [0, 2, 4] },
        { k: "b", s: [10], x: [2] },
      ],
    },
    {
      query: `${POINTS} | make-series sum(v), n = count() default = -1 on x from 0 to 6 step 3 by key = toupper(k) | order by key asc`,
      rows: [
        { key: "A", sum_v: [3, 3], n: [2, 1], x: [0, 3] },
        { key: "B", sum_v: [0, 10], n: [-1, 1], x: [0, 3] },
      ],
      types: { key: "string", sum_v: "dynamic", n: "dynamic", x: "dynamic" },
    },
    {
      query: `${POINTS} | make-series n = count() on x from 0 to 6 step 6 by k, v | order by v asc | project k, v, n`,
      rows: [
        { k: "a", v: 1, n: [1] },
        { k: "a", v: 2, n: [1] },
        { k: "a", v: 3, n: [1] },
        { k: "b", v: 10, n: [1] },
      ],
    },
    {
      query:
        "datatable(k: long, x: long)[long(null), 0, 1, 1] | make-series n = count() on x from 0 to 2 step 1 by k | order by k asc | project k, n",
      rows: [
        { k: null, n: [1, 0] },
        { k: 1, n: [0, 1] },
      ],
    },
  ],
  "aggregates of make-series": [
    {
      query: `${POINTS} | make-series p = percentile(v, 50) on x from 0 to 6 step 6 | project p`,
      rows: [{ p: [2] }],
      types: { p: "dynamic" },
    },
    {
      query: `${POINTS} | make-series d = dcount(k), c = countif(v > 1) on x from 0 to 6 step 6 | project d, c`,
      rows: [{ d: [2], c: [3] }],
    },
    {
      query: `${POINTS} | make-series s = sumif(v, k == 'a') on x from 0 to 6 step 3 | project s`,
      rows: [{ s: [3, 3] }],
    },
    {
      query: `${POINTS} | make-series r = sum(v) * 2 default = -1 on x from 0 to 8 step 2 | project r`,
      rows: [{ r: [6, 20, 6, -1] }],
    },
    {
      query: `${POINTS} | make-series m = avg(v) on x from 0 to 6 step 3 | mv-expand m to typeof(real), x to typeof(long)`,
      rows: [
        { m: 1.5, x: 0 },
        { m: 6.5, x: 3 },
      ],
      types: { m: "real", x: "long" },
    },
  ],
  "make-series with bounds that nothing is between": [
    {
      query: `${POINTS} | make-series n = count() on x from 10 to 20 step 5`,
      rows: [],
      types: { n: "dynamic", x: "dynamic" },
    },
    {
      query: `${POINTS} | make-series kind=nonempty n = count() on x from 10 to 20 step 5`,
      rows: [{ n: [0, 0], x: [10, 15] }],
    },
    { query: `${POINTS} | make-series kind=nonempty n = count() on x from 5 to 5 step 1`, rows: [{ n: [], x: [] }] },
    {
      query: `${POINTS} | make-series n = count() on x from 0 to 1048576 step 1 | project l = array_length(n)`,
      rows: [{ l: 1048576 }],
    },
  ],
  "make-series in range()": [
    {
      query: "datatable(x: long)[0, 1, 4, 6] | make-series n = count() on x in range(0, 6, 2)",
      rows: [{ n: [2, 0, 1, 1], x: [0, 2, 4, 6] }],
      types: { n: "dynamic", x: "dynamic" },
    },
  ],
  "make-series that is refused": [
    {
      query: `${POINTS} | make-series count() on nosuch from 0 to 5 step 1`,
      refused: { code: "invalid_query", message: "nosuch" },
    },
    {
      query: `${POINTS} | make-series count() on k from 0 to 5 step 1`,
      refused: { code: "invalid_query", message: "" },
    },
    {
      query: `${POINTS} | make-series make_list(v) on x from 0 to 5 step 1`,
      refused: { code: "invalid_query", message: "make_list" },
    },
    {
      query: `${POINTS} | make-series max(k) on x from 0 to 5 step 1`,
      refused: { code: "invalid_query", message: "max(k)" },
    },
    {
      query: `${POINTS} | make-series count() on x from 0 to 5 step 0`,
      refused: { code: "invalid_query", message: "step" },
    },
    {
      query: `${POINTS} | make-series kind=nonempty count() on x from 0 to 5 step 1 by k`,
      refused: { code: "invalid_query", message: "nonempty" },
    },
    {
      query: `${POINTS} | make-series kind=nonempty count() on x step 1`,
      refused: { code: "invalid_query", message: "nonempty" },
    },
    {
      query: `${POINTS} | make-series count() on x from 0 to 1048577 step 1`,
      refused: { code: "execution_error", message: "1048576" },
    },
    { query: `${POINTS} | make-series count() on x from 0 to 5`, refused: { code: "parse_error", message: "step" } },
  ],
};
