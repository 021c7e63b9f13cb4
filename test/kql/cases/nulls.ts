import type { KqlCases } from "../cases.test-kit.ts";

export const nulls: KqlCases = {
  "null literals": [
    {
      query:
        "print a = bool(null), b = datetime(null), c = dynamic(null), d = guid(null), e = int(null), f = long(null), g = real(null), h = double(null), i = timespan(null), j = decimal(null)",
      rows: [{ a: null, b: null, c: null, d: null, e: null, f: null, g: null, h: null, i: null, j: null }],
      types: {
        a: "bool",
        b: "datetime",
        c: "dynamic",
        d: "guid",
        e: "int",
        f: "long",
        g: "real",
        h: "real",
        i: "timespan",
        j: "decimal",
      },
    },
  ],
  "equality with null": [
    {
      query:
        "datatable(val:int)[5, int(null)] | extend IsBiggerThan3 = val > 3, IsBiggerThan3OrNull = val > 3 or isnull(val), IsEqualToNull = val == int(null), IsNotEqualToNull = val != int(null)",
      rows: [
        { val: 5, IsBiggerThan3: true, IsBiggerThan3OrNull: true, IsEqualToNull: false, IsNotEqualToNull: true },
        { val: null, IsBiggerThan3: null, IsBiggerThan3OrNull: true, IsEqualToNull: null, IsNotEqualToNull: null },
      ],
    },
    {
      query: "print a = long(null) == 5, b = 5 == long(null), c = long(null) != 5, d = 5 != long(null)",
      rows: [{ a: false, b: false, c: true, d: true }],
    },
    {
      query:
        "print a = long(null) == long(null), b = long(null) != long(null), c = bool(null) == true, d = bool(null) != true, e = real(null) != 1",
      rows: [{ a: null, b: null, c: false, d: true, e: true }],
    },
    {
      query:
        "print a = guid(null) == guid(74be27de-1e4e-49d9-b579-fe0b331d3642), b = guid(null) != guid(74be27de-1e4e-49d9-b579-fe0b331d3642), c = decimal(null) != decimal(1)",
      rows: [{ a: false, b: true, c: true }],
    },
    {
      query: "datatable(a:int, b:int)[1, 1, 1, 2, 1, int(null), int(null), int(null)] | project e = a == b, n = a != b",
      rows: [
        { e: true, n: false },
        { e: false, n: true },
        { e: false, n: true },
        { e: null, n: null },
      ],
    },
  ],
  "where and null": [
    {
      query: 'datatable(ival:int, sval:string)[5, "a", int(null), "b"] | where ival != 5',
      rows: [{ ival: null, sval: "b" }],
    },
    { query: "datatable(v:int)[5, int(null), 6] | where v == 5", rows: [{ v: 5 }] },
    { query: "datatable(v:int)[5, int(null), 6] | where v > 5", rows: [{ v: 6 }] },
    { query: "datatable(v:int)[5, int(null), 6] | where not(v == 5)", rows: [{ v: null }, { v: 6 }] },
    { query: "datatable(v:int)[5, int(null), 6] | where not(v > 5)", rows: [{ v: 5 }] },
    { query: "datatable(v:bool)[true, bool(null), false] | where v", rows: [{ v: true }] },
    { query: "datatable(v:bool)[true, bool(null), false] | where v != true", rows: [{ v: null }, { v: false }] },
    { query: "datatable(v:int)[5, int(null), 6] | where v != 5 and v != 6", rows: [{ v: null }] },
    { query: "datatable(v:int)[5, int(null)] | where v == int(null) or v != int(null)", rows: [{ v: 5 }] },
  ],
  "in and null": [
    { query: "datatable(v:int)[5, int(null), 6] | where v in (5, 6)", rows: [{ v: 5 }, { v: 6 }] },
    { query: "datatable(v:int)[5, int(null), 6] | where v !in (5)", rows: [{ v: null }, { v: 6 }] },
    { query: "print a = long(null) in (1, 2), b = long(null) !in (1, 2)", rows: [{ a: false, b: true }] },
  ],
  "binary operators and null": [
    {
      query: "datatable(val:int)[5, int(null)] | extend Add = val + 10, Multiply = val * 10",
      rows: [
        { val: 5, Add: 15, Multiply: 50 },
        { val: null, Add: null, Multiply: null },
      ],
    },
    {
      query:
        "print a = 1 - long(null), b = long(null) / 2, c = long(null) < 1, d = 1 >= long(null), e = -long(null), f = real(null) + 1",
      rows: [{ a: null, b: null, c: null, d: null, e: null, f: null }],
    },
  ],
  "three-valued logic": [
    {
      query:
        "print a = bool(null) and true, b = bool(null) and false, c = false and bool(null), d = bool(null) and bool(null)",
      rows: [{ a: null, b: false, c: false, d: null }],
    },
    {
      query:
        "print a = bool(null) or true, b = true or bool(null), c = bool(null) or false, d = bool(null) or bool(null)",
      rows: [{ a: true, b: true, c: null, d: null }],
    },
    { query: "print a = not(true), b = not(false), c = not(bool(null))", rows: [{ a: false, b: true, c: null }] },
    { query: "print print_ = iff(bool(null) and true, true, false)", rows: [{ print_: false }] },
  ],
  "isnull() and isnotnull()": [
    {
      query:
        'print a = isnull(""), b = isnull("x"), c = isnull(parse_json("")), d = isnull(parse_json("[]")), e = isnull(parse_json("{}"))',
      rows: [{ a: false, b: false, c: true, d: false, e: false }],
      types: { a: "bool", b: "bool", c: "bool", d: "bool", e: "bool" },
    },
    {
      query: "print a = isnull(long(null)), b = isnotnull(long(null)), c = isnull(1), d = isnotnull('')",
      rows: [{ a: true, b: false, c: false, d: true }],
    },
    {
      query:
        "print a = isnull(dynamic(null)), b = isnull(dynamic({'a': 1}).b), c = isnull(dynamic({'a': null}).a), d = isnull(dynamic([1])[3])",
      rows: [{ a: true, b: true, c: true, d: true }],
    },
    { query: "print a = notnull(1), b = notnull(long(null))", rows: [{ a: true, b: false }] },
  ],
  "isempty() and isnotempty()": [
    {
      query:
        'print a = isempty(""), b = isempty("x"), c = isempty(parse_json("")), d = isempty(parse_json("[]")), e = isempty(parse_json("{}"))',
      rows: [{ a: true, b: false, c: true, d: false, e: false }],
    },
    {
      query: "print a = isempty(long(null)), b = isempty(1), c = isnotempty(''), d = isnotempty('x'), e = isempty(' ')",
      rows: [{ a: true, b: false, c: false, d: true, e: false }],
    },
  ],
  "strings are never null": [
    {
      query:
        "datatable(s: string, n: long)['a', 1, '', long(null)] | extend t = tostring(n), e = s == '', d = s != 'a'",
      rows: [
        { s: "a", n: 1, t: "1", e: false, d: false },
        { s: "", n: null, t: "", e: true, d: true },
      ],
    },
    {
      query:
        "print a = tostring(long(null)) == '', b = strcat('x', tostring(dynamic(null)), 'y'), c = strlen(tostring(datetime(null)))",
      rows: [{ a: true, b: "xy", c: 0 }],
    },
  ],
  "order of nulls": [
    { query: "datatable(v:int)[2, int(null), 1] | sort by v", rows: [{ v: 2 }, { v: 1 }, { v: null }] },
    { query: "datatable(v:int)[2, int(null), 1] | sort by v asc", rows: [{ v: null }, { v: 1 }, { v: 2 }] },
    { query: "datatable(v:int)[2, int(null), 1] | sort by v asc nulls last", rows: [{ v: 1 }, { v: 2 }, { v: null }] },
    {
      query: "datatable(v:int)[2, int(null), 1] | sort by v desc nulls first",
      rows: [{ v: null }, { v: 2 }, { v: 1 }],
    },
  ],
};
