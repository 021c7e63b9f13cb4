import type { KqlCases } from "../cases.test-kit.ts";

export const arrays: KqlCases = {
  "array_length()": [
    {
      query:
        'datatable(d: dynamic)[dynamic([1, 2, 3, "four"]), dynamic([]), dynamic({}), dynamic("ab"), dynamic(null)] | project n = array_length(d)',
      rows: [{ n: 4 }, { n: 0 }, { n: null }, { n: null }, { n: null }],
      types: { n: "long" },
    },
  ],
  "array_concat()": [
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | extend a1 = pack_array(x,y,z), a2 = pack_array(x, y) | project array_concat(a1, a2)",
      rows: [{ Column1: [1, 2, 4, 1, 2] }, { Column1: [2, 4, 8, 2, 4] }, { Column1: [3, 6, 12, 3, 6] }],
    },
    {
      query:
        "print a = array_concat(dynamic([]), dynamic(['a', null]), dynamic([[1]])), b = array_concat(dynamic([1]))",
      rows: [{ a: ["a", null, [1]], b: [1] }],
    },
  ],
  "array_iff()": [
    {
      query:
        "print condition=dynamic([true,false,true]), if_true=dynamic([1,2,3]), if_false=dynamic([4,5,6]) | project res= array_iff(condition, if_true, if_false)",
      rows: [{ res: [1, 5, 3] }],
    },
    {
      query:
        'print condition=dynamic([1,0,50]), if_true="yes", if_false="no" | project res= array_iff(condition, if_true, if_false)',
      rows: [{ res: ["yes", "no", "yes"] }],
    },
    {
      query:
        'print condition=dynamic(["some string value", datetime("01-01-2022"), null]), if_true=1, if_false=0 | project res= array_iff(condition, if_true, if_false)',
      rows: [{ res: [null, null, null] }],
    },
    {
      query:
        "print condition=dynamic([true,true,true]), if_true=dynamic([1,2]), if_false=dynamic([3,4]) | project res= array_iif(condition, if_true, if_false)",
      rows: [{ res: [1, 2, null] }],
    },
  ],
  "array_index_of()": [
    {
      query:
        'let arr=dynamic(["this", "is", "an", "example", "an", "example"]); print idx1 = array_index_of(arr,"an"), idx2 = array_index_of(arr,"example",1,3), idx3 = array_index_of(arr,"example",1,2), idx4 = array_index_of(arr,"is",2,4), idx5 = array_index_of(arr,"example",2,-1), idx6 = array_index_of(arr, "an", 1, -1, 2), idx7 = array_index_of(arr, "an", 1, -1, 3), idx8 = array_index_of(arr, "an", -3), idx9 = array_index_of(arr, "is", -4)',
      rows: [{ idx1: 2, idx2: 3, idx3: -1, idx4: -1, idx5: 3, idx6: 4, idx7: -1, idx8: 4, idx9: -1 }],
    },
    {
      query:
        "print a = array_index_of(dynamic([1, 2, 3]), 3), b = array_index_of(dynamic([]), 1), c = array_index_of(dynamic([1]), 1, 0, -2), d = array_index_of(dynamic([1]), 1, 0, -1, -1), e = array_index_of(dynamic(['1']), 1)",
      rows: [{ a: 2, b: -1, c: null, d: null, e: -1 }],
    },
  ],
  "array_reverse()": [
    {
      query:
        'print a = array_reverse(dynamic(["this", "is", "an", "example"])), b = array_reverse(dynamic([])), c = array_reverse(dynamic([1, null]))',
      rows: [{ a: ["example", "an", "is", "this"], b: [], c: [null, 1] }],
    },
  ],
  "array_rotate_left() and array_rotate_right()": [
    {
      query:
        "print arr=dynamic([1,2,3,4,5]) | project a = array_rotate_left(arr, 2), b = array_rotate_left(arr, -2), c = array_rotate_right(arr, 2), d = array_rotate_right(arr, -2)",
      rows: [{ a: [3, 4, 5, 1, 2], b: [4, 5, 1, 2, 3], c: [4, 5, 1, 2, 3], d: [3, 4, 5, 1, 2] }],
    },
    {
      query:
        "print arr=dynamic([1,2,3]) | project a = array_rotate_left(arr, 0), b = array_rotate_left(arr, 4), c = array_rotate_right(arr, 4), d = array_rotate_left(dynamic([]), 1)",
      rows: [{ a: [1, 2, 3], b: [2, 3, 1], c: [3, 1, 2], d: [] }],
    },
  ],
  "array_shift_left() and array_shift_right()": [
    {
      query:
        "print arr=dynamic([1,2,3,4,5]) | project a = array_shift_left(arr, 2), b = array_shift_left(arr, 2, -1), c = array_shift_left(arr, -2, -1)",
      rows: [{ a: [3, 4, 5, null, null], b: [3, 4, 5, -1, -1], c: [-1, -1, 1, 2, 3] }],
    },
    {
      query:
        "print arr=dynamic([1,2,3,4,5]) | project a = array_shift_right(arr, 2), b = array_shift_right(arr, 2, -1), c = array_shift_right(arr, -2, -1)",
      rows: [{ a: [null, null, 1, 2, 3], b: [-1, -1, 1, 2, 3], c: [3, 4, 5, -1, -1] }],
    },
    {
      query:
        "print arr=dynamic([1,2]) | project a = array_shift_left(arr, 5, 0), b = array_shift_right(arr, 2, 9), c = array_shift_left(arr, 0)",
      rows: [{ a: [0, 0], b: [9, 9], c: [1, 2] }],
    },
  ],
  "array_slice()": [
    {
      query:
        "print a = array_slice(dynamic([1,2,3]), 1, 2), b = array_slice(dynamic([1,2,3,4,5]), 2, -1), c = array_slice(dynamic([1,2,3,4,5]), -3, -2)",
      rows: [{ a: [2, 3], b: [3, 4, 5], c: [3, 4] }],
    },
    {
      query:
        "print a = array_slice(dynamic([1,2,3]), 0, 99), b = array_slice(dynamic([1,2,3]), 2, 1), c = array_slice(dynamic([]), 0, 1), d = array_slice(dynamic([1,2,3]), 0, 0)",
      rows: [{ a: [1, 2, 3], b: [], c: [], d: [1] }],
    },
  ],
  "array_sort_asc() and array_sort_desc()": [
    {
      query:
        'let array1 = dynamic([1,3,4,5,2]); let array2 = dynamic(["a","b","c","d","e"]); print array_sort_asc(array1,array2)',
      rows: [{ array1_sorted: [1, 2, 3, 4, 5], array2_sorted: ["a", "e", "b", "c", "d"] }],
    },
    {
      query:
        'let array1 = dynamic([1,3,4,5,2]); let array2 = dynamic(["a","b","c","d","e"]); print array_sort_desc(array1,array2)',
      rows: [{ array1_sorted: [5, 4, 3, 2, 1], array2_sorted: ["d", "c", "b", "e", "a"] }],
    },
    {
      query:
        'let Names = "John,Paul,Jane,Kao"; let SortedNames = strcat_array(array_sort_asc(split(Names, ",")), ","); print result = SortedNames',
      rows: [{ result: "Jane,John,Kao,Paul" }],
    },
    {
      query:
        'let Names = "John,Paul,Jane,Kayo"; let SortedNames = strcat_array(array_sort_desc(split(Names, ",")), ","); print result = SortedNames',
      rows: [{ result: "Paul,Kayo,John,Jane" }],
    },
    {
      query:
        "datatable(command:string, command_time:datetime, user_id:string)['chmod', datetime(2019-07-15), 'user1', 'ls', datetime(2019-07-02), 'user1', 'dir', datetime(2019-07-22), 'user1', 'mkdir', datetime(2019-07-14), 'user1', 'rm', datetime(2019-07-27), 'user1', 'pwd', datetime(2019-07-25), 'user1', 'rm', datetime(2019-07-23), 'user2', 'pwd', datetime(2019-07-25), 'user2'] | summarize timestamps = make_list(command_time), commands = make_list(command) by user_id | project user_id, commands_in_chronological_order = array_sort_asc(timestamps, commands)[1]",
      rows: [
        { user_id: "user1", commands_in_chronological_order: ["ls", "mkdir", "chmod", "dir", "pwd", "rm"] },
        { user_id: "user2", commands_in_chronological_order: ["rm", "pwd"] },
      ],
      unordered: true,
    },
    {
      query: 'print result=array_sort_asc(dynamic([null,"blue","yellow","green",null]))',
      rows: [{ result: ["blue", "green", "yellow", null, null] }],
    },
    {
      query: 'print result=array_sort_asc(dynamic([null,"blue","yellow","green",null]), false)',
      rows: [{ result: [null, null, "blue", "green", "yellow"] }],
    },
    {
      query: 'print result=array_sort_desc(dynamic([null,"blue","yellow","green",null]))',
      rows: [{ result: ["yellow", "green", "blue", null, null] }],
    },
    {
      query: 'print result=array_sort_desc(dynamic([null,"blue","yellow","green",null]), false)',
      rows: [{ result: [null, null, "yellow", "green", "blue"] }],
    },
    { query: "print (a, b) = array_sort_asc(dynamic([2, 1]), dynamic(['x']))", rows: [{ a: [1, 2], b: null }] },
    { query: "print x = array_sort_asc(dynamic(['b', 2, 'a', 10, 1.5]))", rows: [{ x: [1.5, 2, 10, "a", "b"] }] },
    { query: "print x = array_sort_asc(dynamic([10, 9, -1, 100]))", rows: [{ x: [-1, 9, 10, 100] }] },
  ],
  "far places in arrays": [
    {
      query:
        "datatable(n: long)[9223372036854775807, long(-9223372036854775808)] | project a = array_slice(dynamic([1, 2]), 0, n), b = array_shift_left(dynamic([1, 2]), n), c = array_index_of(dynamic([1, 2]), 2, 0, 9223372036854775807), d = dynamic([1, 2])[n]",
      rows: [
        { a: [1, 2], b: [null, null], c: 1, d: null },
        { a: [], b: [null, null], c: 1, d: null },
      ],
    },
    {
      query:
        "datatable(d: dynamic)[dynamic(null), dynamic('x'), dynamic({'a': 1})] | project a = array_slice(d, 0, 1), b = array_reverse(d), c = array_concat(d, dynamic([1])), e = set_union(d, dynamic([1])), f = array_rotate_left(d, 1), g = array_index_of(d, 1)",
      rows: [
        { a: null, b: null, c: null, e: null, f: null, g: null },
        { a: null, b: null, c: null, e: null, f: null, g: null },
        { a: null, b: null, c: null, e: null, f: null, g: null },
      ],
    },
    { query: "print a = range(0.0, 1.0 / 0, 1.0), b = array_length(range(0, 10, 0))", rows: [{ a: null, b: 0 }] },
  ],
  "array_split()": [
    {
      query:
        "print arr=dynamic([1,2,3,4,5]) | project a = array_split(arr, 2), b = array_split(arr, dynamic([1,3])), c = array_split(arr, -1)",
      rows: [
        {
          a: [
            [1, 2],
            [3, 4, 5],
          ],
          b: [[1], [2, 3], [4, 5]],
          c: [[1, 2, 3, 4], [5]],
        },
      ],
    },
    {
      query: "print arr=dynamic([1,2]) | project a = array_split(arr, 0), b = array_split(arr, 2)",
      rows: [{ a: [[], [1, 2]], b: [[1, 2], []] }],
    },
  ],
  "array_sum()": [
    {
      query:
        "datatable(d: dynamic)[dynamic([1,2,3,4]), dynamic([1.5, 2]), dynamic([1, 'x']), dynamic('x'), dynamic(null)] | project n = array_sum(d)",
      rows: [{ n: 10 }, { n: 3.5 }, { n: null }, { n: null }, { n: null }],
      types: { n: "real" },
    },
  ],
  "pack_array()": [
    {
      query: "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | project pack_array(x, y, z)",
      rows: [{ Column1: [1, 2, 4] }, { Column1: [2, 4, 8] }, { Column1: [3, 6, 12] }],
    },
    {
      query:
        "range x from 1 to 3 step 1 | extend y = tostring(x * 2) | extend z = (x * 2) * 1s | project pack_array(x, y, z)",
      rows: [{ Column1: [1, "2", "00:00:02"] }, { Column1: [2, "4", "00:00:04"] }, { Column1: [3, "6", "00:00:06"] }],
    },
    { query: "datatable(a: long, b: string)[1, 'x'] | project p = pack_array(*)", rows: [{ p: [1, "x"] }] },
    {
      query: "print a = pack_array(dynamic([1]), dynamic({'b': 2}), long(null), '')",
      rows: [{ a: [[1], { b: 2 }, null, ""] }],
    },
  ],
  "zip()": [
    {
      query: 'print a = zip(dynamic([1,3,5]), dynamic([2,4,6])), b = zip(dynamic(["A", 1, 1.5]), dynamic([{}, "B"]))',
      rows: [
        {
          a: [
            [1, 2],
            [3, 4],
            [5, 6],
          ],
          b: [
            ["A", {}],
            [1, "B"],
            [1.5, null],
          ],
        },
      ],
    },
    {
      query:
        'datatable(a:int, b:string) [1,"one",2,"two",3,"three"] | summarize a = make_list(a), b = make_list(b) | project z = zip(a, b)',
      rows: [
        {
          z: [
            [1, "one"],
            [2, "two"],
            [3, "three"],
          ],
        },
      ],
    },
    { query: "print a = zip(dynamic([1]), dynamic([2]), dynamic([3]))", rows: [{ a: [[1, 2, 3]] }] },
  ],
  "repeat()": [
    {
      query: "print a = repeat(1, 3), b = repeat('x', 2), c = repeat(1, 0), d = repeat(1, -1), e = repeat(1s, 2)",
      rows: [{ a: [1, 1, 1], b: ["x", "x"], c: [], d: null, e: ["00:00:01", "00:00:01"] }],
    },
  ],
  "range()": [
    {
      query: "print r = range(1, 8, 3), b = range(1, 3), c = range(3, 1), d = range(5, 1, -2), e = range(0.5, 2, 0.5)",
      rows: [{ r: [1, 4, 7], b: [1, 2, 3], c: [], d: [5, 3, 1], e: [0.5, 1, 1.5, 2] }],
    },
    { query: "print r = range(1h, 5h)", rows: [{ r: ["01:00:00", "02:00:00", "03:00:00", "04:00:00", "05:00:00"] }] },
    {
      query:
        "print r = range(datetime(2007-01-01), datetime(2007-12-31), 1d) | project n = array_length(r), a = r[0], b = r[1], c = r[(-1)]",
      rows: [
        {
          n: 365,
          a: "2007-01-01T00:00:00.0000000Z",
          b: "2007-01-02T00:00:00.0000000Z",
          c: "2007-12-31T00:00:00.0000000Z",
        },
      ],
    },
    { query: "print n = array_length(range(datetime(2020-01-01), datetime(2020-01-02)))", rows: [{ n: 25 }] },
    { query: "print n = array_length(range(1, 1000000000))", rows: [{ n: 1048576 }] },
  ],
  sets: [
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | extend w = z * 2 | extend a1 = pack_array(x,y,x,z), a2 = pack_array(x, y), a3 = pack_array(w) | project Out=array_sort_asc(set_union(a1, a2, a3))",
      rows: [{ Out: [1, 2, 4, 8] }, { Out: [2, 4, 8, 16] }, { Out: [3, 6, 12, 24] }],
    },
    {
      query:
        "datatable (Arr1: dynamic)[dynamic(['A4', 'A2', 'A7', 'A2']), dynamic(['C4', 'C7', 'C1', 'C4'])] | project Out=set_union(Arr1, Arr1)",
      rows: [{ Out: ["A4", "A2", "A7"] }, { Out: ["C4", "C7", "C1"] }],
    },
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | extend w = z * 2 | extend a1 = pack_array(x,y,x,z), a2 = pack_array(x, y), a3 = pack_array(w,x) | project set_intersect(a1, a2, a3)",
      rows: [{ Column1: [1] }, { Column1: [2] }, { Column1: [3] }],
    },
    {
      query:
        "print arr = set_intersect(dynamic([1, 2, 3]), dynamic([4,5])), d = set_difference(dynamic([1,2,3]), dynamic([1,2,3])), e = set_difference(dynamic([1, 1, 2]), dynamic([2]))",
      rows: [{ arr: [], d: [], e: [1] }],
    },
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | extend w = z * 2 | extend a1 = pack_array(x,y,x,z), a2 = pack_array(x, y), a3 = pack_array(x,y,w) | project set_difference(a1, a2, a3)",
      rows: [{ Column1: [4] }, { Column1: [8] }, { Column1: [12] }],
    },
    {
      query: "print a = set_union(dynamic(['a', 'A']), dynamic(['a'])), b = set_union(dynamic([1, '1']), dynamic([]))",
      rows: [{ a: ["a", "A"], b: [1, "1"] }],
    },
    {
      query:
        'print arr=dynamic(["this", "is", "an", "example"]) | project a=set_has_element(arr, "example"), b = set_has_element(arr, "Example"), c = set_has_element(dynamic([1, 2]), 2), d = set_has_element(dynamic([]), 1)',
      rows: [{ a: true, b: false, c: true, d: false }],
    },
    {
      query:
        "print a=jaccard_index(dynamic([1,2,3]), dynamic([1,2,3,4])), b = jaccard_index(dynamic([1, 1, 2]), dynamic([2, 2, 3])), c = jaccard_index(dynamic([1]), dynamic([2]))",
      rows: [{ a: 0.75, b: 0.3333333333333333, c: 0 }],
    },
  ],
};
