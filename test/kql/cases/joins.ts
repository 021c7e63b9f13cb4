import type { KqlCases } from "../cases.test-kit.ts";

const XY =
  "let X = datatable(Key: string, Value1: long)['a', 1, 'b', 2, 'b', 3, 'c', 4]; " +
  "let Y = datatable(Key: string, Value2: long)['b', 10, 'c', 20, 'c', 30, 'd', 40]; ";

const NULLS =
  "let L = datatable(k: long, l: string)[1, 'l1', long(null), 'lnull']; " +
  "let R = datatable(k: long, r: string)[1, 'r1', long(null), 'rnull']; ";

const FACTS =
  "let Facts = datatable(Row: string, Personal: string, Family: string)['1', 'Rowan', 'Murphy', '2', 'Ellis', 'Turner', '3', 'Ellis', 'Turner', '4', 'Nobody', 'Here']; " +
  "let Dims = datatable(Personal: string, Family: string, Alias: string)['Rowan', 'Murphy', 'rowanm', 'Ellis', 'Turner', 'ellist', 'Maya', 'Robinson', 'mayar']; ";

/** join and lookup. */
export const joins: KqlCases = {
  "join kind=innerunique": [
    {
      query: `${XY}X | join Y on Key | project Key, Key1, Value2`,
      rows: [
        { Key: "b", Key1: "b", Value2: 10 },
        { Key: "c", Key1: "c", Value2: 20 },
        { Key: "c", Key1: "c", Value2: 30 },
      ],
      unordered: true,
    },
    { query: `${XY}X | join Y on Key | count`, rows: [{ Count: 3 }] },
    { query: `${XY}X | join kind=innerunique Y on Key | count`, rows: [{ Count: 3 }] },
    {
      query: `${XY}X | join Y on Key | where Key == 'c'`,
      rows: [
        { Key: "c", Value1: 4, Key1: "c", Value2: 20 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30 },
      ],
      types: { Key: "string", Value1: "long", Key1: "string", Value2: "long" },
      unordered: true,
    },
    {
      query: "datatable(a: long, b: long)[1, 1, 1, 1, 1, 1] | join (datatable(a: long)[1]) on a",
      rows: [{ a: 1, b: 1, a1: 1 }],
    },
    {
      query:
        "datatable(a: long, b: long, c: long)[1, 1, 0, 1, 2, 0, 1, 2, 0] | join (datatable(a: long, b: long)[1, 1, 1, 2]) on a, b | summarize n = count() by a, b",
      rows: [
        { a: 1, b: 1, n: 1 },
        { a: 1, b: 2, n: 1 },
      ],
      unordered: true,
    },
    { query: "datatable(a: long)[] | join (print a = 1) on a", rows: [], types: { a: "long", a1: "long" } },
    { query: "print a = 1 | join (datatable(a: long)[]) on a", rows: [] },
  ],
  "join kind=inner": [
    {
      query: `${XY}X | join kind=inner Y on Key`,
      rows: [
        { Key: "b", Value1: 2, Key1: "b", Value2: 10 },
        { Key: "b", Value1: 3, Key1: "b", Value2: 10 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 20 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30 },
      ],
      types: { Key: "string", Value1: "long", Key1: "string", Value2: "long" },
      unordered: true,
    },
    {
      query: "datatable(a: long)[1, 1] | join kind=inner (datatable(a: long)[1, 1, 1]) on a | count",
      rows: [{ Count: 6 }],
    },
    {
      query: "print a = 1, b = 'l' | join kind=inner (print c = 1, b = 'r') on $left.a == $right.c",
      rows: [{ a: 1, b: "l", c: 1, b1: "r" }],
      types: { a: "long", b: "string", c: "long", b1: "string" },
    },
    {
      query:
        "datatable(a: long, b: string)[1, 'x', 1, 'y'] | join kind=inner (datatable(c: long, b: string)[1, 'x', 1, 'z']) on b, $left.a == $right.c",
      rows: [{ a: 1, b: "x", c: 1, b1: "x" }],
    },
    {
      query:
        "datatable(a: long, b: string)[1, 'x', 1, 'y'] | join kind=inner (datatable(c: long, d: string)[1, 'x', 2, 'y']) on $left.a == $right.c and $left.b == $right.d",
      rows: [{ a: 1, b: "x", c: 1, d: "x" }],
    },
    {
      query:
        "datatable(a: long, b: string)[1, 'x', 1, 'y'] | join kind=inner (datatable(c: long, d: string)[1, 'x', 2, 'y']) on $left.a == $right.c, $left.b == $right.d",
      rows: [{ a: 1, b: "x", c: 1, d: "x" }],
    },
    {
      query: "print n = 1, n1 = 2 | join kind=inner (print n = 1, n2 = 3) on n",
      rows: [{ n: 1, n1: 2, n3: 1, n2: 3 }],
    },
    {
      query: "datatable(s: string)['a', 'A'] | join kind=inner (datatable(s: string)['a']) on s",
      rows: [{ s: "a", s1: "a" }],
    },
    { query: "print s = '' | join kind=inner (print s = '') on s", rows: [{ s: "", s1: "" }] },
    {
      query:
        "datatable(t: datetime)[datetime(2020-01-01), datetime(2020-01-02)] | join kind=inner (datatable(t: datetime)[datetime(2020-01-02)]) on t",
      rows: [{ t: "2020-01-02T00:00:00Z", t1: "2020-01-02T00:00:00Z" }],
    },
    {
      query: "print t = 1h | join kind=inner (print t = 60m) on t",
      rows: [{ t: "01:00:00", t1: "01:00:00" }],
      types: { t: "timespan", t1: "timespan" },
    },
    {
      query:
        "print x = 1 | extend placeholder = 1 | join kind=inner (range y from 1 to 2 step 1 | extend placeholder = 1) on placeholder | project x, y",
      rows: [
        { x: 1, y: 1 },
        { x: 1, y: 2 },
      ],
      unordered: true,
    },
    {
      query: `${XY}X | join kind=inner hint.strategy=broadcast hint.shufflekey=Key Y on Key | count`,
      rows: [{ Count: 4 }],
    },
    { query: `${XY}X | join hint.remote=left kind=inner Y on Key | count`, rows: [{ Count: 4 }] },
    {
      query: `${XY}X | join kind=inner (Y | where Value2 > 10) on Key | join kind=inner (X) on Key`,
      rows: [
        { Key: "c", Value1: 4, Key1: "c", Value2: 20, Key2: "c", Value11: 4 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30, Key2: "c", Value11: 4 },
      ],
      unordered: true,
    },
  ],
  "join kind=leftouter": [
    {
      query: `${XY}X | join kind=leftouter Y on Key`,
      rows: [
        { Key: "a", Value1: 1, Key1: "", Value2: null },
        { Key: "b", Value1: 2, Key1: "b", Value2: 10 },
        { Key: "b", Value1: 3, Key1: "b", Value2: 10 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 20 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30 },
      ],
      unordered: true,
    },
    {
      query:
        "print a = 1 | join kind=leftouter (datatable(a: long, s: string, d: dynamic, t: timespan)[]) on a | extend e = isempty(s), n = isnull(d), u = isnull(t)",
      rows: [{ a: 1, a1: null, s: "", d: null, t: null, e: true, n: true, u: true }],
    },
    {
      query: `${XY}X | join kind=leftouter Y on Key | where Key1 == '' | project Key`,
      rows: [{ Key: "a" }],
    },
  ],
  "join kind=rightouter": [
    {
      query: `${XY}X | join kind=rightouter Y on Key`,
      rows: [
        { Key: "b", Value1: 2, Key1: "b", Value2: 10 },
        { Key: "b", Value1: 3, Key1: "b", Value2: 10 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 20 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30 },
        { Key: "", Value1: null, Key1: "d", Value2: 40 },
      ],
      unordered: true,
    },
  ],
  "join kind=fullouter": [
    {
      query: `${XY}X | join kind=fullouter Y on Key`,
      rows: [
        { Key: "a", Value1: 1, Key1: "", Value2: null },
        { Key: "b", Value1: 2, Key1: "b", Value2: 10 },
        { Key: "b", Value1: 3, Key1: "b", Value2: 10 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 20 },
        { Key: "c", Value1: 4, Key1: "c", Value2: 30 },
        { Key: "", Value1: null, Key1: "d", Value2: 40 },
      ],
      types: { Key: "string", Value1: "long", Key1: "string", Value2: "long" },
      unordered: true,
    },
    { query: "datatable(a: long)[] | join kind=fullouter (print a = 1) on a", rows: [{ a: null, a1: 1 }] },
  ],
  "join of semi and anti kinds": [
    {
      query: `${XY}X | join kind=leftsemi Y on Key`,
      rows: [
        { Key: "b", Value1: 2 },
        { Key: "b", Value1: 3 },
        { Key: "c", Value1: 4 },
      ],
      types: { Key: "string", Value1: "long" },
      unordered: true,
    },
    {
      query: `${XY}X | join kind=rightsemi Y on Key`,
      rows: [
        { Key: "b", Value2: 10 },
        { Key: "c", Value2: 20 },
        { Key: "c", Value2: 30 },
      ],
      types: { Key: "string", Value2: "long" },
      unordered: true,
    },
    {
      query: `${XY}X | join kind=leftanti Y on Key`,
      rows: [{ Key: "a", Value1: 1 }],
      types: { Key: "string", Value1: "long" },
    },
    { query: `${XY}X | join kind=anti Y on Key`, rows: [{ Key: "a", Value1: 1 }] },
    { query: `${XY}X | join kind=leftantisemi Y on Key`, rows: [{ Key: "a", Value1: 1 }] },
    {
      query: `${XY}X | join kind=rightanti Y on Key`,
      rows: [{ Key: "d", Value2: 40 }],
      types: { Key: "string", Value2: "long" },
    },
    { query: `${XY}X | join kind=rightantisemi Y on Key`, rows: [{ Key: "d", Value2: 40 }] },
    {
      query: "datatable(a: long)[1, 1] | join kind=leftsemi (datatable(a: long)[1, 1]) on a",
      rows: [{ a: 1 }, { a: 1 }],
    },
    { query: "datatable(a: long)[1, 1] | join kind=leftanti (datatable(a: long)[]) on a", rows: [{ a: 1 }, { a: 1 }] },
    { query: "datatable(a: long)[] | join kind=leftanti (datatable(a: long)[1]) on a", rows: [] },
    { query: "print a = 1 | join kind=leftsemi (print b = 1) on $left.a == $right.b", rows: [{ a: 1 }] },
  ],
  "conditions behind a join": [
    {
      query:
        "let t1 = datatable(key: long, value: string)[1, 'val1.1', 1, 'val1.2']; let t2 = datatable(key: long, value: string)[1, 'val1.3', 1, 'val1.4']; t1 | join kind=innerunique t2 on key | where value == 'val1.2'",
      rows: [
        { key: 1, value: "val1.2", key1: 1, value1: "val1.3" },
        { key: 1, value: "val1.2", key1: 1, value1: "val1.4" },
      ],
      unordered: true,
    },
    {
      query: `${XY}X | join kind=leftouter Y on Key | where isnull(Value2)`,
      rows: [{ Key: "a", Value1: 1, Key1: "", Value2: null }],
    },
    {
      query: `${XY}X | join kind=leftouter Y on Key | where Value1 == 1 | project Key, Key1`,
      rows: [{ Key: "a", Key1: "" }],
    },
    { query: `${XY}X | join kind=rightouter Y on Key | where isnull(Value1) | project Key1`, rows: [{ Key1: "d" }] },
    { query: `${XY}X | join kind=fullouter Y on Key | where Key == '' or Key1 == '' | count`, rows: [{ Count: 2 }] },
    { query: `${XY}X | join kind=leftanti Y on Key | where Value1 > 1`, rows: [] },
    { query: `${XY}X | join kind=rightsemi Y on Key | where Value2 > 20`, rows: [{ Key: "c", Value2: 30 }] },
  ],
  "null keys of a join": [
    { query: `${NULLS}L | join kind=inner R on k`, rows: [{ k: 1, l: "l1", k1: 1, r: "r1" }] },
    {
      query: `${NULLS}L | join kind=fullouter R on k`,
      rows: [
        { k: 1, l: "l1", k1: 1, r: "r1" },
        { k: null, l: "lnull", k1: null, r: "" },
        { k: null, l: "", k1: null, r: "rnull" },
      ],
      unordered: true,
    },
    { query: `${NULLS}L | join kind=leftsemi R on k`, rows: [{ k: 1, l: "l1" }] },
    { query: `${NULLS}L | join kind=leftanti R on k`, rows: [{ k: null, l: "lnull" }] },
    { query: `${NULLS}L | join kind=rightanti R on k`, rows: [{ k: null, r: "rnull" }] },
  ],
  lookup: [
    {
      query: `${FACTS}Facts | lookup kind=leftouter Dims on Personal, Family`,
      rows: [
        { Row: "1", Personal: "Rowan", Family: "Murphy", Alias: "rowanm" },
        { Row: "2", Personal: "Ellis", Family: "Turner", Alias: "ellist" },
        { Row: "3", Personal: "Ellis", Family: "Turner", Alias: "ellist" },
        { Row: "4", Personal: "Nobody", Family: "Here", Alias: "" },
      ],
      types: { Row: "string", Personal: "string", Family: "string", Alias: "string" },
      unordered: true,
    },
    { query: `${FACTS}Facts | lookup Dims on Personal, Family | count`, rows: [{ Count: 4 }] },
    {
      query: `${FACTS}Facts | lookup kind=inner Dims on Personal | project Row, Alias`,
      rows: [
        { Row: "1", Alias: "rowanm" },
        { Row: "2", Alias: "ellist" },
        { Row: "3", Alias: "ellist" },
      ],
      unordered: true,
    },
    {
      query: "print a = 1, v = 'l' | lookup (print b = 1, v = 'r') on $left.a == $right.b",
      rows: [{ a: 1, v: "l", v1: "r" }],
      types: { a: "long", v: "string", v1: "string" },
    },
    {
      query: "print a = 1 | lookup (datatable(a: long, n: long)[1, 10, 1, 20]) on a",
      rows: [
        { a: 1, n: 10 },
        { a: 1, n: 20 },
      ],
      unordered: true,
    },
    {
      query: "print a = 1 | lookup (datatable(b: long, s: string, n: long)[]) on $left.a == $right.b",
      rows: [{ a: 1, s: "", n: null }],
    },
    {
      query: "print a = 1 | lookup kind=rightouter (print a = 1) on a",
      refused: { code: "invalid_query", message: "leftouter" },
    },
  ],
  "what a join refuses": [
    {
      query: "print a = 1 | join kind=weird (print a = 1) on a",
      refused: { code: "invalid_query", message: "inner", line: 1, column: 25 },
    },
    { query: "print a = 1 | join (print b = 1) on a", refused: { code: "invalid_query", message: "both sides" } },
    { query: "print a = 1 | join (print a = 'x') on a", refused: { code: "invalid_query", message: "same type" } },
    {
      query: "print a = 1 | join (print b = 1) on $left.a > $right.b",
      refused: { code: "invalid_query", message: "join condition" },
    },
    {
      query: "print a = 1 | join (print b = 1) on $left.a + 1 == $right.b",
      refused: { code: "invalid_query", message: "$left" },
    },
    {
      query: "print a = dynamic(1) | join (print a = dynamic(1)) on a",
      refused: { code: "invalid_query", message: "dynamic" },
    },
  ],
};
