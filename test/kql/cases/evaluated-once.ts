import type { KqlCases } from "../cases.test-kit.ts";

/** What is random is drawn once where the language says so, and in each row where it does not. */
export const evaluatedOnce: KqlCases = {
  "a value of a sub-query in what may fail": [
    {
      query: "range x from 1 to 2 step 1 | extend d = x - toscalar(range y from 1 to 5 step 1 | summarize max(y))",
      rows: [
        { x: 1, d: -4 },
        { x: 2, d: -3 },
      ],
    },
    {
      query:
        "print a = -toscalar(print 3), b = abs(toscalar(print -3)), c = todatetime(toscalar(print '2024-01-02')), d = 2s - toscalar(print 1s), e = datetime(2024-01-02) - toscalar(print 1d), f = url_decode(toscalar(print 'a%20b'))",
      rows: [
        {
          a: -3,
          b: 3,
          c: "2024-01-02T00:00:00Z",
          d: "00:00:01",
          e: "2024-01-01T00:00:00Z",
          f: "a b",
        },
      ],
    },
  ],
  "a let is evaluated once": [
    {
      query: "let x = rand() + 1; print same = x == x, inside = x between (1.0 .. 2.0)",
      rows: [{ same: true, inside: true }],
    },
    { query: "let g = tostring(new_guid()); print same = g == g", rows: [{ same: true }] },
    {
      query: "let x = strcat('a', rand()); range n from 1 to 20 step 1 | summarize d = dcount(x)",
      rows: [{ d: 1 }],
    },
  ],
  "a let of a function's body is evaluated for each call": [
    {
      query: "let f = (n: long) { let r = n + 1; r * 2 }; range n from 1 to 3 step 1 | project y = f(n)",
      rows: [{ y: 4 }, { y: 6 }, { y: 8 }],
    },
    {
      query:
        "let f = (s: string) { let r = parse_json(s); tostring(r.a) }; datatable(s: string)['{\"a\": 1}', '{\"a\": 2}'] | project v = f(s)",
      rows: [{ v: "1" }, { v: "2" }],
    },
  ],
  "a column is computed once in each row": [
    {
      query:
        "range n from 1 to 50 step 1 | extend r = rand() * 10 | where n > 10 | summarize c = count(), same = countif(r == r)",
      rows: [{ c: 40, same: 40 }],
    },
    {
      query: "range n from 1 to 50 step 1 | extend r = strcat(new_guid(), 'x') | extend s = r | where s != r | count",
      rows: [{ Count: 0 }],
    },
  ],
};
