import { checkName } from "../../core/names.ts";
import { CATALOG_FLAG, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";

type Options = CatalogFlags & { json?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("create-database")
    .description("Create a database unless it exists (talks to the catalog directly).")
    .argument("<name>", "name of the database")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, ["engine create-database logs"]).action(
    context.action((name: string, options: Options) => createDatabase(context, name, options)),
  );
};

async function createDatabase(context: CliContext, name: string, options: Options): Promise<number> {
  checkName("database", name);
  const { database, created } = await withCatalog(context, options, "write", (catalog) => catalog.createDatabase(name));
  if (options.json) await context.writeJson({ database: database.name, created });
  else await context.writeLine(`database ${database.name} ${created ? "created" : "exists already"}`);
  return EXIT.ok;
}
