import { checkName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { CATALOG_FLAG, requireTable, withCatalog, type CatalogFlags } from "../catalog.ts";
import type { CliContext } from "../context.ts";
import { withExamples } from "../examples.ts";
import { EXIT } from "../failure.ts";
import type { RegisterCommand } from "../program.ts";
import { parseColumns } from "../schema.ts";
import { columnsText, tableJson } from "../table-output.ts";

type Options = CatalogFlags & { db: string; table: string; addColumn: readonly string[]; json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("alter-table")
    .description(
      "Add columns to a table (talks to the catalog directly). Columns are never dropped, renamed or narrowed.",
    )
    .option("--db <name>", "database", "default")
    .requiredOption("--table <name>", "table")
    .requiredOption("--add-column <name:type>", "column to add; may be given several times", collect)
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "engine alter-table --table requests --add-column 'user:string'",
    "engine alter-table --table requests --add-column 'took_ms:real' --add-column 'embedding:vector(384)'",
  ]).action(context.action((options: Options) => alterTable(context, options)));
};

function collect(value: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), value];
}

async function alterTable(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const name = checkName("table", options.table);
  // One list, so that a name given twice is found.
  const columns: ColumnSpec[] = parseColumns("--add-column", options.addColumn.join(","));
  const table = await withCatalog(context, options, "read", async (catalog) => {
    const { id } = await requireTable(catalog, database, name);
    return catalog.addColumns(id, columns);
  });
  if (options.json) await context.writeJson(tableJson(table));
  else await context.writeLine(`table ${table.database}.${table.name}: ${columnsText(table)}`);
  return EXIT.ok;
}
