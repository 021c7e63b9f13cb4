import { checkName } from "../../core/names.ts";
import { callApi, countText, withApiFlags, type ApiFlags } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { confirmName } from "../../client/prompt.ts";

type Flags = ApiFlags & { yes?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("drop-database")
    .description("Drop a database with all its tables. They cannot be brought back. Needs the role admin.")
    .argument("<name>", "database")
    .option("--yes", "do not ask");
  withExamples(withApiFlags(command), ["engine drop-database logs", "engine drop-database logs --yes"]).action(
    context.action((name: string, flags: Flags) => dropDatabase(context, name, flags)),
  );
};

async function dropDatabase(context: CliContext, name: string, flags: Flags): Promise<number> {
  const database = checkName("database", name);
  if (flags.yes !== true) await confirmName(context, `Drop the database ${database} and all its tables?`, database);
  const dropped = await callApi(context, flags, "DELETE", `/v1/catalog/databases/${encodeURIComponent(database)}`);
  const { tables, rows } = dropped;
  if (flags.json) await context.writeJson(dropped);
  else
    await context.writeLine(`database ${database} dropped: ${countText(tables, "table")}, ${countText(rows, "row")}`);
  return EXIT.ok;
}
