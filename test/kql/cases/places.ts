import type { KqlCases } from "../cases.test-kit.ts";

/** Where a refusal points to. */
export const places: KqlCases = {
  "a refusal inside of a function points into its body": [
    {
      query: "let f = (T: (x: long)) { T | summarize hll(x) };\nlet U = range x from 1 to 3 step 1;\n  f(U)",
      refused: { code: "invalid_query", message: "aggregate hll() is not supported", line: 1, column: 40 },
    },
    {
      query:
        "let f = (T: (x: long)) { T | summarize hll(x) };\nlet g = (T: (x: long)) { f(T) };\nlet U = range x from 1 to 3 step 1; U | union (g(U))",
      refused: { code: "invalid_query", message: "aggregate hll() is not supported", line: 1, column: 40 },
    },
    {
      query: "let f = (s: string) { strcat(s, s) };\nprint f('a'), f(hash_combine(1, 2))",
      refused: { code: "invalid_query", message: "function hash_combine() is not supported", line: 2, column: 17 },
    },
  ],
};
