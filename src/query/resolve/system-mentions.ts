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
import type { SqlContext } from "../parse/sql-tree.ts";
import { Evaluator } from "./evaluator.ts";
import { travelKey, travelOf, type Travel } from "./needs.ts";
import type { TableUse } from "./table-use.ts";
import { QueryRefused } from "../parse/tree.ts";

/** Whether it is a mention such as `system.tables` or `information_schema.columns`. */
export function isSystemUse(use: TableUse): boolean {
  return isSystemSchema(use.schema);
}

/** The one that can be read as of an earlier snapshot. */
const EXTENTS: SystemTableName = "system.extents";

/**
 * The snapshot that a query reads `system.extents` at: undefined for the newest one, or where it does not. Throws for
 * mentions at different ones, of which there would be several tables of one name.
 */
export async function extentsTravel(context: SqlContext, uses: readonly TableUse[]): Promise<Travel | undefined> {
  const mentions = uses.filter((use) => systemTableNamed(use.schema, use.name) === EXTENTS);
  if (mentions.every(({ travel }) => travel === undefined)) return undefined;
  const evaluator = new Evaluator(context, mentions.length);
  const found = await Promise.all(mentions.map((use) => travelOf(evaluator, use)));
  const other = found.findIndex((travel) => travelKey(travel) !== travelKey(found[0]));
  if (other === -1) return found[0];
  throw new QueryRefused(`a query reads ${EXTENTS} at one snapshot`, mentions[other]?.position);
}

/** The system tables among the mentions. Throws `table_not_found` for a name that is none, and for time travel. */
export function systemTablesOf(uses: readonly TableUse[], quoted: QuotedText): SystemTableName[] {
  const found = new Set<SystemTableName>();
  for (const use of uses) {
    if (!isSystemUse(use)) continue;
    const name = systemTableNamed(use.schema, use.name);
    if (name === undefined) throw unknownSystemTable(use, quoted);
    if (use.travel !== undefined && name !== EXTENTS) {
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
