import type { KqlCases } from "../cases.test-kit.ts";

export const dates: KqlCases = {
  "datetime literals": [
    {
      query: "print a = datetime(2015-12-31 23:59:59.9), b = datetime(2015-12-31), c = datetime(null)",
      rows: [{ a: "2015-12-31T23:59:59.9Z", b: "2015-12-31T00:00:00Z", c: null }],
      types: { a: "datetime", b: "datetime", c: "datetime" },
    },
    {
      query:
        "print a = datetime(2014-05-25T08:20:03.123456Z), b = datetime(2014-05-25T08:20:03.123456), c = datetime(2014-05-25T08:20)",
      rows: [{ a: "2014-05-25T08:20:03.123456Z", b: "2014-05-25T08:20:03.123456Z", c: "2014-05-25T08:20:00Z" }],
    },
    {
      query:
        "print a = datetime(2014-11-08 15:55:55.123456Z), b = datetime(2014-11-08 15:55:55), c = datetime(2014-11-08 15:55)",
      rows: [{ a: "2014-11-08T15:55:55.123456Z", b: "2014-11-08T15:55:55Z", c: "2014-11-08T15:55:00Z" }],
    },
    {
      query: "print a = datetime(2020-01-01T00:00:00.0000001Z), b = datetime(1969-12-31T23:59:59.9999999Z)",
      rows: [{ a: "2020-01-01T00:00:00.0000001Z", b: "1969-12-31T23:59:59.9999999Z" }],
    },
    {
      query: "print a = datetime(2020-01-01T12:00:00+02:00), b = datetime(2020-01-01T12:00:00-05:30)",
      rows: [{ a: "2020-01-01T10:00:00Z", b: "2020-01-01T17:30:00Z" }],
    },
    {
      query: "print a = datetime(\"2015-12-14\"), b = datetime('2015-12-14 01:02:03')",
      rows: [{ a: "2015-12-14T00:00:00Z", b: "2015-12-14T01:02:03Z" }],
    },
    {
      query:
        "print a = datetime(Sat, 8 Nov 14 15:05:02 GMT), b = datetime(Sat, 8 Nov 14 15:05), c = datetime(8 Nov 14 15:05:02 GMT), d = datetime(8 Nov 14 15:05)",
      rows: [
        {
          a: "2014-11-08T15:05:02Z",
          b: "2014-11-08T15:05:00Z",
          c: "2014-11-08T15:05:02Z",
          d: "2014-11-08T15:05:00Z",
        },
      ],
    },
    {
      query:
        "print a = datetime(Saturday, 08-Nov-14 15:05:02 GMT), b = datetime(Saturday, 08-Nov-14 15:05), c = datetime(08-Nov-14 15:05:02), d = datetime(08-Nov-14 15:05 GMT)",
      rows: [
        {
          a: "2014-11-08T15:05:02Z",
          b: "2014-11-08T15:05:00Z",
          c: "2014-11-08T15:05:02Z",
          d: "2014-11-08T15:05:00Z",
        },
      ],
    },
    {
      query:
        "print a = datetime(2014-11-08 15:05:25 GMT), b = datetime(2014-11-08 15:05 GMT), c = datetime(2014-11-08T15:05:25 GMT)",
      rows: [{ a: "2014-11-08T15:05:25Z", b: "2014-11-08T15:05:00Z", c: "2014-11-08T15:05:25Z" }],
    },
    { query: "print d = datetime(0100-01-01)", refused: { code: "invalid_query", message: "datetime" } },
    { query: "print d = datetime(2262-04-12)", refused: { code: "invalid_query", message: "datetime" } },
    { query: "print d = datetime(2021-02-29)", refused: { code: "invalid_query", message: "datetime" } },
  ],
  "todatetime()": [
    {
      query: 'print a = todatetime("2015-12-31 23:59:59.9"), b = todatetime("2014-05-25T08:20:03.123456Z")',
      rows: [{ a: "2015-12-31T23:59:59.9Z", b: "2014-05-25T08:20:03.123456Z" }],
      types: { a: "datetime", b: "datetime" },
    },
    { query: "print x = todatetime('12-02-2022') == datetime('12-02-2022')", rows: [{ x: true }] },
    {
      query: 'print a = todatetime("not a date"), b = todatetime(""), c = todatetime("2021-02-29")',
      rows: [{ a: null, b: null, c: null }],
    },
    {
      query:
        "datatable(s: string)['Sat, 8 Nov 14 15:05:02 GMT', '8 Nov 14 15:05', 'Saturday, 08-Nov-14 15:05:02 GMT', '08-Nov-14 15:05', '2014-11-08T15:05 GMT', '2014-11-08'] | project d = todatetime(s)",
      rows: [
        { d: "2014-11-08T15:05:02Z" },
        { d: "2014-11-08T15:05:00Z" },
        { d: "2014-11-08T15:05:02Z" },
        { d: "2014-11-08T15:05:00Z" },
        { d: "2014-11-08T15:05:00Z" },
        { d: "2014-11-08T00:00:00Z" },
      ],
    },
    {
      query:
        "datatable(s: string)['2020-01-01T12:00:00+02:00', '2020-01-01 12:00:00.0000001'] | project d = todatetime(s)",
      rows: [{ d: "2020-01-01T10:00:00Z" }, { d: "2020-01-01T12:00:00.0000001Z" }],
    },
    {
      query: 'print a = todatetime(parse_json(\'{"a b c": "2015-01-01"}\')["a b c"]), b = todatetime(dynamic(null))',
      rows: [{ a: "2015-01-01T00:00:00Z", b: null }],
    },
  ],
  "datetime and timespan arithmetic": [
    {
      query: "print age = datetime(1997-06-25) - datetime(1910-06-11), day1 = datetime(1910-06-11) + 1d",
      rows: [{ age: "31791.00:00:00", day1: "1910-06-12T00:00:00Z" }],
      types: { age: "timespan", day1: "datetime" },
    },
    {
      query: "print a = datetime(2020-01-01) - datetime(2020-01-02 12:00), b = datetime(2020-01-01) - 1tick",
      rows: [{ a: "-1.12:00:00", b: "2019-12-31T23:59:59.9999999Z" }],
    },
    {
      query: "print a = 1h + datetime(2020-01-01), b = datetime(1970-01-01) - 365d, c = datetime(2020-02-28) + 1d",
      rows: [{ a: "2020-01-01T01:00:00Z", b: "1969-01-01T00:00:00Z", c: "2020-02-29T00:00:00Z" }],
    },
    {
      query:
        "print a = datetime(null) + 1h, b = datetime(2020-01-01) + timespan(null), c = datetime(2020-01-01) - datetime(null)",
      rows: [{ a: null, b: null, c: null }],
    },
    {
      query:
        "let fromUnixTime = (t: long) { datetime(1970-01-01) + t * 1sec }; print result = fromUnixTime(1546897531)",
      rows: [{ result: "2019-01-07T21:45:31Z" }],
    },
    {
      query:
        "let toUnixTime = (dt: datetime) { (dt - datetime(1970-01-01)) / 1s }; print result = toUnixTime(datetime(2019-01-07 21:45:31.0000000))",
      rows: [{ result: 1546897531 }],
      types: { result: "real" },
    },
    { query: "print d = datetime(2262-01-01) + 365d", rows: [{ d: null }] },
    {
      query:
        "datatable(t: datetime, s: timespan, n: long)[datetime(2262-01-01), time(10675199.02:48:05.4775807), long(-9223372036854775808)] | project a = t + s, b = t - s, c = startofday(t, n), d = datetime_add('year', n, t), e = datetime_add('day', n, t), f = startofmonth(t, 12), g = unixtime_seconds_todatetime(n)",
      rows: [{ a: null, b: null, c: null, d: null, e: null, f: null, g: null }],
    },
  ],
  "comparison of datetimes": [
    {
      query:
        "print a = datetime(2020-01-01) < datetime(2020-01-02), b = datetime(1969-12-31) < datetime(1970-01-01), c = datetime(2020-01-01) == datetime(2020-01-01T00:00:00.0000000Z), d = datetime(2020-01-01) >= datetime(2020-01-01 00:00:00.0000001)",
      rows: [{ a: true, b: true, c: true, d: false }],
      types: { a: "bool", b: "bool", c: "bool", d: "bool" },
    },
    {
      query:
        "print a = datetime(null) == datetime(2020-01-01), b = datetime(null) != datetime(2020-01-01), c = datetime(null) < datetime(2020-01-01)",
      rows: [{ a: false, b: true, c: null }],
    },
    { query: "print a = now() < datetime(2100-01-01), b = now() > ago(1d)", rows: [{ a: true, b: true }] },
    {
      query:
        "datatable(d: datetime)[datetime(2020-01-02), datetime(null), datetime(1960-05-05), datetime(2020-01-01)] | sort by d asc",
      rows: [{ d: null }, { d: "1960-05-05T00:00:00Z" }, { d: "2020-01-01T00:00:00Z" }, { d: "2020-01-02T00:00:00Z" }],
    },
  ],
  "bin() of datetimes": [
    {
      query: "print a = bin(datetime(1970-05-11 13:45:07), 1d), b = floor(datetime(1970-05-11 13:45:07), 1h)",
      rows: [{ a: "1970-05-11T00:00:00Z", b: "1970-05-11T13:00:00Z" }],
      types: { a: "datetime", b: "datetime" },
    },
    {
      query: "print a = bin(datetime(1969-12-31 23:30), 1h), b = bin(datetime(1969-12-31 23:59:59.9999999), 1d)",
      rows: [{ a: "1969-12-31T23:00:00Z", b: "1969-12-31T00:00:00Z" }],
    },
    {
      query: "print a = bin(datetime(2020-01-01 00:07:29.5), 5m), b = bin(datetime(2020-01-01), 1d)",
      rows: [{ a: "2020-01-01T00:05:00Z", b: "2020-01-01T00:00:00Z" }],
    },
    {
      // A datetime counts from Monday, 1 January 0001.
      query: "print a = bin(datetime(1970-01-01), 7d), b = bin(datetime(2024-05-05 10:00), 7d)",
      rows: [{ a: "1969-12-29T00:00:00Z", b: "2024-04-29T00:00:00Z" }],
    },
    {
      query:
        "print a = bin(datetime(null), 1d), b = bin(datetime(2020-01-01), timespan(null)), c = bin(datetime(2020-01-01), -1d)",
      rows: [{ a: null, b: null, c: null }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2020-01-01 01:10), datetime(2020-01-01 01:50), datetime(2020-01-01 02:00)] | summarize n = count() by t = bin(t, 1h) | sort by t asc",
      rows: [
        { t: "2020-01-01T01:00:00Z", n: 2 },
        { t: "2020-01-01T02:00:00Z", n: 1 },
      ],
    },
  ],
  "bin_at() of datetimes": [
    {
      query: "print a = bin_at(datetime(2017-05-15 10:20:00.0), 1d, datetime(1970-01-01 12:00:00.0))",
      rows: [{ a: "2017-05-14T12:00:00Z" }],
      types: { a: "datetime" },
    },
    {
      query: "print a = bin_at(datetime(2017-05-17 10:20:00.0), 7d, datetime(2017-06-04 00:00:00.0))",
      rows: [{ a: "2017-05-14T00:00:00Z" }],
    },
    {
      query:
        "datatable(Date:datetime, NumOfEvents:int)[datetime(2018-02-24T15:14),3, datetime(2018-02-24T15:24),4, datetime(2018-02-23T16:14),4, datetime(2018-02-23T17:29),4, datetime(2018-02-26T15:14),5] | summarize TotalEvents=sum(NumOfEvents) by bin_at(Date, 1d, datetime(2018-02-24 15:14:00.0000000))",
      rows: [
        { Date: "2018-02-23T15:14:00Z", TotalEvents: 8 },
        { Date: "2018-02-24T15:14:00Z", TotalEvents: 7 },
        { Date: "2018-02-26T15:14:00Z", TotalEvents: 5 },
      ],
      unordered: true,
    },
    {
      query: "print a = bin_at(datetime(1960-01-01 00:30), 1h, datetime(1970-01-01 00:15))",
      rows: [{ a: "1960-01-01T00:15:00Z" }],
    },
  ],
  "now() and ago()": [
    {
      query: "print a = now() == now(), b = now() - ago(1h), c = now(-2d) - now(), d = now() - 1h == ago(1h)",
      rows: [{ a: true, b: "01:00:00", c: "-2.00:00:00", d: true }],
      types: { a: "bool", b: "timespan", c: "timespan", d: "bool" },
    },
    { query: "print a = ago(-1d) > now(), b = datetime() == now()", rows: [{ a: true, b: true }] },
    { query: "print a = isnull(ago(timespan(null)))", rows: [{ a: true }] },
  ],
  "datetime_add()": [
    {
      query:
        "print year = datetime_add('year',1,make_datetime(2017,1,1)), quarter = datetime_add('quarter',1,make_datetime(2017,1,1)), month = datetime_add('month',1,make_datetime(2017,1,1)), week = datetime_add('week',1,make_datetime(2017,1,1)), day = datetime_add('day',1,make_datetime(2017,1,1)), hour = datetime_add('hour',1,make_datetime(2017,1,1)), minute = datetime_add('minute',1,make_datetime(2017,1,1)), second = datetime_add('second',1,make_datetime(2017,1,1))",
      rows: [
        {
          year: "2018-01-01T00:00:00Z",
          quarter: "2017-04-01T00:00:00Z",
          month: "2017-02-01T00:00:00Z",
          week: "2017-01-08T00:00:00Z",
          day: "2017-01-02T00:00:00Z",
          hour: "2017-01-01T01:00:00Z",
          minute: "2017-01-01T00:01:00Z",
          second: "2017-01-01T00:00:01Z",
        },
      ],
    },
    {
      query:
        "print year = datetime_add('year',-5,make_datetime(2017,1,1)), quarter = datetime_add('quarter',12,make_datetime(2017,1,1)), month = datetime_add('month',-15,make_datetime(2017,1,1)), week = datetime_add('week',100,make_datetime(2017,1,1))",
      rows: [
        {
          year: "2012-01-01T00:00:00Z",
          quarter: "2020-01-01T00:00:00Z",
          month: "2015-10-01T00:00:00Z",
          week: "2018-12-02T00:00:00Z",
        },
      ],
    },
    {
      query:
        "print a = datetime_add('millisecond', 1, datetime(2020-01-01)), b = datetime_add('microsecond', -1, datetime(2020-01-01)), c = datetime_add('nanosecond', 100, datetime(2020-01-01)), d = datetime_add('Month', 1, datetime(2020-01-31 01:02:03.0000004))",
      rows: [
        {
          a: "2020-01-01T00:00:00.001Z",
          b: "2019-12-31T23:59:59.999999Z",
          c: "2020-01-01T00:00:00.0000001Z",
          d: "2020-02-29T01:02:03.0000004Z",
        },
      ],
    },
    {
      query: "print a = datetime_add('day', 1, datetime(null)), b = datetime_add('year', -1, datetime(1970-01-01))",
      rows: [{ a: null, b: "1969-01-01T00:00:00Z" }],
    },
    {
      query: "print a = datetime_add('fortnight', 1, datetime(2020-01-01))",
      refused: { code: "invalid_query", message: "must be one of the values" },
    },
  ],
  "datetime_diff()": [
    {
      query:
        "print year = datetime_diff('year',datetime(2017-01-01),datetime(2000-12-31)), quarter = datetime_diff('quarter',datetime(2017-07-01),datetime(2017-03-30)), month = datetime_diff('month',datetime(2017-01-01),datetime(2015-12-30)), week = datetime_diff('week',datetime(2017-10-29 00:00),datetime(2017-09-30 23:59)), day = datetime_diff('day',datetime(2017-10-29 00:00),datetime(2017-09-30 23:59))",
      rows: [{ year: 17, quarter: 2, month: 13, week: 5, day: 29 }],
      types: { year: "long", quarter: "long", month: "long", week: "long", day: "long" },
    },
    {
      query:
        "print hour = datetime_diff('hour',datetime(2017-10-31 01:00),datetime(2017-10-30 23:59)), minute = datetime_diff('minute',datetime(2017-10-30 23:05:01),datetime(2017-10-30 23:00:59)), second = datetime_diff('second',datetime(2017-10-30 23:00:10.100),datetime(2017-10-30 23:00:00.900)), millisecond = datetime_diff('millisecond',datetime(2017-10-30 23:00:00.200100),datetime(2017-10-30 23:00:00.100900)), microsecond = datetime_diff('microsecond',datetime(2017-10-30 23:00:00.1009001),datetime(2017-10-30 23:00:00.1008009)), nanosecond = datetime_diff('nanosecond',datetime(2017-10-30 23:00:00.0000000),datetime(2017-10-30 23:00:00.0000007))",
      rows: [{ hour: 2, minute: 5, second: 10, millisecond: 100, microsecond: 100, nanosecond: -700 }],
    },
    {
      query:
        "print a = datetime_diff('YEAR', datetime(2000-12-31), datetime(2017-01-01)), b = datetime_diff('day', datetime(1969-12-31 23:59), datetime(1970-01-01)), c = datetime_diff('hour', datetime(1969-12-31 22:59), datetime(1970-01-01 01:00)), d = datetime_diff('second', datetime(1969-12-31 23:59:59.5), datetime(1970-01-01))",
      rows: [{ a: -17, b: -1, c: -3, d: -1 }],
    },
    {
      query:
        "print a = datetime_diff('day', datetime(null), datetime(2020-01-01)), b = datetime_diff('day', datetime(2020-01-01), datetime(2020-01-01 23:59))",
      rows: [{ a: null, b: 0 }],
    },
    {
      query: "print a = datetime_diff('age', datetime(2020-01-01), datetime(2020-01-01))",
      refused: { code: "invalid_query", message: "must be one of the values" },
    },
  ],
  "datetime_part()": [
    {
      query:
        'let dt = datetime(2017-10-30 01:02:03.7654321); print year = datetime_part("year", dt), quarter = datetime_part("quarter", dt), month = datetime_part("month", dt), weekOfYear = datetime_part("week_of_year", dt), day = datetime_part("day", dt), dayOfYear = datetime_part("dayOfYear", dt), hour = datetime_part("hour", dt), minute = datetime_part("minute", dt), second = datetime_part("second", dt), millisecond = datetime_part("millisecond", dt), microsecond = datetime_part("microsecond", dt), nanosecond = datetime_part("nanosecond", dt)',
      rows: [
        {
          year: 2017,
          quarter: 4,
          month: 10,
          weekOfYear: 44,
          day: 30,
          dayOfYear: 303,
          hour: 1,
          minute: 2,
          second: 3,
          millisecond: 765,
          microsecond: 765432,
          nanosecond: 765432100,
        },
      ],
    },
    {
      query:
        "let dt = datetime(1969-12-31 23:59:59.9999999); print year = datetime_part('year', dt), second = datetime_part('second', dt), ms = datetime_part('millisecond', dt), ns = datetime_part('nanosecond', dt), n = datetime_part('day', datetime(null))",
      rows: [{ year: 1969, second: 59, ms: 999, ns: 999999900, n: null }],
      types: { year: "int", second: "int", ms: "int", ns: "int", n: "int" },
    },
    {
      query: "print a = datetime_part('era', datetime(2020-01-01))",
      refused: { code: "invalid_query", message: "must be one of the values" },
    },
  ],
  "parts of dates": [
    {
      query:
        "print a = dayofweek(datetime(1947-11-30 10:00:05)), b = dayofweek(datetime(1970-05-11)), c = toint(dayofweek(datetime(1970-5-12)) / 1d)",
      rows: [{ a: "00:00:00", b: "1.00:00:00", c: 2 }],
      types: { a: "timespan", b: "timespan", c: "int" },
    },
    {
      query:
        "print a = dayofweek(datetime(2024-05-04 23:59)), b = dayofweek(datetime(1969-12-28)), c = dayofweek(datetime(null))",
      rows: [{ a: "6.00:00:00", b: "00:00:00", c: null }],
    },
    {
      query:
        'print a = dayofmonth(datetime(2015-12-14)), b = dayofyear(datetime(2015-12-14)), c = monthofyear(datetime("2015-12-14")), d = getmonth(datetime(2015-10-12)), e = getyear(datetime(2015-10-12)), f = hourofday(datetime(2015-12-14 18:54))',
      rows: [{ a: 14, b: 348, c: 12, d: 10, e: 2015, f: 18 }],
      types: { a: "int", b: "int", c: "int", d: "int", e: "int", f: "int" },
    },
    {
      query:
        "print a = dayofyear(datetime(2020-12-31)), b = dayofyear(datetime(2021-12-31)), c = hourofday(datetime(1969-12-31 23:30))",
      rows: [{ a: 366, b: 365, c: 23 }],
    },
    {
      query:
        "print a = dayofmonth(datetime(null)), b = dayofyear(datetime(null)), c = monthofyear(datetime(null)), d = getyear(datetime(null)), e = hourofday(datetime(null)), f = week_of_year(datetime(null))",
      rows: [{ a: null, b: null, c: null, d: null, e: null, f: null }],
    },
    {
      query:
        "print a = week_of_year(datetime(2020-12-31)), b = week_of_year(datetime(2020-06-15)), c = week_of_year(datetime(1970-01-01)), d = week_of_year(datetime(2000-01-01))",
      rows: [{ a: 53, b: 25, c: 1, d: 52 }],
      types: { a: "int", b: "int", c: "int", d: "int" },
    },
  ],
  "starts of periods": [
    {
      query: "range offset from -1 to 1 step 1 | project dayStart = startofday(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { dayStart: "2016-12-31T00:00:00Z" },
        { dayStart: "2017-01-01T00:00:00Z" },
        { dayStart: "2017-01-02T00:00:00Z" },
      ],
      types: { dayStart: "datetime" },
    },
    {
      query:
        "range offset from -1 to 1 step 1 | project weekStart = startofweek(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { weekStart: "2016-12-25T00:00:00Z" },
        { weekStart: "2017-01-01T00:00:00Z" },
        { weekStart: "2017-01-08T00:00:00Z" },
      ],
    },
    {
      query:
        "range offset from -1 to 1 step 1 | project monthStart = startofmonth(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { monthStart: "2016-12-01T00:00:00Z" },
        { monthStart: "2017-01-01T00:00:00Z" },
        { monthStart: "2017-02-01T00:00:00Z" },
      ],
    },
    {
      query:
        "range offset from -1 to 1 step 1 | project yearStart = startofyear(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { yearStart: "2016-01-01T00:00:00Z" },
        { yearStart: "2017-01-01T00:00:00Z" },
        { yearStart: "2018-01-01T00:00:00Z" },
      ],
    },
    {
      query:
        "print a = startofday(datetime(1969-12-31 23:59:59.9999999)), b = startofweek(datetime(1969-12-31)), c = startofweek(datetime(2024-05-04 12:00)), d = startofmonth(datetime(1969-12-31)), e = startofyear(datetime(1969-12-31))",
      rows: [
        {
          a: "1969-12-31T00:00:00Z",
          b: "1969-12-28T00:00:00Z",
          c: "2024-04-28T00:00:00Z",
          d: "1969-12-01T00:00:00Z",
          e: "1969-01-01T00:00:00Z",
        },
      ],
    },
    {
      query:
        "let startofweekFromMonday = (dateArg: datetime) { datetime_add('day', 1, startofweek(datetime_add('day', -1, dateArg))) }; datatable(Date: datetime)[datetime(2025-06-14), datetime(2025-06-15), datetime(2025-06-16), datetime(2025-06-17)] | project MondayWeek = startofweekFromMonday(Date)",
      rows: [
        { MondayWeek: "2025-06-09T00:00:00Z" },
        { MondayWeek: "2025-06-09T00:00:00Z" },
        { MondayWeek: "2025-06-16T00:00:00Z" },
        { MondayWeek: "2025-06-16T00:00:00Z" },
      ],
    },
    {
      query:
        "print a = startofday(datetime(null)), b = startofmonth(datetime(2020-03-31), -1), c = startofyear(datetime(null), 1)",
      rows: [{ a: null, b: "2020-02-01T00:00:00Z", c: null }],
    },
  ],
  "ends of periods": [
    {
      query: "range offset from -1 to 1 step 1 | project dayEnd = endofday(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { dayEnd: "2016-12-31T23:59:59.9999999Z" },
        { dayEnd: "2017-01-01T23:59:59.9999999Z" },
        { dayEnd: "2017-01-02T23:59:59.9999999Z" },
      ],
    },
    {
      query: "range offset from -1 to 1 step 1 | project weekEnd = endofweek(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { weekEnd: "2016-12-31T23:59:59.9999999Z" },
        { weekEnd: "2017-01-07T23:59:59.9999999Z" },
        { weekEnd: "2017-01-14T23:59:59.9999999Z" },
      ],
    },
    {
      query: "range offset from -1 to 1 step 1 | project monthEnd = endofmonth(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { monthEnd: "2016-12-31T23:59:59.9999999Z" },
        { monthEnd: "2017-01-31T23:59:59.9999999Z" },
        { monthEnd: "2017-02-28T23:59:59.9999999Z" },
      ],
    },
    {
      query: "range offset from -1 to 1 step 1 | project yearEnd = endofyear(datetime(2017-01-01 10:10:17), offset)",
      rows: [
        { yearEnd: "2016-12-31T23:59:59.9999999Z" },
        { yearEnd: "2017-12-31T23:59:59.9999999Z" },
        { yearEnd: "2018-12-31T23:59:59.9999999Z" },
      ],
    },
    {
      query:
        "let endofweekSunday = (dateArg: datetime) { datetime_add('day', 8, endofweek(datetime_add('day', -8, dateArg))) }; datatable(Date: datetime)[datetime(2025-06-14), datetime(2025-06-15), datetime(2025-06-16), datetime(2025-06-17)] | project e = endofweekSunday(Date)",
      rows: [
        { e: "2025-06-15T23:59:59.9999999Z" },
        { e: "2025-06-15T23:59:59.9999999Z" },
        { e: "2025-06-22T23:59:59.9999999Z" },
        { e: "2025-06-22T23:59:59.9999999Z" },
      ],
    },
    {
      query:
        "print a = endofday(datetime(1969-12-31)), b = endofmonth(datetime(2020-02-01)), c = endofmonth(datetime(null)), d = endofyear(datetime(1965-07-01), -1)",
      rows: [
        {
          a: "1969-12-31T23:59:59.9999999Z",
          b: "2020-02-29T23:59:59.9999999Z",
          c: null,
          d: "1964-12-31T23:59:59.9999999Z",
        },
      ],
    },
  ],
  "make_datetime()": [
    {
      query:
        "print a = make_datetime(2017,10,01), b = make_datetime(2017,10,01,12,10), c = make_datetime(2017,10,01,12,11,0.1234567)",
      rows: [{ a: "2017-10-01T00:00:00Z", b: "2017-10-01T12:10:00Z", c: "2017-10-01T12:11:00.1234567Z" }],
      types: { a: "datetime", b: "datetime", c: "datetime" },
    },
    {
      query:
        "print a = make_datetime(2017,13,1), b = make_datetime(2017,2,29), c = make_datetime(2016,2,29), d = make_datetime(2017,1,1,24,0), e = make_datetime(2017,1,1,0,60), f = make_datetime(2017,1,0)",
      rows: [{ a: null, b: null, c: "2016-02-29T00:00:00Z", d: null, e: null, f: null }],
    },
    {
      query:
        "print a = make_datetime(2017,1,1,0,0,59.9999999), b = make_datetime(2017,1,1,0,0,60), c = make_datetime(1969,12,31,23,59,59), d = make_datetime(2017,int(null),1)",
      rows: [{ a: "2017-01-01T00:00:59.9999999Z", b: null, c: "1969-12-31T23:59:59Z", d: null }],
    },
  ],
  "format_datetime()": [
    {
      query:
        "let dt = datetime(2017-01-29 09:00:05); print v1 = format_datetime(dt,'yy-MM-dd [HH:mm:ss]'), v2 = format_datetime(dt, 'yyyy-M-dd [H:mm:ss]'), v3 = format_datetime(dt, 'yy-MM-dd [hh:mm:ss tt]')",
      rows: [{ v1: "17-01-29 [09:00:05]", v2: "2017-1-29 [9:00:05]", v3: "17-01-29 [09:00:05 AM]" }],
      types: { v1: "string", v2: "string", v3: "string" },
    },
    {
      query:
        "let dt = datetime(2009-06-15T13:45:30.6175425); print d = format_datetime(dt, 'd'), f = format_datetime(dt, 'f'), ff = format_datetime(dt, 'ff'), fff = format_datetime(dt, 'fff'), f4 = format_datetime(dt, 'ffff'), f5 = format_datetime(dt, 'fffff'), f6 = format_datetime(dt, 'ffffff'), f7 = format_datetime(dt, 'fffffff')",
      rows: [{ d: "15", f: "6", ff: "61", fff: "617", f4: "6175", f5: "61754", f6: "617542", f7: "6175425" }],
    },
    {
      query:
        "print a = format_datetime(datetime(2009-06-15T13:45:30.05), 'F'), b = format_datetime(datetime(2009-06-15T13:45:30.005), 'FF'), c = format_datetime(datetime(2009-06-15T13:45:30.617), 'FFF'), d = format_datetime(datetime(2009-06-15T13:45:30.00005), 'FFFF'), e = format_datetime(datetime(2009-06-15T13:45:30.0001150), 'FFFFFFF'), f = format_datetime(datetime(2009-06-15T13:45:30.6170000), 'F')",
      rows: [{ a: "", b: "", c: "617", d: "", e: "000115", f: "6" }],
    },
    {
      query:
        "print a = format_datetime(datetime(2009-06-15T13:45:30), 'h'), b = format_datetime(datetime(2009-06-15T01:45:30), 'hh'), c = format_datetime(datetime(2009-06-15T01:45:30), 'H'), d = format_datetime(datetime(2009-06-15T00:05:09), 'h:m:s tt'), e = format_datetime(datetime(2009-06-15T12:00:00), 'hh tt')",
      rows: [{ a: "1", b: "01", c: "1", d: "12:5:9 AM", e: "12 PM" }],
    },
    {
      query:
        "print a = format_datetime(datetime(2009-06-15), 'y'), b = format_datetime(datetime(1900-01-01), 'y'), c = format_datetime(datetime(1900-01-01), 'yy'), d = format_datetime(datetime(2019-06-15), 'y'), e = format_datetime(datetime(2009-06-05), 'yyyy/M/d')",
      rows: [{ a: "9", b: "0", c: "00", d: "19", e: "2009/6/5" }],
    },
    {
      query:
        "print a = format_datetime(datetime(1969-12-31 23:59:59.9999999), 'yyyy-MM-dd HH:mm:ss.fffffff'), b = format_datetime(datetime(2009-06-05 01:02:03), 'MM_dd,yy')",
      rows: [{ a: "1969-12-31 23:59:59.9999999", b: "06_05,09" }],
    },
    { query: "print a = format_datetime(datetime(null), 'yyyy')", rows: [{ a: "" }] },
    {
      query: "print a = format_datetime(datetime(2020-01-01), 'yyyy Q')",
      refused: { code: "invalid_query", message: "format_datetime" },
    },
  ],
  "time zones": [
    {
      query:
        "print dt = datetime(2022-07-11 22:18:48.4678620) | extend pacific_dt = datetime_utc_to_local(dt, 'US/Pacific'), canberra_dt = datetime_utc_to_local(dt, 'Australia/Canberra') | extend diff = pacific_dt - canberra_dt",
      rows: [
        {
          dt: "2022-07-11T22:18:48.467862Z",
          pacific_dt: "2022-07-11T15:18:48.467862Z",
          canberra_dt: "2022-07-12T08:18:48.467862Z",
          diff: "-17:00:00",
        },
      ],
    },
    {
      query:
        "datatable(local_dt: datetime, tz: string)[ datetime(2020-02-02 20:02:20), 'US/Pacific', datetime(2020-02-02 20:02:20), 'America/Chicago', datetime(2020-02-02 20:02:20), 'Europe/Paris'] | project tz, utc_dt = datetime_local_to_utc(local_dt, tz)",
      rows: [
        { tz: "US/Pacific", utc_dt: "2020-02-03T04:02:20Z" },
        { tz: "America/Chicago", utc_dt: "2020-02-03T02:02:20Z" },
        { tz: "Europe/Paris", utc_dt: "2020-02-02T19:02:20Z" },
      ],
    },
    {
      query:
        "range Local from datetime(2022-03-27 01:00:00.0000000) to datetime(2022-03-27 04:00:00.0000000) step 1h | extend UTC=datetime_local_to_utc(Local, 'Europe/Brussels') | extend BackToLocal=datetime_utc_to_local(UTC, 'Europe/Brussels') | extend diff=Local-BackToLocal",
      rows: [
        {
          Local: "2022-03-27T01:00:00Z",
          UTC: "2022-03-27T00:00:00Z",
          BackToLocal: "2022-03-27T01:00:00Z",
          diff: "00:00:00",
        },
        {
          Local: "2022-03-27T02:00:00Z",
          UTC: "2022-03-27T00:00:00Z",
          BackToLocal: "2022-03-27T01:00:00Z",
          diff: "01:00:00",
        },
        {
          Local: "2022-03-27T03:00:00Z",
          UTC: "2022-03-27T01:00:00Z",
          BackToLocal: "2022-03-27T03:00:00Z",
          diff: "00:00:00",
        },
        {
          Local: "2022-03-27T04:00:00Z",
          UTC: "2022-03-27T02:00:00Z",
          BackToLocal: "2022-03-27T04:00:00Z",
          diff: "00:00:00",
        },
      ],
    },
    {
      query:
        "print a = datetime_utc_to_local(datetime(2020-01-01 00:00:00.0000001), 'UTC'), b = datetime_local_to_utc(datetime(null), 'UTC')",
      rows: [{ a: "2020-01-01T00:00:00.0000001Z", b: null }],
    },
    {
      query: "print a = isnull(todatetime(datetime_list_timezones()))",
      rows: [{ a: true }],
    },
    {
      query:
        "print a = set_has_element(datetime_list_timezones(), 'Europe/Brussels'), b = set_has_element(datetime_list_timezones(), 'US/Pacific')",
      rows: [{ a: true, b: true }],
    },
  ],
  "between and !between": [
    {
      query: "range x from 1 to 100 step 1 | where x between (50 .. 55)",
      rows: [{ x: 50 }, { x: 51 }, { x: 52 }, { x: 53 }, { x: 54 }, { x: 55 }],
    },
    {
      query: "range x from 1 to 10 step 1 | where x !between (5 .. 9)",
      rows: [{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }, { x: 10 }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2007-07-26 23:59:59), datetime(2007-07-27), datetime(2007-07-30), datetime(2007-07-30 00:00:01)] | where t between (datetime(2007-07-27) .. datetime(2007-07-30))",
      rows: [{ t: "2007-07-27T00:00:00Z" }, { t: "2007-07-30T00:00:00Z" }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2007-07-26 23:59:59), datetime(2007-07-27), datetime(2007-07-30), datetime(2007-07-30 00:00:01)] | where t between (datetime(2007-07-27) .. 3d)",
      rows: [{ t: "2007-07-27T00:00:00Z" }, { t: "2007-07-30T00:00:00Z" }],
    },
    {
      query:
        "datatable(t: datetime)[datetime(2007-07-26 23:59:59), datetime(2007-07-27), datetime(2007-07-30), datetime(2007-07-30 00:00:01)] | where t !between (datetime(2007-07-27) .. 3d)",
      rows: [{ t: "2007-07-26T23:59:59Z" }, { t: "2007-07-30T00:00:01Z" }],
    },
    {
      query:
        "print a = 1h between (1m .. 2h), b = 5 between (9 .. 1), c = 2.5 between (2 .. 3), d = int(null) between (1 .. 2), e = 1 !between (2 .. 3)",
      rows: [{ a: true, b: false, c: true, d: null, e: true }],
    },
  ],
  "around()": [
    {
      query:
        "range dt from datetime(2021-01-01 01:00) to datetime(2021-01-01 02:00) step 1min | where around(dt, datetime(2021-01-01 01:30), 1min)",
      rows: [{ dt: "2021-01-01T01:29:00Z" }, { dt: "2021-01-01T01:30:00Z" }, { dt: "2021-01-01T01:31:00Z" }],
    },
    {
      query:
        "print a = around(5, 3, 2), b = around(5.1, 3.0, 2.0), c = around(long(null), 3, 2), d = around(1h, 2h, 1h)",
      rows: [{ a: true, b: false, c: null, d: true }],
    },
  ],
  "Unix times": [
    {
      query:
        "print a = unixtime_seconds_todatetime(1546300800), b = unixtime_milliseconds_todatetime(1546300800000), c = unixtime_microseconds_todatetime(1546300800000000), d = unixtime_nanoseconds_todatetime(1546300800000000000)",
      rows: [
        {
          a: "2019-01-01T00:00:00Z",
          b: "2019-01-01T00:00:00Z",
          c: "2019-01-01T00:00:00Z",
          d: "2019-01-01T00:00:00Z",
        },
      ],
      types: { a: "datetime", b: "datetime", c: "datetime", d: "datetime" },
    },
    {
      query:
        "print a = unixtime_seconds_todatetime(-1), b = unixtime_milliseconds_todatetime(-1), c = unixtime_microseconds_todatetime(1), d = unixtime_nanoseconds_todatetime(-100), e = unixtime_seconds_todatetime(0.5)",
      rows: [
        {
          a: "1969-12-31T23:59:59Z",
          b: "1969-12-31T23:59:59.999Z",
          c: "1970-01-01T00:00:00.000001Z",
          d: "1969-12-31T23:59:59.9999999Z",
          e: "1970-01-01T00:00:00.5Z",
        },
      ],
    },
    {
      query: "print a = unixtime_seconds_todatetime(long(null)), b = unixtime_seconds_todatetime(9223372036854775807)",
      rows: [{ a: null, b: null }],
    },
  ],
};
