import { nearest } from "../../../core/nearest.ts";
import { CATALOG_FLAG, requireDatabase, withCatalog, type CatalogFlags } from "../../../client/catalog.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { checkName } from "../../../core/names.ts";
import { GraphRegistry } from "../registry.ts";

type Options = CatalogFlags & { db: string; name: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("drop-graph")
    .description("Forget a graph over tables; the tables stay as they are (talks to the catalog directly).")
    .option("--db <name>", "database", "default")
    .requiredOption("--name <name>", "name of the graph")
    .option(...CATALOG_FLAG);
  withExamples(command, ["engine drop-graph --name services", "engine drop-graph --db crm --name people"]).action(
    context.action((options: Options) => dropGraph(context, options)),
  );
};

async function dropGraph(context: CliContext, { db, name, ...flags }: Options): Promise<number> {
  const database = checkName("database", db);
  await withCatalog(context, flags, "write", async (catalog) => {
    const found = await requireDatabase(catalog, database);
    const registry = new GraphRegistry(catalog.records);
    if (await registry.remove(found, name)) return;
    const meant = nearest(
      name,
      (await registry.list(found)).map((graph) => graph.name),
    );
    throw new CliError(
      `there is no graph ${name} in ${database}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
    );
  });
  await context.writeLine(`graph ${database}.${name} dropped; its tables are as they were`);
  return EXIT.ok;
}
