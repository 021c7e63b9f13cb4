import type { KqlCases } from "../cases.test-kit.ts";

/** What is random is drawn once where the language says so, and in each row where it does not. */
export const evaluatedOnce: KqlCases = {
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
