import { checkName } from "../../core/names.ts";
import {
  callDatabase,
  callTarget,
  countText,
  fieldText,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { followJob } from "../../fabric/commands/job-follow.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { confirm } from "../../client/prompt.ts";
import { visible } from "../../client/text.ts";

type Flags = ApiFlags & { db: string; table: string; where: string; dryRun?: true; yes?: true; wait: boolean };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("delete-rows")
    .description(
      "Delete the rows of a table that a condition is true of, all or none. It counts them first, and asks. They are gone " +
        "from every query when it is done, and cannot be brought back. Needs the role admin.",
    )
    .option("--db <name>", "database", "default")
    .requiredOption("--table <name>", "table")
    .requiredOption("--where <condition>", "SQL as after WHERE, over the table's own columns")
    .option("--dry-run", "count, and delete nothing")
    .option("--yes", "neither count nor ask")
    .option("--no-wait", "print the id of the deletion as soon as it is queued");
  withExamples(withApiFlags(command), [
    "engine delete-rows --table requests --where \"user_id = '4711'\" --dry-run",
    "engine delete-rows --table requests --where \"user_id = '4711' AND at < '2026-01-01'\" --yes",
  ]).action(context.action((flags: Flags) => deleteRows(context, flags)));
};

async function deleteRows(context: CliContext, flags: Flags): Promise<number> {
  const database = checkName("database", flags.db);
  const table = checkName("table", flags.table);
  const target = await targetOf(context, flags);
  const post = (dryRun: boolean): Promise<Json> =>
    callDatabase(context, target, database, {
      method: "POST",
      path: `/v1/catalog/tables/${encodeURIComponent(table)}/delete`,
      body: { where: flags.where, dry_run: dryRun },
    });
  if (flags.dryRun === true || flags.yes !== true) {
    const counted = await post(true);
    const { rows, extents, extents_total: total } = counted;
    const matching = `${countText(rows, "row")} of ${database}.${table}`;
    const found = `${matching} would be deleted, in ${fieldText(extents)} of ${countText(total, "extent")}`;
    if (flags.dryRun === true) {
      if (flags.json) await context.writeJson(counted);
      else await context.writeLine(found);
      return EXIT.ok;
    }
    await confirm(context, `${found}. Delete them for ever?`);
  }
  const begun = await post(false);
  const done = flags.wait ? await ended(context, target, fieldText(begun["id"])) : begun;
  if (flags.json) await context.writeJson(done);
  else await context.writeLine(visible(flags.wait ? wordsFor(done) : fieldText(begun["id"])));
  return EXIT.ok;
}

/** @throws CliError when nothing was deleted. */
async function ended(context: CliContext, target: Target, id: string): Promise<Json> {
  for await (const { event } of followJob(context, target, id)) if (event === "end") break;
  const done = await callTarget(context, target, "GET", `/v1/catalog/deletions/${encodeURIComponent(id)}`);
  if (done["status"] === "done") return done;
  throw new CliError(visible(`nothing was deleted: ${fieldText(done["error"] ?? done["status"])}`));
}

function wordsFor({ id, rows, snapshot_id: snapshot }: Json): string {
  return `${countText(rows, "row")} deleted at snapshot ${fieldText(snapshot)}; the report is deletion ${fieldText(id)}`;
}
