import type { KqlCases } from "../cases.test-kit.ts";

/** Operators that choose rows and columns, and put rows in order. */
export const projections: KqlCases = {
  where: [
    { query: "range x from 1 to 5 step 1 | where x > 2 and x < 5", rows: [{ x: 3 }, { x: 4 }] },
    { query: "range x from 1 to 3 step 1 | filter x == 2", rows: [{ x: 2 }] },
    { query: "range x from 1 to 3 step 1 | where x > 1 | where x < 3", rows: [{ x: 2 }] },
    { query: "range x from 1 to 3 step 1 | where false", rows: [], types: { x: "long" } },
    { query: "range x from 1 to 2 step 1 | where true", rows: [{ x: 1 }, { x: 2 }] },
    {
      query: "datatable(ival: int, sval: string)[5, 'a', int(null), 'b'] | where ival != 5",
      rows: [{ ival: null, sval: "b" }],
    },
    {
      query: "datatable(ival: int, sval: string)[5, 'a', int(null), 'b'] | where ival == 5",
      rows: [{ ival: 5, sval: "a" }],
    },
    {
      query: "datatable(ival: int, sval: string)[5, 'a', int(null), 'b'] | where ival == int(null)",
      rows: [],
    },
    { query: "datatable(x: int)[5, int(null)] | where not(x > 3)", rows: [] },
    { query: "datatable(x: int)[1, 5, int(null)] | where x > 3 or isnull(x)", rows: [{ x: 5 }, { x: null }] },
    { query: "datatable(b: bool)[true, false, bool(null)] | where b", rows: [{ b: true }] },
    {
      query: "datatable(a: string, b: string)['a cow', 'x', 'coward', 'y', 'z', 'COW'] | where * has 'cow'",
      rows: [
        { a: "a cow", b: "x" },
        { a: "z", b: "COW" },
      ],
    },
    {
      query: "datatable(a: string, b: string)['a cow', 'x', 'coward', 'y', 'z', 'w'] | where * contains 'cow'",
      rows: [
        { a: "a cow", b: "x" },
        { a: "coward", b: "y" },
      ],
    },
    { query: "print x = 1 | where x", refused: { code: "invalid_query", message: "bool", line: 1, column: 21 } },
  ],
  project: [
    { query: "print a = 1, b = 2, c = 3 | project c, a", rows: [{ c: 3, a: 1 }], types: { c: "long", a: "long" } },
    {
      query: "print a = 1, b = 2 | project x = a, y = a + b, b",
      rows: [{ x: 1, y: 3, b: 2 }],
      types: { x: "long", y: "long", b: "long" },
    },
    {
      query: "print a = 1, b = 2 | project a + b, a * b, b",
      rows: [{ Column1: 3, Column2: 2, b: 2 }],
      types: { Column1: "long", Column2: "long", b: "long" },
    },
    { query: "print a = 1, b = 2 | project a = b, b = a", rows: [{ a: 2, b: 1 }] },
    {
      query: "print x = 'ab c', y = 1 | project x = 2, z = x",
      rows: [{ x: 2, z: "ab c" }],
      types: { x: "long", z: "string" },
    },
    { query: "print s = 'a' | project ['my col'] = s, ['s']", rows: [{ "my col": "a", s: "a" }] },
    { query: "print d = dynamic({'b': 1}) | project d.b", rows: [{ d_b: 1 }], types: { d_b: "dynamic" } },
    {
      query: "print d = dynamic({'b': 1, 'c': [7]}) | project d['b'], d.b, d.c[0]",
      rows: [{ d_b: 1, d_b1: 1, d_c_0: 7 }],
      types: { d_b: "dynamic", d_b1: "dynamic", d_c_0: "dynamic" },
    },
    { query: "print d = dynamic([4, 5]) | project d[0], d[1]", rows: [{ d_0: 4, d_1: 5 }] },
    { query: "print a = 1 | project 'x'", rows: [{ Column1: "x" }] },
    { query: "datatable(a: long)[] | project b = a + 1", rows: [], types: { b: "long" } },
    {
      query: "print a = 1, b = 2 | project a, a",
      refused: { code: "invalid_query", message: "'a' is already declared", line: 1, column: 33 },
    },
    {
      query: "print a = 1, b = 2 | project a = b, a",
      refused: { code: "invalid_query", message: "'a' is already declared" },
    },
    { query: "print A = 1 | project a", refused: { code: "invalid_query", message: "'a'" } },
  ],
  "project-away": [
    { query: "print a = 1, b = 2, c = 3 | project-away b", rows: [{ a: 1, c: 3 }], types: { a: "long", c: "long" } },
    { query: "print sa = 1, sb = 2, c = 3, xs = 4 | project-away s*", rows: [{ c: 3, xs: 4 }] },
    { query: "print sa = 1, sb = 2, c = 3, xs = 4 | project-away *s, c", rows: [{ sa: 1, sb: 2 }] },
    { query: "print abc = 1, axc = 2, ab = 3 | project-away a*c", rows: [{ ab: 3 }] },
    { query: "print a = 1 | extend b = 2 | project-away a", rows: [{ b: 2 }] },
    {
      query: "print a = 1 | project-away b",
      refused: { code: "invalid_query", message: "column name expected", line: 1, column: 28 },
    },
  ],
  "project-keep": [
    {
      query: "print a = 1, b = 2, ab = 3 | project-keep ab, a",
      rows: [{ a: 1, ab: 3 }],
      types: { a: "long", ab: "long" },
    },
    {
      query: "print sa = 1, c = 2, sb = 3 | project-keep s*",
      rows: [{ sa: 1, sb: 3 }],
      types: { sa: "long", sb: "long" },
    },
    { query: "print sa = 1, c = 2, sb = 3 | project-keep c, *b, s*", rows: [{ sa: 1, c: 2, sb: 3 }] },
    { query: "print a = 1, b = 2 | project-keep *", rows: [{ a: 1, b: 2 }] },
  ],
  "project-rename": [
    {
      query: "print a = 'alpha', b = 'bravo', c = 'charlie' | project-rename new_a = a, new_b = b, new_c = c",
      rows: [{ new_a: "alpha", new_b: "bravo", new_c: "charlie" }],
      types: { new_a: "string", new_b: "string", new_c: "string" },
    },
    { query: "print a = 1, b = 2 | project-rename c = b", rows: [{ a: 1, c: 2 }], types: { a: "long", c: "long" } },
    { query: "print a = 1, b = 2 | project-rename ['x y'] = a", rows: [{ "x y": 1, b: 2 }] },
    {
      query: "print a = 1, b = 2 | project-rename b = a",
      refused: { code: "invalid_query", message: "'b' is already declared" },
    },
    {
      query: "print a = 1 | project-rename c = z",
      refused: { code: "invalid_query", message: "column name expected", line: 1, column: 34 },
    },
  ],
  "project-reorder": [
    {
      query: "print a = 'a', b = 'b', c = 'c' | project-reorder b",
      rows: [{ b: "b", a: "a", c: "c" }],
      types: { b: "string", a: "string", c: "string" },
    },
    {
      query: "print b = 'b', a2 = 'a2', a3 = 'a3', a1 = 'a1' | project-reorder a* asc",
      rows: [{ a1: "a1", a2: "a2", a3: "a3", b: "b" }],
      types: { a1: "string", a2: "string", a3: "string", b: "string" },
    },
    {
      query: "print b = 0, a2 = 2, a3 = 3, a1 = 1 | project-reorder a* desc",
      rows: [{ a3: 3, a2: 2, a1: 1, b: 0 }],
      types: { a3: "long", a2: "long", a1: "long", b: "long" },
    },
    {
      query: "print b = 0, a2 = 2, a3 = 3, a1 = 1 | project-reorder a*",
      rows: [{ a2: 2, a3: 3, a1: 1, b: 0 }],
      types: { a2: "long", a3: "long", a1: "long", b: "long" },
    },
    {
      query: "print b = 0, a100 = 2, a20 = 3, a1 = 1 | project-reorder a* granny-asc",
      rows: [{ a1: 1, a20: 3, a100: 2, b: 0 }],
      types: { a1: "long", a20: "long", a100: "long", b: "long" },
    },
    {
      query: "print b = 0, a100 = 2, a20 = 3, a1 = 1 | project-reorder a* granny-desc",
      rows: [{ a100: 2, a20: 3, a1: 1, b: 0 }],
      types: { a100: "long", a20: "long", a1: "long", b: "long" },
    },
    {
      query: "print b = 0, a100 = 2, a20 = 3, a1 = 1 | project-reorder a* asc",
      rows: [{ a1: 1, a100: 2, a20: 3, b: 0 }],
      types: { a1: "long", a100: "long", a20: "long", b: "long" },
    },
    {
      query: "print a = 1, b = 2, c = 3 | project-reorder c, b",
      rows: [{ c: 3, b: 2, a: 1 }],
      types: { c: "long", b: "long", a: "long" },
    },
    {
      query: "print a = 1, b = 2, c = 3 | project-reorder *, c",
      rows: [{ a: 1, b: 2, c: 3 }],
      types: { a: "long", b: "long", c: "long" },
    },
  ],
  extend: [
    {
      query: "print a = 1 | extend b = a + 1, c = 'x'",
      rows: [{ a: 1, b: 2, c: "x" }],
      types: { a: "long", b: "long", c: "string" },
    },
    { query: "print a = 1 | extend a = a + 1", rows: [{ a: 2 }] },
    { query: "print a = 1 | extend a = a + 1, b = a", rows: [{ a: 2, b: 1 }] },
    { query: "print a = 1, b = 2 | extend a = b, b = a", rows: [{ a: 2, b: 1 }] },
    { query: "print a = 1 | extend a = 'text'", rows: [{ a: "text" }], types: { a: "string" } },
    {
      query: "print a = 1 | extend a + 1, 7",
      rows: [{ a: 1, Column1: 2, Column2: 7 }],
      types: { a: "long", Column1: "long", Column2: "long" },
    },
    { query: "print a = 1 | extend b = a | extend c = b + 1 | extend a = c * 10", rows: [{ a: 20, b: 1, c: 2 }] },
    { query: "print a = long(null) | extend b = a + 1, c = isnull(a)", rows: [{ a: null, b: null, c: true }] },
    {
      query:
        "datatable(end: datetime, start: datetime)[datetime(2007-01-01T04:37), datetime(2007-01-01T03:37)] | extend d = end - start",
      rows: [{ end: "2007-01-01T04:37:00Z", start: "2007-01-01T03:37:00Z", d: "01:00:00" }],
      types: { end: "datetime", start: "datetime", d: "timespan" },
    },
    {
      query: "datatable(val: int)[5, int(null)] | extend e = val == int(null), n = val != int(null), g = val > 3",
      rows: [
        { val: 5, e: false, n: true, g: true },
        { val: null, e: null, n: null, g: null },
      ],
      types: { val: "int", e: "bool", n: "bool", g: "bool" },
    },
    {
      query: "print a = 1 | extend a = 2, a = 3",
      refused: { code: "invalid_query", message: "'a' is already declared" },
    },
    {
      query: "print a = 1 | extend b = nothing",
      refused: { code: "invalid_query", message: "nothing", line: 1, column: 26 },
    },
  ],
  take: [
    { query: "range x from 1 to 9 step 1 | take 4 | count", rows: [{ Count: 4 }] },
    { query: "range x from 1 to 9 step 1 | limit 4 | count", rows: [{ Count: 4 }] },
    { query: "range x from 1 to 3 step 1 | take 10 | count", rows: [{ Count: 3 }] },
    { query: "range x from 1 to 3 step 1 | take 0", rows: [], types: { x: "long" } },
    { query: "range x from 1 to 9 step 1 | sort by x | take 2", rows: [{ x: 9 }, { x: 8 }] },
    { query: "let n = 2; range x from 1 to 9 step 1 | sort by x asc | take n", rows: [{ x: 1 }, { x: 2 }] },
    { query: "print x = 1 | take 'a'", refused: { code: "invalid_query", message: "integer" } },
  ],
  sort: [
    { query: "datatable(x: long)[2, 3, 1] | sort by x", rows: [{ x: 3 }, { x: 2 }, { x: 1 }] },
    { query: "datatable(x: long)[2, 3, 1] | order by x asc", rows: [{ x: 1 }, { x: 2 }, { x: 3 }] },
    { query: "datatable(x: long)[2, long(null), 1] | sort by x asc", rows: [{ x: null }, { x: 1 }, { x: 2 }] },
    { query: "datatable(x: long)[2, long(null), 1] | sort by x desc", rows: [{ x: 2 }, { x: 1 }, { x: null }] },
    { query: "datatable(x: long)[2, long(null), 1] | sort by x", rows: [{ x: 2 }, { x: 1 }, { x: null }] },
    {
      query: "datatable(x: long)[2, long(null), 1] | sort by x asc nulls last",
      rows: [{ x: 1 }, { x: 2 }, { x: null }],
    },
    {
      query: "datatable(x: long)[2, long(null), 1] | sort by x desc nulls first",
      rows: [{ x: null }, { x: 2 }, { x: 1 }],
    },
    { query: "datatable(x: long)[2, long(null), 1] | sort by x nulls first", rows: [{ x: null }, { x: 2 }, { x: 1 }] },
    {
      query: "datatable(a: string, b: long)['x', 1, 'y', 2, 'x', 3] | sort by a asc, b desc",
      rows: [
        { a: "x", b: 3 },
        { a: "x", b: 1 },
        { a: "y", b: 2 },
      ],
    },
    {
      query: "datatable(a: string, b: long)['x', 1, 'y', 2, 'x', 3] | sort by a, b asc",
      rows: [
        { a: "y", b: 2 },
        { a: "x", b: 1 },
        { a: "x", b: 3 },
      ],
    },
    {
      query: "datatable(s: string)['b', '', 'a'] | sort by s asc",
      rows: [{ s: "" }, { s: "a" }, { s: "b" }],
    },
    { query: "datatable(x: long)[-3, 1, 2] | sort by x * x", rows: [{ x: -3 }, { x: 2 }, { x: 1 }] },
    { query: "datatable(b: bool)[true, false] | sort by b asc", rows: [{ b: false }, { b: true }] },
    {
      query: "datatable(t: timespan)[1h, -1h, 1d] | sort by t asc",
      rows: [{ t: "-01:00:00" }, { t: "01:00:00" }, { t: "1.00:00:00" }],
    },
    {
      query: "datatable(t: datetime)[datetime(2000-01-01), datetime(1969-12-31), datetime(1970-01-01)] | sort by t asc",
      rows: [{ t: "1969-12-31T00:00:00Z" }, { t: "1970-01-01T00:00:00Z" }, { t: "2000-01-01T00:00:00Z" }],
    },
    {
      query:
        "datatable(x: real)[5.0, real(+inf), real(null), 0.0, real(-inf), real(nan), -5.0] | sort by x asc | project n = isnull(x), d = isnan(x), i = isinf(x), v = iff(isinf(x), 1.0, x)",
      rows: [
        { n: true, d: false, i: false, v: null },
        { n: false, d: true, i: false, v: null },
        { n: false, d: false, i: true, v: 1 },
        { n: false, d: false, i: false, v: -5 },
        { n: false, d: false, i: false, v: 0 },
        { n: false, d: false, i: false, v: 5 },
        { n: false, d: false, i: true, v: 1 },
      ],
    },
    {
      query:
        "datatable(x: real)[5.0, real(+inf), real(null), real(-inf), real(nan), -5.0] | sort by x asc nulls last | project n = isnull(x), d = isnan(x), i = isinf(x), m = x < 0",
      rows: [
        { n: false, d: false, i: true, m: true },
        { n: false, d: false, i: false, m: true },
        { n: false, d: false, i: false, m: false },
        { n: false, d: false, i: true, m: false },
        { n: false, d: true, i: false, m: false },
        { n: true, d: false, i: false, m: null },
      ],
    },
    {
      query:
        "datatable(x: real)[5.0, real(null), real(nan), real(+inf)] | sort by x desc nulls first | extend n = isnull(x), d = isnan(x) | project n, d",
      rows: [
        { n: true, d: false },
        { n: false, d: true },
        { n: false, d: false },
        { n: false, d: false },
      ],
    },
    {
      query:
        "datatable(x: real)[5.0, real(null), real(nan), real(+inf)] | sort by x desc | extend n = isnull(x), d = isnan(x) | project n, d",
      rows: [
        { n: false, d: false },
        { n: false, d: false },
        { n: false, d: true },
        { n: true, d: false },
      ],
    },
    { query: "print x = 1 | sort by y", refused: { code: "invalid_query", message: "y", line: 1, column: 23 } },
  ],
  distinct: [
    {
      query: "datatable(a: string, b: long)['x', 1, 'x', 1, 'x', 2, 'y', 1] | distinct a",
      rows: [{ a: "x" }, { a: "y" }],
      unordered: true,
    },
    {
      query: "datatable(a: string, b: long)['x', 1, 'x', 1, 'x', 2, 'y', 1] | distinct b, a",
      rows: [
        { b: 1, a: "x" },
        { b: 2, a: "x" },
        { b: 1, a: "y" },
      ],
      types: { b: "long", a: "string" },
      unordered: true,
    },
    { query: "datatable(a: long, b: long)[1, 1, 1, 1, 2, 1] | distinct * | count", rows: [{ Count: 2 }] },
    {
      query: "datatable(a: long)[long(null), 1, long(null)] | distinct a",
      rows: [{ a: null }, { a: 1 }],
      unordered: true,
    },
    { query: "datatable(a: long)[1, 2, 3] | distinct a % 2", rows: [{ Column1: 1 }, { Column1: 0 }], unordered: true },
    { query: "datatable(s: string)['a', 'A', ''] | distinct s | count", rows: [{ Count: 3 }] },
    { query: "datatable(a: long)[] | distinct a", rows: [], types: { a: "long" } },
  ],
  serialize: [
    {
      query: "range x from 5 to 7 step 1 | serialize rn = row_number()",
      rows: [
        { x: 5, rn: 1 },
        { x: 6, rn: 2 },
        { x: 7, rn: 3 },
      ],
      types: { x: "long", rn: "long" },
    },
    {
      query: "range x from 1 to 3 step 1 | sort by x | serialize | extend rn = row_number(), p = prev(x)",
      rows: [
        { x: 3, rn: 1, p: null },
        { x: 2, rn: 2, p: 3 },
        { x: 1, rn: 3, p: 2 },
      ],
    },
    { query: "print x = 1 | serialize row_number()", rows: [{ x: 1, Column1: 1 }] },
    {
      query: "range x from 1 to 2 step 1 | serialize y = x * 2, z = 0",
      rows: [
        { x: 1, y: 2, z: 0 },
        { x: 2, y: 4, z: 0 },
      ],
    },
  ],
  as: [
    { query: "range x from 1 to 2 step 1 | as T | where x > 1", rows: [{ x: 2 }] },
    {
      query:
        "range x from 1 to 2 step 1 | as T1 | union withsource=src (range x from 1 to 1 step 1 | as T2) | sort by src asc, x asc",
      rows: [
        { src: "T1", x: 1 },
        { src: "T1", x: 2 },
        { src: "T2", x: 1 },
      ],
      types: { src: "string", x: "long" },
    },
    {
      query: "range x from 1 to 3 step 1 | as T | where x > 1 | join kind=inner (T | where x < 3) on x",
      rows: [{ x: 2, x1: 2 }],
    },
    { query: "range x from 1 to 3 step 1 | as hint.materialized=true T | union T | count", rows: [{ Count: 6 }] },
  ],
  count: [
    { query: "range x from 1 to 7 step 1 | count", rows: [{ Count: 7 }], types: { Count: "long" } },
    { query: "datatable(x: long)[] | count", rows: [{ Count: 0 }] },
    { query: "datatable(x: long)[long(null), long(null)] | count", rows: [{ Count: 2 }] },
    { query: "range x from 1 to 7 step 1 | count | extend Count = Count + 1", rows: [{ Count: 8 }] },
    { query: "range x from 1 to 7 step 1 | count | count", rows: [{ Count: 1 }] },
  ],
};
