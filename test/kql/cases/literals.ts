import type { KqlCases } from "../cases.test-kit.ts";

const refused = (
  query: string,
  message: string,
): { query: string; refused: { code: "invalid_query"; message: string } } => ({
  query,
  refused: { code: "invalid_query", message },
});

/** Literals at the ends of what their types reach, and those that are none. */
export const literals: KqlCases = {
  "int and long literals": [
    {
      query: "print a = int(2147483647), b = int(-2147483648), c = 0xf, d = long(-1), e = long(null), f = int(-0x10)",
      rows: [{ a: 2147483647, b: -2147483648, c: 15, d: -1, e: null, f: -16 }],
      types: { a: "int", b: "int", c: "long", d: "long", e: "long", f: "int" },
    },
    {
      query: "print a = 9223372036854775807, b = -9223372036854775808, c = long(-9223372036854775808)",
      rows: [{ a: 9223372036854775807n, b: -9223372036854775808n, c: -9223372036854775808n }],
    },
    {
      query: "print 1,\n  9223372036854775808",
      refused: { code: "invalid_query", message: "is beyond what a long reaches", line: 2, column: 3 },
    },
    refused("print long(-9223372036854775809)", "is beyond what a long reaches"),
    refused("print 0x8000000000000000", "is beyond what a long reaches"),
    refused("print int(2147483648)", "int(2147483648) is beyond what a int reaches"),
    refused("print long(x)", "long(x) is not a long"),
    refused("print long(1.5)", "long(1.5) is not a long"),
  ],
  "real and decimal literals": [
    {
      query: "print d = dynamic([real(nan), real(+inf), real(-inf), 1e999, -1e999, -1])",
      rows: [{ d: ["NaN", "Infinity", "-Infinity", "Infinity", "-Infinity", -1] }],
    },
    {
      query: "print a = isnull(real(nan)), b = real(null), c = decimal(1e5), d = decimal(null), e = 1e5, f = 0.1",
      rows: [{ a: false, b: null, c: 100000, d: null, e: 100000, f: 0.1 }],
      types: { a: "bool", b: "real", c: "decimal", d: "decimal", e: "real", f: "real" },
    },
    refused("print real(abc)", "real(abc) is not a real"),
    refused("print decimal(abc)", "decimal(abc) is not a decimal"),
    refused("print decimal(1e30)", "decimal(1e30) is not a decimal"),
  ],
  "bool and guid literals": [
    {
      query:
        "print a = bool(true), b = bool(false), c = bool(null), d = guid(74BE27DE-1E4E-49D9-B579-FE0B331D3642), e = guid(null)",
      rows: [{ a: true, b: false, c: null, d: "74be27de-1e4e-49d9-b579-fe0b331d3642", e: null }],
    },
    refused("print bool(yes)", "bool(yes) is not a bool"),
    refused("print guid(74be27de)", "guid(74be27de) is not a guid"),
  ],
  "timespan literals": [refused("print time(99999999999d)", "time(99999999999d) is beyond what a timespan reaches")],
  "the character NUL": [
    { query: "print a = strlen('a\\0b'), b = 'a\\u0000b'", rows: [{ a: 3, b: "a\u0000b" }] },
    { query: "print a = dynamic({'k': 'x\\0y'}).k, b = dynamic({'k': 1})['k\\0']", rows: [{ a: "x\u0000y", b: null }] },
    { query: "print ['a\\0b'] = 1", refused: { code: "invalid_query", message: "NUL", line: 1, column: 8 } },
    {
      query: "print x = 1 | extend ['a\\0b'] = x",
      refused: { code: "invalid_query", message: "NUL", line: 1, column: 23 },
    },
  ],
  "values of another kind in a datatable": [
    {
      query: "datatable(a: long, b: datetime, c: string, d: bool)['5', 'x', 7, 'true', 'it', '2024-05-01', true, 0]",
      rows: [
        { a: 5, b: null, c: "7", d: true },
        { a: null, b: "2024-05-01T00:00:00Z", c: "True", d: false },
      ],
    },
    { query: "datatable(a: long)[guid(74be27de-1e4e-49d9-b579-fe0b331d3642)]", rows: [{ a: null }] },
  ],
  "constants order nothing": [
    { query: "datatable(a: long)[2, 1] | sort by 'x', a asc", rows: [{ a: 1 }, { a: 2 }] },
    { query: "datatable(a: long)[1] | top 1 by 'x'", rows: [{ a: 1 }] },
  ],
  "a text that the parser cannot analyze": [
    refused("print datetime_add(time(1.02:03:04.5), 1, datetime(2020-01-31))", "the query cannot be analyzed"),
  ],
  "decimal arithmetic": [
    {
      query: "print a = decimal(1.5) + 1, b = decimal(1.5) - decimal(null), c = -decimal(2)",
      rows: [{ a: 2.5, b: null, c: -2 }],
      types: { a: "decimal", b: "decimal", c: "decimal" },
    },
  ],
};
