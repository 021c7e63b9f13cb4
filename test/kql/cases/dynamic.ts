import type { KqlCases } from "../cases.test-kit.ts";

export const dynamic: KqlCases = {
  "dynamic literals": [
    {
      query:
        'print a = dynamic([1, 2, "hello"]), b = dynamic({"a":1, "b":{"a":2}}), c = dynamic(4), d = dynamic(null), e = dynamic("x")',
      rows: [{ a: [1, 2, "hello"], b: { a: 1, b: { a: 2 } }, c: 4, d: null, e: "x" }],
      types: { a: "dynamic", b: "dynamic", c: "dynamic", d: "dynamic", e: "dynamic" },
    },
    {
      query: 'print o=dynamic({"a":123, "b":"hello", "c":[1,2,3], "d":{}}) | extend a=o.a, b=o.b, c=o.c, d=o.d',
      rows: [
        {
          o: { a: 123, b: "hello", c: [1, 2, 3], d: {} },
          a: 123,
          b: "hello",
          c: [1, 2, 3],
          d: {},
        },
      ],
    },
    {
      query: "print a = dynamic([]), b = dynamic({}), c = dynamic([null, true, false, 1.5, -2])",
      rows: [{ a: [], b: {}, c: [null, true, false, 1.5, -2] }],
    },
    {
      query: "print a = dynamic({'single': 'quoted'}), b = dynamic({\"ключ\": \"значение\"})",
      rows: [{ a: { single: "quoted" }, b: { ключ: "значение" } }],
    },
    {
      query: 'print a = todatetime(dynamic({"a": datetime(1970-05-11)}).a), b = totimespan(dynamic({"a": time(1h)}).a)',
      rows: [{ a: "1970-05-11T00:00:00Z", b: "01:00:00" }],
    },
    { query: "print a = dynamic(9223372036854775807)", rows: [{ a: 9223372036854775807n }] },
  ],
  "parse_json()": [
    {
      query:
        'print a = parse_json(\'[43, 21, 65]\'), b = parse_json(\'{"name":"Alan", "age":21, "address":{"street":432,"postcode":"JLK32P"}}\'), c = parse_json(\'21\'), d = parse_json(\'"21"\')',
      rows: [
        { a: [43, 21, 65], b: { name: "Alan", age: 21, address: { street: 432, postcode: "JLK32P" } }, c: 21, d: "21" },
      ],
      types: { a: "dynamic", b: "dynamic", c: "dynamic", d: "dynamic" },
    },
    {
      query:
        'datatable(m:string)[\'{"duration":{"value":118.0,"count":5.0,"min":100.0,"max":150.0,"stdDev":0.0,"sampledValue":118.0,"sum":118.0}}\'] | extend d = parse_json(m) | project duration_value = d.duration.value, duration_min = d.duration.min',
      rows: [{ duration_value: 118, duration_min: 100 }],
    },
    {
      query: 'let d=\'{"a":123, "b":"{\\\\"c\\\\":456}"}\'; print d',
      rows: [{ print_0: '{"a":123, "b":"{\\"c\\":456}"}' }],
    },
    {
      query: 'let d=\'{"a":123, "b":"{\\\\"c\\\\":456}"}\'; print d_b_c=parse_json(tostring(parse_json(d).b)).c',
      rows: [{ d_b_c: 456 }],
    },
    {
      query: "print a = parse_json('not json'), b = tostring(parse_json('not json')), c = parse_json('{\"a\":')",
      rows: [{ a: "not json", b: "not json", c: '{"a":' }],
    },
    {
      query: "print a = parse_json(dynamic([1])), b = todynamic('[1]'), c = parse_json(''), d = parse_json('null')",
      rows: [{ a: [1], b: [1], c: null, d: null }],
    },
    {
      query: 'print a = parse_json(\'{"a":{"b":[10,20]}}\').a.b[1], b = toint(parse_json(\'{"a":"7"}\').a)',
      rows: [{ a: 20, b: 7 }],
    },
  ],
  "members and elements": [
    {
      query:
        "print d = dynamic({'a': 1, 'b c': 2, 'where': 3}) | project a = d.a, b = d['b c'], c = d.['where'], e = d['where'], m = d.zzz",
      rows: [{ a: 1, b: 2, c: 3, e: 3, m: null }],
      types: { a: "dynamic", b: "dynamic", c: "dynamic", e: "dynamic", m: "dynamic" },
    },
    {
      query: "print a = dynamic([10, 20, 30]) | project x = a[0], y = a[(-1)], z = a[3], w = a[(-3)], v = a[(-4)]",
      rows: [{ x: 10, y: 30, z: null, w: 10, v: null }],
    },
    {
      query:
        "datatable(k: string, i: long)['a', 0, 'b', -1, 'zz', 7] | extend d = dynamic({'a': 1, 'b': 2}), l = dynamic([5, 6]) | project x = d[k], y = l[i]",
      rows: [
        { x: 1, y: 5 },
        { x: 2, y: 6 },
        { x: null, y: null },
      ],
    },
    {
      query: "datatable(index: long)[1, 2, 3] | extend arr = dynamic([7, 8, 9]) | project x = arr[-index]",
      rows: [{ x: 9 }, { x: 8 }, { x: 7 }],
    },
    {
      query:
        "datatable(d: dynamic)[dynamic('text'), dynamic(5), dynamic([1]), dynamic({'a': 1}), dynamic(null)] | project a = d.x, b = d[0], c = d['a']",
      rows: [
        { a: null, b: null, c: null },
        { a: null, b: null, c: null },
        { a: null, b: 1, c: null },
        { a: null, b: null, c: 1 },
        { a: null, b: null, c: null },
      ],
    },
    {
      query: "print d = dynamic({'a': {'b': {'c': [1, {'d': 'deep'}]}}}) | project x = d.a.b.c[1].d, y = d.a.x.c[1].d",
      rows: [{ x: "deep", y: null }],
    },
    { query: "print d = dynamic({'A': 1, 'a': 2}) | project x = d.A, y = d.a", rows: [{ x: 1, y: 2 }] },
    {
      query:
        "print d = dynamic({'a.b': 1, '$': 2, '': 3, '\"': 4}) | project x = d['a.b'], y = d['$'], z = d[''], w = d['\"']",
      rows: [{ x: 1, y: 2, z: 3, w: 4 }],
    },
    { query: "print arr = dynamic([1, 2, 3]) | project x = arr[toint('1')], y = arr[1 + 1]", rows: [{ x: 2, y: 3 }] },
  ],
  "conversion of dynamics": [
    {
      query:
        "print X = parse_json('[100,101,102]') | project a = toint(X[1]), b = tolong(X[2]), c = todouble(X[0]), d = tostring(X[0]), e = tostring(X)",
      rows: [{ a: 101, b: 102, c: 100, d: "100", e: "[100,101,102]" }],
      types: { a: "int", b: "long", c: "real", d: "string", e: "string" },
    },
    {
      query:
        'print a = tostring(dynamic("text")), b = tostring(dynamic(true)), c = tostring(dynamic({"a":1,"b":[1,2],"c":"x"})), d = tostring(dynamic(null)), e = tostring(dynamic(1.5))',
      rows: [{ a: "text", b: "true", c: '{"a":1,"b":[1,2],"c":"x"}', d: "", e: "1.5" }],
    },
    {
      query:
        "print a = toint(dynamic('7')), b = toint(dynamic([1])), c = tobool(dynamic('true')), d = tobool(dynamic(true)), e = tolong(dynamic(2.9)), f = toint(dynamic('x'))",
      rows: [{ a: 7, b: null, c: true, d: true, e: 2, f: null }],
    },
    {
      query: "print a = toguid(dynamic('74be27de-1e4e-49d9-b579-fe0b331d3642'))",
      rows: [{ a: "74be27de-1e4e-49d9-b579-fe0b331d3642" }],
    },
  ],
  "comparison of dynamics": [
    {
      query:
        "print d = dynamic({'n': 5, 's': 'five'}) | project a = d.n == 5, b = d.s == 'five', c = d.n > 4, e = d.n != 5, f = d.s == 'Five'",
      rows: [{ a: true, b: true, c: true, e: false, f: false }],
    },
    {
      query:
        "print d = dynamic({'n': 5}) | project a = toint(d.n) == 5, b = tostring(d.n) == '5', c = tolong(d.m) == 5, e = tolong(d.m) != 5, f = tostring(d.m) == ''",
      rows: [{ a: true, b: true, c: false, e: true, f: true }],
    },
    {
      query: "datatable(d: dynamic)[dynamic({'n': 1}), dynamic({'n': 2}), dynamic({})] | where d.n > 1",
      rows: [{ d: { n: 2 } }],
    },
    {
      query: "datatable(d: dynamic)[dynamic({'n': 1}), dynamic({'n': 2}), dynamic({})] | where tolong(d.n) != 1",
      rows: [{ d: { n: 2 } }, { d: {} }],
    },
    {
      query:
        "print a = 'Paris' in (dynamic(['London', 'Paris', 'Rome'])), b = 'Oslo' in (dynamic(['London'])), c = 3 in (dynamic([1, 2, 3])), d = 'Oslo' !in (dynamic(['London']))",
      rows: [{ a: true, b: false, c: true, d: true }],
    },
  ],
  "gettype()": [
    {
      query:
        'print a = gettype("a"), b = gettype(111), c = gettype(1==1), d = gettype(now()), e = gettype(1s), f = gettype(123.45), g = gettype(guid(12e8b78d-55b4-46ae-b068-26d7a0080254))',
      rows: [{ a: "string", b: "long", c: "bool", d: "datetime", e: "timespan", f: "real", g: "guid" }],
    },
    {
      query:
        "print a = gettype(parse_json(' \"abc\" ')), b = gettype(parse_json(' {\"abc\":1} ')), c = gettype(parse_json(' [1, 2, 3] ')), d = gettype(parse_json('')), e = gettype(int(1))",
      rows: [{ a: "string", b: "dictionary", c: "array", d: "null", e: "int" }],
    },
    {
      query:
        "print a = gettype(parse_json('true')), b = gettype(parse_json('1.5')), c = gettype(dynamic({'a': 1}).b), d = gettype(dynamic({'a': []}).a)",
      rows: [{ a: "bool", b: "real", c: "null", d: "array" }],
    },
  ],
};
