import { existsSync } from "node:fs";
import type { Command } from "commander";
import { callTarget, countText, fieldText, withApiFlags, type ApiFlags, type Json } from "../../client/api.ts";
import { CATALOG_FLAG, withCatalog, type CatalogFlags } from "../../client/catalog.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { resolveTarget } from "../../client/target.ts";
import { visible } from "../../client/text.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { StartupError } from "../../core/errors.ts";
import { acquireServerLock } from "../../db/sqlite/lock.ts";
import { followJob } from "../../fabric/commands/job-follow.ts";
import { createBackup } from "../create.ts";
import { showDestination, type Destination } from "../destination.ts";
import { withRepository } from "../open-destination.ts";
import { pruneBackups } from "../prune.ts";
import { destinationIn, localPorts, progressLine, sizeText, tempDirOf, withStore } from "./local.ts";
import { parseKeep } from "./keep.ts";

type Flags = ApiFlags & CatalogFlags & { keep?: string; direct?: true; wait: boolean };

export function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description(
      "Back everything up: the catalog, and the objects that the destination lacks. A running server does it, as a job; " +
        "without one the command does, on the catalog of this machine. Needs the role admin.",
    )
    .argument(
      "<destination>",
      "a folder, or s3://BUCKET/PREFIX; of a server, at or below one of ENGINE_BACKUP_DESTINATIONS",
    )
    .option("--keep <count>", "keep so many backups there, and delete older ones")
    .option("--direct", "do it here, with the configuration of this machine, and ask no server")
    .option("--no-wait", "print the id of the job as soon as it is queued")
    .option(...CATALOG_FLAG);
  withExamples(withApiFlags(command), [
    "engine backup create ~/backups",
    "engine backup create s3://backups/engine --server https://engine.example.com --keep 14",
    "engine backup create /mnt/backups --direct",
  ]).action(context.action((text: string, flags: Flags) => create(context, text, flags)));
}

async function create(context: CliContext, text: string, flags: Flags): Promise<number> {
  const destination = destinationIn(text);
  const keep = flags.keep === undefined ? undefined : parseKeep(flags.keep);
  const { catalogUrl, server, token } = flags;
  const loaded = await context.loadConfig({ catalogUrl, serverUrl: server, token });
  const target = await resolveTarget(context, loaded);
  const lock = flags.direct === true || target.origin === "default" ? lockOf(loaded, flags.direct === true) : undefined;
  const done =
    lock === undefined
      ? await byServer(context, target, { destination, keep, wait: flags.wait })
      : await here(context, loaded, { destination, keep, flags }).finally(() => lock.release());
  if (flags.json === true) await context.writeJson(done);
  else await context.writeLine(visible(wordsFor(done, destination)));
  return EXIT.ok;
}

/**
 * The lock of the catalog that is backed up here; undefined where a server is to do it: one that has the catalog, or one
 * of a cluster.
 */
function lockOf({ config: { catalogUrl } }: LoadedConfig, isDirect: boolean): { release(): void } | undefined {
  // A catalog in PostgreSQL is made for many processes.
  if (catalogUrl.kind === "postgres") return isDirect ? { release: () => {} } : undefined;
  if (!existsSync(catalogUrl.path)) {
    if (!isDirect) return undefined;
    throw new CliError(`there is no catalog at ${catalogUrl.path} to be backed up; name another with --catalog-url`);
  }
  try {
    return acquireServerLock(catalogUrl.path);
  } catch (error) {
    if (error instanceof StartupError && !isDirect) return undefined;
    throw error;
  }
}

type Asked = { destination: Destination; keep: number | undefined };

async function here(
  context: CliContext,
  loaded: LoadedConfig,
  { destination, keep, flags }: Asked & { flags: Flags },
): Promise<Json> {
  const ports = localPorts(context, loaded);
  const line = progressLine(context);
  try {
    return await withRepository(destination, "write", ports, (repository) =>
      withCatalog(context, flags, "read", (catalog) =>
        withStore(loaded, ports, async (store) => {
          const created = await createBackup(
            repository,
            { ...ports, catalog, store },
            {
              keyPrefix: loaded.config.pathPrefix,
              tempDir: tempDirOf(ports),
              onProgress: ({ phase, objects_done: done, objects_total: total }) =>
                line.say(done === undefined ? phase : `${phase}: ${done} of ${total}`),
            },
          );
          if (keep === undefined) return created;
          return { ...created, pruned: await pruneBackups(repository, keep, ports) };
        }),
      ),
    );
  } finally {
    line.end();
  }
}

async function byServer(
  context: CliContext,
  target: Target,
  { destination, keep, wait }: Asked & { wait: boolean },
): Promise<Json> {
  const place = showDestination(destination);
  const payload = { destination: place, ...(keep !== undefined && { keep }) };
  const body = { kind: "backup", payload, dedup_key: `backup:${place}` };
  const made = await callTarget(context, target, "POST", "/v1/jobs", body);
  const id = fieldText(made["job_id"]);
  if (!wait) return made;
  const line = progressLine(context);
  try {
    for await (const { event, data } of followJob(context, target, id)) {
      if (event === "end") break;
      if (event === "progress") line.say(visible(JSON.stringify(data)));
    }
  } finally {
    line.end();
  }
  const job = await callTarget(context, target, "GET", `/v1/jobs/${encodeURIComponent(id)}`);
  const result = job["result"];
  if (job["status"] === "done" && typeof result === "object" && result !== null) return { job_id: id, ...result };
  throw new CliError(visible(`no backup was made: ${fieldText(job["error"] ?? job["status"])}`));
}

function wordsFor(done: Json, destination: Destination): string {
  if (done["backup_id"] === undefined) return fieldText(done["job_id"]);
  const { backup_id: id, snapshot, objects, objects_copied: copied, bytes, bytes_copied: copiedBytes } = done;
  const all = `${countText(objects, "object")} (${sizeText(Number(bytes))})`;
  const moved = `${fieldText(copied)} of them copied now (${sizeText(Number(copiedBytes))})`;
  return `backup ${fieldText(id)} of snapshot ${fieldText(snapshot)} in ${showDestination(destination)}: ${all}, ${moved}`;
}
