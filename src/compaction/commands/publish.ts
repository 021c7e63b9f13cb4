import type { RegisterCommand } from "../../client/command.ts";
import { callApi, countText, fieldText, withApiFlags, type ApiFlags } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { visible } from "../../client/text.ts";
import { checkName } from "../../core/names.ts";

type Flags = ApiFlags & { db: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("publish")
    .argument("<table>", "table")
    .description(
      "Publish the rows that a table has now to Iceberg clients, ahead of other merges, and wait for it. Needs the role write.",
    )
    .option("--db <name>", "database", "default");
  withExamples(withApiFlags(command), ["engine publish requests", "engine publish requests --db web"]).action(
    context.action((table: string, flags: Flags) => publish(context, table, flags)),
  );
};

async function publish(context: CliContext, name: string, flags: Flags): Promise<number> {
  const database = checkName("database", flags.db);
  const table = checkName("table", name);
  const path = `/v1/admin/databases/${encodeURIComponent(database)}/tables/${encodeURIComponent(table)}/publish`;
  const done = await callApi(context, flags, "POST", path);
  if (flags.json) await context.writeJson(done);
  else {
    const { rows_published: rows, snapshot_id: snapshot, pending_rows: pending } = done;
    const waiting = pending === 0 ? "" : `; ${countText(pending, "row")} waiting`;
    const published = `${countText(rows, "row")} of ${database}.${table} published at snapshot ${fieldText(snapshot)}`;
    await context.writeLine(visible(published + waiting));
  }
  return EXIT.ok;
}
