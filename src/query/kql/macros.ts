import { ADDRESS_MACROS } from "./macros/addresses.ts";
import { CONVERSION_MACROS } from "./macros/conversions.ts";
import { ARRAY_MACROS } from "./macros/arrays.ts";
import { AGGREGATE_MACROS } from "./macros/aggregates.ts";
import { DYNAMIC_MACROS } from "./macros/dynamic.ts";
import { ENCODING_MACROS } from "./macros/encodings.ts";
import { NUMBER_MACROS } from "./macros/numbers.ts";
import { PARSER_MACROS } from "./macros/parsers.ts";
import { PATTERN_MACROS } from "./macros/patterns.ts";
import { PUNYCODE_MACROS } from "./macros/punycode.ts";
import { SERIES_MACROS } from "./macros/series.ts";
import { SIZE_MACROS } from "./macros/sizes.ts";
import { STATISTICS_MACROS } from "./macros/statistics.ts";
import { TABLE_MACROS } from "./macros/tables.ts";
import { TEXT_MACROS } from "./macros/text.ts";
import { TIME_MACROS } from "./macros/time.ts";

/**
 * Helper macros of translated queries: what `CREATE TEMP MACRO` takes after its name. Their names begin with `kql_`, and
 * no other query may call them.
 */
const BODIES = inOneTable([
  ADDRESS_MACROS,
  CONVERSION_MACROS,
  ARRAY_MACROS,
  AGGREGATE_MACROS,
  DYNAMIC_MACROS,
  ENCODING_MACROS,
  NUMBER_MACROS,
  PARSER_MACROS,
  PATTERN_MACROS,
  PUNYCODE_MACROS,
  SERIES_MACROS,
  SIZE_MACROS,
  STATISTICS_MACROS,
  TABLE_MACROS,
  TEXT_MACROS,
  TIME_MACROS,
]);

/** Of several tables one; a name in two of them would silently mean one of both. */
function inOneTable(tables: readonly Readonly<Record<string, string>>[]): Readonly<Record<string, string>> {
  const entries = tables.flatMap((table) => Object.entries(table));
  const names = entries.map(([name]) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`the macro ${twice} is in two tables`);
  return Object.fromEntries(entries);
}

export const MACROS: ReadonlyMap<string, string> = new Map(
  Object.entries(BODIES).map(([name, body]) => [name, `CREATE TEMP MACRO ${name}${body}`]),
);

/** The macros that a text calls, and those that they call: each after those that it needs. */
export function macrosOf(text: string): string[] {
  const found = new Set<string>();
  const visit = (own: string): void => {
    for (const [name] of own.matchAll(/\bkql_\w+/g)) {
      const body = BODIES[name];
      if (body === undefined || found.has(name)) continue;
      visit(body);
      found.add(name);
    }
  };
  visit(text);
  return [...found];
}
