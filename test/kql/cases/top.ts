import type { KqlCases } from "../cases.test-kit.ts";

const NUMBERS = "datatable(k: string, x: long)['a', 2, 'b', long(null), 'c', 1, 'd', 3]";
const SALES =
  "datatable(region: string, person: string, amount: long)['n', 'ann', 10, 'n', 'bob', 5, 'n', 'cy', 1, 's', 'dan', 7, 's', 'eve', 2, 'w', 'fay', 3]";
const REALS =
  "datatable(n: string, r: real)['five', 5.0, 'null', real(null), 'nan', real(nan), 'low', real(-inf), 'zero', 0.0, 'high', real(+inf), 'minus', -5.0]";

export const topAndSort: KqlCases = {
  "take of more rows than there are": [
    { query: `union (print x = 1), (print x = 2 | take 9223372036854775807) | count`, rows: [{ Count: 2 }] },
    { query: `${NUMBERS} | take int(3) | count`, rows: [{ Count: 3 }] },
    { query: `${NUMBERS} | take real(nan)`, refused: { code: "invalid_query", message: "must be an integer" } },
  ],
  top: [
    {
      query: `${NUMBERS} | top 2 by x`,
      rows: [
        { k: "d", x: 3 },
        { k: "a", x: 2 },
      ],
      types: { k: "string", x: "long" },
    },
    {
      query: `${NUMBERS} | top 2 by x desc`,
      rows: [
        { k: "d", x: 3 },
        { k: "a", x: 2 },
      ],
    },
    {
      query: `${NUMBERS} | top 2 by x asc`,
      rows: [
        { k: "b", x: null },
        { k: "c", x: 1 },
      ],
    },
    {
      query: `${NUMBERS} | top 2 by x asc nulls last`,
      rows: [
        { k: "c", x: 1 },
        { k: "a", x: 2 },
      ],
    },
    {
      query: `${NUMBERS} | top 2 by x desc nulls first`,
      rows: [
        { k: "b", x: null },
        { k: "d", x: 3 },
      ],
    },
    { query: `${NUMBERS} | top 4 by x | project k`, rows: [{ k: "d" }, { k: "a" }, { k: "c" }, { k: "b" }] },
    { query: `${NUMBERS} | top 100 by x | count`, rows: [{ Count: 4 }] },
    { query: `${NUMBERS} | top 0 by x | count`, rows: [{ Count: 0 }] },
    { query: "datatable(x: long)[] | top 3 by x", rows: [], types: { x: "long" } },
    {
      query: "datatable(s: string)['bb', 'a', 'ccc'] | top 2 by strlen(s)",
      rows: [{ s: "ccc" }, { s: "bb" }],
      types: { s: "string" },
    },
    { query: "datatable(x: long)[-3, 2, 1] | top 1 by x * x", rows: [{ x: -3 }] },
    { query: "let n = 1; datatable(x: long)[1, 2, 3] | top n + 1 by x", rows: [{ x: 3 }, { x: 2 }] },
    { query: `${NUMBERS} | top 3 by x | top 1 by k desc`, rows: [{ k: "d", x: 3 }] },
    {
      query: "datatable(t: datetime)[datetime(1960-01-01), datetime(2024-01-01), datetime(null)] | top 2 by t",
      rows: [{ t: "2024-01-01T00:00:00Z" }, { t: "1960-01-01T00:00:00Z" }],
    },
    { query: "datatable(p: timespan)[-1h, 1h, 2d] | top 1 by p asc", rows: [{ p: "-01:00:00" }] },
    { query: `${NUMBERS} | top 2 by nosuch`, refused: { code: "invalid_query", message: "nosuch" } },
    { query: `${NUMBERS} | top 1.5 by x`, refused: { code: "invalid_query", message: "integer" } },
  ],
  "sort by several keys": [
    {
      query: "datatable(a: string, b: long)['x', 1, 'y', 2, 'x', 2, 'y', 1] | sort by a asc, b desc",
      rows: [
        { a: "x", b: 2 },
        { a: "x", b: 1 },
        { a: "y", b: 2 },
        { a: "y", b: 1 },
      ],
    },
    {
      query: "datatable(a: string, b: long)['x', 1, 'y', 2, 'x', 2] | order by a, b",
      rows: [
        { a: "y", b: 2 },
        { a: "x", b: 2 },
        { a: "x", b: 1 },
      ],
    },
    {
      query: "datatable(a: long, b: long)[1, 5, 2, long(null), 1, long(null), 2, 7] | sort by a asc, b asc nulls last",
      rows: [
        { a: 1, b: 5 },
        { a: 1, b: null },
        { a: 2, b: 7 },
        { a: 2, b: null },
      ],
    },
    {
      query: "datatable(a: long, b: long)[long(null), 1, 2, 2, long(null), 3] | sort by a desc nulls first, b desc",
      rows: [
        { a: null, b: 3 },
        { a: null, b: 1 },
        { a: 2, b: 2 },
      ],
    },
    {
      query: "datatable(x: long)[4, 3, 2, 1] | sort by x % 2 asc, x asc",
      rows: [{ x: 2 }, { x: 4 }, { x: 1 }, { x: 3 }],
    },
    {
      query: "datatable(s: string)['b', 'B', 'a', '', 'é'] | sort by s asc",
      rows: [{ s: "" }, { s: "B" }, { s: "a" }, { s: "b" }, { s: "é" }],
    },
    {
      query: "datatable(b: bool)[true, bool(null), false] | sort by b asc",
      rows: [{ b: null }, { b: false }, { b: true }],
    },
  ],
  "sort with nulls": [
    { query: `${NUMBERS} | sort by x | project k`, rows: [{ k: "d" }, { k: "a" }, { k: "c" }, { k: "b" }] },
    { query: `${NUMBERS} | sort by x asc | project k`, rows: [{ k: "b" }, { k: "c" }, { k: "a" }, { k: "d" }] },
    {
      query: `${NUMBERS} | sort by x asc nulls last | project k`,
      rows: [{ k: "c" }, { k: "a" }, { k: "d" }, { k: "b" }],
    },
    { query: `${NUMBERS} | sort by x nulls first | project k`, rows: [{ k: "b" }, { k: "d" }, { k: "a" }, { k: "c" }] },
  ],
  "sort of NaN and infinities": [
    {
      query: `${REALS} | sort by r asc nulls first | project n`,
      rows: [{ n: "null" }, { n: "nan" }, { n: "low" }, { n: "minus" }, { n: "zero" }, { n: "five" }, { n: "high" }],
    },
    {
      query: `${REALS} | sort by r desc nulls first | project n`,
      rows: [{ n: "null" }, { n: "nan" }, { n: "high" }, { n: "five" }, { n: "zero" }, { n: "minus" }, { n: "low" }],
    },
    {
      query: `${REALS} | sort by r asc nulls last | project n`,
      rows: [{ n: "low" }, { n: "minus" }, { n: "zero" }, { n: "five" }, { n: "high" }, { n: "nan" }, { n: "null" }],
    },
    {
      query: `${REALS} | sort by r desc nulls last | project n`,
      rows: [{ n: "high" }, { n: "five" }, { n: "zero" }, { n: "minus" }, { n: "low" }, { n: "nan" }, { n: "null" }],
    },
    { query: `${REALS} | top 2 by r | project n`, rows: [{ n: "high" }, { n: "five" }] },
  ],
  "top-hitters": [
    {
      query: "datatable(s: string)['a', 'b', 'a', 'c', 'b', 'a'] | top-hitters 2 of s",
      rows: [
        { s: "a", approximate_count_s: 3 },
        { s: "b", approximate_count_s: 2 },
      ],
      types: { s: "string", approximate_count_s: "long" },
    },
    {
      query: "datatable(s: string, x: long)['a', 1, 'b', 10, 'a', 2] | top-hitters 1 of s by x",
      rows: [{ s: "b", approximate_sum_x: 10 }],
      types: { s: "string", approximate_sum_x: "long" },
    },
    {
      query: "datatable(s: string, x: long)['a', 1, 'b', 10, 'a', 2] | top-hitters 5 of s by x * 1.5",
      rows: [
        { s: "b", approximate_sum_: 15 },
        { s: "a", approximate_sum_: 4.5 },
      ],
      types: { s: "string", approximate_sum_: "real" },
    },
    {
      query: "datatable(s: string)[] | top-hitters 2 of s",
      rows: [],
      types: { s: "string", approximate_count_s: "long" },
    },
    {
      query: "datatable(s: string)['a'] | top-hitters 2 of nosuch",
      refused: { code: "invalid_query", message: "nosuch" },
    },
  ],
  "top-nested with one level": [
    {
      query: `${SALES} | top-nested 2 of region by sum(amount)`,
      rows: [
        { region: "n", aggregated_region: 16 },
        { region: "s", aggregated_region: 9 },
      ],
      types: { region: "string", aggregated_region: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 1 of region by sum(amount) asc`,
      rows: [{ region: "w", aggregated_region: 3 }],
    },
    {
      query: `${SALES} | top-nested of r = region by total = sum(amount)`,
      rows: [
        { r: "n", total: 16 },
        { r: "s", total: 9 },
        { r: "w", total: 3 },
      ],
      types: { r: "string", total: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 1 of region with others = 'rest' by sum(amount)`,
      rows: [
        { region: "n", aggregated_region: 16 },
        { region: "rest", aggregated_region: 12 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 2 of region with others = 'rest' by best = max(amount) * 10`,
      rows: [
        { region: "n", best: 100 },
        { region: "s", best: 70 },
        { region: "rest", best: 30 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01T00:10:00Z), datetime(2024-01-01T00:20:00Z), datetime(2024-01-01T01:00:00Z)] | top-nested 1 of bin(t, 1h) by count()",
      rows: [{ t: "2024-01-01T00:00:00Z", aggregated_t: 2 }],
      types: { t: "datetime", aggregated_t: "long" },
    },
    {
      query: "datatable(s: string)[] | top-nested 1 of s by count()",
      rows: [],
      types: { s: "string", aggregated_s: "long" },
    },
    { query: `${SALES} | top-nested 1 of nosuch by count()`, refused: { code: "invalid_query", message: "nosuch" } },
    { query: `${SALES} | top-nested 1 of region by amount`, refused: { code: "invalid_query", message: "amount" } },
  ],
  "top-nested with several levels": [
    {
      query: `${SALES} | top-nested 2 of region by sum(amount), top-nested 1 of person by sum(amount)`,
      rows: [
        { region: "n", aggregated_region: 16, person: "ann", aggregated_person: 10 },
        { region: "s", aggregated_region: 9, person: "dan", aggregated_person: 7 },
      ],
      types: { region: "string", aggregated_region: "long", person: "string", aggregated_person: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 1 of region by sum(amount), top-nested of person by count()`,
      rows: [
        { region: "n", aggregated_region: 16, person: "ann", aggregated_person: 1 },
        { region: "n", aggregated_region: 16, person: "bob", aggregated_person: 1 },
        { region: "n", aggregated_region: 16, person: "cy", aggregated_person: 1 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 2 of region by sum(amount), top-nested 1 of person with others = 'rest' by sum(amount)`,
      rows: [
        { region: "n", aggregated_region: 16, person: "ann", aggregated_person: 10 },
        { region: "n", aggregated_region: 16, person: "rest", aggregated_person: 6 },
        { region: "s", aggregated_region: 9, person: "dan", aggregated_person: 7 },
        { region: "s", aggregated_region: 9, person: "rest", aggregated_person: 2 },
        // What falls out above a level with others is among them.
        { region: "", aggregated_region: null, person: "rest", aggregated_person: 3 },
      ],
      unordered: true,
    },
    {
      query: `datatable(a: string, b: string, c: string, v: long)['x', 'p', '1', 10, 'x', 'p', '2', 4, 'x', 'q', '1', 3, 'y', 'p', '1', 2]
        | top-nested 1 of a with others = 'oa' by sum(v), top-nested 1 of b by sum(v), top-nested 1 of c with others = 'oc' by sum(v)`,
      rows: [
        { a: "x", aggregated_a: 17, b: "p", aggregated_b: 14, c: "1", aggregated_c: 10 },
        { a: "x", aggregated_a: 17, b: "p", aggregated_b: 14, c: "oc", aggregated_c: 4 },
        { a: "x", aggregated_a: 17, b: "", aggregated_b: null, c: "oc", aggregated_c: 3 },
        { a: "oa", aggregated_a: 2, b: "", aggregated_b: null, c: "oc", aggregated_c: 2 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 3 of region with others = 'rest' by count() | count`,
      rows: [{ Count: 3 }],
    },
    {
      query: "datatable(x: long, v: long)[1, 5, 2, 9, long(null), 7] | top-nested 2 of x with others = -1 by max(v)",
      rows: [
        { x: 2, aggregated_x: 9 },
        { x: null, aggregated_x: 7 },
        { x: -1, aggregated_x: 5 },
      ],
      types: { x: "long", aggregated_x: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | top-nested 1 of toupper(region) by count()`,
      refused: { code: "invalid_query", message: "name" },
    },
    {
      query: `${SALES} | top-nested 1 of region by make_list(amount)`,
      refused: { code: "invalid_query", message: "top-nested" },
    },
    {
      query: `${SALES} | top-nested 1 of region with others = 1 by count()`,
      refused: { code: "invalid_query", message: "others" },
    },
    {
      query: `datatable(id: string, timestamp: datetime, other: string)[
        'Barak', datetime(2015-01-01), '1', 'Barak', datetime(2016-01-01), '2', 'Barak', datetime(2017-01-20), '3',
        'Donald', datetime(2017-01-20), '4', 'Donald', datetime(2017-01-18), '5', 'Donald', datetime(2017-01-19), '6']
        | top-nested of id by Ignore0 = max(1), top-nested 2 of timestamp by Ignore1 = max(timestamp), top-nested of other by Ignore2 = max(1)
        | project-away Ignore0, Ignore1, Ignore2`,
      rows: [
        { id: "Barak", timestamp: "2016-01-01T00:00:00Z", other: "2" },
        { id: "Donald", timestamp: "2017-01-19T00:00:00Z", other: "6" },
        { id: "Barak", timestamp: "2017-01-20T00:00:00Z", other: "3" },
        { id: "Donald", timestamp: "2017-01-20T00:00:00Z", other: "4" },
      ],
      types: { id: "string", timestamp: "datetime", other: "string" },
      unordered: true,
    },
  ],
  partition: [
    {
      query: `${SALES} | partition by region (top 1 by amount)`,
      rows: [
        { region: "n", person: "ann", amount: 10 },
        { region: "s", person: "dan", amount: 7 },
        { region: "w", person: "fay", amount: 3 },
      ],
      types: { region: "string", person: "string", amount: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | partition hint.strategy=native by region (summarize total = sum(amount), n = count() by region)`,
      rows: [
        { region: "n", total: 16, n: 3 },
        { region: "s", total: 9, n: 2 },
        { region: "w", total: 3, n: 1 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | partition hint.strategy=shuffle by region (count)`,
      rows: [{ Count: 3 }, { Count: 2 }, { Count: 1 }],
      types: { Count: "long" },
      unordered: true,
    },
    {
      query: `${SALES} | partition hint.strategy=native by region (summarize n = count() by person | top 1 by person asc | project person)`,
      rows: [{ person: "ann" }, { person: "dan" }, { person: "fay" }],
      unordered: true,
    },
    {
      query: `${SALES} | partition by region (where amount > 4 | extend twice = amount * 2 | project region, twice)`,
      rows: [
        { region: "n", twice: 20 },
        { region: "n", twice: 10 },
        { region: "s", twice: 14 },
      ],
      unordered: true,
    },
    { query: `${SALES} | partition hint.strategy=native by region (take 1) | count`, rows: [{ Count: 3 }] },
    { query: `${SALES} | partition hint.strategy=native by region (sample 2) | count`, rows: [{ Count: 5 }] },
    {
      query: `${SALES} | partition hint.strategy=native by region (distinct region)`,
      rows: [{ region: "n" }, { region: "s" }, { region: "w" }],
      unordered: true,
    },
    {
      query: "datatable(k: string, x: long)[] | partition by k (top 1 by x)",
      rows: [],
      types: { k: "string", x: "long" },
    },
    {
      query: `${SALES} | partition by region (as P | extend share = amount * 100.0 / toscalar(P | summarize sum(amount)) | where share > 60 | project region, share)`,
      rows: [
        { region: "n", share: 62.5 },
        { region: "s", share: 77.77777777777777 },
        { region: "w", share: 100 },
      ],
      unordered: true,
    },
    {
      query:
        "range x from 1 to 2 step 1 | partition hint.strategy=legacy by x {datatable(y: long, z: string)[1, 'a', 2, 'b', 3, 'c'] | where x == y}",
      rows: [
        { y: 1, z: "a" },
        { y: 2, z: "b" },
      ],
      types: { y: "long", z: "string" },
      unordered: true,
    },
    {
      query: "range x from 1 to 65 step 1 | partition hint.strategy=native by x (count) | count",
      rows: [{ Count: 65 }],
    },
    { query: "range x from 1 to 64 step 1 | partition by x (count) | count", rows: [{ Count: 64 }] },
    {
      query: "range x from 1 to 65 step 1 | partition by x (count)",
      refused: { code: "execution_error", message: "64" },
    },
    {
      query: `${SALES} | partition by region (where amount > 4 | count)`,
      rows: [{ Count: 2 }, { Count: 1 }, { Count: 0 }],
      unordered: true,
    },
    {
      query: `${SALES} | partition hint.strategy=native by region (top-nested 1 of person with others = 'rest' by sum(amount))`,
      rows: [
        { person: "ann", aggregated_person: 10 },
        { person: "rest", aggregated_person: 6 },
        { person: "dan", aggregated_person: 7 },
        { person: "rest", aggregated_person: 2 },
        { person: "fay", aggregated_person: 3 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(k: string, x: long)['a', 0, 'a', 2, 'b', 1] | partition hint.strategy=native by k (make-series n = count() on x from 0 to 3 step 1 | project n)",
      rows: [{ n: [1, 0, 1] }, { n: [0, 1, 0] }],
      unordered: true,
    },
    {
      query: `${SALES} | partition by region (join kind=leftanti (datatable(person: string)['ann', 'dan']) on person | summarize n = count() by region)`,
      rows: [
        { region: "n", n: 2 },
        { region: "s", n: 1 },
        { region: "w", n: 1 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | partition by region (join kind=leftsemi (datatable(person: string)['ann', 'dan']) on person | project person)`,
      rows: [{ person: "ann" }, { person: "dan" }],
      unordered: true,
    },
    {
      query: `datatable(k: string, x: long)['a', 1, 'b', 2] | partition by k (join kind=fullouter (datatable(y: long)[2, 3]) on $left.x == $right.y)`,
      rows: [
        { k: "a", x: 1, y: null },
        { k: "", x: null, y: 2 },
        { k: "", x: null, y: 3 },
        { k: "b", x: 2, y: 2 },
        { k: "", x: null, y: 3 },
      ],
      unordered: true,
    },
    {
      query: `${SALES} | partition by region (as P | where amount == toscalar(P | summarize max(amount)) | project person)`,
      rows: [{ person: "ann" }, { person: "dan" }, { person: "fay" }],
      unordered: true,
    },
    {
      query: `${SALES} | partition by region (partition by person (count) | count)`,
      rows: [{ Count: 3 }, { Count: 2 }, { Count: 1 }],
      unordered: true,
    },
    { query: `${SALES} | partition by nosuch (count)`, refused: { code: "invalid_query", message: "nosuch" } },
  ],
};
