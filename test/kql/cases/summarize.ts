import type { KqlCases } from "../cases.test-kit.ts";

const SALES = "datatable(s: string, x: long)['a', 1, 'b', 2, 'a', 3, 'b', 4, 'c', 5]";
const NO_ROWS = "datatable(s: string, x: long)[]";
const NULL_KEYS = "datatable(k: long, x: long)[1, 10, long(null), 20, 1, 30, long(null), 40]";

export const summarize: KqlCases = {
  "summarize by columns": [
    {
      query: `${SALES} | summarize n = count() by s | order by s asc`,
      rows: [
        { s: "a", n: 2 },
        { s: "b", n: 2 },
        { s: "c", n: 1 },
      ],
      types: { s: "string", n: "long" },
    },
    {
      query:
        "datatable(a: string, b: long, x: long)['p', 1, 5, 'p', 2, 6, 'p', 1, 7, 'q', 1, 8] | summarize t = sum(x) by a, b",
      rows: [
        { a: "p", b: 1, t: 12 },
        { a: "p", b: 2, t: 6 },
        { a: "q", b: 1, t: 8 },
      ],
      types: { a: "string", b: "long", t: "long" },
      unordered: true,
    },
    {
      query: "datatable(a: string, b: long, x: long)['p', 1, 5, 'q', 2, 6] | summarize sum(x) by b, a | order by b asc",
      rows: [
        { b: 1, a: "p", sum_x: 5 },
        { b: 2, a: "q", sum_x: 6 },
      ],
      types: { b: "long", a: "string", sum_x: "long" },
    },
    {
      query: `${SALES} | summarize m = max(x) by key = s | order by key desc`,
      rows: [
        { key: "c", m: 5 },
        { key: "b", m: 4 },
        { key: "a", m: 3 },
      ],
      types: { key: "string", m: "long" },
    },
    {
      query: `${SALES} | summarize ['the count'] = count() by ['the key'] = s | where ['the key'] == 'c'`,
      rows: [{ "the key": "c", "the count": 1 }],
      types: { "the key": "string", "the count": "long" },
    },
    {
      query: `${SALES} | summarize s = count() by s2 = s, s3 = s | where s2 == 'a'`,
      rows: [{ s2: "a", s3: "a", s: 2 }],
      types: { s2: "string", s3: "string", s: "long" },
    },
    {
      query: "datatable(s: string)['a', 'A', 'a ', ''] | summarize n = count() by s | order by s asc",
      rows: [
        { s: "", n: 1 },
        { s: "A", n: 1 },
        { s: "a", n: 1 },
        { s: "a ", n: 1 },
      ],
    },
    {
      query: "datatable(s: string)['é', 'e', 'é', '日本'] | summarize n = count() by s",
      rows: [
        { s: "é", n: 2 },
        { s: "e", n: 1 },
        { s: "日本", n: 1 },
      ],
      unordered: true,
    },
    {
      query: "datatable(b: bool)[true, false, true, bool(null)] | summarize n = count() by b",
      rows: [
        { b: true, n: 2 },
        { b: false, n: 1 },
        { b: null, n: 1 },
      ],
      unordered: true,
    },
    {
      query: "datatable(p: timespan)[1h, 60m, 2h] | summarize n = count() by p | order by p asc",
      rows: [
        { p: "01:00:00", n: 2 },
        { p: "02:00:00", n: 1 },
      ],
      types: { p: "timespan", n: "long" },
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01), datetime(2024-01-01T00:00:00.0000001Z), datetime(2024-01-01)] | summarize n = count() by t | order by t asc",
      rows: [
        { t: "2024-01-01T00:00:00Z", n: 2 },
        { t: "2024-01-01T00:00:00.0000001Z", n: 1 },
      ],
    },
  ],
  "summarize by null keys": [
    {
      query: `${NULL_KEYS} | summarize t = sum(x) by k`,
      rows: [
        { k: 1, t: 40 },
        { k: null, t: 60 },
      ],
      unordered: true,
    },
    {
      query: `${NULL_KEYS} | summarize by k`,
      rows: [{ k: 1 }, { k: null }],
      unordered: true,
    },
    {
      query: `${NULL_KEYS} | summarize count() by isnull(k) | order by count_ asc, Column1 asc`,
      rows: [
        { Column1: false, count_: 2 },
        { Column1: true, count_: 2 },
      ],
    },
    {
      query: "datatable(t: datetime, x: long)[datetime(null), 1, datetime(null), 2] | summarize sum(x) by bin(t, 1h)",
      rows: [{ t: null, sum_x: 3 }],
      types: { t: "datetime", sum_x: "long" },
    },
  ],
  "summarize by computed keys": [
    {
      query:
        "datatable(at: datetime)[datetime(2024-05-01T00:10:00Z), datetime(2024-05-01T00:59:59.9999999Z), datetime(2024-05-01T01:00:00Z)] | summarize count() by bin(at, 1h) | order by at asc",
      rows: [
        { at: "2024-05-01T00:00:00Z", count_: 2 },
        { at: "2024-05-01T01:00:00Z", count_: 1 },
      ],
      types: { at: "datetime", count_: "long" },
    },
    {
      query:
        "datatable(at: datetime)[datetime(1969-12-31T23:30:00Z), datetime(1969-12-31T22:00:00Z), datetime(1970-01-01)] | summarize count() by bin(at, 1h) | order by at asc",
      rows: [
        { at: "1969-12-31T22:00:00Z", count_: 1 },
        { at: "1969-12-31T23:00:00Z", count_: 1 },
        { at: "1970-01-01T00:00:00Z", count_: 1 },
      ],
    },
    {
      query: "datatable(x: long)[-1, -10, -11, 0, 9, 10] | summarize n = count() by bin(x, 10) | order by x asc",
      rows: [
        { x: -20, n: 1 },
        { x: -10, n: 2 },
        { x: 0, n: 2 },
        { x: 10, n: 1 },
      ],
      types: { x: "long", n: "long" },
    },
    {
      query: "datatable(x: long)[1, 2, 3, 4, 5] | summarize s = sum(x) by x = x % 2 | order by x asc",
      rows: [
        { x: 0, s: 6 },
        { x: 1, s: 9 },
      ],
      types: { x: "long", s: "long" },
    },
    {
      query: `${SALES} | summarize n = count() by s = toupper(s) | order by s asc`,
      rows: [
        { s: "A", n: 2 },
        { s: "B", n: 2 },
        { s: "C", n: 1 },
      ],
    },
    {
      query:
        "datatable(s: string)['a', 'A', 'b'] | summarize n = count(), m = make_set(s) by s = tolower(s) | project s, n, k = array_length(m) | order by s asc",
      rows: [
        { s: "a", n: 2, k: 2 },
        { s: "b", n: 1, k: 1 },
      ],
    },
    {
      query: `${SALES} | summarize count() by x % 2 == 0 | order by count_ asc`,
      rows: [
        { Column1: true, count_: 2 },
        { Column1: false, count_: 3 },
      ],
      types: { Column1: "bool", count_: "long" },
    },
    {
      query: `${SALES} | summarize count() by even = x % 2 == 0, s | where even`,
      rows: [{ even: true, s: "b", count_: 2 }],
      types: { even: "bool", s: "string", count_: "long" },
    },
    {
      query: "datatable(s: string)['ab', 'c', 'de'] | summarize count() by strlen(s) | order by strlen_s asc",
      rows: [
        { strlen_s: 1, count_: 1 },
        { strlen_s: 2, count_: 2 },
      ],
      types: { strlen_s: "long", count_: "long" },
    },
    {
      query:
        "datatable(s: string)['ab', 'ac', 'bc'] | summarize count() by substring(s, 0, 1), strcat(s, '!') | order by Column2 asc",
      rows: [
        { Column1: "a", Column2: "ab!", count_: 1 },
        { Column1: "a", Column2: "ac!", count_: 1 },
        { Column1: "b", Column2: "bc!", count_: 1 },
      ],
      types: { Column1: "string", Column2: "string", count_: "long" },
    },
    {
      query:
        "datatable(j: dynamic)[dynamic({'a': 1}), dynamic({'a': 1, 'b': 2}), dynamic({})] | summarize count() by tostring(j.a) | order by j_a asc",
      rows: [
        { j_a: "", count_: 1 },
        { j_a: "1", count_: 2 },
      ],
      types: { j_a: "string", count_: "long" },
    },
    {
      query: `${SALES} | summarize total = sum(x) by 1`,
      rows: [{ Column1: 1, total: 15 }],
      types: { Column1: "long", total: "long" },
    },
    {
      query: "datatable(r: real)[0.1, 0.4, 0.5, 1.2, -0.1] | summarize n = count() by bin(r, 0.5) | order by r asc",
      rows: [
        { r: -0.5, n: 1 },
        { r: 0, n: 2 },
        { r: 0.5, n: 1 },
        { r: 1, n: 1 },
      ],
    },
    {
      query: "datatable(p: timespan)[-1h, 1h, 25h] | summarize n = count() by bin(p, 1d) | order by p asc",
      rows: [
        { p: "-1.00:00:00", n: 1 },
        { p: "00:00:00", n: 1 },
        { p: "1.00:00:00", n: 1 },
      ],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-02-29T12:00:00Z), datetime(2024-02-29T13:00:00Z), datetime(2024-03-01)] | summarize n = count() by day = startofday(t) | order by day asc",
      rows: [
        { day: "2024-02-29T00:00:00Z", n: 2 },
        { day: "2024-03-01T00:00:00Z", n: 1 },
      ],
    },
  ],
  "summarize without aggregates": [
    {
      query: `${SALES} | summarize by s | order by s asc`,
      rows: [{ s: "a" }, { s: "b" }, { s: "c" }],
      types: { s: "string" },
    },
    {
      query: "datatable(a: long, b: long)[1, 1, 1, 1, 1, 2, 2, 1] | summarize by a, b | order by a asc, b asc",
      rows: [
        { a: 1, b: 1 },
        { a: 1, b: 2 },
        { a: 2, b: 1 },
      ],
    },
    {
      query: `${SALES} | summarize by big = x > 3`,
      rows: [{ big: false }, { big: true }],
      unordered: true,
    },
    { query: `${NO_ROWS} | summarize by s`, rows: [], types: { s: "string" } },
  ],
  "summarize without keys": [
    {
      query: `${SALES} | summarize n = count(), t = sum(x), a = avg(x), lo = min(x), hi = max(x)`,
      rows: [{ n: 5, t: 15, a: 3, lo: 1, hi: 5 }],
      types: { n: "long", t: "long", a: "real", lo: "long", hi: "long" },
    },
    { query: `${SALES} | summarize one = 1`, rows: [{ one: 1 }], types: { one: "long" } },
  ],
  "summarize of no rows": [
    { query: `${NO_ROWS} | summarize count() by s`, rows: [], types: { s: "string", count_: "long" } },
    { query: `${NO_ROWS} | summarize count(), sum(x), avg(x), max(x) by s`, rows: [] },
    { query: `${NO_ROWS} | summarize count()`, rows: [{ count_: 0 }] },
    { query: `${SALES} | where x > 100 | summarize n = count(), t = sum(x)`, rows: [{ n: 0, t: 0 }] },
    {
      query: `${NO_ROWS} | summarize avg(x), min(x), max(x), take_any(x), percentile(x, 55)`,
      rows: [{ avg_x: null, min_x: null, max_x: null, x: null, percentile_x_55: null }],
    },
    {
      query: `${NO_ROWS} | summarize count(), countif(x > 0), dcount(x), dcountif(x, x > 0), count_distinct(x), sum(x), sumif(x, x > 0)`,
      rows: [{ count_: 0, countif_: 0, dcount_x: 0, dcountif_x: 0, count_distinct_x: 0, sum_x: 0, sumif_x: 0 }],
    },
    {
      query: `${NO_ROWS} | summarize variance(x), varianceif(x, x > 0), stdev(x), stdevif(x, x > 0)`,
      rows: [{ variance_x: 0, varianceif_x: 0, stdev_x: 0, stdevif_x: 0 }],
    },
    { query: `${NO_ROWS} | summarize make_set(x), make_list(x)`, rows: [{ set_x: [], list_x: [] }] },
    { query: `${NO_ROWS} | summarize 1.0 * countif(x > 0) / count()`, rows: [{ Column1: null }] },
    { query: `${NO_ROWS} | summarize n = count() + 1`, rows: [{ n: 1 }] },
    { query: `${NO_ROWS} | summarize t = iff(count() == 0, 'none', 'some')`, rows: [{ t: "none" }] },
  ],
  "functions over aggregates that DuckDB's TRY does not take": [
    {
      query:
        "datatable(k: string, n: long, j: dynamic)['a', 1, dynamic([3]), 'a', 4, dynamic([3])] | summarize x = abs(count()), y = -count(), z = abs(sum(-n)), c = abs(count_distinct(n)) by k",
      rows: [{ k: "a", x: 2, y: -2, z: 5, c: 2 }],
    },
    {
      query:
        "datatable(t: string)['2024-05-01', '2023-01-01'] | summarize x = todatetime(max(t)), y = -(todatetime(max(t)) - todatetime(min(t)))",
      rows: [{ x: "2024-05-01T00:00:00Z", y: "-486.00:00:00" }],
    },
    {
      query:
        "range k from 1 to 3 step 1 | summarize x = abs(max(todecimal(k))) by b = k % 2 | order by b asc | project x = tolong(x)",
      rows: [{ x: 2 }, { x: 3 }],
    },
  ],
  "expressions over aggregates": [
    {
      query: `${SALES} | summarize 1.0 * countif(x > 3) / count()`,
      rows: [{ Column1: 0.4 }],
      types: { Column1: "real" },
    },
    {
      query: `${SALES} | summarize share = countif(x > 3) / count()`,
      rows: [{ share: 0 }],
      types: { share: "long" },
    },
    {
      query: `${SALES} | summarize spread = max(x) - min(x), ratio = sum(x) / count() by s | order by s asc`,
      rows: [
        { s: "a", spread: 2, ratio: 2 },
        { s: "b", spread: 2, ratio: 3 },
        { s: "c", spread: 0, ratio: 5 },
      ],
    },
    {
      query: `${SALES} | summarize round(avg(x), 1), tostring(sum(x)), count() * 2`,
      rows: [{ avg_x: 3, sum_x: "15", Column1: 10 }],
      types: { avg_x: "real", sum_x: "string", Column1: "long" },
    },
    {
      query: `${SALES} | summarize r = iff(sum(x) > 5, 'much', 'little') by s | order by s asc`,
      rows: [
        { s: "a", r: "little" },
        { s: "b", r: "much" },
        { s: "c", r: "little" },
      ],
    },
    {
      query: `${SALES} | summarize isnull(max(x)), strcat('n=', count())`,
      rows: [{ Column1: false, Column2: "n=5" }],
      types: { Column1: "bool", Column2: "string" },
    },
    {
      query: "datatable(x: long)[3, 1, 2] | sort by x asc | summarize f = make_list(x)[0], l = make_list(x)[-1]",
      rows: [{ f: 1, l: 3 }],
      types: { f: "dynamic", l: "dynamic" },
    },
    {
      query: "let f = 10; datatable(x: long)[1, 2] | summarize t = f * sum(x) + f",
      rows: [{ t: 40 }],
    },
    {
      query: "datatable(t: datetime)[datetime(2024-01-01), datetime(2024-01-03)] | summarize span = max(t) - min(t)",
      rows: [{ span: "2.00:00:00" }],
      types: { span: "timespan" },
    },
  ],
  "names of unnamed columns": [
    {
      query: `${SALES} | summarize count(), countif(x > 1), sum(x), avg(x), min(x), max(x), dcount(s)`,
      rows: [{ count_: 5, countif_: 4, sum_x: 15, avg_x: 3, min_x: 1, max_x: 5, dcount_s: 3 }],
      types: {
        count_: "long",
        countif_: "long",
        sum_x: "long",
        avg_x: "real",
        min_x: "long",
        max_x: "long",
        dcount_s: "long",
      },
    },
    {
      query: `${SALES} | summarize sum(x), sum(x), count(), count()`,
      rows: [{ sum_x: 15, sum_x1: 15, count_: 5, count_1: 5 }],
      types: { sum_x: "long", sum_x1: "long", count_: "long", count_1: "long" },
    },
    {
      query: `${SALES} | summarize sum(x + 1), sum(x * 2)`,
      rows: [{ sum_: 20, sum_1: 30 }],
      types: { sum_: "long", sum_1: "long" },
    },
    {
      query: `${SALES} | summarize count_ = sum(x), count()`,
      rows: [{ count_: 15, count_1: 5 }],
      types: { count_: "long", count_1: "long" },
    },
    {
      query: `${SALES} | summarize percentile(x, 50), percentiles(x, 5, 99.5)`,
      rows: [{ percentile_x_50: 3, percentile_x_5: 1, percentile_x_99_5: 5 }],
      types: { percentile_x_50: "long", percentile_x_5: "long", percentile_x_99_5: "long" },
    },
    {
      query:
        "range x from 1 to 2 step 1 | extend y = iff(x == 1, real(null), real(5)) | summarize make_set(y), make_set(y)",
      rows: [{ set_y: [5], set_y1: [5] }],
      types: { set_y: "dynamic", set_y1: "dynamic" },
    },
    {
      query: `${SALES} | summarize a = sum(x), sum(x) by x = x % 2 | order by x asc`,
      rows: [
        { x: 0, a: 6, sum_x: 6 },
        { x: 1, a: 9, sum_x: 9 },
      ],
    },
  ],
  "aggregates of expressions": [
    {
      query: `${SALES} | summarize t = sum(x * x), u = max(x % 3), v = avg(x * 1.0 / 2)`,
      rows: [{ t: 55, u: 2, v: 1.5 }],
    },
    { query: `${SALES} | summarize t = sum(iff(s == 'a', x, 0)), m = max(strcat(s, '!'))`, rows: [{ t: 4, m: "c!" }] },
    { query: `${SALES} | summarize t = sum(strlen(s)), d = dcount(toupper(s))`, rows: [{ t: 5, d: 3 }] },
    {
      query:
        "datatable(j: dynamic)[dynamic({'n': 1}), dynamic({'n': 2}), dynamic({})] | summarize t = sum(tolong(j.n)), n = count()",
      rows: [{ t: 3, n: 3 }],
    },
  ],
  "summarize in chains": [
    { query: `${SALES} | summarize n = count() by s | summarize count(), sum(n)`, rows: [{ count_: 3, sum_n: 5 }] },
    {
      query: `${SALES} | summarize t = sum(x) by s | where t > 4 | extend u = t * 10 | order by s asc`,
      rows: [
        { s: "b", t: 6, u: 60 },
        { s: "c", t: 5, u: 50 },
      ],
    },
    {
      query: `let totals = ${SALES} | summarize t = sum(x) by s; totals | summarize max(t)`,
      rows: [{ max_t: 6 }],
    },
    { query: `${SALES} | summarize n = count() by s | count`, rows: [{ Count: 3 }] },
  ],
  "a summary has a row, whatever is read of it": [
    { query: `${SALES} | summarize n = count() | project one = 1`, rows: [{ one: 1 }] },
    { query: `${SALES} | summarize n = count() | count`, rows: [{ Count: 1 }] },
    { query: `${NO_ROWS} | summarize n = count() | project one = 1`, rows: [{ one: 1 }] },
    { query: `${SALES} | summarize n = count() by s | project one = 1 | count`, rows: [{ Count: 3 }] },
    { query: `${SALES} | summarize arg_max(x, s) | project s`, rows: [{ s: "c" }] },
  ],
  "functions of the text over aggregates": [
    {
      query: `let twice = (a: long) { a * 2 }; ${SALES} | summarize n = twice(count()), t = sum(twice(x))`,
      rows: [{ n: 10, t: 30 }],
    },
  ],
  "hints of summarize": [
    { query: `${SALES} | summarize hint.strategy=shuffle n = count() by s | count`, rows: [{ Count: 3 }] },
    { query: `${SALES} | summarize hint.num_partitions=4 n = count() by s | count`, rows: [{ Count: 3 }] },
    { query: `${SALES} | summarize hint.shufflekey=s n = count() by s | count`, rows: [{ Count: 3 }] },
  ],
  "summarize that is refused": [
    {
      query: "datatable(j: dynamic)[] | summarize count() by j",
      refused: { code: "invalid_query", message: "dynamic" },
    },
    {
      query: "datatable(j: dynamic)[] | summarize count() by j.a",
      refused: { code: "invalid_query", message: "dynamic" },
    },
    {
      query: "datatable(j: dynamic)[] | summarize x = series_stats(take_any(j))",
      refused: { code: "invalid_query", message: "belongs into an extend" },
    },
    {
      query: "datatable(j: dynamic)[] | summarize x = series_fill_const(take_any(j))",
      refused: { code: "invalid_query", message: "series_fill_const() needs the constant" },
    },
    { query: `${SALES} | summarize x`, refused: { code: "invalid_query", message: "x" } },
    { query: `${SALES} | summarize count() + x by x`, refused: { code: "invalid_query", message: "x" } },
    { query: `${SALES} | summarize x = sum(x) by x`, refused: { code: "invalid_query", message: "x" } },
    {
      query: `${SALES} | summarize tostring(pack_all()) by x`,
      refused: { code: "invalid_query", message: "pack_all() can stand here only inside of an aggregate" },
    },
    { query: `${SALES} | summarize sum(count())`, refused: { code: "invalid_query", message: "count" } },
    { query: `${SALES} | summarize sum(nosuch)`, refused: { code: "invalid_query", message: "nosuch" } },
    { query: `${SALES} | summarize nosuch(x)`, refused: { code: "invalid_query", message: "nosuch" } },
    { query: `${SALES} | extend c = count()`, refused: { code: "invalid_query", message: "count" } },
    { query: `${SALES} | where count() > 1`, refused: { code: "invalid_query", message: "count" } },
    { query: `${SALES} | summarize count() by`, refused: { code: "parse_error", message: "" } },
  ],
};
