import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import { nearest } from "../../core/nearest.ts";
import type { QuotedText } from "../parse/quote-at.ts";
import {
  isSystemSchema,
  systemTableNamed,
  tablesOfSchema,
  type SystemTableName,
} from "../system-tables/system-tables.ts";
import type { TableUse } from "./table-use.ts";
import { QueryRefused } from "../parse/tree.ts";

/** Whether it is a mention such as `system.tables` or `information_schema.columns`. */
export function isSystemUse(use: TableUse): boolean {
  return isSystemSchema(use.schema);
}

/** The system tables among the mentions. Throws `table_not_found` for a name that is none, and for time travel. */
export function systemTablesOf(uses: readonly TableUse[], quoted: QuotedText): SystemTableName[] {
  const found = new Set<SystemTableName>();
  for (const use of uses) {
    if (!isSystemUse(use)) continue;
    const name = systemTableNamed(use.schema, use.name);
    if (name === undefined) throw unknownSystemTable(use, quoted);
    if (use.travel !== undefined) {
      throw new QueryRefused(`${name} shows the present only: it has no AT`, use.position);
    }
    found.add(name);
  }
  return [...found];
}

function unknownSystemTable(use: TableUse, quoted: QuotedText): EngineError {
  const schema = foldName(use.schema);
  const names = tablesOfSchema(schema);
  const near = nearest(use.name, names);
  const hint =
    near === undefined
      ? `; there are ${names.map((name) => `${schema}.${name}`).join(", ")}`
      : `; did you mean ${schema}.${near}?`;
  return new EngineError("table_not_found", `there is no table ${JSON.stringify(`${schema}.${use.name}`)}${hint}`, {
    ...(use.position === undefined ? {} : quoted.place(use.position)),
    ...(near === undefined ? {} : { suggestion: `${schema}.${near}` }),
  });
}
