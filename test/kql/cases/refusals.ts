import type { KqlCases } from "../cases.test-kit.ts";

/** What is refused, with what message and at what place. */
export const refusals: KqlCases = {
  "syntax errors": [
    { query: "", refused: { code: "parse_error", message: "" } },
    {
      query: "let n = 3; let f = () { let n = 4;  }; print a = f(), b = n",
      refused: { code: "invalid_query", message: "the function has no value", line: 1, column: 50 },
    },
    { query: "print array_sort_asc(bool(null))", refused: { code: "invalid_query", message: "" } },
    { query: "   \n // only a comment", refused: { code: "parse_error", message: "" } },
    { query: "print x = 1 |", refused: { code: "parse_error", message: "operator expected", line: 1, column: 14 } },
    {
      query: "print x = 1 | wher x > 1",
      refused: { code: "parse_error", message: "operator expected", line: 1, column: 15 },
    },
    {
      query: "print x = 1\n| wher x > 1",
      refused: { code: "parse_error", message: "operator expected", line: 2, column: 3 },
    },
    { query: "print x = 1 | where x >", refused: { code: "parse_error", message: "expression" } },
    { query: "print x = 1 | where", refused: { code: "parse_error", message: "expression" } },
    { query: "print x = 1 | where (x == 1", refused: { code: "parse_error", message: ")" } },
    { query: "print x = 1 | project x,", refused: { code: "parse_error", message: "expression" } },
    { query: "print 'abc", refused: { code: "parse_error", message: "'", line: 1 } },
    { query: "print 1 2", refused: { code: "parse_error", message: ",", line: 1, column: 9 } },
    { query: "print x = 1 | sort x", refused: { code: "parse_error", message: "by", line: 1, column: 20 } },
    { query: "print x = 1 | top 5", refused: { code: "parse_error", message: "by" } },
    { query: "| count", refused: { code: "parse_error", message: "" } },
    { query: "let x = 5;", refused: { code: "parse_error", message: "" } },
    { query: "SELECT 1", refused: { code: "parse_error", message: "" } },
    { query: "print x = '😀' | wher x", refused: { code: "parse_error", message: "operator expected", line: 1 } },
  ],
  "no negatives": [
    { query: "print -now()", refused: { code: "invalid_query", message: "a datetime has no negative", column: 7 } },
    { query: "print -dynamic(1)", refused: { code: "invalid_query", message: "a dynamic value has no negative" } },
  ],
  "unknown names": [
    { query: "NoSuchTable", refused: { code: "invalid_query", message: "NoSuchTable", line: 1, column: 1 } },
    {
      query: "NoSuchTable | where x > 1 | count",
      refused: { code: "invalid_query", message: "NoSuchTable", line: 1, column: 1 },
    },
    { query: "print x = 1\n| project\n    y", refused: { code: "invalid_query", message: "'y'", line: 3, column: 5 } },
    {
      query: "print x = 1 | extend y = nope(x)",
      refused: { code: "invalid_query", message: "'nope'", line: 1, column: 26 },
    },
    { query: "print x = 1 | where X == 1", refused: { code: "invalid_query", message: "'X'", line: 1, column: 21 } },
    { query: "print x = 1 | summarize y = nope(x)", refused: { code: "invalid_query", message: "'nope'" } },
    { query: "print x = 1 | evaluate nope()", refused: { code: "invalid_query", message: "'nope'" } },
    { query: "print x = 1 | invoke nope()", refused: { code: "invalid_query", message: "'nope'" } },
    {
      query: "print x = read_text('/etc/passwd')",
      refused: { code: "invalid_query", message: "'read_text'", line: 1, column: 11 },
    },
    { query: "print x = current_setting('threads')", refused: { code: "invalid_query", message: "'current_setting'" } },
    { query: "print x = list_sort(dynamic([1]))", refused: { code: "invalid_query", message: "'list_sort'" } },
    { query: "['duckdb_settings']", refused: { code: "invalid_query", message: "duckdb_settings" } },
    {
      query: "print x = strlen()",
      refused: { code: "invalid_query", message: "'strlen' expects 1 argument", line: 1, column: 11 },
    },
    { query: "print x = strlen('a', 'b')", refused: { code: "invalid_query", message: "'strlen' expects 1 argument" } },
    {
      query: "print x = 1 | extend y = sum(x)",
      refused: { code: "invalid_query", message: "'sum' is not allowed", line: 1, column: 26 },
    },
    { query: "print x = 1 | where x > datetime(2020-13-45)", refused: { code: "invalid_query", message: "" } },
  ],
  "values of different kinds": [
    {
      query: "print x = datetime(2020-01-01) | where x == '2020-01-01'",
      refused: { code: "invalid_query", message: "datetime and string", line: 1, column: 40 },
    },
    { query: "print x = 1 | where x != 'a'", refused: { code: "invalid_query", message: "long and string" } },
    { query: "print x = 1h | where x == 1", refused: { code: "invalid_query", message: "timespan and long" } },
  ],
  "columns that no one can name": [
    {
      query: "print s = 'a' | parse s with s",
      refused: { code: "invalid_query", message: "there is a column s already" },
    },
    { query: "print a = 1 | project-away a", refused: { code: "invalid_query", message: "no columns" } },
    {
      query:
        "let f = (T: (d: dynamic)) { T | evaluate bag_unpack(d) }; print d = dynamic({'a': 1}) | invoke f() | project b",
      refused: { code: "invalid_query", message: "'b'", line: 1 },
    },
  ],
  "statements that are refused": [
    {
      query: ".show tables",
      refused: { code: "invalid_query", message: "management commands are not supported", line: 1, column: 1 },
    },
    {
      query: ".create table X (a: long)",
      refused: { code: "invalid_query", message: "management commands are not supported" },
    },
    { query: ".drop table X", refused: { code: "invalid_query", message: "management commands are not supported" } },
    { query: "print 1; print 2", refused: { code: "invalid_query", message: "one tabular", line: 1, column: 10 } },
    { query: "let a = 1; print a; print a", refused: { code: "invalid_query", message: "one tabular" } },
    {
      query: "set query_take_max_records=1; print 1",
      refused: { code: "invalid_query", message: "query_take_max_records", line: 1 },
    },
    {
      query: "declare query_parameters(x: long = 1); print x",
      refused: { code: "invalid_query", message: "declare", line: 1, column: 1 },
    },
    { query: "declare pattern p; print 1", refused: { code: "invalid_query", message: "pattern" } },
    {
      query: "alias database x = cluster('y').database('z'); print 1",
      refused: { code: "invalid_query", message: "alias" },
    },
    { query: "let T = print 1; restrict access to (T); T", refused: { code: "invalid_query", message: "restrict" } },
  ],
  "sources that are refused": [
    {
      query: "externaldata(x: string)['http://localhost/x.csv']",
      refused: { code: "invalid_query", message: "externaldata is not supported", line: 1, column: 1 },
    },
    {
      query: "cluster('x').database('y').T",
      refused: { code: "invalid_query", message: "cluster()", line: 1, column: 1 },
    },
    { query: "database('x').T", refused: { code: "invalid_query", message: "database" } },
    { query: "external_table('x')", refused: { code: "invalid_query", message: "external_table" } },
    {
      query: "print x = 1 | union (cluster('x').database('y').T)",
      refused: { code: "invalid_query", message: "cluster()" },
    },
  ],
  "operators that are refused": [
    {
      query: "print x = 'a' | reduce by x",
      refused: { code: "invalid_query", message: "operator reduce is not supported", line: 1, column: 17 },
    },
    {
      query: "print x = 1 | facet by x",
      refused: { code: "invalid_query", message: "operator facet is not supported", line: 1, column: 15 },
    },
    {
      query: "print x = 1 | fork (count) (take 1)",
      refused: { code: "invalid_query", message: "operator fork is not supported", line: 1, column: 15 },
    },
    {
      query: "print x = 1 | scan with (step s: x > 1;)",
      refused: { code: "invalid_query", message: "operator scan is not supported" },
    },
    {
      query: "print x = 1 | consume",
      refused: { code: "invalid_query", message: "operator consume is not supported" },
    },
    {
      query: "print a = 1, b = 2 | make-graph a --> b",
      refused: { code: "invalid_query", message: "operator make-graph is not supported", line: 1, column: 22 },
    },
    {
      query: "print a = 1, b = 2\n| make-graph a --> b\n| graph-match (x)-->(y) project x.a",
      refused: { code: "invalid_query", message: "operator make-graph is not supported", line: 2, column: 3 },
    },
    {
      query: "print x = 1 | evaluate autocluster()",
      refused: { code: "invalid_query", message: "autocluster is not supported" },
    },
    {
      query: "print x = 1 | evaluate basket()",
      refused: { code: "invalid_query", message: "basket is not supported" },
    },
    {
      query: "print x = 1 | evaluate python(typeof(*), 'result = df')",
      refused: { code: "invalid_query", message: "python is not supported" },
    },
    {
      query: "evaluate http_request('http://localhost/')",
      refused: { code: "invalid_query", message: "http_request is not supported" },
    },
    {
      query: "evaluate sql_request('x', 'y')",
      refused: { code: "invalid_query", message: "sql_request is not supported" },
    },
    {
      query: "print x = 1 | where false | union (print y = 1 | facet by y)",
      refused: { code: "invalid_query", message: "facet" },
    },
  ],
};
