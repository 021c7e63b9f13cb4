import type { KqlCases } from "../cases.test-kit.ts";

const FLAGS = "datatable(x: long, b: bool)[1, true, 2, false, 3, true, 4, bool(null), long(null), true]";
const NO_ROWS = "datatable(x: long, r: real, s: string, b: bool, t: datetime, p: timespan, j: dynamic)[]";
const TEN = "range x from 1 to 10 step 1";
const MANY_NULLS = "datatable(x: long)[long(null), long(null)]";

const rowPicks: KqlCases = {
  "arg_max(), arg_min()": [
    {
      query:
        "datatable(k: string, v: long, w: string)['a', 1, 'p', 'a', 3, 'q', 'b', 2, 'r'] | summarize arg_max(v, w), arg_min(v, w) by k | order by k asc",
      rows: [
        { k: "a", v: 3, w: "q", v1: 1, w1: "p" },
        { k: "b", v: 2, w: "r", v1: 2, w1: "r" },
      ],
    },
    {
      query:
        "datatable(k: string, v: long, w: string, z: bool)['a', 1, 'p', true, 'a', 3, 'q', false] | summarize arg_max(v, *) by k",
      rows: [{ k: "a", v: 3, w: "q", z: false }],
      types: { k: "string", v: "long", w: "string", z: "bool" },
    },
    {
      query: "datatable(w: string, v: long, z: long)['p', 1, 10, 'q', 3, 30] | summarize arg_max(v, *)",
      rows: [{ v: 3, w: "q", z: 30 }],
      types: { v: "long", w: "string", z: "long" },
    },
    {
      query: `datatable(Fruit: string, Color: string, Version: int)[
        'Apple', 'Red', 1, 'Apple', 'Green', int(null), 'Pear', 'Brown', 1, 'Pear', 'Green', 2]
        | summarize arg_max(Version, *) by Fruit | order by Fruit asc`,
      rows: [
        { Fruit: "Apple", Version: 1, Color: "Red" },
        { Fruit: "Pear", Version: 2, Color: "Green" },
      ],
      types: { Fruit: "string", Version: "int", Color: "string" },
    },
    {
      query: `datatable(Fruit: string, Color: string, Version: int)[
        'Apple', 'Red', 1, 'Apple', 'Green', int(null), 'Pear', 'Brown', 1, 'Pear', 'Green', 2]
        | summarize arg_min(Version, *) by Fruit | order by Fruit asc`,
      rows: [
        { Fruit: "Apple", Version: 1, Color: "Red" },
        { Fruit: "Pear", Version: 1, Color: "Brown" },
      ],
    },
    {
      query:
        "datatable(f: string, c: string, v: int)['Banana', 'Yellow', int(null)] | summarize arg_max(v, *), n = count() by f",
      rows: [{ f: "Banana", v: null, c: "Yellow", n: 1 }],
    },
    {
      query: "datatable(f: string, c: string, v: int)['b', 'Yellow', int(null)] | summarize arg_min(v, c) by f",
      rows: [{ f: "b", v: null, c: "Yellow" }],
    },
    {
      query: "datatable(v: long, w: long)[1, 10, 2, long(null)] | summarize arg_max(v, w)",
      rows: [{ v: 2, w: null }],
    },
    {
      query: "datatable(v: long, w: long, z: string)[1, 10, 'a', 2, long(null), ''] | summarize arg_max(v, z, w)",
      rows: [{ v: 2, z: "", w: null }],
      types: { v: "long", z: "string", w: "long" },
    },
    {
      query: "datatable(v: long, w: string)[1, 'a', 2, 'b'] | summarize m = arg_max(v, w), (n, o) = arg_min(v, w)",
      rows: [{ m: 2, w: "b", n: 1, o: "a" }],
      types: { m: "long", w: "string", n: "long", o: "string" },
    },
    {
      query: "datatable(v: long, w: string)[1, 'a', 2, 'b'] | summarize arg_max(v, u = toupper(w), w)",
      rows: [{ v: 2, u: "B", w: "b" }],
      types: { v: "long", u: "string", w: "string" },
    },
    {
      query: "datatable(v: long, w: string)[1, 'a', 2, 'b'] | summarize arg_min(-v, w)",
      rows: [{ min_: -2, w: "b" }],
      types: { min_: "long", w: "string" },
    },
    { query: "datatable(v: long)[1, 2] | summarize arg_max(v)", rows: [{ v: 2 }], types: { v: "long" } },
    {
      query:
        "datatable(t: datetime, s: string)[datetime(1960-01-01), 'old', datetime(2024-01-01), 'new'] | summarize arg_max(t, s), arg_min(t, s)",
      rows: [{ t: "2024-01-01T00:00:00Z", s: "new", t1: "1960-01-01T00:00:00Z", s1: "old" }],
    },
    {
      query: "datatable(s: string, x: long)['b', 1, 'a', 2] | summarize arg_min(s, x)",
      rows: [{ s: "a", x: 2 }],
      types: { s: "string", x: "long" },
    },
    {
      query: "datatable(p: timespan, x: long)[1h, 1, 2h, 2] | summarize arg_max(p, x)",
      rows: [{ p: "02:00:00", x: 2 }],
      types: { p: "timespan", x: "long" },
    },
    {
      query: "datatable(v: long, j: dynamic)[1, dynamic([1]), 2, dynamic({'a': [2]})] | summarize arg_max(v, j)",
      rows: [{ v: 2, j: { a: [2] } }],
      types: { v: "long", j: "dynamic" },
    },
    { query: "datatable(v: long, s: string)[] | summarize arg_max(v, s)", rows: [{ v: null, s: "" }] },
    { query: "datatable(v: long, s: string)[] | summarize arg_max(v, *) by s", rows: [] },
    {
      query: "datatable(j: dynamic, x: long)[] | summarize arg_min(j, x)",
      refused: { code: "invalid_query", message: "orderable" },
    },
  ],
  "argmax(), argmin(): deprecated names": [
    {
      query: "datatable(v: long, w: string)[1, 'a', 2, 'b'] | summarize argmax(v, w), argmin(v, w)",
      rows: [{ max_v: 2, max_v_w: "b", min_v: 1, min_v_w: "a" }],
      types: { max_v: "long", max_v_w: "string", min_v: "long", min_v_w: "string" },
    },
  ],
  "take_any()": [
    { query: "datatable(x: long)[long(null), 7] | summarize take_any(x)", rows: [{ x: 7 }], types: { x: "long" } },
    { query: "datatable(s: string)['', 'a', ''] | summarize take_any(s)", rows: [{ s: "a" }], types: { s: "string" } },
    { query: "datatable(s: string)['', ''] | summarize take_any(s)", rows: [{ s: "" }] },
    {
      query: "datatable(k: long, s: string)[1, 'a', 2, 'b'] | summarize take_any(*) by k | order by k asc",
      rows: [
        { k: 1, s: "a" },
        { k: 2, s: "b" },
      ],
      types: { k: "long", s: "string" },
    },
    {
      query:
        "datatable(k: long, s: string, x: long)[1, 'a', 10, 1, 'b', 20] | summarize take_any(s, x) by k | project same = (s == 'a' and x == 10) or (s == 'b' and x == 20)",
      rows: [{ same: true }],
    },
    { query: "datatable(s: string)['abc'] | summarize strlen(take_any(s))", rows: [{ strlen_: 3 }] },
    { query: "datatable(x: long, s: string)[] | summarize take_any(x, s)", rows: [{ x: null, s: "" }] },
    { query: "datatable(x: long)[1] | summarize any(x)", rows: [{ any_x: 1 }], types: { any_x: "long" } },
    {
      query: "datatable(k: long, x: long, s: string)[1, 5, 'a'] | summarize any(x, s) by k",
      rows: [{ k: 1, any_x: 5, any_s: "a" }],
      types: { k: "long", any_x: "long", any_s: "string" },
    },
  ],
  "take_anyif()": [
    { query: `${FLAGS} | summarize take_anyif(x, x == 2)`, rows: [{ x: 2 }], types: { x: "long" } },
    { query: `${FLAGS} | summarize take_anyif(x, x > 100)`, rows: [{ x: null }] },
    {
      query: "datatable(s: string, b: bool)['a', false, 'b', true, '', true] | summarize take_anyif(s, b)",
      rows: [{ s: "b" }],
    },
    { query: "datatable(s: string, b: bool)['a', false] | summarize take_anyif(s, b)", rows: [{ s: "" }] },
    { query: `${FLAGS} | summarize anyif(x, x == 3)`, rows: [{ anyif_x: 3 }], types: { anyif_x: "long" } },
  ],
};

