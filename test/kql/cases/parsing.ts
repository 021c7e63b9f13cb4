import type { KqlCases } from "../cases.test-kit.ts";

const TRACES =
  "let Traces = datatable(EventText: string)[" +
  "'Event: NotifySliceRelease (resourceName=PipelineScheduler, totalSlices=27, sliceNumber=23, lockTime=02/17/2016 08:40:01, releaseTime=02/17/2016 08:40:02, previousLockTime=02/17/2016 08:39:03)', " +
  "'Event: NotifySliceRelease (resourceName=PipelineScheduler, totalSlices=bad, sliceNumber=15, lockTime=02/17/2016 08:40:00, releaseTime=02/17/2016 08:40:00, previousLockTime=02/17/2016 08:39:00)']; ";

const LEADS =
  "datatable(Contacts: string)['Event: LeadContact (email=john@contosohotel.com, Website=https:contosohotel.com)', 'Event: LeadContact (email=abi@fourthcoffee.com, Website=https:www.fourthcoffee.com)', 'nothing'] ";

/** parse, parse-where and parse-kv. */
export const parsing: KqlCases = {
  parse: [
    {
      query: `${TRACES}Traces | parse EventText with * "resourceName=" resourceName ", totalSlices=" totalSlices: long * "sliceNumber=" sliceNumber: long * "lockTime=" lockTime ", releaseTime=" releaseTime: date "," * "previousLockTime=" previousLockTime: date ")" * | project-away EventText`,
      rows: [
        {
          resourceName: "PipelineScheduler",
          totalSlices: 27,
          sliceNumber: 23,
          lockTime: "02/17/2016 08:40:01",
          releaseTime: "2016-02-17T08:40:02Z",
          previousLockTime: "2016-02-17T08:39:03Z",
        },
        {
          resourceName: "",
          totalSlices: null,
          sliceNumber: null,
          lockTime: "",
          releaseTime: null,
          previousLockTime: null,
        },
      ],
      types: {
        resourceName: "string",
        totalSlices: "long",
        sliceNumber: "long",
        lockTime: "string",
        releaseTime: "datetime",
        previousLockTime: "datetime",
      },
    },
    {
      query: `${LEADS}| parse Contacts with * "email=" alias: string "@" domain: string ", Website=https:" WebsiteDomain: string ")" | project alias, domain, WebsiteDomain`,
      rows: [
        { alias: "john", domain: "contosohotel.com", WebsiteDomain: "contosohotel.com" },
        { alias: "abi", domain: "fourthcoffee.com", WebsiteDomain: "www.fourthcoffee.com" },
        { alias: "", domain: "", WebsiteDomain: "" },
      ],
    },
    {
      query: "print s = 'k=v' | parse s with k '=' v",
      rows: [{ s: "k=v", k: "k", v: "v" }],
      types: { s: "string", k: "string", v: "string" },
    },
    {
      query: "print s = 'a=1;b=2' | parse s with 'a=' a: long ';b=' b: long | project a, b",
      rows: [{ a: 1, b: 2 }],
      types: { a: "long", b: "long" },
    },
    {
      query: "print s = 'a=x;b=2' | parse s with 'a=' a: long ';b=' b: long | project a, b",
      rows: [{ a: null, b: null }],
    },
    { query: "print s = 'xa=1' | parse s with 'a=' a: long | project a", rows: [{ a: null }] },
    { query: "print s = 'xa=1' | parse s with * 'a=' a: long | project a", rows: [{ a: 1 }] },
    { query: "print s = 'a=1 rest' | parse s with 'a=' a: long * | project a", rows: [{ a: 1 }] },
    { query: "print s = 'a=-17;' | parse s with 'a=' a: int ';' | project a", rows: [{ a: -17 }], types: { a: "int" } },
    {
      query: "print s = 'r=1.5!' | parse s with 'r=' r: real '!' | project r",
      rows: [{ r: 1.5 }],
      types: { r: "real" },
    },
    {
      query: "print s = 'b=true,' | parse s with 'b=' b: bool ',' | project b",
      rows: [{ b: true }],
      types: { b: "bool" },
    },
    {
      query: "print s = 't=01:02:03,' | parse s with 't=' t: timespan ',' | project t",
      rows: [{ t: "01:02:03" }],
      types: { t: "timespan" },
    },
    {
      query: "print s = 'g=74be27de-1e4e-49d9-b579-fe0b331d3642.' | parse s with 'g=' g: guid '.' | project g",
      rows: [{ g: "74be27de-1e4e-49d9-b579-fe0b331d3642" }],
      types: { g: "guid" },
    },
    { query: "print s = 'a..b..c' | parse s with x '..' y | project x, y", rows: [{ x: "a", y: "b..c" }] },
    { query: "print s = 'a.b' | parse s with x '.' y | project x, y", rows: [{ x: "a", y: "b" }] },
    { query: "print s = 'axb' | parse s with x '.' y | project x, y", rows: [{ x: "", y: "" }] },
    { query: "print s = '' | parse s with 'a=' x | project x", rows: [{ x: "" }] },
    { query: "print s = 'Ab' | parse s with 'a' x | project x", rows: [{ x: "" }] },
    { query: "print s = 'größe=3€' | parse s with 'größe=' n: long '€' | project n", rows: [{ n: 3 }] },
    { query: "print n = 12345 | parse n with '12' x: long '45' | project n, x", rows: [{ n: 12345, x: 3 }] },
    { query: "print s = 'x=1' | parse strcat('y', s) with 'yx=' n: long | project n", rows: [{ n: 1 }] },
    {
      query: "print s = 'one two' | parse s with a ' ' b | extend n = strlen(b)",
      rows: [{ s: "one two", a: "one", b: "two", n: 3 }],
    },
  ],
  "parse kind=relaxed": [
    {
      query: `${TRACES}Traces | parse kind=relaxed EventText with * "resourceName=" resourceName ", totalSlices=" totalSlices: long ", sliceNumber=" sliceNumber: long * "lockTime=" lockTime "," * | project-away EventText`,
      rows: [
        { resourceName: "PipelineScheduler", totalSlices: 27, sliceNumber: 23, lockTime: "02/17/2016 08:40:01" },
        { resourceName: "PipelineScheduler", totalSlices: null, sliceNumber: 15, lockTime: "02/17/2016 08:40:00" },
      ],
    },
    {
      query: "print s = 'a=x;b=2' | parse kind=relaxed s with 'a=' a: long ';b=' b: long | project a, b",
      rows: [{ a: null, b: 2 }],
    },
    {
      query: "print s = 'a=x,b=2' | parse kind=relaxed s with 'a=' a: long ';b=' b: long | project a, b",
      rows: [{ a: null, b: null }],
    },
    {
      query: "print s = 'a=x;b=2' | parse kind=simple s with 'a=' a: long ';b=' b: long | project a, b",
      rows: [{ a: null, b: null }],
    },
  ],
  "parse kind=regex": [
    {
      query: "print s = 'a, b' | parse kind=regex s with '%_\\\\' x ',' *",
      refused: { code: "invalid_query", message: "it ends too early" },
    },
    {
      query: "print s = 'one two' | parse kind=regex s with @'one\\b' x | project x",
      rows: [{ x: " two" }],
    },
    {
      query: "print s = 'a=b' | parse-kv s as (a: string) with (regex = @'(')",
      refused: { code: "invalid_query", message: "a group is not closed" },
    },
    {
      query:
        "print s = 'Event (resourceName=Pipeline, totalSlices=27, sliceNumber=23, lockTime=x, y)' | parse kind=regex s with '(.*?)[a-zA-Z]*=' resourceName @', totalSlices=\\s*\\d+\\s*.*?sliceNumber=' sliceNumber: long '.*?lockTime=' lockTime | project resourceName, sliceNumber",
      rows: [{ resourceName: "Pipeline", sliceNumber: 23 }],
    },
    {
      query:
        "print s = 'resourceName=Pipeline, totalSlices=27, sliceNumber=23' | parse kind=regex s with * 'resourceName=' resourceName ',' * | project resourceName",
      rows: [{ resourceName: "Pipeline, totalSlices=27" }],
    },
    {
      query:
        "print s = 'resourceName=Pipeline, totalSlices=27, sliceNumber=23' | parse kind=regex flags=Ui s with * 'RESOURCENAME=' resourceName ',' * | project resourceName",
      rows: [{ resourceName: "Pipeline" }],
    },
    {
      query: "print s = 'a1\\nb2' | parse kind=regex flags=s s with 'a' x: long '.b' y: long | project x, y",
      rows: [{ x: 1, y: 2 }],
    },
    {
      query: "print s = 'a1b2' | parse kind=regex s with '[a-z]' x: long '[a-z]' y: long | project x, y",
      rows: [{ x: 1, y: 2 }],
    },
    {
      query: "print s = 'a1b2' | parse kind=regex s with '[0-9]' x: long '[a-z]' y: long | project x, y",
      rows: [{ x: null, y: null }],
    },
  ],
  "parse-where": [
    {
      query: `${TRACES}Traces | parse-where EventText with * "resourceName=" resourceName ", totalSlices=" totalSlices: long * "sliceNumber=" sliceNumber: long * | project resourceName, totalSlices, sliceNumber`,
      rows: [{ resourceName: "PipelineScheduler", totalSlices: 27, sliceNumber: 23 }],
    },
    {
      query: `${LEADS}| parse-where Contacts with * "email=" alias "@" * | project alias`,
      rows: [{ alias: "john" }, { alias: "abi" }],
    },
    {
      query: "datatable(s: string)['A=1', 'a=2', 'b=3'] | parse-where kind=regex s with 'a=' n: long | project n",
      rows: [{ n: 2 }],
    },
    {
      query:
        "datatable(s: string)['A=1', 'a=2', 'b=3'] | parse-where kind=regex flags=i s with 'a=' n: long | project n",
      rows: [{ n: 1 }, { n: 2 }],
    },
    {
      query: "datatable(s: string)['n=1', 'n=x', ''] | parse-where s with 'n=' n: long",
      rows: [{ s: "n=1", n: 1 }],
      types: { s: "string", n: "long" },
    },
    { query: "datatable(s: string)['k=', 'x'] | parse-where s with 'k=' v", rows: [{ s: "k=", v: "" }] },
    { query: "datatable(s: string)['x'] | parse-where s with 'k=' v", rows: [], types: { s: "string", v: "string" } },
  ],
  "parse-kv": [
    {
      query:
        "print str = 'ThreadId:458745723, Machine:Node001, Text: The service is up, Level: Info' | parse-kv str as (Text: string, ThreadId: long, Machine: string) with (pair_delimiter=',', kv_delimiter=':') | project-away str",
      rows: [{ Text: "The service is up", ThreadId: 458745723, Machine: "Node001" }],
      types: { Text: "string", ThreadId: "long", Machine: "string" },
    },
    {
      query:
        "print str = 'src=10.1.1.123 dst=10.1.1.124 bytes=125 failure=\"connection aborted\" \"event time\"=2021-01-01T10:00:54' | parse-kv str as (['event time']: datetime, src: string, dst: string, bytes: long, failure: string) with (pair_delimiter=' ', kv_delimiter='=', quote='\"') | project-away str",
      rows: [
        {
          "event time": "2021-01-01T10:00:54Z",
          src: "10.1.1.123",
          dst: "10.1.1.124",
          bytes: 125,
          failure: "connection aborted",
        },
      ],
    },
    {
      query:
        "print str = 'src=10.1.1.123 dst=10.1.1.124 bytes=125 failure=(connection aborted) (event time)=(2021-01-01 10:00:54)' | parse-kv str as (['event time']: datetime, src: string, dst: string, bytes: long, failure: string) with (pair_delimiter=' ', kv_delimiter='=', quote='()') | project-away str",
      rows: [
        {
          "event time": "2021-01-01T10:00:54Z",
          src: "10.1.1.123",
          dst: "10.1.1.124",
          bytes: 125,
          failure: "connection aborted",
        },
      ],
    },
    {
      query:
        "print str = 'src=10.1.1.123 failure=\"the remote host sent \\\\\"bye!\\\\\"\" time=2021-01-01T10:00:54' | parse-kv str as (['time']: datetime, src: string, failure: string) with (pair_delimiter=' ', kv_delimiter='=', quote='\"', escape='\\\\') | project-away str",
      rows: [{ time: "2021-01-01T10:00:54Z", src: "10.1.1.123", failure: 'the remote host sent "bye!"' }],
    },
    {
      query:
        "print str = 'name=John Doe phone=555 5555 city=New York' | parse-kv str as (name: string, phone: string, city: string) with (pair_delimiter=' ', kv_delimiter='=') | project-away str",
      rows: [{ name: "John", phone: "555", city: "New" }],
    },
    {
      query:
        "print str = 'name=John Doe phone=555 5555 city=New York' | parse-kv str as (name: string, phone: string, city: string) with (pair_delimiter=' ', kv_delimiter='=', greedy=true) | project-away str",
      rows: [{ name: "John Doe", phone: "555 5555", city: "New York" }],
    },
    {
      query:
        "print str = '2021-01-01T10:00:34 [INFO] ThreadId:458745723, Machine:Node001, Text: Started' | parse-kv str as (Text: string, ThreadId: long, Machine: string) | project-away str",
      rows: [{ Text: "Started", ThreadId: 458745723, Machine: "Node001" }],
    },
    {
      query:
        "print str = \"2021-01-01T10:00:34 [INFO] ThreadId:458745723, Machine:Node001, Text: 'The service \\\\' is up'\" | parse-kv str as (Text: string, ThreadId: long, Machine: string) with (quote=\"'\", escape='\\\\') | project-away str",
      rows: [{ Text: "The service ' is up", ThreadId: 458745723, Machine: "Node001" }],
    },
    {
      query:
        "print str = @'[\"referer url: https://hostname.com/redirect?dest=/?h=1234\", \"request url: https://hostname.com/?h=1234\", \"advertiser id: 24fefbca-cf27-4d62-a623-249c2ad30c73\"]' | parse-kv str as (['referer url']: string, ['request url']: string, ['advertiser id']: guid) with (regex=@'\"([\\w ]+)\\s*:\\s*([^\"]*)\"') | project-away str",
      rows: [
        {
          "referer url": "https://hostname.com/redirect?dest=/?h=1234",
          "request url": "https://hostname.com/?h=1234",
          "advertiser id": "24fefbca-cf27-4d62-a623-249c2ad30c73",
        },
      ],
    },
    {
      query:
        "print s = 'a=1,a=2' | parse-kv s as (a: long, b: long, c: string) with (pair_delimiter=',', kv_delimiter='=')",
      rows: [{ s: "a=1,a=2", a: 1, b: null, c: "" }],
      types: { s: "string", a: "long", b: "long", c: "string" },
    },
    {
      query:
        "print s = ' a = 1 , b = x ' | parse-kv s as (a: long, b: string) with (pair_delimiter=',', kv_delimiter='=') | project a, b",
      rows: [{ a: 1, b: "x" }],
    },
    {
      query:
        "print s = '' | parse-kv s as (a: long, b: string) with (pair_delimiter=',', kv_delimiter='=') | project a, b",
      rows: [{ a: null, b: "" }],
    },
    {
      query: "print s = 'a=x' | parse-kv s as (a: long) with (pair_delimiter=',', kv_delimiter='=') | project a",
      rows: [{ a: null }],
    },
  ],
};
