import type { KqlCases } from "../cases.test-kit.ts";

export const timespans: KqlCases = {
  "timespan literals": [
    {
      query: "print a = 2d, b = 1.5h, c = 30m, d = 10s, e = 100ms, f = 10microsecond, g = 1tick",
      rows: [
        {
          a: "2.00:00:00",
          b: "01:30:00",
          c: "00:30:00",
          d: "00:00:10",
          e: "00:00:00.1000000",
          f: "00:00:00.0000100",
          g: "00:00:00.0000001",
        },
      ],
      types: {
        a: "timespan",
        b: "timespan",
        c: "timespan",
        d: "timespan",
        e: "timespan",
        f: "timespan",
        g: "timespan",
      },
    },
    {
      query:
        "print a = timespan(15 seconds), b = timespan(2), c = timespan(0.12:34:56.7), d = timespan(null), e = time(00:01:00)",
      rows: [{ a: "00:00:15", b: "2.00:00:00", c: "12:34:56.7000000", d: null, e: "00:01:00" }],
    },
    {
      query:
        "print a = time(1d), b = timespan(25min), c = 1min, d = 1sec, e = time(1.02:03:04.5), f = timespan(-1.12:00:00)",
      rows: [
        {
          a: "1.00:00:00",
          b: "00:25:00",
          c: "00:01:00",
          d: "00:00:01",
          e: "1.02:03:04.5000000",
          f: "-1.12:00:00",
        },
      ],
    },
    {
      query: "print a = 25h, b = 90m, c = 61s, d = 0s, e = 1000d",
      rows: [{ a: "1.01:00:00", b: "01:30:00", c: "00:01:01", d: "00:00:00", e: "1000.00:00:00" }],
    },
    {
      query: "print a = -1s, b = -1tick, c = -36h",
      rows: [{ a: "-00:00:01", b: "-00:00:00.0000001", c: "-1.12:00:00" }],
    },
  ],
  "timespan arithmetic": [
    {
      query: "print result1 = 1d / 1s, result2 = time(1d) / time(1s), result3 = 24 * 60 * time(00:01:00) / time(1s)",
      rows: [{ result1: 86400, result2: 86400, result3: 86400 }],
      types: { result1: "real", result2: "real", result3: "real" },
    },
    { query: "print seconds = 86400 | extend t = seconds * 1s", rows: [{ seconds: 86400, t: "1.00:00:00" }] },
    {
      query: "print a = 1d / 5h, b = 1.5 * 1h, c = 1d + 2d, d = 1h - 3h, e = 1s * 5, f = 2h * 0.5",
      rows: [{ a: 4.8, b: "01:30:00", c: "3.00:00:00", d: "-02:00:00", e: "00:00:05", f: "01:00:00" }],
      types: { a: "real", b: "timespan", c: "timespan", d: "timespan", e: "timespan", f: "timespan" },
    },
    {
      query: "print a = 10m / 1s, b = -1h / 1m, c = 1h / 0s > 1e300, d = 1h * -2",
      rows: [{ a: 600, b: -60, c: true, d: "-02:00:00" }],
    },
    {
      query:
        "print a = timespan(null) + 1h, b = 1h * long(null), c = 1h / timespan(null), d = timespan(null) == 1h, e = timespan(null) != 1h",
      rows: [{ a: null, b: null, c: null, d: false, e: true }],
    },
    { query: "print a = 1h + 1tick, b = 1tick * 3", rows: [{ a: "01:00:00.0000001", b: "00:00:00.0000003" }] },
  ],
  "comparison of timespans": [
    {
      query: "print a = 10sec < 1h, b = 10min > 1sec, c = 60s == 1m, d = -1h < 0s, e = 1d >= 24h",
      rows: [{ a: true, b: true, c: true, d: true, e: true }],
    },
    {
      query: "datatable(t: timespan)[time(1d), timespan(null), time(-1h), time(2s)] | sort by t",
      rows: [{ t: "1.00:00:00" }, { t: "00:00:02" }, { t: "-01:00:00" }, { t: null }],
    },
  ],
  "abs() of timespans": [
    {
      query: "print a = abs(-1h), b = abs(1h), c = abs(timespan(null))",
      rows: [{ a: "01:00:00", b: "01:00:00", c: null }],
    },
  ],
  "bin() and bin_at() of timespans": [
    {
      query: "print a = bin(time(16d), 7d), b = bin(-1h, 1d), c = floor(90m, 1h), d = bin(-25h, 1d), e = bin(2h, 1h)",
      rows: [{ a: "14.00:00:00", b: "-1.00:00:00", c: "01:00:00", d: "-2.00:00:00", e: "02:00:00" }],
      types: { a: "timespan", b: "timespan", c: "timespan", d: "timespan", e: "timespan" },
    },
    {
      query:
        "print a = bin_at(time(1h), 1d, 12h), b = bin_at(13h, 1d, 12h), c = bin(timespan(null), 1h), d = bin(1h, -1h)",
      rows: [{ a: "-12:00:00", b: "12:00:00", c: null, d: null }],
    },
  ],
  "make_timespan()": [
    {
      query: "print a = make_timespan(1,12,30,55.123), b = make_timespan(1,12), c = make_timespan(1,12,30.5)",
      rows: [{ a: "1.12:30:55.1230000", b: "01:12:00", c: "01:12:30.5000000" }],
      types: { a: "timespan", b: "timespan", c: "timespan" },
    },
    { query: "print a = make_timespan(3)", rows: [{ a: "03:00:00" }] },
    {
      query:
        "print a = make_timespan(24,0), b = make_timespan(0,60), c = make_timespan(0,0,60), d = make_timespan(int(null),0), e = make_timespan(0,0,59.9999999)",
      rows: [{ a: null, b: null, c: null, d: null, e: "00:00:59.9999999" }],
    },
  ],
  "totimespan()": [
    {
      query:
        'let value=5; print minsStr=totimespan("0.00:03:00"), days=totimespan(4d), hour=totimespan(value * 1h), mins=totimespan(value * 2m), seconds=totimespan(5 * 4s), timespanMin=timespan(25min)',
      rows: [
        {
          minsStr: "00:03:00",
          days: "4.00:00:00",
          hour: "05:00:00",
          mins: "00:10:00",
          seconds: "00:00:20",
          timespanMin: "00:25:00",
        },
      ],
    },
    {
      query:
        "datatable(s: string)['', 'x', '1.02:03:04.5', '-00:00:01', '23:59:59.9999999'] | project t = totimespan(s)",
      rows: [{ t: null }, { t: null }, { t: "1.02:03:04.5000000" }, { t: "-00:00:01" }, { t: "23:59:59.9999999" }],
    },
    {
      query:
        "print a = totimespan(dynamic('01:00:00')), b = tostring(totimespan('1.00:00:00')), c = totimespan(dynamic(null))",
      rows: [{ a: "01:00:00", b: "1.00:00:00", c: null }],
    },
  ],
  "tostring() of timespans": [
    {
      query:
        "print a = tostring(1h), b = tostring(-1d), c = tostring(1tick), d = tostring(timespan(null)), e = tostring(0s)",
      rows: [{ a: "01:00:00", b: "-1.00:00:00", c: "00:00:00.0000001", d: "", e: "00:00:00" }],
    },
  ],
  "format_timespan()": [
    {
      query:
        "let t = time(29.09:00:05.12345); print v1 = format_timespan(t, 'dd.hh:mm:ss:FF'), v2 = format_timespan(t, 'ddd.h:mm:ss [fffffff]')",
      rows: [{ v1: "29.09:00:05:12", v2: "029.9:00:05 [1234500]" }],
      types: { v1: "string", v2: "string" },
    },
    {
      query:
        "let t = time(15.13:45:30.6175425); print d = format_timespan(t, 'd'), dd = format_timespan(t, 'dd'), ddd = format_timespan(t, 'ddd'), d8 = format_timespan(t, 'dddddddd'), h = format_timespan(t, 'H'), m = format_timespan(t, 'mm'), s = format_timespan(t, 's'), f = format_timespan(t, 'f'), f7 = format_timespan(t, 'fffffff')",
      rows: [{ d: "15", dd: "15", ddd: "015", d8: "00000015", h: "13", m: "45", s: "30", f: "6", f7: "6175425" }],
    },
    {
      query:
        "print a = format_timespan(time(15.01:09:09), 'H'), b = format_timespan(time(15.01:09:09), 'HH:mm:ss'), c = format_timespan(time(15.01:09:09), 'm s'), d = format_timespan(time(15.13:45:30.05), 'F'), e = format_timespan(time(15.13:45:30.0001150), 'FFFFFFF')",
      rows: [{ a: "1", b: "01:09:09", c: "9 9", d: "", e: "000115" }],
    },
    { query: "print a = format_timespan(timespan(null), 'd')", rows: [{ a: "" }] },
    { query: "print a = format_timespan(1h, 'x')", refused: { code: "invalid_query", message: "format_timespan" } },
  ],
};
