import type { KqlCases } from "../cases.test-kit.ts";

/** let, functions of the query, invoke, toscalar, materialize. */
export const lets: KqlCases = {
  "let of a scalar": [
    { query: "let x = 5; print y = x + 1", rows: [{ y: 6 }], types: { y: "long" } },
    { query: "let a = 2; let b = a * 3; let c = a + b; print c", rows: [{ print_0: 8 }] },
    {
      query: "let ['some number'] = 20; range y from 0 to ['some number'] step 10",
      rows: [{ y: 0 }, { y: 10 }, { y: 20 }],
    },
    {
      query:
        "let threshold = 50; let region = 'West'; datatable(Name: string, Score: int, Region: string)['Alice', 45, 'West', 'Bob', 60, 'East', 'Charlie', 55, 'West', 'Dana', 70, 'North'] | where Score > threshold and Region == region",
      rows: [{ Name: "Charlie", Score: 55, Region: "West" }],
    },
    { query: "let d = 90m; print d", rows: [{ print_0: "01:30:00" }], types: { print_0: "timespan" } },
    { query: "let l = dynamic([1, 2]); print a = 1 in (l), b = 3 in (l)", rows: [{ a: true, b: false }] },
    { query: "let t = now(); print same = t == now()", rows: [{ same: true }] },
    { query: "let n = 2; range x from 1 to 3 step 1 | where x == n | extend n = 7", rows: [{ x: 2, n: 7 }] },
    { query: "let s = ''; print e = isempty(s)", rows: [{ e: true }] },
    { query: "let x = int(null); print isnull(x)", rows: [{ print_0: true }] },
    { query: "// a comment\nlet x = 1; // another\nprint x", rows: [{ print_0: 1 }] },
    {
      query: "let x = 5; let x = 6; print x",
      refused: { code: "invalid_query", message: "'x' has already been declared", line: 1, column: 16 },
    },
    { query: "print x; let x = 5", refused: { code: "invalid_query", message: "x" } },
  ],
  "calls with a value and with a null": [
    { query: "let f = (a: long) { a + 1 }; print x = f(2), y = f(long(null))", rows: [{ x: 3, y: null }] },
    { query: "let f = (a: int, b: int) { a + b }; print x = f(1, 2), y = f('', 4)", rows: [{ x: 3, y: null }] },
    {
      query: "let f = (a: long, b: long = 3) { a * b }; print x = f(2), y = f(guid(null), 4)",
      rows: [{ x: 6, y: null }],
    },
  ],
  "let of a table": [
    { query: "let T = range x from 1 to 3 step 1; T | where x > 2", rows: [{ x: 3 }] },
    {
      query: "let T = range x from 1 to 3 step 1; let U = T | where x > 1; U | join kind=inner T on x | count",
      rows: [{ Count: 2 }],
    },
    { query: "let T = datatable(x: long)[]; T", rows: [], types: { x: "long" } },
    { query: "let T = print x = 1; T | extend T = x + 1", rows: [{ x: 1, T: 2 }] },
    {
      query: "let l = datatable(x: long)[1, 2]; range y from 1 to 4 step 1 | where y in (l)",
      rows: [{ y: 1 }, { y: 2 }],
    },
    {
      query: "let l = datatable(x: long)[1, 2]; range y from 1 to 4 step 1 | where y !in (l)",
      rows: [{ y: 3 }, { y: 4 }],
    },
    { query: "range y from 1 to 4 step 1 | where y in ((range x from 2 to 3 step 1))", rows: [{ y: 2 }, { y: 3 }] },
  ],
  "let of a view": [
    { query: "let v = view () { print x = 1 }; v", rows: [{ x: 1 }] },
    { query: "let v = view () { print x = 1 }; v() | extend y = 2", rows: [{ x: 1, y: 2 }] },
    { query: "let v = () { print x = 1 }; v", rows: [{ x: 1 }] },
  ],
  "let of a function": [
    {
      query:
        "let MultiplyByN = (val: long, n: long) { val * n }; range x from 1 to 3 step 1 | extend result = MultiplyByN(x, 5)",
      rows: [
        { x: 1, result: 5 },
        { x: 2, result: 10 },
        { x: 3, result: 15 },
      ],
      types: { x: "long", result: "long" },
    },
    {
      query:
        "let TrimOnes = (s: string) { trim('1', s) }; range x from 10 to 12 step 1 | extend result = TrimOnes(tostring(x))",
      rows: [
        { x: 10, result: "0" },
        { x: 11, result: "" },
        { x: 12, result: "2" },
      ],
    },
    {
      query:
        "let foo1 = (_start: long, _end: long, _step: long) { range x from _start to _end step _step }; let foo2 = (_step: long) { foo1(1, 100, _step) }; foo2(2) | count",
      rows: [{ Count: 50 }],
    },
    { query: "let f = (a: long, b: long = 3) { a * b }; print x = f(2), y = f(2, 4)", rows: [{ x: 6, y: 8 }] },
    { query: "let f = (a: long, b: long = 3) { a * b }; print x = f(2, b = 5)", rows: [{ x: 10 }] },
    {
      query: "let f = (a: string = 'x', b: string = 'y') { strcat(a, b) }; print p = f(), q = f(b = 'z')",
      rows: [{ p: "xy", q: "xz" }],
    },
    { query: "let f = () { 42 }; print x = f()", rows: [{ x: 42 }] },
    { query: "let f = () { let g = 3; let h = g + 1; g * h }; print x = f()", rows: [{ x: 12 }] },
    { query: "let n = 3; let f = (n: long) { n + 1 }; print x = f(10) + n", rows: [{ x: 14 }] },
    { query: "let n = 3; let f = () { let n = 4; n }; print a = f(), b = n", rows: [{ a: 4, b: 3 }] },
    { query: "let n = 3; let f = (a: long) { a + n }; print x = f(1)", rows: [{ x: 4 }] },
    { query: "let f = (a: long) { a + 1 }; let g = (a: long) { f(a) * 2 }; print x = g(f(1))", rows: [{ x: 6 }] },
    { query: "let f = (a: long) { a * a }; print x = f(1 + 2)", rows: [{ x: 9 }] },
    { query: "let f = (x: long) { x - 1 }; print x = 10 - f(5 - 2)", rows: [{ x: 8 }] },
    { query: "let f = (a: real) { a }; print x = f(1)", rows: [{ x: 1 }], types: { x: "real" } },
    { query: "let f = (d: dynamic) { d.a }; print x = f(dynamic({'a': 1}))", rows: [{ x: 1 }] },
    { query: "let f = (x: long) { let g = (y: long) { x + y }; g(10) }; print x = f(1)", rows: [{ x: 11 }] },
    {
      query: "let t = (n: long) { range x from 1 to n step 1 }; t(2) | extend y = x * 2",
      rows: [
        { x: 1, y: 2 },
        { x: 2, y: 4 },
      ],
    },
    { query: "let x = 100; let f = (a: long) { a }; datatable(x: long)[7] | extend y = f(x)", rows: [{ x: 7, y: 7 }] },
    {
      query: "let f = (a: long) { a }; print f()",
      refused: { code: "invalid_query", message: "'f' expects 1 argument" },
    },
    { query: "let f = (x: long) { f(x) }; print f(1)", refused: { code: "invalid_query", message: "f" } },
  ],
  "functions with a tabular parameter": [
    {
      query:
        "let f = (T: (State: string)) { T | extend s_s = strcat(State, State) }; datatable(State: string, n: long)['a', 1] | invoke f() | project State, s_s, n",
      rows: [{ State: "a", s_s: "aa", n: 1 }],
    },
    { query: "let f = (T: (*)) { T | count }; range x from 1 to 5 step 1 | invoke f()", rows: [{ Count: 5 }] },
    {
      query: "let f = (T: (x: long), k: long) { T | extend y = x + k }; print x = 1 | invoke f(5)",
      rows: [{ x: 1, y: 6 }],
    },
    {
      query: "let f = (T: (x: long)) { T | summarize s = sum(x) }; let U = range x from 1 to 3 step 1; f(U)",
      rows: [{ s: 6 }],
    },
    {
      query: "let f = (T: (x: long)) { T | where x > 1 }; f((range x from 1 to 3 step 1)) | count",
      rows: [{ Count: 2 }],
    },
    {
      query: "let f = (T: (x: long)) { T | where x > 1 }; range x from 1 to 3 step 1 | invoke f() | invoke f() | count",
      rows: [{ Count: 2 }],
    },
    {
      query:
        "let clipped = (T: (x: long), lo: long, hi: long) { let m = toscalar(T | summarize max(x)); T | where x > lo and x < hi | extend m = m }; range x from 1 to 4 step 1 | invoke clipped(1, 4)",
      rows: [
        { x: 2, m: 4 },
        { x: 3, m: 4 },
      ],
    },
    {
      query: "let f = (T: (x: long)) { T | project z }; print x = 1, z = 1 | invoke f()",
      refused: { code: "invalid_query", message: "'z'" },
    },
    {
      query: "let f = (T: (x: long)) { T }; print z = 1 | invoke f()",
      refused: { code: "invalid_query", message: "required columns" },
    },
  ],
  toscalar: [
    {
      query: "let s = toscalar(range x from 1 to 3 step 1 | summarize sum(x)); print s",
      rows: [{ print_0: 6 }],
      types: { print_0: "long" },
    },
    {
      query:
        "let Start = toscalar(print x = 1); let End = toscalar(range x from 1 to 9 step 1 | count); let Step = toscalar(2); range z from Start to End step Step | extend start = Start, end = End, step = Step",
      rows: [1, 3, 5, 7, 9].map((z) => ({ z, start: 1, end: 9, step: 2 })),
    },
    { query: "print x = toscalar(print a = 5, b = 6)", rows: [{ x: 5 }] },
    { query: "print x = toscalar(range y from 7 to 9 step 1 | sort by y asc)", rows: [{ x: 7 }] },
    { query: "print x = isnull(toscalar(print y = 1 | where y > 1))", rows: [{ x: true }] },
    {
      query: "range x from 1 to 3 step 1 | where x == toscalar(range y from 1 to 3 step 1 | summarize max(y))",
      rows: [{ x: 3 }],
    },
    { query: "let f = (T: (x: long)) { toscalar(T | count) }; print n = f((print x = 1))", rows: [{ n: 1 }] },
    {
      query:
        "let D = datatable(x: long, y: long)[1, 2]; let f = (v: long) { toscalar(D | where x == v | project y) }; datatable(x: long)[1, 2] | extend y = f(x)",
      refused: { code: "invalid_query", message: "toscalar" },
    },
  ],
  materialize: [
    {
      query: "let m = materialize(range x from 1 to 3 step 1); union m, (m | where x > 1) | count",
      rows: [{ Count: 5 }],
    },
    {
      query: "let m = materialize(range x from 1 to 50 step 1 | extend r = rand()); m | join kind=inner m on r | count",
      rows: [{ Count: 50 }],
    },
    {
      query: "let g = toscalar(print new_guid()); range x from 1 to 3 step 1 | extend y = g | summarize n = dcount(y)",
      rows: [{ n: 1 }],
    },
    { query: "let m = materialize(print x = 1); m", rows: [{ x: 1 }] },
  ],
};
