import { CATALOG_FLAG, requireDatabase, withCatalog, type CatalogFlags } from "../../../client/catalog.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { EXIT } from "../../../client/failure.ts";
import { renderTable, textCell } from "../../../client/table.ts";
import { checkName } from "../../../core/names.ts";
import { GraphRegistry } from "../registry.ts";
import { graphJson } from "./graph-json.ts";

type Options = CatalogFlags & { db: string; json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("list-graphs")
    .description(
      "List the graphs over tables of a database (talks to the catalog directly). The graphs schema and memory are " +
        "always there.",
    )
    .option("--db <name>", "database", "default")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON, with the columns");
  withExamples(command, ["engine list-graphs", "engine list-graphs --db crm --json"]).action(
    context.action((options: Options) => listGraphs(context, options)),
  );
};

async function listGraphs(context: CliContext, options: Options): Promise<number> {
  const database = checkName("database", options.db);
  const graphs = await withCatalog(context, options, "read", async (catalog) =>
    new GraphRegistry(catalog.records).list(await requireDatabase(catalog, database)),
  );
  if (options.json === true) await context.writeJson(graphs.map(graphJson));
  else if (graphs.length === 0) await context.writeLine(`database ${database} has no graphs over tables`);
  else {
    const rows = graphs.map((graph) =>
      [graph.name, graph.nodesTable, graph.edgesTable, graph.description].map((text) => textCell(text)),
    );
    await context.writeLine(renderTable(["GRAPH", "NODES", "EDGES", "DESCRIPTION"], rows, context.style));
  }
  return EXIT.ok;
}
