import type { KqlCases } from "../cases.test-kit.ts";

/** What a drawn query of the evaluator showed to be off by a tick, or by a null. */
export const exact: KqlCases = {
  "timespans keep all their ticks": [
    {
      query:
        "datatable(at: datetime)[datetime(1969-12-31T23:59:59.9999999Z)] | project x = datetime(2024-05-01T00:00:12.3456789Z) - at",
      rows: [{ x: "19844.00:00:12.3456790" }],
    },
    {
      query: "datatable(d: timespan)[time(19843.00:00:12.3456789), time(null)] | project x = d * 3",
      rows: [{ x: "59529.00:00:37.0370367" }, { x: null }],
    },
  ],
  "the modulo of null": [
    {
      query: "datatable(n: long)[long(null), 5, -9223372036854775808] | project x = n % -1",
      rows: [{ x: null }, { x: 0 }, { x: 0 }],
    },
  ],
  "a union after a join or of typed arrays": [
    {
      query:
        "datatable(k: string)['a'] | join kind=fullouter (datatable(k: string)['b']) on k | union (datatable(u: string)['c'])",
      rows: [
        { k: "a", k1: "", u: "" },
        { k: "", k1: "b", u: "" },
        { k: "", k1: "", u: "c" },
      ],
      unordered: true,
    },
    {
      query: "print a = 'x' | summarize l = array_sort_asc(make_list(a)) | union (datatable(u: string)['z'])",
      rows: [
        { l: ["x"], u: "" },
        { l: null, u: "z" },
      ],
      unordered: true,
    },
  ],
};
