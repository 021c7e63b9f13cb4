import { checkName } from "../../core/names.ts";
import { callDatabase, countText, targetOf, withApiFlags, type ApiFlags } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { confirmName } from "../../client/prompt.ts";

type Flags = ApiFlags & { db: string; table: string; yes?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("drop-table")
    .description(
      "Drop a table with all its rows. It is gone from every query at once, and cannot be brought back. Needs the role " +
        "admin.",
    )
    .option("--db <name>", "database", "default")
    .requiredOption("--table <name>", "table")
    .option("--yes", "do not ask");
  withExamples(withApiFlags(command), [
    "engine drop-table --table requests",
    "engine drop-table --db logs --table lines --yes",
  ]).action(context.action((flags: Flags) => dropTable(context, flags)));
};

async function dropTable(context: CliContext, flags: Flags): Promise<number> {
  const database = checkName("database", flags.db);
  const table = checkName("table", flags.table);
  const target = await targetOf(context, flags);
  if (flags.yes !== true) await confirmName(context, `Drop the table ${database}.${table} and all its rows?`, table);
  const path = `/v1/catalog/tables/${encodeURIComponent(table)}`;
  const dropped = await callDatabase(context, target, database, { method: "DELETE", path });
  if (flags.json) await context.writeJson(dropped);
  else await context.writeLine(`table ${database}.${table} dropped: ${countText(dropped["rows"], "row")}`);
  return EXIT.ok;
}
