import type { KqlCases } from "../cases.test-kit.ts";

/** Sources of rows, getschema, evaluate with its plugins, render. */
export const otherOperators: KqlCases = {
  print: [
    {
      query: "print 0 + 1 + 2 + 3 + 4 + 5, x = 'Wow!'",
      rows: [{ print_0: 15, x: "Wow!" }],
      types: { print_0: "long", x: "string" },
    },
    { query: "print banner = strcat('Hello', ', ', 'World!')", rows: [{ banner: "Hello, World!" }] },
    { query: "print 1, 2, x = 3, 'a'", rows: [{ print_0: 1, print_1: 2, x: 3, print_3: "a" }] },
    {
      query: "print -1, 1.5, true",
      rows: [{ print_0: -1, print_1: 1.5, print_2: true }],
      types: { print_0: "long", print_1: "real", print_2: "bool" },
    },
    {
      query:
        "print b = bool(null), d = datetime(null), y = dynamic(null), g = guid(null), i = int(null), l = long(null), r = real(null), t = timespan(null), c = decimal(null)",
      rows: [{ b: null, d: null, y: null, g: null, i: null, l: null, r: null, t: null, c: null }],
      types: {
        b: "bool",
        d: "datetime",
        y: "dynamic",
        g: "guid",
        i: "int",
        l: "long",
        r: "real",
        t: "timespan",
        c: "decimal",
      },
    },
    { query: "print s = 'größe 😀', t = \"it's\", u = @'a\\b'", rows: [{ s: "größe 😀", t: "it's", u: "a\\b" }] },
    { query: "print x = 9223372036854775807", rows: [{ x: 9223372036854775807n }] },
  ],
  range: [
    {
      query: "range Steps from 1 to 8 step 3",
      rows: [{ Steps: 1 }, { Steps: 4 }, { Steps: 7 }],
      types: { Steps: "long" },
    },
    { query: "range x from 1 to 7 step 3", rows: [{ x: 1 }, { x: 4 }, { x: 7 }] },
    { query: "range x from 5 to 1 step -2", rows: [{ x: 5 }, { x: 3 }, { x: 1 }] },
    { query: "range x from 5 to 1 step 1", rows: [] },
    { query: "range x from 3 to 3 step 1", rows: [{ x: 3 }] },
    { query: "range x from -2 to 0 step 1", rows: [{ x: -2 }, { x: -1 }, { x: 0 }] },
    { query: "range x from 1.0 to 2.0 step 0.5", rows: [{ x: 1 }, { x: 1.5 }, { x: 2 }], types: { x: "real" } },
    { query: "range x from 1 to 2 step 0.5", rows: [{ x: 1 }, { x: 1.5 }, { x: 2 }], types: { x: "real" } },
    { query: "range x from 0.0 to 0.5 step 0.2", rows: [{ x: 0 }, { x: 0.2 }, { x: 0.4 }] },
    { query: "range x from int(1) to int(5) step int(2)", rows: [{ x: 1 }, { x: 3 }, { x: 5 }], types: { x: "int" } },
    {
      query: "range x from datetime(1969-12-31) to datetime(1970-01-02) step 1d",
      rows: [{ x: "1969-12-31T00:00:00Z" }, { x: "1970-01-01T00:00:00Z" }, { x: "1970-01-02T00:00:00Z" }],
      types: { x: "datetime" },
    },
    {
      query: "range x from datetime(2024-01-01) to datetime(2024-01-01T01:00) step 40m",
      rows: [{ x: "2024-01-01T00:00:00Z" }, { x: "2024-01-01T00:40:00Z" }],
    },
    {
      query: "range x from 1h to 2h step 30m",
      rows: [{ x: "01:00:00" }, { x: "01:30:00" }, { x: "02:00:00" }],
      types: { x: "timespan" },
    },
    { query: "range x from -1d to 1d step 1d", rows: [{ x: "-1.00:00:00" }, { x: "00:00:00" }, { x: "1.00:00:00" }] },
    { query: "range t from ago(3d) to now() step 1d | count", rows: [{ Count: 4 }] },
    {
      query: "range x from 9223372036854775806 to 9223372036854775807 step 1",
      rows: [{ x: 9223372036854775806n }, { x: 9223372036854775807n }],
    },
    { query: "range x from 1 to 5 step 0", refused: { code: "invalid_query", message: "0" } },
    { query: "range x from 'a' to 'b' step 1", refused: { code: "invalid_query", message: "number" } },
    {
      query:
        "let Range1 = range Time from datetime(2024-01-01) to datetime(2024-01-02) step 1d; let Range2 = range Time from datetime(2024-01-03) to datetime(2024-01-04) step 1d; union Range1, Range2 | order by Time asc",
      rows: [
        { Time: "2024-01-01T00:00:00Z" },
        { Time: "2024-01-02T00:00:00Z" },
        { Time: "2024-01-03T00:00:00Z" },
        { Time: "2024-01-04T00:00:00Z" },
      ],
    },
  ],
  datatable: [
    {
      query:
        'datatable(Date: datetime, Event: string, MoreData: dynamic)[datetime(1910-06-11), "Born", dynamic({"key1": "value1", "key2": "value2"}), datetime(1930-01-01), "Enters Ecole Navale", dynamic({"key1": "value3", "key2": "value4"})] | where strlen(Event) > 4 | extend key2 = MoreData.key2',
      rows: [
        {
          Date: "1930-01-01T00:00:00Z",
          Event: "Enters Ecole Navale",
          MoreData: { key1: "value3", key2: "value4" },
          key2: "value4",
        },
      ],
      types: { Date: "datetime", Event: "string", MoreData: "dynamic", key2: "dynamic" },
    },
    {
      query: "datatable(a: long, b: string)[1, 'x', 2, 'y']",
      rows: [
        { a: 1, b: "x" },
        { a: 2, b: "y" },
      ],
      types: { a: "long", b: "string" },
    },
    { query: "datatable(a: long)[]", rows: [], types: { a: "long" } },
    { query: "datatable(a: int, b: real)[1, 2]", rows: [{ a: 1, b: 2 }], types: { a: "int", b: "real" } },
    { query: "datatable(a: long)[-1, -2,]", rows: [{ a: -1 }, { a: -2 }] },
    {
      query: "datatable(a: date, b: double, c: boolean, d: time)[datetime(2020-01-01), 1.5, true, 1h]",
      rows: [{ a: "2020-01-01T00:00:00Z", b: 1.5, c: true, d: "01:00:00" }],
      types: { a: "datetime", b: "real", c: "bool", d: "timespan" },
    },
    { query: "datatable(['a b']: long)[1] | project ['a b'] + 1", rows: [{ Column1: 2 }] },
    {
      query: "datatable(a: long, b: string)[1, 'x', 2]",
      refused: { code: "invalid_query", message: "multiples of 2" },
    },
    { query: "datatable(a: foo)[1]", refused: { code: "parse_error", message: "foo" } },
  ],
  getschema: [
    {
      query: "datatable(d: datetime, i: int, s: string, r: real, y: dynamic)[] | getschema",
      rows: [
        { ColumnName: "d", ColumnOrdinal: 0, DataType: "System.DateTime", ColumnType: "datetime" },
        { ColumnName: "i", ColumnOrdinal: 1, DataType: "System.Int32", ColumnType: "int" },
        { ColumnName: "s", ColumnOrdinal: 2, DataType: "System.String", ColumnType: "string" },
        { ColumnName: "r", ColumnOrdinal: 3, DataType: "System.Double", ColumnType: "real" },
        { ColumnName: "y", ColumnOrdinal: 4, DataType: "System.Object", ColumnType: "dynamic" },
      ],
      types: { ColumnName: "string", ColumnOrdinal: "long", DataType: "string", ColumnType: "string" },
    },
    {
      query:
        "print l = 1, b = true, t = 1h, g = guid(null), c = decimal(1) | getschema | project ColumnName, ColumnType",
      rows: [
        { ColumnName: "l", ColumnType: "long" },
        { ColumnName: "b", ColumnType: "bool" },
        { ColumnName: "t", ColumnType: "timespan" },
        { ColumnName: "g", ColumnType: "guid" },
        { ColumnName: "c", ColumnType: "decimal" },
      ],
    },
    {
      query:
        "range x from 1 to 3 step 1 | summarize avg(x) by odd = x % 2 == 1 | getschema | project ColumnName, ColumnType",
      rows: [
        { ColumnName: "odd", ColumnType: "bool" },
        { ColumnName: "avg_x", ColumnType: "real" },
      ],
    },
  ],
  render: [
    { query: "range x from 1 to 2 step 1 | render timechart", rows: [{ x: 1 }, { x: 2 }], types: { x: "long" } },
    { query: "print x = 1 | render columnchart with (title='Numbers', kind=stacked)", rows: [{ x: 1 }] },
    { query: "print x = 1 | render nonsense", refused: { code: "invalid_query", message: "timechart" } },
  ],
  "evaluate bag_unpack": [
    {
      query:
        'datatable(d: dynamic)[dynamic({"Name": "John", "Age": 20}), dynamic({"Name": "Dave", "Age": 40}), dynamic({"Name": "Jasmine", "Age": 30})] | evaluate bag_unpack(d)',
      rows: [
        { Age: 20, Name: "John" },
        { Age: 40, Name: "Dave" },
        { Age: 30, Name: "Jasmine" },
      ],
      unordered: true,
    },
    {
      query:
        'datatable(d: dynamic)[dynamic({"Name": "John", "Age": 20})] | evaluate bag_unpack(d) | getschema | project ColumnName, ColumnType | sort by ColumnName asc',
      rows: [
        { ColumnName: "Age", ColumnType: "long" },
        { ColumnName: "Name", ColumnType: "string" },
      ],
    },
    {
      query:
        'datatable(d: dynamic)[dynamic({"Name": "John", "Age": 20}), dynamic({"Name": "Dave", "Age": 40})] | evaluate bag_unpack(d, "Property_")',
      rows: [
        { Property_Age: 20, Property_Name: "John" },
        { Property_Age: 40, Property_Name: "Dave" },
      ],
      unordered: true,
    },
    {
      query:
        'datatable(Name: string, d: dynamic)["James", dynamic({"Name": "John", "Age": 20}), "David", dynamic({"Age": 40})] | evaluate bag_unpack(d, columnsConflict="replace_source")',
      rows: [
        { Name: "John", Age: 20 },
        { Name: "", Age: 40 },
      ],
      unordered: true,
    },
    {
      query:
        'datatable(Name: string, d: dynamic)["James", dynamic({"Name": "John", "Age": 20}), "David", dynamic({"Name": "Dave", "Age": 40})] | evaluate bag_unpack(d, columnsConflict="keep_source")',
      rows: [
        { Name: "James", Age: 20 },
        { Name: "David", Age: 40 },
      ],
      unordered: true,
    },
    {
      query: 'datatable(Name: string, d: dynamic)["James", dynamic({"Name": "John"})] | evaluate bag_unpack(d)',
      refused: { code: "invalid_query", message: "Name" },
    },
    {
      query:
        'datatable(d: dynamic)[dynamic({"Name": "John", "Age": 20, "Address": "A-1"}), dynamic({"Name": "Dave", "Age": 40, "Address": "A-2"})] | evaluate bag_unpack(d, ignoredProperties=dynamic(["Address", "Age"]))',
      rows: [{ Name: "John" }, { Name: "Dave" }],
      unordered: true,
    },
    {
      query:
        'datatable(d: dynamic)[dynamic({"Name": "John", "Age": 20}), dynamic({"Name": "Dave", "Height": 170, "Age": 40})] | evaluate bag_unpack(d)',
      rows: [
        { Age: 20, Height: null, Name: "John" },
        { Age: 40, Height: 170, Name: "Dave" },
      ],
      unordered: true,
    },
    {
      query:
        'datatable(d: dynamic, Description: string)[dynamic({"Name": "John", "Age": 20, "height": 180}), "Student", dynamic({"Name": "Dave", "Age": 40, "height": 160}), "Teacher"] | evaluate bag_unpack(d) : (*, Name: string, Age: long)',
      rows: [
        { Description: "Student", Name: "John", Age: 20 },
        { Description: "Teacher", Name: "Dave", Age: 40 },
      ],
      types: { Description: "string", Name: "string", Age: "long" },
      unordered: true,
    },
    {
      query:
        'datatable(d: dynamic, x: long)[dynamic({"a": 1, "b": "z"}), 5] | evaluate bag_unpack(d) : (b: string, a: long)',
      rows: [{ b: "z", a: 1 }],
      types: { b: "string", a: "long" },
    },
    {
      query: 'datatable(d: dynamic)[dynamic({"a": 1}), dynamic({"a": "x"})] | evaluate bag_unpack(d)',
      rows: [{ a: 1 }, { a: "x" }],
      unordered: true,
    },
    {
      query: 'datatable(n: long, d: dynamic)[1, dynamic({"a": 1}), 2, dynamic(null)] | evaluate bag_unpack(d)',
      rows: [
        { n: 1, a: 1 },
        { n: 2, a: null },
      ],
      unordered: true,
    },
  ],
  "evaluate pivot": [
    {
      query:
        "datatable(State: string, EventType: string)['AL', 'Wind', 'AL', 'Wind', 'AK', 'Wind', 'AK', 'Cold'] | evaluate pivot(State)",
      rows: [
        { EventType: "Wind", AK: 1, AL: 2 },
        { EventType: "Cold", AK: 1, AL: 0 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(State: string, EventType: string, Deaths: long)['AR', 'Rain', 1, 'AR', 'Rain', 2, 'AZ', 'Flood', 6] | evaluate pivot(State, sum(Deaths))",
      rows: [
        { EventType: "Rain", AR: 3, AZ: 0 },
        { EventType: "Flood", AR: 0, AZ: 6 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(State: string, EventType: string, Source: string, Deaths: long)['AR', 'Rain', 'a', 1, 'AR', 'Rain', 'b', 2, 'AZ', 'Flood', 'a', 6] | evaluate pivot(State, sum(Deaths), EventType)",
      rows: [
        { EventType: "Rain", AR: 3, AZ: 0 },
        { EventType: "Flood", AR: 0, AZ: 6 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(State: string, EventType: string, Source: string, Deaths: long)['AR', 'Rain', 'a', 1, 'AR', 'Rain', 'b', 2, 'AZ', 'Flood', 'a', 6] | evaluate pivot(State, sum(Deaths), EventType, Source)",
      rows: [
        { EventType: "Rain", Source: "a", AR: 1, AZ: 0 },
        { EventType: "Rain", Source: "b", AR: 2, AZ: 0 },
        { EventType: "Flood", Source: "a", AR: 0, AZ: 6 },
      ],
      unordered: true,
    },
    {
      query:
        "datatable(State: string, EventType: string)['ALABAMA', 'Wind', 'ALABAMA', 'Wind', 'ALASKA', 'Wind'] | evaluate pivot(State): (EventType: string, ALABAMA: long, ALASKA: long)",
      rows: [{ EventType: "Wind", ALABAMA: 2, ALASKA: 1 }],
      types: { EventType: "string", ALABAMA: "long", ALASKA: "long" },
    },
  ],
  "evaluate narrow": [
    {
      query: "datatable(a: long, b: string)[1, 'x', 2, 'y'] | evaluate narrow()",
      rows: [
        { Row: 0, Column: "a", Value: "1" },
        { Row: 0, Column: "b", Value: "x" },
        { Row: 1, Column: "a", Value: "2" },
        { Row: 1, Column: "b", Value: "y" },
      ],
      types: { Row: "long", Column: "string", Value: "string" },
    },
  ],
};
