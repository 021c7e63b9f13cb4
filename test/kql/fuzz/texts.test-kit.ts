import { readdirSync } from "node:fs";
import type { KqlTable } from "../../../src/query/kql/contract.ts";
import type { KqlCases } from "../cases.test-kit.ts";

/** Tables for texts that are only translated and bound: nothing is stored in them. */
export const TABLES: readonly KqlTable[] = [
  {
    name: "T",
    columns: [
      { name: "at", type: { kind: "timestamp" } },
      { name: "label", type: { kind: "string" } },
      { name: "n", type: { kind: "long" } },
      { name: "i", type: { kind: "int" } },
      { name: "r", type: { kind: "real" } },
      { name: "b", type: { kind: "bool" } },
      { name: "props", type: { kind: "dynamic" } },
      { name: "vec", type: { kind: "vector", dimensions: 3 } },
    ],
  },
  {
    name: "U",
    columns: [
      { name: "at", type: { kind: "timestamp" } },
      { name: "label", type: { kind: "string" } },
      { name: "k", type: { kind: "long" } },
      { name: "props", type: { kind: "dynamic" } },
    ],
  },
  {
    name: `we"ird ta'ble`,
    columns: [
      { name: `a"b`, type: { kind: "string" } },
      { name: "it's", type: { kind: "long" } },
      { name: "a~1", type: { kind: "real" } },
      { name: "let~1", type: { kind: "string" } },
      { name: "SELECT", type: { kind: "bool" } },
      { name: "größe \u{1f600}", type: { kind: "dynamic" } },
      { name: "--x", type: { kind: "timestamp" } },
      { name: "a\\b", type: { kind: "int" } },
    ],
  },
];

