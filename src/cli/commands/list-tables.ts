import type { Catalog, TableRecord } from "../../catalog/catalog.ts";
import { checkName } from "../../core/names.ts";
import { CATALOG_FLAG, requireDatabase, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import { clusterByText } from "../cluster-by.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { renderTable, textCell, type Cell } from "../../client/table.ts";
import { tableJson } from "../table-output.ts";

type Options = CatalogFlags & { db: string; json?: true };
type Stats = Awaited<ReturnType<Catalog["tableStats"]>>;
type Listed = { table: TableRecord; stats: Stats };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("list-tables")
    .description("List the tables of a database (talks to the catalog directly).")
    .option("--db <name>", "database", "default")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON, with the columns");
  withExamples(command, ["engine list-tables", "engine list-tables --db logs --json"]).action(
    context.action((options: Options) => listTables(context, options)),
  );
};

async function listTables(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const listed = await withCatalog(context, options, "read", (catalog) => readTables(catalog, database));
  if (options.json) await context.writeJson(listed.map(listedJson));
  else if (listed.length === 0) await context.writeLine(`database ${database} has no tables`);
  else {
    const header = ["TABLE", "ROWS", "EXTENTS", "BYTES", "COLUMNS", "RETENTION", "CLUSTER BY"];
    await context.writeLine(renderTable(header, listed.map(listedRow), context.style));
  }
  return EXIT.ok;
}

async function readTables(catalog: Catalog, database: string): Promise<Listed[]> {
  await requireDatabase(catalog, database);
  const listed: Listed[] = [];
  for (const table of await catalog.tables(database)) listed.push({ table, stats: await catalog.tableStats(table.id) });
  return listed;
}

function listedJson({ table, stats }: Listed) {
  return { ...tableJson(table), rows: stats.rows, extents: stats.extents, size_bytes: stats.sizeBytes };
}

function listedRow({ table, stats }: Listed): Cell[] {
  const retention = table.retentionDays === undefined ? "forever" : `${table.retentionDays} days`;
  return [
    textCell(table.name),
    count(stats.rows),
    count(stats.extents),
    count(stats.sizeBytes),
    count(table.columns.length),
    textCell(retention),
    textCell(clusterByText(table)),
  ];
}

function count(value: number): Cell {
  return { text: value.toLocaleString("en-US"), align: "right" };
}
