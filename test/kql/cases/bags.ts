import type { KqlCases } from "../cases.test-kit.ts";

export const bags: KqlCases = {
  "bag_pack()": [
    {
      query: 'print x = bag_pack("Level", "Information", "ProcessID", 1234, "Data", bag_pack("url", "www.bing.com"))',
      rows: [{ x: { Level: "Information", ProcessID: 1234, Data: { url: "www.bing.com" } } }],
    },
    {
      query:
        'datatable (Source: int, Destination: int, Message: string)[1234, 100, "Hi", 4567, 200, "Hello", 1212, 300, "Hey"] | extend MyBag=bag_pack("Dest", Destination, "Text", Message) | project-away Source, Destination, Message | extend MyBag_Dest=MyBag.Dest, MyBag_Text=MyBag.Text',
      rows: [
        { MyBag: { Dest: 100, Text: "Hi" }, MyBag_Dest: 100, MyBag_Text: "Hi" },
        { MyBag: { Dest: 200, Text: "Hello" }, MyBag_Dest: 200, MyBag_Text: "Hello" },
        { MyBag: { Dest: 300, Text: "Hey" }, MyBag_Dest: 300, MyBag_Text: "Hey" },
      ],
    },
    {
      query:
        "print a = pack('a', 1), b = pack_dictionary('a', 1.5), c = bag_pack('t', 2s, 'd', datetime(2020-01-01), 'n', long(null), 'b', true)",
      rows: [{ a: { a: 1 }, b: { a: 1.5 }, c: { t: "00:00:02", d: "2020-01-01T00:00:00.0000000Z", n: null, b: true } }],
    },
  ],
  "pack_all()": [
    {
      query:
        "datatable(Source:string,Target:string,CharsCount:long)['555-1234','555-1212',46, '555-1313','',42, '','555-3456',74] | project Packed=pack_all(), PackedIgnoreNullEmpty=pack_all(true)",
      rows: [
        {
          Packed: { Source: "555-1234", Target: "555-1212", CharsCount: 46 },
          PackedIgnoreNullEmpty: { Source: "555-1234", Target: "555-1212", CharsCount: 46 },
        },
        {
          Packed: { Source: "555-1313", Target: "", CharsCount: 42 },
          PackedIgnoreNullEmpty: { Source: "555-1313", CharsCount: 42 },
        },
        {
          Packed: { Source: "", Target: "555-3456", CharsCount: 74 },
          PackedIgnoreNullEmpty: { Target: "555-3456", CharsCount: 74 },
        },
      ],
    },
  ],
  "bag_pack_columns()": [
    {
      query:
        'datatable(Id: string, Value: string, Other: long)["A", "val_a", 1, "B", "val_b", 2] | project Packed = bag_pack_columns(Id, Value)',
      rows: [{ Packed: { Id: "A", Value: "val_a" } }, { Packed: { Id: "B", Value: "val_b" } }],
    },
  ],
  "bag_has_key()": [
    {
      query:
        "datatable(input: dynamic)[dynamic({'key1' : 123, 'key2': 'abc'}), dynamic({'key1' : 123, 'key3': 'abc'})] | project result = bag_has_key(input, 'key2')",
      rows: [{ result: true }, { result: false }],
      types: { result: "bool" },
    },
    {
      query:
        "print input = dynamic({'key1': 123, 'key2': {'prop1' : 'abc', 'prop2': 'xyz'}, 'key3': [100, 200]}) | project a = bag_has_key(input, '$.key2.prop1'), b = bag_has_key(input, '$.key2.prop9'), c = bag_has_key(input, 'prop1')",
      rows: [{ a: true, b: false, c: false }],
    },
    {
      query: "print a = bag_has_key(dynamic({'a': null}), 'a'), b = bag_has_key(dynamic({}), 'a')",
      rows: [{ a: true, b: false }],
    },
  ],
  "bag_keys()": [
    {
      query:
        "datatable(index:long, d:dynamic) [1, dynamic({'a':'b', 'c':123}), 2, dynamic({'a':'b', 'c':{'d':123}}), 3, dynamic({'a':'b', 'c':[{'d':123}]}), 4, dynamic(null), 5, dynamic({}), 6, dynamic('a'), 7, dynamic([])] | project index, keys = bag_keys(d)",
      rows: [
        { index: 1, keys: ["a", "c"] },
        { index: 2, keys: ["a", "c"] },
        { index: 3, keys: ["a", "c"] },
        { index: 4, keys: null },
        { index: 5, keys: [] },
        { index: 6, keys: null },
        { index: 7, keys: null },
      ],
    },
  ],
  "bag_merge()": [
    {
      query: "print result = bag_merge(dynamic({'A1':12, 'B1':2, 'C1':3}), dynamic({'A2':81, 'B2':82, 'A1':1}))",
      rows: [{ result: { A1: 12, B1: 2, C1: 3, A2: 81, B2: 82 } }],
    },
    {
      query:
        "print a = bag_merge(dynamic({'a': 1}), dynamic({'a': 2}), dynamic({'a': 3, 'b': 4})), b = bag_merge(dynamic({}), dynamic({})), c = bag_merge(dynamic({'x': {'y': 1}}), dynamic({'x': {'z': 2}}))",
      rows: [{ a: { a: 1, b: 4 }, b: {}, c: { x: { y: 1 } } }],
    },
  ],
  "bag_remove_keys()": [
    {
      query:
        "datatable(input:dynamic)[dynamic({'key1' : 123, 'key2': 'abc'}), dynamic({'key1' : 'value', 'key3': 42.0})] | project result=bag_remove_keys(input, dynamic(['key2', 'key4']))",
      rows: [{ result: { key1: 123 } }, { result: { key1: "value", key3: 42 } }],
    },
    {
      query:
        "print input = dynamic({'key1': 123, 'key2': {'prop1' : 'abc', 'prop2': 'xyz'}, 'key3': [100, 200]}) | project result=bag_remove_keys(input, dynamic(['$.key2.prop1', 'key3']))",
      rows: [{ result: { key1: 123, key2: { prop2: "xyz" } } }],
    },
    {
      query:
        "print a = bag_remove_keys(dynamic({'a': 1}), dynamic(['a'])), b = bag_remove_keys(dynamic({'a': 1}), dynamic([]))",
      rows: [{ a: {}, b: { a: 1 } }],
    },
  ],
  "bag_set_key()": [
    {
      query:
        "datatable(input: dynamic) [dynamic({'key1': 1, 'key2': 2}), dynamic({'key1': 1, 'key3': 'abc'})] | project result = bag_set_key(input, 'key3', 3)",
      rows: [{ result: { key1: 1, key2: 2, key3: 3 } }, { result: { key1: 1, key3: 3 } }],
    },
    {
      query:
        "datatable(input: dynamic)[dynamic({'key1': 123, 'key2': {'prop1': 123, 'prop2': 'xyz'}}), dynamic({'key1': 123})] | project result = bag_set_key(input, '$.key2.prop1', 'abc')",
      rows: [
        { result: { key1: 123, key2: { prop1: "abc", prop2: "xyz" } } },
        { result: { key1: 123, key2: { prop1: "abc" } } },
      ],
    },
    {
      query:
        "datatable(d: dynamic)[dynamic([1]), dynamic(null), dynamic('x')] | project a = bag_set_key(d, 'a', 1), b = bag_set_key(coalesce(d, dynamic({})), 'a', 1)",
      rows: [
        { a: null, b: null },
        { a: null, b: { a: 1 } },
        { a: null, b: null },
      ],
    },
  ],
  "bag_zip()": [
    {
      query:
        "print a = bag_zip(dynamic(['a', 'b', 'c']), dynamic([1, '2', 3.4])), b = bag_zip(dynamic(['a', 'b', 'c']), dynamic([1, '2'])), c = bag_zip(dynamic(['a', 'b']), dynamic([1, '2', 2.5]))",
      rows: [{ a: { a: 1, b: "2", c: 3.4 }, b: { a: 1, b: "2", c: null }, c: { a: 1, b: "2" } }],
    },
    {
      query:
        "datatable(k: dynamic, v: dynamic)[dynamic(['a', 8, 'b']), dynamic([1, '2', 2.5]), dynamic(['a', 8, 'b']), dynamic(1), dynamic('a'), dynamic([1, '2', 2.5])] | project z = bag_zip(k, v) | extend n = isnull(z)",
      rows: [
        { z: { a: 1, b: 2.5 }, n: false },
        { z: { a: null, b: null }, n: false },
        { z: null, n: true },
      ],
    },
  ],
  "treepath() and dynamic_to_json()": [
    { query: "print x = treepath(dynamic({'a': 1}))", refused: { code: "invalid_query", message: "treepath" } },
    {
      query: "print x = dynamic_to_json(dynamic({'b': 1, 'a': [{'d': 1, 'c': 2}]}))",
      rows: [{ x: '{"a":[{"c":2,"d":1}],"b":1}' }],
    },
    {
      query:
        "let bag1 = dynamic_to_json(dynamic({'Y10':dynamic({}), 'X8': dynamic({'c3':1, 'd8':5, 'a4':6}), 'D1':114, 'A1':12, 'B1':2, 'C1':3, 'A14':[15, 13, 18]})); print Result=bag1",
      rows: [{ Result: '{"A1":12,"A14":[15,13,18],"B1":2,"C1":3,"D1":114,"X8":{"a4":6,"c3":1,"d8":5},"Y10":{}}' }],
      types: { Result: "string" },
    },
  ],
};
