import type { TableRecord } from "../../catalog/catalog.ts";
import { checkName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { CATALOG_FLAG, requireTable, withCatalog, type CatalogFlags } from "../catalog.ts";
import type { CliContext } from "../context.ts";
import { withExamples } from "../examples.ts";
import { CliError, EXIT } from "../failure.ts";
import type { RegisterCommand } from "../program.ts";
import { parseRetentionDays } from "../retention.ts";
import { parseColumns } from "../schema.ts";
import { columnsText, tableJson } from "../table-output.ts";

type Options = CatalogFlags & {
  db: string;
  table: string;
  addColumn?: readonly string[];
  retentionDays?: string;
  json?: true;
};

/** The value of `--retention-days` that lifts it. */
const FOREVER = "forever";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("alter-table")
    .description(
      "Add columns to a table, or change how long it keeps its rows (talks to the catalog directly). Columns are never " +
        "dropped, renamed or narrowed.",
    )
    .option("--db <name>", "database", "default")
    .requiredOption("--table <name>", "table")
    .option("--add-column <name:type>", "column to add; may be given several times", collect)
    .option("--retention-days <days>", `delete rows after so many days; \`${FOREVER}\` keeps them`)
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "engine alter-table --table requests --add-column 'user:string'",
    "engine alter-table --table requests --add-column 'took_ms:real' --add-column 'embedding:vector(384)'",
    "engine alter-table --table requests --retention-days 30",
  ]).action(context.action((options: Options) => alterTable(context, options)));
};

function collect(value: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), value];
}

async function alterTable(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const name = checkName("table", options.table);
  // One list, so that a name given twice is found.
  const columns: ColumnSpec[] =
    options.addColumn === undefined ? [] : parseColumns("--add-column", options.addColumn.join(","));
  const retention = parseRetention(options.retentionDays);
  if (columns.length === 0 && retention === undefined) {
    throw new CliError("nothing to change: give --add-column or --retention-days", EXIT.usage);
  }
  const table = await withCatalog(context, options, "read", async (catalog) => {
    const existing = await requireTable(catalog, database, name);
    const widened = columns.length === 0 ? existing : await catalog.addColumns(existing.id, columns);
    return retention === undefined ? widened : await catalog.setRetention(existing.id, retention.days);
  });
  if (options.json) await context.writeJson(tableJson(table));
  else await context.writeLine(describe(table, retention !== undefined));
  return EXIT.ok;
}

/** What `--retention-days` asks for, if it is given; no `days` lift the retention. */
function parseRetention(text: string | undefined): { days: number | undefined } | undefined {
  if (text === undefined) return undefined;
  return { days: text === FOREVER ? undefined : parseRetentionDays(text, ` or \`${FOREVER}\``) };
}

function describe(table: TableRecord, withRetention: boolean): string {
  const text = `table ${table.database}.${table.name}: ${columnsText(table)}`;
  if (!withRetention) return text;
  return `${text}; keeps its rows ${table.retentionDays === undefined ? FOREVER : `${table.retentionDays} days`}`;
}
