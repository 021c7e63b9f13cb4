import type { KqlCases } from "../cases.test-kit.ts";

export const windows: KqlCases = {
  "row_number()": [
    {
      query: "range a from 1 to 3 step 1 | sort by a desc | extend rn=row_number()",
      rows: [
        { a: 3, rn: 1 },
        { a: 2, rn: 2 },
        { a: 1, rn: 3 },
      ],
      types: { a: "long", rn: "long" },
    },
    {
      query: "range a from 1 to 3 step 1 | sort by a desc | extend rn=row_number(7)",
      rows: [
        { a: 3, rn: 7 },
        { a: 2, rn: 8 },
        { a: 1, rn: 9 },
      ],
    },
    {
      query:
        'datatable (Airport:string, Airline:string, Departures:long)["TLV", "LH", 1, "TLV", "LY", 100, "SEA", "LH", 1, "SEA", "BA", 2, "SEA", "LY", 0] | sort by Airport asc, Departures desc | extend Rank=row_number(1, prev(Airport) != Airport)',
      rows: [
        { Airport: "SEA", Airline: "BA", Departures: 2, Rank: 1 },
        { Airport: "SEA", Airline: "LH", Departures: 1, Rank: 2 },
        { Airport: "SEA", Airline: "LY", Departures: 0, Rank: 3 },
        { Airport: "TLV", Airline: "LY", Departures: 100, Rank: 1 },
        { Airport: "TLV", Airline: "LH", Departures: 1, Rank: 2 },
      ],
    },
    {
      query: "datatable(a: long)[10, 20, 30] | serialize rn = row_number(0) | where a > 10",
      rows: [
        { a: 20, rn: 1 },
        { a: 30, rn: 2 },
      ],
    },
    {
      query: "datatable(a: long)[10, 20, 30] | serialize | where a > 10 | extend rn = row_number()",
      rows: [
        { a: 20, rn: 1 },
        { a: 30, rn: 2 },
      ],
    },
    { query: "datatable(a: long)[] | serialize rn = row_number()", rows: [] },
    {
      query:
        "datatable(a: long, r: bool)[1, false, 2, bool(null), 3, true, 4, false] | serialize rn = row_number(5, r) | project a, rn",
      rows: [
        { a: 1, rn: 5 },
        { a: 2, rn: 6 },
        { a: 3, rn: 5 },
        { a: 4, rn: 6 },
      ],
    },
    {
      query: "datatable(a: long)[10, 20, 30] | extend rn = row_number()",
      refused: { code: "invalid_query", message: "serialized" },
    },
  ],
  "row_rank_dense()": [
    {
      query:
        'datatable (Airline:string, Departures:long)["LH", 3, "LY", 100, "UA", 3, "BA", 2, "EL", 3] | sort by Departures asc | extend Rank=row_rank_dense(Departures) | project Departures, Rank',
      rows: [
        { Departures: 2, Rank: 1 },
        { Departures: 3, Rank: 2 },
        { Departures: 3, Rank: 2 },
        { Departures: 3, Rank: 2 },
        { Departures: 100, Rank: 3 },
      ],
    },
    {
      query:
        'datatable (Airport:string, Departures:long)["SEA", 3, "SEA", 100, "SEA", 3, "SEA", 2, "SEA", 3, "AMS", 1, "AMS", 1] | sort by Airport desc, Departures asc | extend Rank=row_rank_dense(Departures, prev(Airport) != Airport)',
      rows: [
        { Airport: "SEA", Departures: 2, Rank: 1 },
        { Airport: "SEA", Departures: 3, Rank: 2 },
        { Airport: "SEA", Departures: 3, Rank: 2 },
        { Airport: "SEA", Departures: 3, Rank: 2 },
        { Airport: "SEA", Departures: 100, Rank: 3 },
        { Airport: "AMS", Departures: 1, Rank: 1 },
        { Airport: "AMS", Departures: 1, Rank: 1 },
      ],
    },
    {
      // The rank counts changes, not distinct values.
      query: "datatable(a: long)[1, 2, 1, 1] | serialize r = row_rank_dense(a)",
      rows: [
        { a: 1, r: 1 },
        { a: 2, r: 2 },
        { a: 1, r: 3 },
        { a: 1, r: 3 },
      ],
    },
  ],
  "row_rank_min()": [
    {
      query:
        'datatable (Airline:string, Departures:long)["LH", 3, "LY", 100, "UA", 3, "BA", 2, "EL", 3] | sort by Departures asc | extend Rank=row_rank_min(Departures) | project Departures, Rank',
      rows: [
        { Departures: 2, Rank: 1 },
        { Departures: 3, Rank: 2 },
        { Departures: 3, Rank: 2 },
        { Departures: 3, Rank: 2 },
        { Departures: 100, Rank: 5 },
      ],
    },
    {
      query:
        'datatable(Category:string, Value:int)["A", 10, "A", 10, "A", 5, "A", 20, "B", 5, "B", 7] | sort by Category asc, Value asc | extend rank = row_rank_min(Value, Category != prev(Category))',
      rows: [
        { Category: "A", Value: 5, rank: 1 },
        { Category: "A", Value: 10, rank: 2 },
        { Category: "A", Value: 10, rank: 2 },
        { Category: "A", Value: 20, rank: 4 },
        { Category: "B", Value: 5, rank: 1 },
        { Category: "B", Value: 7, rank: 2 },
      ],
    },
  ],
  "row_cumsum()": [
    {
      query: "datatable (a:long) [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] | where a%2==0 | serialize cs=row_cumsum(a)",
      rows: [
        { a: 2, cs: 2 },
        { a: 4, cs: 6 },
        { a: 6, cs: 12 },
        { a: 8, cs: 20 },
        { a: 10, cs: 30 },
      ],
      types: { a: "long", cs: "long" },
    },
    {
      query:
        'datatable (name:string, month:int, salary:long)["Alice", 1, 1000, "Bob", 1, 1000, "Alice", 2, 2000, "Bob", 2, 1950, "Alice", 3, 1400, "Bob", 3, 1450] | order by name asc, month asc | extend total=row_cumsum(salary, name != prev(name)) | project name, total',
      rows: [
        { name: "Alice", total: 1000 },
        { name: "Alice", total: 3000 },
        { name: "Alice", total: 4400 },
        { name: "Bob", total: 1000 },
        { name: "Bob", total: 2950 },
        { name: "Bob", total: 4400 },
      ],
    },
    {
      query: "datatable(a: real)[0.5, 0.25, -1.0] | serialize cs = row_cumsum(a)",
      rows: [
        { a: 0.5, cs: 0.5 },
        { a: 0.25, cs: 0.75 },
        { a: -1, cs: -0.25 },
      ],
      types: { a: "real", cs: "real" },
    },
  ],
  "row_window_session()": [
    {
      query:
        'datatable (ID:string, Timestamp:datetime) ["1", datetime(2024-04-11 10:00:00), "2", datetime(2024-04-11 10:18:00), "1", datetime(2024-04-11 11:00:00), "3", datetime(2024-04-11 11:30:00), "2", datetime(2024-04-11 13:30:00), "2", datetime(2024-04-11 10:16:00)] | sort by ID asc, Timestamp asc | extend SessionStarted = row_window_session(Timestamp, 1h, 5m, ID != prev(ID))',
      rows: [
        { ID: "1", Timestamp: "2024-04-11T10:00:00Z", SessionStarted: "2024-04-11T10:00:00Z" },
        { ID: "1", Timestamp: "2024-04-11T11:00:00Z", SessionStarted: "2024-04-11T11:00:00Z" },
        { ID: "2", Timestamp: "2024-04-11T10:16:00Z", SessionStarted: "2024-04-11T10:16:00Z" },
        { ID: "2", Timestamp: "2024-04-11T10:18:00Z", SessionStarted: "2024-04-11T10:16:00Z" },
        { ID: "2", Timestamp: "2024-04-11T13:30:00Z", SessionStarted: "2024-04-11T13:30:00Z" },
        { ID: "3", Timestamp: "2024-04-11T11:30:00Z", SessionStarted: "2024-04-11T11:30:00Z" },
      ],
    },
    {
      // The first row is 12 minutes before the fourth, which starts a session though its neighbour is near.
      query:
        "datatable(t: datetime)[datetime(2024-01-01 00:00), datetime(2024-01-01 00:04), datetime(2024-01-01 00:08), datetime(2024-01-01 00:10), datetime(2024-01-01 00:15)] | serialize s = row_window_session(t, 10m, 5m)",
      rows: [
        { t: "2024-01-01T00:00:00Z", s: "2024-01-01T00:00:00Z" },
        { t: "2024-01-01T00:04:00Z", s: "2024-01-01T00:00:00Z" },
        { t: "2024-01-01T00:08:00Z", s: "2024-01-01T00:00:00Z" },
        { t: "2024-01-01T00:10:00Z", s: "2024-01-01T00:10:00Z" },
        { t: "2024-01-01T00:15:00Z", s: "2024-01-01T00:15:00Z" },
      ],
    },
  ],
  "prev()": [
    {
      query: "datatable(a: long)[10, 20, 30] | serialize p = prev(a), q = prev(a, 2), r = prev(a, 1, -1)",
      rows: [
        { a: 10, p: null, q: null, r: -1 },
        { a: 20, p: 10, q: null, r: 10 },
        { a: 30, p: 20, q: 10, r: 20 },
      ],
      types: { a: "long", p: "long", q: "long", r: "long" },
    },
    {
      query: "datatable(s: string)['a', 'b'] | serialize p = prev(s), q = prev(s, 1, 'none')",
      rows: [
        { s: "a", p: "", q: "none" },
        { s: "b", p: "a", q: "a" },
      ],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2024-01-01 00:00:01), datetime(2024-01-01), datetime(2024-01-01 00:00:00.5)] | sort by t asc | extend d = datetime_diff('millisecond', t, prev(t, 1)), g = t - prev(t)",
      rows: [
        { t: "2024-01-01T00:00:00Z", d: null, g: null },
        { t: "2024-01-01T00:00:00.5Z", d: 500, g: "00:00:00.5000000" },
        { t: "2024-01-01T00:00:01Z", d: 500, g: "00:00:00.5000000" },
      ],
    },
    {
      query: "datatable(a: long)[10, 20] | project p = prev(a)",
      refused: { code: "invalid_query", message: "serialized" },
    },
  ],
  "next()": [
    {
      query: "datatable(a: long)[10, 20, 30] | serialize n = next(a), m = next(a, 2), r = next(a, 1, 0)",
      rows: [
        { a: 10, n: 20, m: 30, r: 20 },
        { a: 20, n: 30, m: null, r: 30 },
        { a: 30, n: null, m: null, r: 0 },
      ],
    },
    {
      query: "range x from 1 to 4 step 1 | sort by x asc | where next(x) % 2 == 0",
      rows: [{ x: 1 }, { x: 3 }],
    },
    {
      query: "datatable(a: long)[3, 1, 2] | top 2 by a | extend n = next(a)",
      rows: [
        { a: 3, n: 2 },
        { a: 2, n: null },
      ],
    },
  ],
};