const dynamics: KqlCases = {
  "make_list()": [
    {
      query: "datatable(x: long)[3, 1, 2, 1] | sort by x asc | summarize make_list(x)",
      rows: [{ list_x: [1, 1, 2, 3] }],
      types: { list_x: "dynamic" },
    },
    { query: "datatable(x: long)[3, 1, 2] | sort by x desc | summarize make_list(x)", rows: [{ list_x: [3, 2, 1] }] },
    { query: "datatable(x: long)[3, 1, 2] | sort by x asc | summarize make_list(x, 2)", rows: [{ list_x: [1, 2] }] },
    { query: "datatable(x: long)[1, 2] | summarize n = array_length(make_list(x, 100))", rows: [{ n: 2 }] },
    { query: `${TEN} | summarize n = array_length(make_list(x, 4))`, rows: [{ n: 4 }] },
    { query: "datatable(x: long)[long(null), 5, long(null)] | summarize make_list(x)", rows: [{ list_x: [5] }] },
    { query: `${MANY_NULLS} | summarize make_list(x)`, rows: [{ list_x: [] }] },
    { query: "datatable(s: string)['', 'a'] | sort by s asc | summarize make_list(s)", rows: [{ list_s: ["", "a"] }] },
    {
      query:
        "datatable(k: string, x: long)['a', 2, 'b', 3, 'a', 1] | sort by x asc | summarize make_list(x) by k | order by k asc",
      rows: [
        { k: "a", list_x: [1, 2] },
        { k: "b", list_x: [3] },
      ],
    },
    {
      query:
        "datatable(a: long, b: long)[1, 1, 1, 2, 2, 1] | sort by a desc, b asc | summarize l = make_list(bag_pack('a', a, 'b', b))",
      rows: [
        {
          l: [
            { a: 2, b: 1 },
            { a: 1, b: 1 },
            { a: 1, b: 2 },
          ],
        },
      ],
    },
    { query: "datatable(j: dynamic)[dynamic([1, 2])] | summarize make_list(j)", rows: [{ list_j: [[1, 2]] }] },
    {
      query: "datatable(r: real, b: bool)[1.5, true] | summarize make_list(r), make_list(b)",
      rows: [{ list_r: [1.5], list_b: [true] }],
    },
    {
      query: "datatable(t: datetime, p: timespan)[datetime(2024-01-01), 90m] | summarize make_list(t), make_list(p)",
      rows: [{ list_t: ["2024-01-01T00:00:00.0000000Z"], list_p: ["01:30:00"] }],
    },
    {
      query: "range x from 1 to 5 step 1 | sort by x asc | summarize l = make_list(x), stdevp(x)",
      rows: [{ l: [1, 2, 3, 4, 5], stdevp_x: Math.SQRT2 }],
    },
    { query: "datatable(x: long)[1] | summarize makelist(x)", rows: [{ list_x: [1] }] },
    {
      query: "range x from 1 to 200 step 1 | summarize a = array_length(makelist(x)), b = array_length(make_list(x))",
      rows: [{ a: 128, b: 200 }],
    },
  ],
  "make_list_if(), make_list_with_nulls()": [
    {
      query:
        "datatable(name: string, day: long)['John', 9, 'Paul', 18, 'George', 25, 'Ringo', 7] | sort by name asc | summarize make_list_if(name, strlen(name) > 4)",
      rows: [{ list_name: ["George", "Ringo"] }],
      types: { list_name: "dynamic" },
    },
    { query: `${FLAGS} | sort by x asc | summarize make_list_if(x, b)`, rows: [{ list_x: [1, 3] }] },
    { query: `${FLAGS} | sort by x asc | summarize make_list_if(x, b, 1)`, rows: [{ list_x: [1] }] },
    { query: `${FLAGS} | summarize make_list_if(x, false)`, rows: [{ list_x: [] }] },
    {
      query: "datatable(x: long)[4, long(null), 5] | sort by x asc | summarize make_list_with_nulls(x)",
      rows: [{ list_x: [null, 4, 5] }],
      types: { list_x: "dynamic" },
    },
    { query: `${NO_ROWS} | summarize make_list_with_nulls(x)`, rows: [{ list_x: [] }] },
  ],
  "make_set()": [
    { query: "datatable(x: long)[3, 1, 3, 1] | summarize s = array_sort_asc(make_set(x))", rows: [{ s: [1, 3] }] },
    {
      query: "datatable(x: long)[3, long(null), 3] | summarize make_set(x)",
      rows: [{ set_x: [3] }],
      types: { set_x: "dynamic" },
    },
    { query: "datatable(s: string)['a', 'a'] | summarize make_set(s)", rows: [{ set_s: ["a"] }] },
    { query: "datatable(s: string)['a', 'A', 'a'] | summarize n = array_length(make_set(s))", rows: [{ n: 2 }] },
    {
      query: `${TEN} | summarize n = array_length(make_set(x % 5, 3)), m = array_length(make_set(x % 5))`,
      rows: [{ n: 3, m: 5 }],
    },
    {
      query:
        "datatable(v: int, a: dynamic)[1, dynamic(['A1', 'A2', 'A3']), 5, dynamic(['A2', 'C1']), 7, dynamic(['C2', 'A3']), 5, dynamic(['C2', 'A1'])] | summarize v = array_sort_asc(make_set(v)), a = array_sort_asc(make_set(a))",
      rows: [{ v: [1, 5, 7], a: ["A1", "A2", "A3", "C1", "C2"] }],
    },
    { query: "datatable(x: long)[1] | summarize makeset(x)", rows: [{ set_x: [1] }] },
    {
      query: "range x from 1 to 200 step 1 | summarize a = array_length(makeset(x)), b = array_length(make_set(x))",
      rows: [{ a: 128, b: 200 }],
    },
    {
      query: "datatable(k: string, x: long)['a', 1, 'a', 1, 'b', 2] | summarize make_set(x) by k | order by k asc",
      rows: [
        { k: "a", set_x: [1] },
        { k: "b", set_x: [2] },
      ],
    },
  ],
  "make_set_if()": [
    { query: `${FLAGS} | summarize s = array_sort_asc(make_set_if(x, b))`, rows: [{ s: [1, 3] }] },
    { query: `${FLAGS} | summarize make_set_if(x, x > 100)`, rows: [{ set_x: [] }], types: { set_x: "dynamic" } },
    { query: `${FLAGS} | summarize n = array_length(make_set_if(x, true, 2))`, rows: [{ n: 2 }] },
  ],
  "make_bag(), make_bag_if()": [
    {
      query:
        "datatable(k: string, v: string)['p1', 'a', 'p2', 'b', 'p3', 'c'] | extend p = bag_pack(k, v) | summarize dict = make_bag(p)",
      rows: [{ dict: { p1: "a", p2: "b", p3: "c" } }],
      types: { dict: "dynamic" },
    },
    {
      query:
        "datatable(k: string, v: string, b: bool)['p1', 'a', true, 'p2', 'b', false, 'p3', 'c', true] | extend p = bag_pack(k, v) | summarize dict = make_bag_if(p, b)",
      rows: [{ dict: { p1: "a", p3: "c" } }],
    },
    {
      query: "datatable(j: dynamic)[dynamic([1]), dynamic(5), dynamic({'a': 1}), dynamic('x')] | summarize make_bag(j)",
      rows: [{ bag_j: { a: 1 } }],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': {'b': [1, 2]}}), dynamic({'c': null})] | summarize make_bag(j)",
      rows: [{ bag_j: { a: { b: [1, 2] }, c: null } }],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': 1}), dynamic({'a': 1})] | summarize make_bag(j)",
      rows: [{ bag_j: { a: 1 } }],
    },
    {
      query:
        "datatable(j: dynamic)[dynamic({'a': 1, 'b': 2, 'c': 3})] | summarize n = array_length(bag_keys(make_bag(j, 2)))",
      rows: [{ n: 2 }],
    },
    {
      query: "datatable(j: dynamic)[dynamic(null), dynamic({'a': 1})] | summarize make_bag(j)",
      rows: [{ bag_j: { a: 1 } }],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': 1})] | summarize make_dictionary(j)",
      rows: [{ dictionary_j: { a: 1 } }],
      types: { dictionary_j: "dynamic" },
    },
    { query: "datatable(s: string)[] | summarize make_bag(s)", refused: { code: "invalid_query", message: "bag" } },
  ],
  "buildschema()": [
    {
      query: `datatable(value: dynamic)[
        dynamic({'x': 1, 'y': 3.5}), dynamic({'x': 'somevalue', 'z': [1, 2, 3]}), dynamic({'y': {'w': 'zzz'}, 't': ['aa', 'bb'], 'z': ['foo']})]
        | summarize s = buildschema(value) | project x = array_sort_asc(s.x), y0 = s.y[0], y1 = s.y[1], z = array_sort_asc(s.z['\`indexer\`']), t = s.t`,
      rows: [
        {
          x: ["long", "string"],
          y0: "double",
          y1: { w: "string" },
          z: ["long", "string"],
          t: { "`indexer`": "string" },
        },
      ],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': 1}), dynamic({'a': 2})] | summarize buildschema(j)",
      rows: [{ schema_j: { a: "long" } }],
      types: { schema_j: "dynamic" },
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': {'b': {'c': 'x'}}})] | summarize buildschema(j)",
      rows: [{ schema_j: { a: { b: { c: "string" } } } }],
    },
    {
      query: "datatable(j: dynamic)[dynamic({'a': [{'b': 1}, {'c': 'x'}]})] | summarize buildschema(j)",
      rows: [{ schema_j: { a: { "`indexer`": { b: "long", c: "string" } } } }],
    },
    {
      query:
        "datatable(k: long, j: dynamic)[1, dynamic({'a': 1}), 2, dynamic({'b': 'x'})] | summarize s = buildschema(j) by k | order by k asc",
      rows: [
        { k: 1, s: { a: "long" } },
        { k: 2, s: { b: "string" } },
      ],
    },
  ],
};

/** Aggregates that choose a row or gather values into lists, sets, bags and schemas. */
export const gatheringAggregates: KqlCases = { ...rowPicks, ...dynamics };
