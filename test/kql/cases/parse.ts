import type { KqlCases, KqlValue } from "../cases.test-kit.ts";
import { prints, refuses } from "../print.test-kit.ts";

const raw = String.raw;

function path(parts: Partial<Record<string, string>>): KqlValue {
  return {
    Scheme: "",
    RootPath: "",
    DirectoryPath: "",
    DirectoryName: "",
    Filename: "",
    Extension: "",
    AlternateDataStreamName: "",
    ...parts,
  };
}

function url(parts: Record<string, KqlValue>): KqlValue {
  return {
    Scheme: "",
    Host: "",
    Port: "",
    Path: "",
    Username: "",
    Password: "",
    "Query Parameters": {},
    Fragment: "",
    ...parts,
  };
}

/** Functions that take a text of a known form apart: addresses, paths, versions, records. */
export const parse: KqlCases = {
  "parse_json()": [
    prints(`parse_json('{"a":[1,{"b":"x"}]}')`, { a: [1, { b: "x" }] }, "dynamic"),
    prints(`parse_json('{"duration":{"value":118.5,"min":100.0}}').duration.value`, 118.5),
    prints("parse_json('')", null),
    prints("parse_json('not json')", "not json"),
    prints("parse_json('[]')", []),
    prints("parse_json('true')", true),
    prints("parse_json('null')", null),
    prints("parse_json(dynamic([1, 2]))", [1, 2]),
    prints(raw`parse_json(tostring(parse_json('{"a":123, "b":"{\\"c\\":456}"}').b)).c`, 456),
    prints(raw`parse_json('{"a":123, "b":"{\\"c\\":456}"}').b`, '{"c":456}'),
    prints(`parse_json('{"b":1,"a":2}')`, { b: 1, a: 2 }),
    prints("parsejson('[1]')", [1]),
    prints(`todynamic('{"a":1}').a`, 1),
  ],

  "parse_url()": [
    prints(
      'parse_url("scheme://username:password@host:1234/this/is/a/path?k1=v1&k2=v2#fragment")',
      {
        Scheme: "scheme",
        Host: "host",
        Port: "1234",
        Path: "this/is/a/path",
        Username: "username",
        Password: "password",
        "Query Parameters": { k1: "v1", k2: "v2" },
        Fragment: "fragment",
      },
      "dynamic",
    ),
    prints('parse_url("https://bing.com")', url({ Scheme: "https", Host: "bing.com" })),
    prints(
      'parse_url("https://bing.com:8080?a=1")',
      url({ Scheme: "https", Host: "bing.com", Port: "8080", "Query Parameters": { a: "1" } }),
    ),
    prints('tostring(parse_url("https://bing.com/a?x=1&y=2")["Query Parameters"]["y"])', "2"),
    prints('tostring(parseurl("https://user@bing.com/").Username)', "user"),
    prints('tostring(parse_url("https://bing.com/a#top").Fragment)', "top"),
  ],

  "parse_urlquery()": [
    prints('parse_urlquery("k1=v1&k2=v2&k3=v3")', { "Query Parameters": { k1: "v1", k2: "v2", k3: "v3" } }, "dynamic"),
    {
      query: `let value = (querystring: string, param: string) { let params = parse_urlquery(querystring); tostring(params["Query Parameters"].[param]) };
print UrlQuery = 'view=vs-2019&preserve-view=true' | extend view = value(UrlQuery, 'view') | extend preserve = value(UrlQuery, 'preserve-view')`,
      rows: [{ UrlQuery: "view=vs-2019&preserve-view=true", view: "vs-2019", preserve: "true" }],
    },
    prints('parse_urlquery("")', { "Query Parameters": {} }),
    prints('parse_urlquery("a=")', { "Query Parameters": { a: "" } }),
    prints('tostring(parseurlquery("a=b=c")["Query Parameters"].a)', "b=c"),
  ],

  "parse_path()": [
    prints(
      raw`parse_path(@"C:\temp\file.txt")`,
      path({
        RootPath: "C:",
        DirectoryPath: raw`C:\temp`,
        DirectoryName: "temp",
        Filename: "file.txt",
        Extension: "txt",
      }),
      "dynamic",
    ),
    prints(
      raw`parse_path(@"temp\file.txt")`,
      path({ DirectoryPath: "temp", DirectoryName: "temp", Filename: "file.txt", Extension: "txt" }),
    ),
    prints(
      'parse_path("file://C:/temp/file.txt:some.exe")',
      path({
        Scheme: "file",
        RootPath: "C:",
        DirectoryPath: "C:/temp",
        DirectoryName: "temp",
        Filename: "file.txt",
        Extension: "txt",
        AlternateDataStreamName: "some.exe",
      }),
    ),
    prints(
      raw`parse_path(@"\\shared\users\temp\file.txt.gz")`,
      path({
        DirectoryPath: raw`\\shared\users\temp`,
        DirectoryName: "temp",
        Filename: "file.txt.gz",
        Extension: "gz",
      }),
    ),
    prints(
      'parse_path("/usr/lib/temp/file.txt")',
      path({ DirectoryPath: "/usr/lib/temp", DirectoryName: "temp", Filename: "file.txt", Extension: "txt" }),
    ),
    prints('parse_path("file")', path({ Filename: "file" })),
    prints('parse_path("a/b/file")', path({ DirectoryPath: "a/b", DirectoryName: "b", Filename: "file" })),
    prints('parse_path("dir.d/file")', path({ DirectoryPath: "dir.d", DirectoryName: "dir.d", Filename: "file" })),
  ],

  "parse_csv()": [
    prints(
      raw`parse_csv('aa,"b,b,b",cc,"Escaping quotes: ""Title""","line1\nline2"')`,
      ["aa", "b,b,b", "cc", 'Escaping quotes: "Title"', "line1\nline2"],
      "dynamic",
    ),
    prints(raw`parse_csv('record1,a,b,c\nrecord2,x,y,z')`, ["record1", "a", "b", "c"]),
    prints(raw`parse_csv('record1,a\r\nrecord2,x')`, ["record1", "a"]),
    prints("parse_csv('a,,c')", ["a", "", "c"]),
    prints("parse_csv('a,')", ["a", ""]),
    prints("parse_csv(',a')", ["", "a"]),
    prints(`parse_csv('"",a')`, ["", "a"]),
    prints("parse_csv('one')", ["one"]),
    prints("array_length(parse_csv('Guy Reginiano, Guy Yehudy, Pankaj Suri, Saeed Copty'))", 4),
  ],

  "parse_command_line()": [
    prints(raw`parse_command_line("echo \"hello world!\"", "windows")`, ["echo", "hello world!"], "dynamic"),
    prints('parse_command_line("a  b c", "windows")', ["a", "b", "c"]),
    prints(raw`parse_command_line(@'app "C:\Program Files\x" -v', "windows")`, ["app", raw`C:\Program Files\x`, "-v"]),
    prints(raw`parse_command_line(@'app a\\\"b', "windows")`, ["app", raw`a\"b`]),
    prints(raw`parse_command_line(@'app "a b"c', "windows")`, ["app", "a bc"]),
    prints(raw`parse_command_line(@'app ""', "windows")`, ["app", ""]),
  ],

  "parse_version()": [
    prints('parse_version("0.0.0.5") == decimal(5)', true),
    prints('parse_version("0.0.7.0")', 700000000, "decimal"),
    prints('parse_version("0.0.3")', 300000000),
    prints('parse_version("0.2")', 20000000000000000n),
    prints('parse_version("0.1.2.0") == decimal(10000000200000000)', true),
    prints('parse_version("1.2.3.4")', 1000000020000000300000004n),
    prints('parse_version("1") == parse_version("1.0.0.0")', true),
    prints('parse_version("1.10") > parse_version("1.9")', true),
    prints('parse_version("99999999") > parse_version("99999998.99999999.99999999.99999999")', true),
    prints('parse_version("")', null),
    prints('parse_version("1.2.3.4.5")', null),
    prints('parse_version("1.100000000")', null),
    prints('parse_version("1.a")', null),
  ],

  "parse_ipv4()": [
    prints("parse_ipv4('192.168.1.1')", 3232235777, "long"),
    prints("parse_ipv4('192.168.1.1/24')", 3232235776),
    prints("parse_ipv4('255.255.255.255/31')", 4294967294),
    prints("parse_ipv4('0.0.0.0')", 0),
    prints("parse_ipv4('255.255.255.255')", 4294967295),
    prints("parse_ipv4('1.2.3.4/0')", 0),
    prints("parse_ipv4('1.2.3.256')", null),
    prints("parse_ipv4('1.2.3.4/33')", null),
    prints("parse_ipv4('')", null),
    prints("parse_ipv4('a.b.c.d')", null),
  ],

  "parse_ipv4_mask()": [
    prints('parse_ipv4_mask("127.0.0.1", 24)', 2130706432, "long"),
    prints('parse_ipv4_mask("192.1.168.2", 31)', 3221334018),
    prints('parse_ipv4_mask("255.255.255.255", 32)', 4294967295),
    prints('parse_ipv4_mask("255.255.255.255", 0)', 0),
    prints('parse_ipv4_mask("1.2.3.4", 33)', null),
    prints('parse_ipv4_mask("1.2.3.4", -1)', null),
    prints('parse_ipv4_mask("x", 24)', null),
  ],

  "parse_ipv6()": [
    prints("parse_ipv6('192.168.255.255')", "0000:0000:0000:0000:0000:ffff:c0a8:ffff", "string"),
    prints("parse_ipv6('192.168.255.255/24')", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    prints("parse_ipv6('255.255.255.255')", "0000:0000:0000:0000:0000:ffff:ffff:ffff"),
    prints("parse_ipv6('fe80::85d:e82c:9446:7994')", "fe80:0000:0000:0000:085d:e82c:9446:7994"),
    prints("parse_ipv6('FE80::85D:E82C:9446:7994')", "fe80:0000:0000:0000:085d:e82c:9446:7994"),
    prints("parse_ipv6('::')", "0000:0000:0000:0000:0000:0000:0000:0000"),
    prints("parse_ipv6('1::')", "0001:0000:0000:0000:0000:0000:0000:0000"),
    prints("parse_ipv6('1:2:3:4:5:6:7:8')", "0001:0002:0003:0004:0005:0006:0007:0008"),
    prints("parse_ipv6('1:2:3:4:5:6:7')", ""),
    prints("parse_ipv6('1::2::3')", ""),
    prints("parse_ipv6('12345::')", ""),
    prints("parse_ipv6('x')", ""),
    prints("parse_ipv6('')", ""),
  ],

  "parse_ipv6_mask()": [
    prints("parse_ipv6_mask('192.168.255.255', 120)", "0000:0000:0000:0000:0000:ffff:c0a8:ff00", "string"),
    prints("parse_ipv6_mask('192.168.255.255/24', 124)", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    prints("parse_ipv6_mask('255.255.255.255', 128)", "0000:0000:0000:0000:0000:ffff:ffff:ffff"),
    prints("parse_ipv6_mask('fe80::85d:e82c:9446:7994', 128)", "fe80:0000:0000:0000:085d:e82c:9446:7994"),
    prints("parse_ipv6_mask('fe80::85d:e82c:9446:7994/120', 124)", "fe80:0000:0000:0000:085d:e82c:9446:7900"),
    prints("parse_ipv6_mask('::192.168.255.255', 128)", "0000:0000:0000:0000:0000:ffff:c0a8:ffff"),
    prints("parse_ipv6_mask('::192.168.255.255/24', 128)", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    prints("parse_ipv6_mask('fe80::1', 129)", ""),
  ],

  "format_ipv4() and format_ipv4_mask()": [
    {
      query:
        "datatable(address:string, mask:long)['192.168.1.1', 24, '192.168.1.1', 32, '192.168.1.1/24', 32, '192.168.1.1/24', long(-1)] | extend result = format_ipv4(address, mask), result_mask = format_ipv4_mask(address, mask)",
      rows: [
        { address: "192.168.1.1", mask: 24, result: "192.168.1.0", result_mask: "192.168.1.0/24" },
        { address: "192.168.1.1", mask: 32, result: "192.168.1.1", result_mask: "192.168.1.1/32" },
        { address: "192.168.1.1/24", mask: 32, result: "192.168.1.0", result_mask: "192.168.1.0/24" },
        { address: "192.168.1.1/24", mask: -1, result: "", result_mask: "" },
      ],
      types: { address: "string", mask: "long", result: "string", result_mask: "string" },
      unordered: true,
    },
    prints("format_ipv4(3232235777)", "192.168.1.1"),
    prints("format_ipv4(3232235777, 24)", "192.168.1.0"),
    prints("format_ipv4('10.1.2.3')", "10.1.2.3"),
    prints("format_ipv4_mask(3232235776, 24)", "192.168.1.0/24"),
    prints("format_ipv4('10.1.2')", ""),
  ],

  "ipv4_compare() and ipv4_is_match()": [
    {
      query:
        "datatable(a:string, b:string)['192.168.1.0', '192.168.1.0', '192.168.1.1/24', '192.168.1.255', '192.168.1.1', '192.168.1.255/24', '192.168.1.1/30', '192.168.1.255/24'] | project c = ipv4_compare(a, b), m = ipv4_is_match(a, b)",
      rows: [
        { c: 0, m: true },
        { c: 0, m: true },
        { c: 0, m: true },
        { c: 0, m: true },
      ],
      types: { c: "long", m: "bool" },
    },
    {
      query:
        "datatable(a:string, b:string, p:long)['192.168.1.1', '192.168.1.0', 31, '192.168.1.1/24', '192.168.1.255', 31, '192.168.1.1', '192.168.1.255', 24] | project c = ipv4_compare(a, b, p), m = ipv4_is_match(a, b, p)",
      rows: [
        { c: 0, m: true },
        { c: 0, m: true },
        { c: 0, m: true },
      ],
    },
    prints("ipv4_compare('192.168.1.1', '192.168.1.2')", -1),
    prints("ipv4_compare('192.168.1.2', '192.168.1.1')", 1),
    prints("ipv4_compare('200.0.0.1', '1.0.0.1')", 1),
    prints("ipv4_is_match('192.168.1.1', '192.168.1.2')", false),
    prints("ipv4_compare('192.168.1.1', 'x')", null),
    prints("ipv4_is_match('', '192.168.1.1')", null),
  ],

  "ipv4_is_in_range() and ipv4_is_in_any_range()": [
    prints("ipv4_is_in_range('192.168.1.1', '192.168.1.1')", true, "bool"),
    prints("ipv4_is_in_range('192.168.1.1', '192.168.1.255/24')", true),
    prints("ipv4_is_in_range('192.168.2.1', '192.168.1.255/24')", false),
    prints("ipv4_is_in_range('x', '192.168.1.255/24')", null),
    prints("ipv4_is_in_range('192.168.1.1', 'x')", null),
    prints("ipv4_is_in_any_range('192.168.1.6', '192.168.1.1/24', '10.0.0.1/8', '127.1.0.1/16')", true, "bool"),
    prints('ipv4_is_in_any_range("127.0.0.1", dynamic(["127.0.0.1", "192.168.1.1"]))', true),
    {
      query:
        'let LocalNetworks=dynamic(["192.168.1.1/16","127.0.0.1/8","10.0.0.1/8"]); datatable(IP:string)["10.1.2.3","192.168.1.5","123.1.11.21","1.1.1.1"] | extend IsLocal=ipv4_is_in_any_range(IP, LocalNetworks)',
      rows: [
        { IP: "10.1.2.3", IsLocal: true },
        { IP: "192.168.1.5", IsLocal: true },
        { IP: "123.1.11.21", IsLocal: false },
        { IP: "1.1.1.1", IsLocal: false },
      ],
      unordered: true,
    },
    prints("ipv4_is_in_any_range('x', '10.0.0.0/8')", null),
  ],

  "ipv4_is_private(), ipv4_netmask_suffix() and ipv4_range_to_cidr_list()": [
    prints("ipv4_is_private('192.168.1.1/24')", true, "bool"),
    prints("ipv4_is_private('10.1.2.3/24')", true),
    prints("ipv4_is_private('202.1.2.3')", false),
    prints('ipv4_is_private("127.0.0.1")', false),
    prints("ipv4_is_private('172.16.0.0')", true),
    prints("ipv4_is_private('172.31.255.255')", true),
    prints("ipv4_is_private('172.32.0.0')", false),
    prints("ipv4_is_private('192.169.0.0')", false),
    prints("ipv4_is_private('x')", null),
    prints("ipv4_netmask_suffix('10.1.2.3')", 32, "long"),
    prints("ipv4_netmask_suffix('192.168.1.1/24')", 24),
    prints("ipv4_netmask_suffix('127.0.0.1/16')", 16),
    prints("ipv4_netmask_suffix('x')", null),
    prints(
      'ipv4_range_to_cidr_list("1.1.128.0", "1.1.140.255")',
      ["1.1.128.0/21", "1.1.136.0/22", "1.1.140.0/24"],
      "dynamic",
    ),
    prints('ipv4_range_to_cidr_list("10.0.0.1", "10.0.0.1")', ["10.0.0.1/32"]),
    prints('ipv4_range_to_cidr_list("10.0.0.1", "10.0.0.6")', [
      "10.0.0.1/32",
      "10.0.0.2/31",
      "10.0.0.4/31",
      "10.0.0.6/32",
    ]),
    prints('ipv4_range_to_cidr_list("0.0.0.0", "255.255.255.255")', ["0.0.0.0/0"]),
  ],

  "ipv6_compare() and ipv6_is_match()": [
    {
      query: `datatable(a:string, b:string)[
'192.168.1.1', '192.168.1.1', '192.168.1.1/24', '192.168.1.255', '192.168.1.1', '192.168.1.255/24', '192.168.1.1/30', '192.168.1.255/24',
'fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7994/120', 'fe80::85d:e82c:9446:7998',
'fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7998/120', 'fe80::85d:e82c:9446:7994/120', 'fe80::85d:e82c:9446:7998/120',
'192.168.1.1', '::ffff:c0a8:0101', '192.168.1.1/24', '::ffff:c0a8:01ff', '::ffff:c0a8:0101', '192.168.1.255/24', '::192.168.1.1/30', '192.168.1.255/24']
| summarize n = countif(ipv6_compare(a, b) == 0), m = countif(ipv6_is_match(a, b))`,
      rows: [{ n: 12, m: 12 }],
    },
    {
      query: `datatable(a:string, b:string, p:long)[
'192.168.1.1', '192.168.1.0', 31, '192.168.1.1/24', '192.168.1.255', 31, '192.168.1.1', '192.168.1.255', 24,
'fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7995', 127, 'fe80::85d:e82c:9446:7994/127', 'fe80::85d:e82c:9446:7998', 120,
'fe80::85d:e82c:9446:7994/120', 'fe80::85d:e82c:9446:7998', 127, '192.168.1.1/24', '::ffff:c0a8:01ff', 127,
'::ffff:c0a8:0101', '192.168.1.255', 120, '::192.168.1.1/30', '192.168.1.255/24', 127]
| summarize n = countif(ipv6_compare(a, b, p) == 0), m = countif(ipv6_is_match(a, b, p))`,
      rows: [{ n: 9, m: 9 }],
    },
    prints("ipv6_compare('fe80::1', 'fe80::2')", -1, "long"),
    prints("ipv6_compare('fe80::2', 'fe80::1')", 1),
    prints("ipv6_is_match('fe80::1', 'fe80::2')", false, "bool"),
    prints("ipv6_compare('fe80::1', 'x')", null),
    prints("ipv6_is_match('x', 'fe80::1')", null),
  ],

  "ipv6_is_in_range() and ipv6_is_in_any_range()": [
    prints(
      "ipv6_is_in_range('a5e:f127:8a9d:146d:e102:b5d3:c755:abcd', 'a5e:f127:8a9d:146d:e102:b5d3:c755:0000/112')",
      true,
      "bool",
    ),
    prints(
      "ipv6_is_in_range('a5e:f127:8a9d:146d:e102:b5d3:c755:abcd', 'a5e:f127:8a9d:146d:e102:b5d3:c755:abcd')",
      true,
    ),
    prints("ipv6_is_in_range('a5e:f127:8a9d:146d:e102:b5d3:c755:abcd', '0:0:0:0:0:ffff:c0a8:ac/60')", false),
    prints("ipv6_is_in_range('x', 'fe80::/10')", null),
    {
      query: `let LocalNetworks=dynamic(["a5e:f127:8a9d:146d:e102:b5d3:c755:f6cd/112","0:0:0:0:0:ffff:c0a8:ac/60"]);
datatable(IP:string)["a5e:f127:8a9d:146d:e102:b5d3:c755:abcd","a5e:f127:8a9d:146d:e102:b5d3:c755:abcf","a5e:f127:8a9d:146d:e102:b5d3:c756:abd1"] | project IsLocal=ipv6_is_in_any_range(IP, LocalNetworks)`,
      rows: [{ IsLocal: true }, { IsLocal: true }, { IsLocal: false }],
    },
    prints("ipv6_is_in_any_range('fe80::1', '::1', 'fe80::/10')", true, "bool"),
  ],

  "has_ipv4() and has_any_ipv4()": [
    prints("has_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.0.1')", true, "bool"),
    prints("has_ipv4('05:04:54 127.0.0.256 GET /favicon.ico 404', '127.0.0.256')", false),
    prints("has_ipv4('05:04:54127.0.0.1 GET /favicon.ico 404', '127.0.0.1')", false),
    prints('has_ipv4("Source address is 10.1.2.3:1234", "10.1.2.3")', true),
    prints("has_ipv4('127.0.0.10', '127.0.0.1')", false),
    prints("has_ipv4('127x0y0z1', '127.0.0.1')", false),
    prints("has_ipv4('', '127.0.0.1')", false),
    prints("has_any_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.0.1', '127.0.0.2')", true, "bool"),
    prints("has_any_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', dynamic(['127.0.0.1', '127.0.0.2']))", true),
    prints(`has_any_ipv4('05:04:54 127.0.0.256 GET /favicon.ico 404', dynamic(["127.0.0.256", "192.168.1.1"]))`, false),
    prints("has_any_ipv4('05:04:54127.0.0.1 GET /favicon.ico 404', '127.0.0.1', '192.168.1.1')", false),
    prints("has_any_ipv4('127.0.0.1', dynamic([]))", false),
  ],

  "has_ipv4_prefix() and has_any_ipv4_prefix()": [
    prints("has_ipv4_prefix('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.')", true, "bool"),
    prints("has_ipv4_prefix('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0')", false),
    prints("has_ipv4_prefix('05:04:54 127.0.0.256 GET /favicon.ico 404', '127.0.')", false),
    prints("has_ipv4_prefix('05:04:54127.0.0.1 GET /favicon.ico 404', '127.0.')", false),
    prints("has_ipv4_prefix('a 192.168.1.11 b', '192.168.1.11')", true),
    prints("has_ipv4_prefix('a 192.168.1.11 b', '192.168.1.1')", false),
    prints("has_any_ipv4_prefix('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.', '192.168.')", true, "bool"),
    prints(`has_any_ipv4_prefix('05:04:54 127.0.0.1 GET /favicon.ico 404', dynamic(["127.0.", "192.168."]))`, true),
    prints("has_any_ipv4_prefix('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0')", false),
    prints("has_any_ipv4_prefix('05:04:54127.0.0.1 GET /favicon.ico 404', '127.0.', '192.')", false),
  ],

  "what has no counterpart": [
    refuses("parse_xml('<a/>')", "parse_xml"),
    refuses("parse_user_agent('Mozilla/5.0', 'browser')", "parse_user_agent"),
  ],
};
