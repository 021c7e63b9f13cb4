import type { Catalog, CreateTable, TableRecord } from "../../catalog/catalog.ts";
import { isClusteredBy } from "../../catalog/cluster-columns.ts";
import { checkName, foldName } from "../../core/names.ts";
import { sameColumnType } from "../../format/types.ts";
import { CATALOG_FLAG, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { clusterByText, parseClusterBy } from "../cluster-by.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { openLagText, parseOpenLagSecs } from "../open-lag.ts";
import { parseRetentionDays } from "../retention.ts";
import { parseColumns, withTimeColumn } from "../schema.ts";
import { columnsText, tableJson } from "../table-output.ts";

type Options = CatalogFlags & {
  db: string;
  name: string;
  schema: string;
  retentionDays?: string;
  clusterBy?: string;
  inferTypes?: true;
  openLagSecs?: string;
  json?: true;
};

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("create-table")
    .description(
      "Create a table unless it exists (talks to the catalog directly). Types: bool, int, long, real, string, " +
        "timestamp, dynamic, vector(N). Every table has a column at:timestamp; it comes first unless the schema names it.",
    )
    .option("--db <name>", "database; created when missing", "default")
    .requiredOption("--name <name>", "name of the table")
    .requiredOption("--schema <columns>", "columns as 'name:type, …'; quote names that need it: '\"my col\":string'")
    .option("--retention-days <days>", "delete rows after so many days (default: keep them)")
    .option("--cluster-by <columns>", "columns, as 'a, b', by which compaction orders rows of one time; at most 4")
    .option("--infer-types", "give columns that rows bring types by their values, unless a request says otherwise")
    .option(
      "--open-lag-secs <seconds>",
      "publish rows for Iceberg clients after so many seconds, 0 at compaction's own pace (default: ENGINE_ICEBERG_MAX_LAG_SECS)",
    )
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "engine create-table --name requests --schema 'path:string, status:int, props:dynamic'",
    "engine create-table --db logs --name lines --schema 'level:string, body:string' --retention-days 30",
    "engine create-table --name metrics --schema 'host:string, name:string, value:real' --cluster-by 'name, host'",
  ]).action(context.action((options: Options) => createTable(context, options)));
};

async function createTable(context: CliContext, options: Options): Promise<number> {
  const request: CreateTable = {
    database: checkName("database", options.db),
    name: checkName("table", options.name),
    columns: withTimeColumn(parseColumns("--schema", options.schema)),
    ...(options.retentionDays === undefined ? {} : { retentionDays: parseRetentionDays(options.retentionDays) }),
    ...(options.clusterBy === undefined ? {} : { clusterBy: parseClusterBy(options.clusterBy) }),
    ...(options.inferTypes === undefined ? {} : { inferTypes: options.inferTypes }),
    ...(options.openLagSecs === undefined ? {} : { openLagSecs: parseOpenLagSecs(options.openLagSecs) }),
  };
  const { table, created } = await withCatalog(context, options, "write", (catalog) => create(catalog, request));
  if (options.json) await context.writeJson({ ...tableJson(table), created });
  else
    await context.writeLine(
      `table ${table.database}.${table.name} ${created ? "created" : "exists already"}: ${columnsText(table)}`,
    );
  return EXIT.ok;
}

/** Creating the same table twice is no mistake; wanting another shape than it has is. */
async function create(catalog: Catalog, request: CreateTable): Promise<{ table: TableRecord; created: boolean }> {
  const result = await catalog.createTable(request);
  const { table, created } = result;
  if (created) return result;
  const named = `table ${table.database}.${table.name} exists already`;
  if (!request.columns.every((column) => hasColumn(table, column))) {
    throw new CliError(`${named} with other columns (${columnsText(table)}); \`engine alter-table\` adds columns`);
  }
  if (request.retentionDays !== undefined && request.retentionDays !== table.retentionDays) {
    const kept = table.retentionDays === undefined ? "keeps its rows" : `keeps its rows ${table.retentionDays} days`;
    throw new CliError(`${named} and ${kept}; \`engine alter-table --retention-days\` changes that`);
  }
  if (request.clusterBy !== undefined && !isClusteredBy(table, request.clusterBy)) {
    const kept = table.clusterBy.length === 0 ? "is not clustered" : `is clustered by ${clusterByText(table)}`;
    throw new CliError(`${named} and ${kept}; \`engine alter-table --cluster-by\` changes that`);
  }
  if (request.inferTypes === true && table.inferTypes !== true) {
    throw new CliError(`${named} and does not infer types; \`engine alter-table --infer-types on\` changes that`);
  }
  if (request.openLagSecs !== undefined && request.openLagSecs !== table.openLagSecs) {
    throw new CliError(`${named} and ${openLagText(table)}; \`engine alter-table --open-lag-secs\` changes that`);
  }
  return result;
}

function hasColumn(table: TableRecord, wanted: CreateTable["columns"][number]): boolean {
  const found = table.columns.find(({ name }) => foldName(name) === foldName(wanted.name));
  return found !== undefined && sameColumnType(found.type, wanted.type);
}
