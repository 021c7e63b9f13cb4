import { Option } from "commander";
import type { TableRecord } from "../../catalog/catalog.ts";
import { checkName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { CATALOG_FLAG, requireTable, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import { clusterByText, NO_COLUMNS, parseClusterBy } from "../cluster-by.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { openLagText, parseOpenLagSecs, SERVERS_LAG } from "../open-lag.ts";
import { parseRetentionDays } from "../retention.ts";
import { parseColumns } from "../schema.ts";
import { columnsText, tableJson } from "../table-output.ts";

type Options = CatalogFlags & {
  db: string;
  table: string;
  addColumn?: readonly string[];
  retentionDays?: string;
  clusterBy?: string;
  inferTypes?: string;
  openLagSecs?: string;
  json?: true;
};

/** The value of `--retention-days` that lifts it. */
const FOREVER = "forever";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("alter-table")
    .description(
      "Add columns to a table, or change how long it keeps its rows, in which order, or how soon Iceberg clients can read " +
        "them (talks to the catalog directly). " +
        "Columns are never dropped, renamed or narrowed. A vector is never null, so it is added to a table without rows only.",
    )
    .option("--db <name>", "database", "default")
    .requiredOption("--table <name>", "table")
    .option("--add-column <name:type>", "column to add; may be given several times", collect)
    .option("--retention-days <days>", `delete rows after so many days; \`${FOREVER}\` keeps them`)
    .option(
      "--cluster-by <columns>",
      `columns, as 'a, b', by which compaction orders rows of one time; at most 4, \`${NO_COLUMNS}\` for none`,
    )
    .addOption(
      new Option(
        "--infer-types <when>",
        "whether columns that rows bring get types by their values, unless a request says otherwise",
      ).choices(["on", "off"]),
    )
    .option(
      "--open-lag-secs <seconds>",
      "publish rows for Iceberg clients after so many seconds; 0 leaves it to compaction's own pace, " +
        `\`${SERVERS_LAG}\` to ENGINE_ICEBERG_MAX_LAG_SECS`,
    )
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "engine alter-table --table requests --add-column 'user:string'",
    "engine alter-table --table requests --add-column 'took_ms:real' --add-column 'embedding:vector(384)'",
    "engine alter-table --table requests --retention-days 30",
    "engine alter-table --table requests --cluster-by 'path, status'",
    "engine alter-table --table requests --infer-types on",
    "engine alter-table --table requests --open-lag-secs 300",
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
  const clusterBy = parseClustering(options.clusterBy);
  const inferTypes = options.inferTypes === undefined ? undefined : options.inferTypes === "on";
  const openLag = parseOpenLag(options.openLagSecs);
  if (columns.length === 0 && [retention, clusterBy, inferTypes, openLag].every((change) => change === undefined)) {
    const flags = "--add-column, --retention-days, --cluster-by, --infer-types or --open-lag-secs";
    throw new CliError(`nothing to change: give ${flags}`, EXIT.usage);
  }
  const table = await withCatalog(context, options, "read", async (catalog) => {
    const existing = await requireTable(catalog, database, name);
    let changed = columns.length === 0 ? existing : await catalog.addColumns(existing.id, columns);
    if (retention !== undefined) changed = await catalog.setRetention(existing.id, retention.days);
    if (clusterBy !== undefined) changed = await catalog.setClusterBy(existing.id, clusterBy);
    if (inferTypes !== undefined) changed = await catalog.setInferTypes(existing.id, inferTypes);
    return openLag === undefined ? changed : await catalog.setOpenLag(existing.id, openLag.secs);
  });
  if (options.json) await context.writeJson(tableJson(table));
  else await context.writeLine(describe(table, { retention, clusterBy, inferTypes, openLag }));
  return EXIT.ok;
}

/** What `--retention-days` asks for, if it is given; no `days` lift the retention. */
function parseRetention(text: string | undefined): { days: number | undefined } | undefined {
  if (text === undefined) return undefined;
  return { days: text === FOREVER ? undefined : parseRetentionDays(text, ` or \`${FOREVER}\``) };
}

/** What `--open-lag-secs` asks for, if it is given; no `secs` leave it to the server. */
function parseOpenLag(text: string | undefined): { secs: number | undefined } | undefined {
  if (text === undefined) return undefined;
  return { secs: text === SERVERS_LAG ? undefined : parseOpenLagSecs(text, ` or \`${SERVERS_LAG}\``) };
}

/** What `--cluster-by` asks for, if it is given. */
function parseClustering(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  return text.trim() === NO_COLUMNS ? [] : parseClusterBy(text);
}

/** The table's columns, and of its settings those that were changed. */
function describe(
  table: TableRecord,
  changed: { retention?: unknown; clusterBy?: unknown; inferTypes?: unknown; openLag?: unknown },
): string {
  const parts = [`table ${table.database}.${table.name}: ${columnsText(table)}`];
  if (changed.retention !== undefined) {
    parts.push(`keeps its rows ${table.retentionDays === undefined ? FOREVER : `${table.retentionDays} days`}`);
  }
  if (changed.clusterBy !== undefined) {
    parts.push(table.clusterBy.length === 0 ? "is not clustered" : `is clustered by ${clusterByText(table)}`);
  }
  if (changed.inferTypes !== undefined) {
    parts.push(table.inferTypes === true ? "infers the types of new columns" : "makes strings of new columns");
  }
  if (changed.openLag !== undefined) parts.push(openLagText(table));
  return parts.join("; ");
}
