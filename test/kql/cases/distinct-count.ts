import type { KqlCases } from "../cases.test-kit.ts";

export const distinctAndCount: KqlCases = {
  "count operator": [
    { query: "datatable(x: long)[1, 1, 2] | count", rows: [{ Count: 3 }], types: { Count: "long" } },
    { query: "datatable(x: long)[] | count", rows: [{ Count: 0 }] },
    { query: "datatable(x: long)[long(null), long(null)] | count", rows: [{ Count: 2 }] },
    { query: "print x = 1 | count", rows: [{ Count: 1 }] },
    { query: "range x from 1 to 1000 step 1 | where x % 3 == 0 | count", rows: [{ Count: 333 }] },
    { query: "range x from 1 to 5 step 1 | count | extend twice = Count * 2", rows: [{ Count: 5, twice: 10 }] },
  ],
  "distinct of columns": [
    {
      query: "datatable(a: string, b: long)['p', 1, 'p', 1, 'p', 2, 'q', 1] | distinct a, b",
      rows: [
        { a: "p", b: 1 },
        { a: "p", b: 2 },
        { a: "q", b: 1 },
      ],
      types: { a: "string", b: "long" },
      unordered: true,
    },
    {
      query: "datatable(a: string, b: long)['p', 1, 'q', 2, 'p', 3] | distinct a",
      rows: [{ a: "p" }, { a: "q" }],
      unordered: true,
    },
    {
      query: "datatable(a: string, b: long)['p', 1, 'q', 2] | distinct b, a | order by b asc",
      rows: [
        { b: 1, a: "p" },
        { b: 2, a: "q" },
      ],
      types: { b: "long", a: "string" },
    },
    { query: "datatable(a: string)[] | distinct a", rows: [], types: { a: "string" } },
    {
      query: "datatable(x: long)[long(null), 1, long(null)] | distinct x",
      rows: [{ x: null }, { x: 1 }],
      unordered: true,
    },
    {
      query: "datatable(s: string)['a', 'A', '', 'a', ''] | distinct s | order by s asc",
      rows: [{ s: "" }, { s: "A" }, { s: "a" }],
    },
    { query: "datatable(r: real)[0.0, -0.0, 1.5, 1.5] | distinct r | count", rows: [{ Count: 2 }] },
    {
      query: "datatable(p: timespan)[60m, 1h, 1m] | distinct p | order by p asc",
      rows: [{ p: "00:01:00" }, { p: "01:00:00" }],
    },
  ],
  "distinct *": [
    {
      query: "datatable(a: string, b: long)['p', 1, 'p', 1, 'p', 2] | distinct *",
      rows: [
        { a: "p", b: 1 },
        { a: "p", b: 2 },
      ],
      types: { a: "string", b: "long" },
      unordered: true,
    },
    {
      query: "datatable(a: string, b: long)['', long(null), '', long(null)] | distinct *",
      rows: [{ a: "", b: null }],
    },
    {
      query: "datatable(a: string, j: dynamic)[] | distinct *",
      refused: { code: "invalid_query", message: "dynamic" },
    },
  ],
  "distinct of expressions": [
    {
      query: "datatable(x: long)[1, 2, 3, 4] | distinct x % 2 | order by Column1 asc",
      rows: [{ Column1: 0 }, { Column1: 1 }],
      types: { Column1: "long" },
    },
    {
      query:
        "datatable(s: string, t: datetime)['a', datetime(2024-01-01T01:10:00Z), 'A', datetime(2024-01-01T01:50:00Z)] | distinct toupper(s), bin(t, 1h)",
      rows: [{ Column1: "A", t: "2024-01-01T01:00:00Z" }],
      types: { Column1: "string", t: "datetime" },
    },
    {
      query: "datatable(x: long)[1, 2, 3] | distinct half = x / 2 | order by half asc",
      rows: [{ half: 0 }, { half: 1 }],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': 1}), dynamic({'a': 1})] | distinct a = tostring(j.a)",
      rows: [{ a: "1" }],
    },
    { query: "datatable(j: dynamic)[] | distinct j", refused: { code: "invalid_query", message: "dynamic" } },
    { query: "datatable(x: long)[] | distinct nosuch", refused: { code: "invalid_query", message: "nosuch" } },
  ],
  sample: [
    { query: "range x from 1 to 100 step 1 | sample 7 | count", rows: [{ Count: 7 }] },
    { query: "range x from 1 to 5 step 1 | sample 10 | count", rows: [{ Count: 5 }] },
    {
      query: "range x from 1 to 5 step 1 | sample 5 | order by x asc",
      rows: [{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }, { x: 5 }],
    },
    { query: "datatable(x: long)[] | sample 3", rows: [], types: { x: "long" } },
    {
      query: "range x from 1 to 100 step 1 | sample 50 | summarize a = min(x) >= 1, b = max(x) <= 100, n = dcount(x)",
      rows: [{ a: true, b: true, n: 50 }],
    },
    { query: "let n = 2; range x from 1 to 5 step 1 | sample n + 1 | count", rows: [{ Count: 3 }] },
    { query: "range x from 1 to 5 step 1 | sample 0 | count", rows: [{ Count: 0 }] },
    { query: "range x from 1 to 5 step 1 | sample 1.5", refused: { code: "invalid_query", message: "integer" } },
  ],
  "sample-distinct": [
    {
      query: "datatable(s: string, x: long)['a', 1, 'b', 2, 'a', 3] | sample-distinct 5 of s",
      rows: [{ s: "a" }, { s: "b" }],
      types: { s: "string" },
      unordered: true,
    },
    {
      query:
        "range x from 1 to 100 step 1 | extend y = x % 10 | sample-distinct 4 of y | summarize n = count(), d = dcount(y)",
      rows: [{ n: 4, d: 4 }],
    },
    { query: "datatable(s: string)[] | sample-distinct 4 of s", rows: [], types: { s: "string" } },
    {
      query: "datatable(s: string)['a'] | sample-distinct 4 of nosuch",
      refused: { code: "invalid_query", message: "nosuch" },
    },
    {
      query:
        "let keys = datatable(k: long)[1, 2, 1] | sample-distinct 10 of k; datatable(k: long, v: long)[1, 5, 2, 6, 3, 7] | where k in (keys) | order by k asc",
      rows: [
        { k: 1, v: 5 },
        { k: 2, v: 6 },
      ],
    },
  ],
};
