import type { Table } from "../../base/schema.ts";
import { UNKNOWN_TABLES, type KqlAsk } from "./kql-protocol.ts";

type Told = { schema: number; columns: Set<string> };

/** Of databases, the last ones that a text was read against. */
const KEPT = 4;
/** Of all tables together, where a text may mean any: more would take the worker seconds. */
const MOST_COLUMNS = 20_000;

/**
 * What the worker knows of tables. A database may have more columns than can be copied while somebody types, so all names
 * are told, and the columns of those tables whose names are in the text.
 */
export class KqlSchemas {
  readonly #told = new Map<readonly Table[], Told>();
  #made = UNKNOWN_TABLES;

  /** The number of these tables, and what the worker is to be told before it reads the text against them. */
  prepare(tables: readonly Table[] | undefined, text: string): { schema: number; messages: KqlAsk[] } {
    if (tables === undefined) return { schema: UNKNOWN_TABLES, messages: [] };
    const messages: KqlAsk[] = [];
    let told = this.#told.get(tables);
    if (told === undefined) {
      told = { schema: ++this.#made, columns: new Set() };
      messages.push({ kind: "tables", schema: told.schema, names: tables.map(({ name }) => name) });
    }
    // The last one that was asked of is the last in the map.
    this.#told.delete(tables);
    this.#told.set(tables, told);
    for (const [key, { schema }] of [...this.#told].slice(0, -KEPT)) {
      this.#told.delete(key);
      messages.push({ kind: "forget", schema });
    }
    const { columns, schema } = told;
    const wanted = meant(tables, text).filter(({ name }) => !columns.has(name));
    for (const { name } of wanted) columns.add(name);
    if (wanted.length > 0) messages.push({ kind: "columns", schema, tables: wanted });
    return { schema, messages };
  }
}

/** Those that the text names, or may mean by a wildcard or by `search` and `find`. */
function meant(tables: readonly Table[], text: string): readonly Table[] {
  const named = tables.filter(({ name }) => text.includes(name));
  if (!/\*|\b(?:search|find)\b/.test(text)) return named;
  const columns = tables.reduce((sum, table) => sum + table.columns.length, 0);
  return columns > MOST_COLUMNS ? named : tables;
}