const OWN: readonly string[] = [
  "T | where at > ago(1h) and label has 'error' | project at, label, n | top 10 by at",
  "T | where n != 5 and not(b) or r > 1.5 | extend x = n * 2, y = strcat(label, '-', tostring(n)) | sort by x asc nulls last, y desc",
  "T | summarize count(), countif(b), avg(r), sum(n), min(at), max(at), dcount(label) by bin(at, 5m), label",
  "T | summarize arg_max(at, *), make_set(label), make_list(n, 10), percentile(r, 95) by i",
  "T | join kind=leftouter (U | where k > 0 | project label, k) on label | where isnull(k)",
  "T | join kind=inner U on $left.n == $right.k, label | project label, label1, at",
  "T | join hint.strategy=broadcast kind=leftanti U on label",
  "T | lookup kind=leftouter (U) on label | extend props.a.b, props['c'][0]",
  "union withsource=source kind=outer T, U | summarize count() by source",
  "union isfuzzy=true T, (U | take 5)",
  "let low = 5; let F = (x: long, s: string = 'a') { T | where n > x and label == s }; F(low) | count",
  "let L = dynamic(['a', 'b']); T | where label in (L) or label !in~ ('C', \"d\") | distinct label, b",
  "let M = materialize(T | summarize c = count() by label); M | join (M) on label | take 1",
  "let f = (a: int, b: int) { a + b }; print x = f(1, 2), y = f(3, 4)",
  "T | mv-expand with_itemindex=i2 p = props to typeof(string) limit 5 | where p startswith 'x'",
  "T | mv-apply e = props.list on (summarize total = sum(tolong(e)))",
  "T | parse kind=simple label with * 'user=' user: string ' id=' id: long *",
  "T | parse-where label with 'a' x:int 'b' y: datetime",
  "T | parse-kv label as (a: string, b: long) with (pair_delimiter=',', kv_delimiter='=', quote='\"')",
  "T | make-series m = avg(r) default=0 on at from datetime(2024-01-01) to datetime(2024-02-01) step 1d by label",
  "range x from 1 to 10 step 1 | extend y = x % 3, z = x / 2.0 | where z between (1.0 .. 3.0)",
  "range d from datetime(2024-01-01) to datetime(2024-01-02) step 1h | extend dow = dayofweek(d)",
  "print a = 1 + 2, b = 'x' contains 'X', c = 1d + 2h, d = datetime(2024-05-01T10:00:00Z) - 1d, e = dynamic({\"a\": [1, 'b', null]})",
  "print iff(1 > 2, 'a', 'b'), case(true, 1, 2), coalesce(int(null), 3), isnull(long(null)), isempty(''), todatetime('2024-01-01')",
  "datatable(a: string, b: long, c: datetime, d: dynamic)['x', 1, datetime(2024-01-01), dynamic({}), '', long(null), datetime(null), dynamic(null)] | sort by a",
  "T | where label matches regex @'^a\\d+(b|c)$' | extend e = extract('a(\\\\d+)', 1, label)",
  "T | where label has_any ('a', 'b c') and label has_all ('d') and label !contains_cs 'e' and label !hasprefix 'f'",
  "T | where label =~ 'ABC' or label !~ 'x' or label endswith_cs 'z' or label hassuffix 'q'",
  "T | project-away r, vec | project-rename l2 = label | project-reorder b, n | project-keep b, n*",
  "T | sample 5 | sample-distinct 3 of label",
  "T | serialize rn = row_number() | extend p = prev(n), q = next(n, 1, 0) | where rn < 10",
  "T | partition by label (top 1 by n | project n)",
  "T | as X | where n > 1 | invoke_ = 5",
  "T | top-nested 3 of label by sum(n), top-nested 2 of b by count()",
  "T | top-hitters 3 of label by n",
  "T | getschema | where ColumnType == 'long'",
  "search in (T, U) 'error' and n > 5",
  "find in (T, U) where label == 'a' project label, at",
  "T | evaluate bag_unpack(props)",
  "T | evaluate pivot(label, count(), b)",
  "T | evaluate narrow()",
  "T | count | render timechart with (title='a', ymin=0, xcolumn=Count)",
  "set notruncation; T | take 1",
  "T | extend s = split(label, ','), t = trim(' ', label), u = substring(label, 1, 2), v = indexof(label, 'a'), w = replace_string(label, 'a', 'b')",
  "T | extend a = toint(label), c = todouble(label), d = tobool(label), e = totimespan(label), f = toguid(label), g = todecimal(n), h = parse_json(label)",
  "T | extend a = abs(n), c = round(r, 2), d = floor(r, 0.5), e = sqrt(r), f = pow(n, 2), g = log10(r), h = sign(i), j = exp(r)",
  "T | extend a = startofday(at), c = endofmonth(at), d = format_datetime(at, 'yyyy-MM-dd'), e = datetime_add('day', 1, at), f = datetime_diff('hour', at, now())",
  "T | extend a = array_length(props), c = bag_keys(props), d = pack('a', n, 'b', label), e = array_concat(props, props), f = set_union(props, props)",
  "T | where b | summarize by label | count",
  "T | summarize x = sumif(n, b), y = stdev(r), z = variance(n), any = take_any(label), bag = make_bag(props)",
  "T | where props.a.b == 5 and tostring(props['x y']) != '' and props.list[-1] > 1.0",
  "['we\"ird ta\\'ble'] | where ['it\\'s'] > 1 | project ['a\"b'], ['a~1'], ['größe \u{1f600}']",
  "['we\"ird ta\\'ble'] | extend ['new \"col\\' --'] = ['a\\\\b'] + 1 | summarize count() by ['let~1'], ['SELECT']",
  'T | extend a = "multi\\n\\t\\"line\\"", b2 = @"ver""batim\\", c = \'single "q"\', d = h"hidden", e = ```tri\nple```',
  "T // comment ' \" -- /* \n | where n > 0 // another\n | count",
  "print long(9223372036854775807) + 1, -9223372036854775808, 1e308 * 10, 0x7fffffffffffffff, int(2147483647) + 1",
  "print real(nan), real(+inf), decimal(1.5), guid(74be27de-1e4e-49d9-b579-fe0b331d3642), time(1.02:03:04.5), datetime(null)",
  "T | where at between (datetime(2024-01-01) .. 1d) and n in (U | project k)",
  "T | where toscalar(U | summarize max(k)) > n",
  "table('T') | take 3",
];

/** All texts to begin with: those above and those of the cases. */
export async function startingTexts(): Promise<string[]> {
  const folder = new URL("../cases/", import.meta.url);
  const texts = [...OWN];
  for (const file of filesIn(folder)) {
    const module = (await import(new URL(file, folder).href)) as Record<string, KqlCases>;
    for (const cases of Object.values(module).flatMap((one) => Object.values(one))) {
      texts.push(...cases.map(({ query }) => query));
    }
  }
  return texts;
}

function filesIn(folder: URL): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .toSorted();
}
