import type { DuckDb, LogicalType } from "../../io/duckdb/duckdb.ts";
import type { OutputColumn } from "../../io/duckdb/projection.ts";
import type { KqlType } from "../kql/contract.ts";
import { QueryRefused } from "../parse/tree.ts";
import type { TranslatedText } from "./protocol.ts";

/** What a query process does for translated texts alone. Whatever is wrong with one of these is the translator's mistake. */

/**
 * The statements that make the macros of those names. The text of none comes from outside this program. A process that
 * runs SQL alone does not load them.
 */
export async function macrosNamed(names: readonly string[]): Promise<string[]> {
  const { MACROS } = await import("../kql/macros.ts");
  return names.map((name) => {
    const macro = MACROS.get(name);
    if (macro === undefined) throw new QueryRefused(`there is no helper macro ${JSON.stringify(name)}`);
    return macro;
  });
}

/** Throws where the columns that DuckDB found are not those that KQL's binder predicted. */
export function checkColumns(
  duckdb: DuckDb,
  found: readonly OutputColumn[],
  predicted: TranslatedText["columns"],
): void {
  if (predicted === undefined) return;
  const shown = found.map(({ name, type }) => `${name}: ${kqlTypeOf(duckdb, type)}`);
  // A name with half of a surrogate pair reaches DuckDB as UTF-8 has it.
  const expected = predicted.map(({ name, type }) => `${name.toWellFormed()}: ${WRITTEN_AS[type] ?? type}`);
  const place = expected.findIndex((column, i) => column !== shown[i]);
  if (place === -1 && shown.length === expected.length) return;
  const at = place === -1 ? expected.length : place;
  throw new QueryRefused(`the column ${at + 1} is ${shown[at]}, and was predicted as ${expected[at]}`);
}

/** A timespan is text when it leaves. */
const WRITTEN_AS: Partial<Record<KqlType, KqlType>> = { timespan: "string" };

/** The type of KQL that a type of DuckDB's stands for, or the name of DuckDB's where it is none. */
function kqlTypeOf(duckdb: DuckDb, type: LogicalType): string {
  const { Type } = duckdb;
  const id = duckdb.get_type_id(type);
  if (id === Type.VARCHAR) return duckdb.logical_type_get_alias(type) === "JSON" ? "dynamic" : "string";
  const known = new Map<number, KqlType>([
    [Type.BOOLEAN, "bool"],
    [Type.INTEGER, "int"],
    [Type.BIGINT, "long"],
    [Type.DOUBLE, "real"],
    [Type.DECIMAL, "decimal"],
    [Type.TIMESTAMP_NS, "datetime"],
    [Type.UUID, "guid"],
  ]);
  return known.get(id) ?? Type[id] ?? "unknown";
}
