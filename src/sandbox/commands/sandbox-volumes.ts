import type { Command } from "commander";
import {
  deleteAt,
  fieldCell,
  listAllFrom,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

/** `engine sandbox volumes`: named storage that outlives sandboxes. */

const VOLUMES = "/api/v1/volumes";
const EXAMPLE_ID = "01977f3e-9b1d-7c0a-8e55-2c1f0a7d4e21";
const PAGE = 100;

export function registerVolumes(sandbox: Command, context: CliContext): void {
  const group = sandbox.command("volumes").description("Find and delete named storage of sandboxes.");
  registerList(group, context);
  registerRemove(group, context);
}

function registerList(group: Command, context: CliContext): void {
  const command = group.command("list").alias("ls").description("List volumes, the newest first; an admin sees all.");
  withExamples(withApiFlags(command), ["engine sandbox volumes list", "engine sandbox volumes list --json"]).action(
    context.action(async (flags: ApiFlags) => {
      const found = await listAllFrom(context, await targetOf(context, flags), VOLUMES, { filter: {}, page: PAGE });
      const header = ["ID", "NAME", "OWNER", "MIB", "IN USE", "LAST USED", "EXPIRES"];
      if (flags.json) await context.writeJson(found);
      else if (found.length === 0) await context.writeLine("there are no volumes");
      else await context.writeLine(renderTable(header, found.map(row), context.style));
      return EXIT.ok;
    }),
  );
}

function row({
  id,
  name,
  owned_by: owner,
  size_mb: size,
  in_use: used,
  last_used_at: last,
  expires_at: expires,
}: Json) {
  return [id, name, owner, size, used === true ? "yes" : "no", last, expires].map(fieldCell);
}

function registerRemove(group: Command, context: CliContext): void {
  const command = group
    .command("rm")
    .alias("delete")
    .description("Delete volumes with all that is in them; none that a sandbox names.")
    .argument("<id...>", "ids of volumes");
  withExamples(withApiFlags(command), [`engine sandbox volumes rm ${EXAMPLE_ID}`]).action(
    context.action(async (ids: string[], flags: ApiFlags) => {
      const target = await targetOf(context, flags);
      for (const id of ids) {
        await deleteAt(context, target, `${VOLUMES}/${encodeURIComponent(id)}`);
        if (!flags.json) await context.writeLine(visible(`deleted ${id}`));
      }
      if (flags.json) await context.writeJson({ deleted: ids });
      return EXIT.ok;
    }),
  );
}
