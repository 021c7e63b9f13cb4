import type { KqlCases } from "../cases.test-kit.ts";

export const sizes: KqlCases = {
  "format_bytes()": [
    {
      query:
        "print v1 = format_bytes(564), v2 = format_bytes(10332, 1), v3 = format_bytes(20010332), v4 = format_bytes(20010332, 2), v5 = format_bytes(20010332, 0, 'KB')",
      rows: [{ v1: "564 Bytes", v2: "10.1 KB", v3: "19 MB", v4: "19.08 MB", v5: "19541 KB" }],
    },
    { query: "print x = format_bytes(0)", rows: [{ x: "0 Bytes" }] },
    { query: "print x = format_bytes(1024)", rows: [{ x: "1 KB" }] },
    { query: "print x = format_bytes(1023)", rows: [{ x: "1023 Bytes" }] },
    { query: "print x = format_bytes(real(null))", rows: [{ x: "" }] },
  ],
};
