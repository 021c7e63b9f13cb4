import type { KqlCases } from "../cases.test-kit.ts";

const VIEWS = "let View_1 = view () { print x = 1 }; let View_2 = view () { print x = toint(2) }; ";

/** union, find and search over named tables. */
export const unions: KqlCases = {
  union: [
    {
      query: "range x from 1 to 2 step 1 | union (range x from 3 to 4 step 1)",
      rows: [{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }],
      unordered: true,
    },
    { query: "union (print x = 1), (print x = 1), (print x = 1)", rows: [{ x: 1 }, { x: 1 }, { x: 1 }] },
    { query: "union (print x = 1)", rows: [{ x: 1 }] },
    {
      query: "let A = datatable(a: long, s: string)[1, 'x']; let B = datatable(b: long, s: string)[2, 'y']; union A, B",
      rows: [
        { a: 1, s: "x", b: null },
        { a: null, s: "y", b: 2 },
      ],
      types: { a: "long", s: "string", b: "long" },
      unordered: true,
    },
    {
      query: "let A = print a = 1; let B = print s = 'y'; union A, B",
      rows: [
        { a: 1, s: "" },
        { a: null, s: "y" },
      ],
      unordered: true,
    },
    {
      query: "let A = print a = 1, b = 2; let B = print b = 'y'; union kind=outer A, B",
      rows: [
        { a: 1, b_long: 2, b_string: "" },
        { a: null, b_long: null, b_string: "y" },
      ],
      types: { a: "long", b_long: "long", b_string: "string" },
      unordered: true,
    },
    {
      query: "let A = print d = dynamic([1]); let B = print t = 1h; union A, B",
      rows: [
        { d: [1], t: null },
        { d: null, t: "01:00:00" },
      ],
      unordered: true,
    },
    {
      query: `${VIEWS}union withsource=TableName View_1, View_2`,
      rows: [
        { TableName: "View_1", x_long: 1, x_int: null },
        { TableName: "View_2", x_long: null, x_int: 2 },
      ],
      types: { TableName: "string", x_long: "long", x_int: "int" },
      unordered: true,
    },
    {
      query: `${VIEWS}let View_3 = view () { print x_long = 3 }; union withsource=TableName View_1, View_2, View_3 | project TableName, x_int`,
      rows: [
        { TableName: "View_1", x_int: null },
        { TableName: "View_2", x_int: 2 },
        { TableName: "View_3", x_int: null },
      ],
      unordered: true,
    },
    { query: "print x = 1 | union (datatable(x: long)[])", rows: [{ x: 1 }], types: { x: "long" } },
    { query: "datatable(x: long)[] | union (datatable(y: long)[])", rows: [], types: { x: "long", y: "long" } },
    {
      query: "print x = 1 | union (print x = 2), (print x = 3) | summarize sum(x)",
      rows: [{ sum_x: 6 }],
    },
    {
      query: "union (range x from 1 to 3 step 1 | take 2), (range x from 1 to 3 step 1 | where x > 2) | count",
      rows: [{ Count: 3 }],
    },
    { query: "let T = range x from 1 to 3 step 1; union T, (T | where x > 2) | count", rows: [{ Count: 4 }] },
    {
      query: "union (print a = 1, b = 'x'), (print b = 'y', a = 2)",
      rows: [
        { a: 1, b: "x" },
        { a: 2, b: "y" },
      ],
      types: { a: "long", b: "string" },
      unordered: true,
    },
  ],
  "conditions behind a union": [
    {
      query:
        "let A = datatable(x: long, s: string)[1, 'a', 5, 'b']; let B = datatable(x: long)[7, 0]; union withsource=src A, B | where x > 2 and s != 'z' | sort by x asc",
      rows: [
        { src: "A", x: 5, s: "b" },
        { src: "B", x: 7, s: "" },
      ],
    },
    { query: "let A = print x = 1, s = 'a'; let B = print x = 2; union A, B | where s == ''", rows: [{ x: 2, s: "" }] },
    {
      query:
        "let A = print x = 1, s = 'a'; let B = print x = 2; union withsource=src A, B | where src == 'A' | project x",
      rows: [{ x: 1 }],
    },
    {
      query: "let A = print x = 1; let B = print x = '1'; union A, B | where isnull(x_long) | project x_string",
      rows: [{ x_string: "1" }],
    },
    {
      query:
        "union (range x from 1 to 5 step 1 | take 2), (range x from 1 to 5 step 1 | sort by x desc | take 1) | where x >= 2 | summarize n = count() by x",
      rows: [
        { x: 2, n: 1 },
        { x: 5, n: 1 },
      ],
      unordered: true,
    },
  ],
  "union of sorted rows": [
    {
      query:
        "union (range x from 1 to 3 step 1 | sort by x desc), (range x from 7 to 9 step 1 | sort by x desc) | as T | where x < 4",
      rows: [{ x: 3 }, { x: 2 }, { x: 1 }],
    },
    {
      query:
        "union (datatable(x: long)[2, 3, 1] | sort by x desc), (datatable(y: long)[5, 4] | sort by y asc) | where isnotnull(y)",
      rows: [
        { x: null, y: 4 },
        { x: null, y: 5 },
      ],
    },
  ],
  "union kind=inner": [
    {
      query: "union kind=inner (print x = 1, y = 1), (print z = 1, x = 2)",
      rows: [{ x: 1 }, { x: 2 }],
      types: { x: "long" },
      unordered: true,
    },
    {
      query: "print x = 1, y = 1 | union kind=inner (print y = 2, x = 2)",
      rows: [
        { x: 1, y: 1 },
        { x: 2, y: 2 },
      ],
      unordered: true,
    },
  ],
  "union kind=inner in functions and pipes": [
    {
      query:
        "let A = print x = 1, y = 1; let B = print x = 2; let f = () { union kind=inner A, B }; f() | sort by x asc",
      rows: [{ x: 1 }, { x: 2 }],
      types: { x: "long" },
    },
    {
      query:
        "let A = print x = 1, y = 1, z = 's'; let B = print z = 't', x = 2; A | union kind=inner withsource=src B | sort by x asc | project-away x",
      rows: [
        { src: "A", z: "s" },
        { src: "B", z: "t" },
      ],
      types: { src: "string", z: "string" },
    },
    {
      query: "let A = print x = 1, y = 1; let B = print x = 'a', y = 2; union kind=inner A, B | sort by y asc",
      rows: [{ y: 1 }, { y: 2 }],
    },
    {
      query: "let A = print x = 1; let B = print x = 2, y = 3; union kind=inner A, B | where y == 3",
      refused: { code: "invalid_query", message: "'y'", line: 1, column: 80 },
    },
  ],
  "union withsource": [
    {
      query:
        "union withsource=TableName (range x from 1 to 2 step 1 | as T1), (range x from 1 to 1 step 1 | as T2) | sort by TableName asc, x asc",
      rows: [
        { TableName: "T1", x: 1 },
        { TableName: "T1", x: 2 },
        { TableName: "T2", x: 1 },
      ],
      types: { TableName: "string", x: "long" },
    },
    {
      query: "let A = print x = 1; let B = print x = 2; union withsource=src A, B | where src == 'B'",
      rows: [{ src: "B", x: 2 }],
    },
    {
      query:
        "let A = print x = 1; let B = print x = 2; A | union withsource=src B | summarize n = count() by src | where src == 'B'",
      rows: [{ src: "B", n: 1 }],
    },
  ],
  "union isfuzzy": [
    {
      query:
        "let View_1 = view () { print x = 1 }; let View_2 = view () { print x = 1 }; union isfuzzy=true (View_1 | where x > 0), (View_2 | where x > 0), (View_3 | where x > 0) | count",
      rows: [{ Count: 2 }],
    },
    { query: "let A = print x = 1; union isfuzzy=true A, Missing", rows: [{ x: 1 }] },
    {
      query: "let A = print x = 1; union isfuzzy=false A, Missing",
      refused: { code: "invalid_query", message: "Missing" },
    },
    {
      query: "let A = print x = 1; union A, Missing",
      refused: { code: "invalid_query", message: "Missing", line: 1, column: 31 },
    },
    { query: "union isfuzzy=true Missing", refused: { code: "invalid_query", message: "Missing" } },
  ],
  search: [
    {
      query: "datatable(a: string, b: long)['one two', 1, 'oner', 2, 'x ONE', 3] | as T | search 'one' | sort by b asc",
      rows: [
        { $table: "T", a: "one two", b: 1 },
        { $table: "T", a: "x ONE", b: 3 },
      ],
      types: { $table: "string", a: "string", b: "long" },
    },
    {
      query: "datatable(a: string)['one two', 'oner', 'x ONE'] | as T | search kind=case_sensitive 'one'",
      rows: [{ $table: "T", a: "one two" }],
    },
    {
      query: "datatable(a: string)['one two', 'oner', 'x ONE'] | search kind=case_insensitive 'one' | count",
      rows: [{ Count: 2 }],
    },
    {
      query: "datatable(a: string)['error', 'errors', 'terror'] | search 'err*' | project a",
      rows: [{ a: "error" }, { a: "errors" }],
    },
    {
      query: "datatable(a: string)['error', 'errors', 'terror'] | search '*or' | project a",
      rows: [{ a: "error" }, { a: "terror" }],
    },
    {
      query: "datatable(a: string)['error', 'xerrory', 'eror'] | search '*err*' | project a",
      rows: [{ a: "error" }, { a: "xerrory" }],
    },
    {
      query: "datatable(a: string)['Lab 1 PC', 'LabPC', 'xLab PC', 'Lab PCs'] | search 'Lab*PC' | project a",
      rows: [{ a: "Lab 1 PC" }, { a: "LabPC" }],
    },
    {
      query: "datatable(a: string, b: string)['x', 'y', 'y', 'x', 'z', 'z'] | search 'x' and 'y' | project a, b",
      rows: [
        { a: "x", b: "y" },
        { a: "y", b: "x" },
      ],
    },
    {
      query: "datatable(a: string, n: long)['x', 1, 'y', 20, 'z', 30] | search 'x' or (n > 10 and n < 30) | project a",
      rows: [{ a: "x" }, { a: "y" }],
    },
    {
      query: "datatable(a: string, b: string)['x', 'y', 'y', 'x'] | search a:'x' | project a, b",
      rows: [{ a: "x", b: "y" }],
    },
    {
      query: "datatable(a: string)['x y', 'x', 'X'] | search a == 'x' | project a",
      rows: [{ a: "x" }],
    },
    {
      query: "datatable(a: string)['abc', 'xyz'] | search a matches regex 'b.$' | project a",
      rows: [{ a: "abc" }],
    },
    { query: "datatable(a: string)['abc', 'xyz'] | search * | count", rows: [{ Count: 2 }] },
    {
      query: "datatable(a: string, n: long)['x', 41, 'y', 5] | search '41' | project a",
      rows: [{ a: "x" }],
    },
    {
      query:
        "let Range10 = view () { range MyColumn from 1 to 10 step 1 }; let Range20 = view () { range MyColumn from 1 to 20 step 1 }; search in (Range10, Range20) MyColumn == 5",
      rows: [
        { $table: "Range10", MyColumn: 5 },
        { $table: "Range20", MyColumn: 5 },
      ],
      types: { $table: "string", MyColumn: "long" },
      unordered: true,
    },
    {
      query:
        "let A = print a = 'x', n = 1; let B = print b = 'x', n = 2; let C = print c = 'y', n = 3; search in (A, B, C) 'x' | project ['$table'], a, b, n | sort by n asc",
      rows: [
        { $table: "A", a: "x", b: "", n: 1 },
        { $table: "B", a: "", b: "x", n: 2 },
      ],
    },
  ],
  find: [
    {
      query:
        "let A = datatable(id: string, level: string, ver: string)['s1', 'Error', 'v1', 's2', 'Error', 'v2']; let B = datatable(id: string, level: string, name: string)['s1', 'Info', 'e1', 's1', 'Error', 'e2']; " +
        "find in (A, B) where id == 's1' and level == 'Error' project ver, name",
      rows: [
        { source_: "A", ver: "v1", name: "" },
        { source_: "B", ver: "", name: "e2" },
      ],
      types: { source_: "string", ver: "string", name: "string" },
      unordered: true,
    },
    {
      query:
        "let A = datatable(id: string, level: string, ver: string)['s1', 'Error', 'v1', 's2', 'Error', 'v2']; let B = datatable(id: string, level: string, name: string)['s1', 'Info', 'e1']; " +
        "find in (A, B) where id == 's1'",
      rows: [
        { source_: "A", id: "s1", level: "Error", pack_: { ver: "v1" } },
        { source_: "B", id: "s1", level: "Info", pack_: { name: "e1" } },
      ],
      types: { source_: "string", id: "string", level: "string", pack_: "dynamic" },
      unordered: true,
    },
    {
      query: "let A = print x = 1, y = 2; let B = print x = 1, y = 3; find withsource=src in (A, B) where y == 3",
      rows: [{ src: "B", x: 1, y: 3 }],
    },
    {
      query:
        "let A = datatable(a: string)['has it here', 'not']; let B = datatable(b: string)['it']; find in (A, B) where * has 'it' project a, b",
      rows: [
        { source_: "A", a: "has it here", b: "" },
        { source_: "B", a: "", b: "it" },
      ],
      unordered: true,
    },
    {
      query: "let A = datatable(a: string)['has it here', 'not']; find in (A) where 'it' project a",
      rows: [{ source_: "A", a: "has it here" }],
    },
    {
      query: "let A = datatable(n: long)[1, 2]; find in (A) where n == 2 project n: string",
      rows: [{ source_: "A", n: "2" }],
      types: { source_: "string", n: "string" },
    },
    {
      query: "let A = print x = 1, y = 2; let B = print z = 1; find in (A, B) where x == 1 project x, y",
      rows: [{ source_: "A", x: 1, y: 2 }],
    },
  ],
};
