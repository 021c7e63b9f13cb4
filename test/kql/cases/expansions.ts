import type { KqlCases } from "../cases.test-kit.ts";

/** mv-expand and mv-apply. */
export const expansions: KqlCases = {
  "mv-expand": [
    {
      query: "datatable(a: int, b: dynamic)[1, dynamic([10, 20]), 2, dynamic(['a', 'b'])] | mv-expand b",
      rows: [
        { a: 1, b: 10 },
        { a: 1, b: 20 },
        { a: 2, b: "a" },
        { a: 2, b: "b" },
      ],
      types: { a: "int", b: "dynamic" },
    },
    {
      query:
        'datatable(a: int, b: dynamic)[1, dynamic({"prop1": "a1", "prop2": "b1"}), 2, dynamic({"prop1": "a2", "prop2": "b2"})] | mv-expand b',
      rows: [
        { a: 1, b: { prop1: "a1" } },
        { a: 1, b: { prop2: "b1" } },
        { a: 2, b: { prop1: "a2" } },
        { a: 2, b: { prop2: "b2" } },
      ],
    },
    {
      query:
        'datatable(a: int, b: dynamic, c: dynamic)[1, dynamic({"prop1": "a", "prop2": "b"}), dynamic([5, 4, 3])] | mv-expand b, c',
      rows: [
        { a: 1, b: { prop1: "a" }, c: 5 },
        { a: 1, b: { prop2: "b" }, c: 4 },
        { a: 1, b: null, c: 3 },
      ],
    },
    {
      query:
        'datatable(a: int, b: dynamic, c: dynamic)[1, dynamic({"prop1": "a", "prop2": "b"}), dynamic([5, 6])] | mv-expand b | mv-expand c',
      rows: [
        { a: 1, b: { prop1: "a" }, c: 5 },
        { a: 1, b: { prop1: "a" }, c: 6 },
        { a: 1, b: { prop2: "b" }, c: 5 },
        { a: 1, b: { prop2: "b" }, c: 6 },
      ],
    },
    {
      query: "datatable(a: long, b: dynamic)[1, dynamic([]), 2, dynamic({}), 3, dynamic([7])] | mv-expand b",
      rows: [{ a: 3, b: 7 }],
    },
    { query: "datatable(a: long, b: dynamic)[1, dynamic(null)] | mv-expand b", rows: [{ a: 1, b: null }] },
    {
      query: "datatable(b: dynamic)[dynamic([1, null, 2])] | mv-expand b",
      rows: [{ b: 1 }, { b: null }, { b: 2 }],
    },
    { query: "datatable(b: dynamic)[dynamic([[1, 2], [3]])] | mv-expand b", rows: [{ b: [1, 2] }, { b: [3] }] },
    {
      query: "datatable(b: dynamic)[dynamic([[1, 2], [3]])] | mv-expand b | mv-expand b",
      rows: [{ b: 1 }, { b: 2 }, { b: 3 }],
    },
    {
      query: "datatable(b: dynamic, c: dynamic)[dynamic([1, 2]), dynamic([])] | mv-expand b, c",
      rows: [
        { b: 1, c: null },
        { b: 2, c: null },
      ],
    },
    { query: "datatable(b: dynamic)[] | mv-expand b", rows: [], types: { b: "dynamic" } },
    {
      query: "print d = dynamic({'n': {'l': [1, 2]}}) | mv-expand d.n.l | project-away d",
      rows: [{ d_n_l: 1 }, { d_n_l: 2 }],
    },
    {
      query: "range x from 1 to 2 step 1 | mv-expand y = range(1, x)",
      rows: [
        { x: 1, y: 1 },
        { x: 2, y: 1 },
        { x: 2, y: 2 },
      ],
    },
    {
      query: "print a = dynamic([1, 2]), b = 'x' | mv-expand c = a",
      rows: [
        { a: [1, 2], b: "x", c: 1 },
        { a: [1, 2], b: "x", c: 2 },
      ],
      types: { a: "dynamic", b: "string", c: "dynamic" },
    },
    {
      query: "range x from 1 to 4 step 1 | summarize x = make_list(x) | mv-expand x",
      rows: [{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }],
    },
    { query: "print x = 1 | mv-expand x", refused: { code: "invalid_query", message: "dynamic" } },
  ],
  "mv-expand kind": [
    {
      query: 'print b = dynamic({"p": "a1", "q": "b1"}) | mv-expand kind=array b | extend key = b[0], val = b[1]',
      rows: [
        { b: ["p", "a1"], key: "p", val: "a1" },
        { b: ["q", "b1"], key: "q", val: "b1" },
      ],
    },
    {
      query: 'print b = dynamic({"p": 1, "q": null}) | mv-expand bagexpansion=array b',
      rows: [{ b: ["p", 1] }, { b: ["q", null] }],
    },
    { query: 'print b = dynamic({"p": 1}) | mv-expand kind=bag b', rows: [{ b: { p: 1 } }] },
    { query: 'print b = dynamic({"p": 1}) | mv-expand bagexpansion=bag b', rows: [{ b: { p: 1 } }] },
    { query: "print b = dynamic([1, 2]) | mv-expand kind=array b", rows: [{ b: 1 }, { b: 2 }] },
    {
      query: "print b = dynamic([1]) | mv-expand kind=other b",
      refused: { code: "invalid_query", message: "bag, array" },
    },
  ],
  "mv-expand to typeof": [
    {
      query: "print b = dynamic([1, 2]) | mv-expand b to typeof(long)",
      rows: [{ b: 1 }, { b: 2 }],
      types: { b: "long" },
    },
    {
      query: "print b = dynamic([1, 'x', 2]) | mv-expand b to typeof(long)",
      rows: [{ b: 1 }, { b: null }, { b: 2 }],
      types: { b: "long" },
    },
    { query: "print b = dynamic(['1', 2]) | mv-expand b to typeof(long)", rows: [{ b: null }, { b: 2 }] },
    {
      query: "print b = dynamic(['x', 'y']) | mv-expand b to typeof(string)",
      rows: [{ b: "x" }, { b: "y" }],
      types: { b: "string" },
    },
    {
      query: "print b = dynamic([true, false]) | mv-expand b to typeof(bool)",
      rows: [{ b: true }, { b: false }],
      types: { b: "bool" },
    },
    {
      query: "print b = dynamic([1.5, 2.5]) | mv-expand b to typeof(real)",
      rows: [{ b: 1.5 }, { b: 2.5 }],
      types: { b: "real" },
    },
    { query: "print b = dynamic(null) | mv-expand b to typeof(long)", rows: [{ b: null }], types: { b: "long" } },
    { query: "print b = dynamic(null) | mv-expand b to typeof(string)", rows: [{ b: "" }], types: { b: "string" } },
    {
      query:
        "datatable(a: string, b: dynamic, c: dynamic)['Constant', dynamic([1, 2, 3, 4]), dynamic([6, 7, 8, 9])] | mv-expand b, c to typeof(int) | getschema | project ColumnName, ColumnOrdinal, ColumnType",
      rows: [
        { ColumnName: "a", ColumnOrdinal: 0, ColumnType: "string" },
        { ColumnName: "b", ColumnOrdinal: 1, ColumnType: "dynamic" },
        { ColumnName: "c", ColumnOrdinal: 2, ColumnType: "int" },
      ],
    },
    {
      query: "print b = dynamic([1, 2]) | mv-expand c = b to typeof(long), b to typeof(long) | summarize sum(b + c)",
      rows: [{ sum_: 6 }],
    },
  ],
  "mv-expand limit": [
    {
      query:
        "datatable(a: long, b: dynamic)[1, dynamic([1, 2, 3]), 2, dynamic([4, 5, 6])] | mv-expand b to typeof(long) limit 2",
      rows: [
        { a: 1, b: 1 },
        { a: 1, b: 2 },
        { a: 2, b: 4 },
        { a: 2, b: 5 },
      ],
    },
    { query: "print b = range(1, 200) | mv-expand b | count", rows: [{ Count: 200 }] },
    { query: "print b = range(1, 200) | mvexpand b | count", rows: [{ Count: 128 }] },
    { query: "print b = range(1, 200) | mvexpand b limit 150 | count", rows: [{ Count: 150 }] },
  ],
  "mv-expand with_itemindex": [
    {
      query:
        "range x from 1 to 4 step 1 | summarize x = make_list(x * 10) | mv-expand with_itemindex=Index x to typeof(long)",
      rows: [
        { x: 10, Index: 0 },
        { x: 20, Index: 1 },
        { x: 30, Index: 2 },
        { x: 40, Index: 3 },
      ],
      types: { x: "long", Index: "long" },
    },
    {
      query: "datatable(a: long, b: dynamic)[1, dynamic(['x', 'y']), 2, dynamic(['z'])] | mv-expand with_itemindex=i b",
      rows: [
        { a: 1, b: "x", i: 0 },
        { a: 1, b: "y", i: 1 },
        { a: 2, b: "z", i: 0 },
      ],
    },
  ],
  "sub-queries of mv-apply": [
    {
      query:
        "print a = dynamic([1, 2, 3]), k = 2 | mv-apply a to typeof(long) on (where a > 1 | as T | union (T | extend a = a * 10))",
      rows: [2, 3, 20, 30].map((a) => ({ k: 2, a })),
      types: { k: "long", a: "long" },
      unordered: true,
    },
    {
      query:
        "let U = datatable(x: long, z: string)[1, 'one', 2, 'two']; print a = dynamic([1, 2, 3]), k = 2 | mv-apply a to typeof(long) on (lookup kind=inner (U | project a = x, z) on a)",
      rows: [
        { k: 2, a: 1, z: "one" },
        { k: 2, a: 2, z: "two" },
      ],
      types: { k: "long", a: "long", z: "string" },
      unordered: true,
    },
    {
      query:
        "let U = datatable(x: long)[1, 2]; print a = dynamic([1, 2, 3]), k = 2 | mv-apply a to typeof(long) on (where a in (U) | extend s = toscalar(U | count))",
      rows: [
        { k: 2, a: 1, s: 2 },
        { k: 2, a: 2, s: 2 },
      ],
      unordered: true,
    },
    {
      query: "print a = dynamic([1, 1, 2]), k = 'x' | mv-apply a to typeof(long) on (distinct *)",
      rows: [
        { k: "x", a: 1 },
        { k: "x", a: 2 },
      ],
      unordered: true,
    },
    {
      query:
        "print b = 1, a = dynamic(['x', 'y']), c = 3 | mv-apply a to typeof(string) on (getschema | project ColumnName, ColumnOrdinal)",
      rows: [
        { b: 1, c: 3, ColumnName: "b", ColumnOrdinal: 0 },
        { b: 1, c: 3, ColumnName: "a", ColumnOrdinal: 1 },
        { b: 1, c: 3, ColumnName: "c", ColumnOrdinal: 2 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(k: string, a: dynamic)['x', dynamic([3, 1, 2]), 'y', dynamic([9, 8])] | mv-apply a to typeof(long) on (serialize p = prev(a) | where isnotnull(p))",
      rows: [
        { k: "x", a: 1, p: 3 },
        { k: "x", a: 2, p: 1 },
        { k: "y", a: 8, p: 9 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(k: string, a: dynamic)['x', dynamic([1]), 'x', dynamic([1])] | mv-apply a to typeof(long) on (summarize s = sum(a))",
      rows: [
        { k: "x", s: 1 },
        { k: "x", s: 1 },
      ],
    },
    {
      query: "print a = dynamic([1]), i = 1 | mv-apply with_itemindex=i a on (where true)",
      refused: { code: "invalid_query", message: "there is a column i already" },
    },
  ],
  "mv-apply": [
    {
      query:
        "datatable(index: int, Arr: dynamic)[0, dynamic([7]), 1, dynamic([6, 11, 7])] | mv-apply Arr2 = Arr to typeof(long) on (take 100)",
      rows: [
        { index: 0, Arr: [7], Arr2: 7 },
        { index: 1, Arr: [6, 11, 7], Arr2: 6 },
        { index: 1, Arr: [6, 11, 7], Arr2: 11 },
        { index: 1, Arr: [6, 11, 7], Arr2: 7 },
      ],
      types: { index: "int", Arr: "dynamic", Arr2: "long" },
      unordered: true,
    },
    {
      query:
        "datatable(index: int, Arr: dynamic)[0, dynamic([1, 5, 3]), 1, dynamic([10, 2, 5, 7])] | mv-apply topElem = Arr to typeof(long) on (top 1 by topElem)",
      rows: [
        { index: 0, Arr: [1, 5, 3], topElem: 5 },
        { index: 1, Arr: [10, 2, 5, 7], topElem: 10 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(index: int, Arr: dynamic)[0, dynamic([5, 1, 3]), 1, dynamic([4, 10, 8, 7])] | mv-apply Arr2 = Arr to typeof(long) on (top 2 by Arr2 | summarize Top2 = make_list(Arr2))",
      rows: [
        { index: 0, Arr: [5, 1, 3], Top2: [5, 3] },
        { index: 1, Arr: [4, 10, 8, 7], Top2: [10, 8] },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(Val: int, Arr1: dynamic, Arr2: dynamic)[1, dynamic(['A1', 'A2', 'A3']), dynamic([10, 30, 7]), 7, dynamic(['B1', 'B2', 'B5']), dynamic([15, 11, 50]), 3, dynamic(['C1', 'C2', 'C3', 'C4']), dynamic([6, 40, 20, 8])] " +
        "| mv-apply NewArr1 = Arr1, NewArr2 = Arr2 to typeof(long) on (top 2 by NewArr2 | summarize NewArr1 = make_list(NewArr1), NewArr2 = make_list(NewArr2)) | project-away Arr1, Arr2",
      rows: [
        { Val: 1, NewArr1: ["A2", "A1"], NewArr2: [30, 10] },
        { Val: 7, NewArr1: ["B5", "B1"], NewArr2: [50, 15] },
        { Val: 3, NewArr1: ["C2", "C3"], NewArr2: [40, 20] },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(row: int, Arr: dynamic)[0, dynamic([5, 1, 3]), 1, dynamic([4, 10, 8, 7])] | mv-apply with_itemindex=index value = Arr to typeof(long) on (where index >= 2)",
      rows: [
        { row: 0, Arr: [5, 1, 3], value: 3, index: 2 },
        { row: 1, Arr: [4, 10, 8, 7], value: 8, index: 2 },
        { row: 1, Arr: [4, 10, 8, 7], value: 7, index: 3 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(Val: int, Arr1: dynamic, Arr2: dynamic)[1, dynamic(['A1', 'A2']), dynamic(['B1', 'B2', 'B3']), 5, dynamic(['C1', 'C2']), dynamic(['D1'])] " +
        "| mv-apply T1 = Arr1, T2 = Arr2 on (extend Out = strcat(T1, '_', T2) | summarize Out = make_list(Out)) | project Val, Out",
      rows: [
        { Val: 1, Out: ["A1_B1", "A2_B2", "_B3"] },
        { Val: 5, Out: ["C1_D1", "C2_"] },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(Source: string, Target: string, Count: long)['555-1234', '555-1212', 46, '555-2424', '', int(null)] | extend Pack = pack_all() " +
        "| mv-apply removeProperties = Pack on (mv-expand kind=array Pack | where Pack[1] !startswith '555' | summarize propsToRemove = make_set(Pack[0])) " +
        "| extend values = bag_remove_keys(Pack, propsToRemove) | project Source, values",
      rows: [
        { Source: "555-1234", values: { Source: "555-1234", Target: "555-1212" } },
        { Source: "555-2424", values: { Source: "555-2424" } },
      ],
      unordered: true,
    },
    {
      query: "print a = dynamic([1, 2, 3]), k = 2 | mv-apply a to typeof(long) on (where a >= k)",
      rows: [
        { k: 2, a: 2 },
        { k: 2, a: 3 },
      ],
      types: { k: "long", a: "long" },
      unordered: true,
    },
    {
      query: "print a = dynamic([1, 2, 3]), k = 2 | mv-apply a to typeof(long) on (summarize s = sum(a * k))",
      rows: [{ k: 2, s: 12 }],
    },
    {
      query:
        "print a = dynamic([1, 2, 3, 4]) | mv-apply a to typeof(long) on (summarize s = sum(a) by odd = a % 2) | sort by odd asc",
      rows: [
        { odd: 0, s: 6 },
        { odd: 1, s: 4 },
      ],
    },
    {
      query: "print a = dynamic([3, 1, 2]) | mv-apply a to typeof(long) on (sort by a asc | extend r = row_number())",
      rows: [
        { a: 1, r: 1 },
        { a: 2, r: 2 },
        { a: 3, r: 3 },
      ],
      unordered: true,
    },
    {
      query: "print a = dynamic([1, 2]), k = 5 | mv-apply a to typeof(long) on (project b = a + k)",
      rows: [
        { k: 5, b: 6 },
        { k: 5, b: 7 },
      ],
      unordered: true,
    },
    {
      query: "print a = dynamic([1, 1, 2]) | mv-apply a to typeof(long) on (distinct a)",
      rows: [{ a: 1 }, { a: 2 }],
      unordered: true,
    },
    {
      query: "datatable(k: string, a: dynamic)['x', dynamic([1, 2, 3]), 'y', dynamic([4])] | mv-apply a on (count)",
      rows: [
        { k: "x", Count: 3 },
        { k: "y", Count: 1 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(k: string, a: dynamic)['x', dynamic([1, 2, 3]), 'y', dynamic([4, 5])] | mv-apply a to typeof(long) limit 2 on (summarize s = sum(a))",
      rows: [
        { k: "x", s: 3 },
        { k: "y", s: 9 },
      ],
      unordered: true,
    },
    {
      query: "print a = dynamic(['1', 2]) | mv-apply a to typeof(long) on (where isnotnull(a))",
      rows: [{ a: 2 }],
    },
    {
      query:
        "print a = dynamic([[1, 2], [3]]) | mv-apply b = a on (mv-apply c = b to typeof(long) on (summarize s = sum(c))) | project s",
      rows: [{ s: 3 }, { s: 3 }],
    },
    {
      query:
        "range x from 1 to 3 step 1 | mv-apply y = range(1, x) to typeof(long) on (summarize s = sum(y)) | project x, s | sort by x asc",
      rows: [
        { x: 1, s: 1 },
        { x: 2, s: 3 },
        { x: 3, s: 6 },
      ],
    },
    { query: "datatable(k: string, a: dynamic)['x', dynamic([])] | mv-apply a on (where true)", rows: [] },
  ],
};
