import type { KqlType } from "../contract.ts";
import { classOf } from "../bind/library.ts";

/** What each type of KQL is in SQL. A timespan is a count of ticks of 100 ns. */
export const SQL_TYPES = {
  bool: "BOOLEAN",
  int: "INTEGER",
  long: "BIGINT",
  real: "DOUBLE",
  decimal: "DECIMAL(38, 17)",
  string: "VARCHAR",
  datetime: "TIMESTAMP_NS",
  timespan: "BIGINT",
  guid: "UUID",
  dynamic: "JSON",
} as const satisfies Record<KqlType, string>;

const NAMES: ReadonlyMap<string, KqlType> = new Map([
  ...(Object.keys(SQL_TYPES) as KqlType[]).map((type): [string, KqlType] => [type, type]),
  ["date", "datetime"],
  ["time", "timespan"],
  ["double", "real"],
  ["boolean", "bool"],
  ["uuid", "guid"],
  ["uniqueid", "guid"],
]);

/** The type of that name, synonyms included. */
export function typeNamed(name: string): KqlType | undefined {
  return NAMES.get(name.toLowerCase());
}

/** The type that the binder found; undefined where it is no scalar one, or is not known. */
export function typeOfSymbol(symbol: Kusto.Language.Symbols.TypeSymbol | null): KqlType | undefined {
  if (symbol === null) return undefined;
  return classOf(symbol).startsWith("Dynamic") ? "dynamic" : typeNamed(symbol.Name ?? "");
}
