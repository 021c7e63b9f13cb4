import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import { nearest } from "../core/nearest.ts";
import type { QuotedText } from "./quote-at.ts";
import { SYSTEM_SCHEMA, SYSTEM_TABLE_NAMES, systemTableNamed, type SystemTableName } from "./system-tables.ts";
import type { TableUse } from "./table-use.ts";
import { QueryRefused } from "./tree.ts";

/** Whether it is a mention such as `system.tables`. */
export function isSystemUse(use: TableUse): boolean {
  return foldName(use.schema) === SYSTEM_SCHEMA;
}

/** The system tables among the mentions. Throws `table_not_found` for a name that is none, and for time travel. */
export function systemTablesOf(uses: readonly TableUse[], quoted: QuotedText): SystemTableName[] {
  const found = new Set<SystemTableName>();
  for (const use of uses) {
    if (!isSystemUse(use)) continue;
    const name = systemTableNamed(use.name);
    if (name === undefined) throw unknownSystemTable(use, quoted);
    if (use.travel !== undefined) {
      throw new QueryRefused(`system.${name} shows the present only: it has no AT`, use.position);
    }
    found.add(name);
  }
  return [...found];
}

function unknownSystemTable(use: TableUse, quoted: QuotedText): EngineError {
  const near = nearest(use.name, SYSTEM_TABLE_NAMES);
  const hint =
    near === undefined
      ? `; there are ${SYSTEM_TABLE_NAMES.map((name) => `system.${name}`).join(", ")}`
      : `; did you mean system.${near}?`;
  return new EngineError("table_not_found", `there is no table ${JSON.stringify(`system.${use.name}`)}${hint}`, {
    ...(use.position === undefined ? {} : quoted.place(use.position)),
    ...(near === undefined ? {} : { suggestion: `system.${near}` }),
  });
}
