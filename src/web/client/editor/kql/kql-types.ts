/** The types of KQL that columns of tables have. */
export type KqlColumnType = "bool" | "int" | "long" | "real" | "string" | "datetime" | "dynamic";

const TYPES: ReadonlyMap<string, KqlColumnType> = new Map([
  ["bool", "bool"],
  ["int", "int"],
  ["long", "long"],
  ["real", "real"],
  ["string", "string"],
  ["timestamp", "datetime"],
  ["dynamic", "dynamic"],
]);

/** The type in KQL of a column, by its type as the schema says it; undefined for one that this page does not know yet. */
export function kqlColumnType(type: string): KqlColumnType | undefined {
  return TYPES.get(type) ?? (/^vector\(\d+\)$/.test(type) ? "dynamic" : undefined);
}
