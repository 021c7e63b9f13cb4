import type { Command } from "commander";
import { countText } from "../../client/api.ts";
import type { RegisterCommand } from "../../client/command.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { renderTable, textCell } from "../../client/table.ts";
import { visible } from "../../client/text.ts";
import { withRepository, type Access } from "../open-destination.ts";
import { pruneBackups, type Pruned } from "../prune.ts";
import type { Listed, Repository } from "../repository.ts";
import { unusableBackups, verifyBackups, type Problem } from "../verify.ts";
import { registerCreate } from "./create.ts";
import { parseKeep } from "./keep.ts";
import { destinationIn, localPorts, progressLine, sizeText, type LocalPorts } from "./local.ts";
import { registerRestore } from "./restore.ts";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("backup").description("Make backups of everything, look at them, and bring them back.");
  registerCreate(group, context);
  registerList(group, context);
  registerVerify(group, context);
  registerRestore(group, context);
  registerPrune(group, context);
};

type Flags = { json?: true };
const DESTINATION = ["<destination>", "where the backups are: a folder, or s3://BUCKET/PREFIX"] as const;

/** Runs work on a destination, with the configuration of this machine and no server. */
async function on<T>(
  context: CliContext,
  text: string,
  access: Access,
  work: (repository: Repository, ports: LocalPorts) => Promise<T>,
): Promise<T> {
  const destination = destinationIn(text);
  const ports = localPorts(context, await context.loadConfig({}));
  return await withRepository(destination, access, ports, (repository) => work(repository, ports));
}

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .description("List the backups in a destination, the oldest first.")
    .argument(...DESTINATION)
    .option("--json", "print JSON");
  withExamples(command, ["engine backup list ~/backups", "engine backup list s3://backups/engine --json"]).action(
    context.action(async (text: string, flags: Flags) => {
      const listed = await on(context, text, "read", (repository) => repository.list());
      if (flags.json === true) await context.writeJson(listed.map(jsonOf));
      else if (listed.length === 0) await context.writeLine("there are no backups");
      else
        await context.writeLine(
          renderTable(
            HEADER,
            listed.map((one) => cellsOf(one).map(textCell)),
            context.style,
          ),
        );
      return EXIT.ok;
    }),
  );
}

const HEADER = ["ID", "MADE", "SNAPSHOT", "OBJECTS", "SIZE", "VERSION"];

function cellsOf(one: Listed): string[] {
  if ("problem" in one) return [one.id, visible(`cannot be read: ${one.problem}`), "", "", "", ""];
  const { id, created_at: made, snapshot, objects, engine_version: version } = one.manifest;
  return [id, made, String(snapshot), String(objects.rows), sizeText(objects.total_bytes), visible(version)];
}

function jsonOf(one: Listed): object {
  if ("problem" in one) return { backup_id: one.id, problem: one.problem };
  const { id, created_at, snapshot, objects, tables, engine_version, schema } = one.manifest;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return {
    backup_id: id,
    created_at,
    snapshot,
    rows,
    objects: objects.rows,
    bytes: objects.total_bytes,
    engine_version,
    schema,
  };
}

function registerVerify(group: Command, context: CliContext): void {
  const command = group
    .command("verify")
    .description(
      "Read backups again and compare every hash. What has changed, or is missing, is named, and the exit code is 1.",
    )
    .argument(...DESTINATION)
    .argument("[id]", "one backup; all by default")
    .option("--json", "print JSON");
  withExamples(command, ["engine backup verify ~/backups"]).action(
    context.action(async (text: string, id: string | undefined, flags: Flags) => {
      const line = progressLine(context);
      const verified = await on(context, text, "read", async (repository) => {
        const listed = await repository.list();
        const all = listed.flatMap((one) => ("manifest" in one ? [one.manifest] : []));
        const manifests = id === undefined ? all : [await repository.find(id)];
        const options = { onProgress: (done: number) => line.say(`${done} objects`) };
        const found = await verifyBackups(repository, manifests, options);
        const unusable = id === undefined ? await unusableBackups(repository) : [];
        return { ...found, problems: [...unusable, ...found.problems] };
      }).finally(() => line.end());
      const { backups, files, objects, bytes, problems } = verified;
      if (flags.json === true) await context.writeJson({ ...verified, ok: problems.length === 0 });
      else {
        for (const problem of problems) context.error(visible(problemText(problem)));
        const read = `${countText(files, "file")} and ${countText(objects, "object")} (${sizeText(bytes)})`;
        const verdict = problems.length === 0 ? "all as they were written" : countText(problems.length, "problem");
        await context.writeLine(`${countText(backups, "backup")}, ${read} read: ${verdict}`);
      }
      return problems.length === 0 ? EXIT.ok : EXIT.failed;
    }),
  );
}

function problemText({ backup_id: id, file, object_key: key, problem }: Problem): string {
  return `backup ${id}: ${problem.startsWith(file) ? problem : `${file}: ${problem}`}${key === undefined ? "" : ` (${key})`}`;
}

function registerPrune(group: Command, context: CliContext): void {
  const command = group
    .command("prune")
    .description(
      "Delete all but the newest backups, then the objects that no other one needs. While a backup is being made objects " +
        "are left for the next time.",
    )
    .argument(...DESTINATION)
    .requiredOption("--keep <count>", "how many backups are kept")
    .option("--json", "print JSON");
  withExamples(command, ["engine backup prune ~/backups --keep 14"]).action(
    context.action(async (text: string, flags: Flags & { keep: string }) => {
      const keep = parseKeep(flags.keep);
      // Nothing is made where there are no backups.
      await on(context, text, "read", async () => {});
      const pruned = await on(context, text, "write", (repository, ports) => pruneBackups(repository, keep, ports));
      if (flags.json === true) await context.writeJson(pruned);
      else await context.writeLine(prunedText(pruned));
      return EXIT.ok;
    }),
  );
}

function prunedText({
  backups_deleted: gone,
  backups_kept: kept,
  objects_deleted: objects,
  objects_left: left,
}: Pruned): string {
  const rest = left ? "; objects are left for the next time, for a backup is being made" : "";
  return `${countText(gone.length, "backup")} deleted, ${kept} kept; ${countText(objects, "object")} deleted${rest}`;
}
