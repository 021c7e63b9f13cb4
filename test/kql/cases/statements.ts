import type { KqlCases } from "../cases.test-kit.ts";

export const statements: KqlCases = {
  "a text": [
    { query: "print x = 1", rows: [{ x: 1 }] },
    { query: "\n  print\n x = 1 \n", rows: [{ x: 1 }] },
    { query: "print x = ", refused: { code: "parse_error", message: "" } },
  ],
};
