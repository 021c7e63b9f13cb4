import type { Command } from "commander";
import { countText } from "../../client/api.ts";
import { CATALOG_FLAG, type CatalogFlags } from "../../client/catalog.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { EXIT } from "../../client/failure.ts";
import { schemaNumbersOf } from "../../catalog/transfer/schema-numbers.ts";
import type { LoadOptions } from "../../catalog/transfer/load.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { withRepository } from "../open-destination.ts";
import type { Manifest } from "../manifest.ts";
import type { Repository } from "../repository.ts";
import { restoreBackup, type Restored } from "../restore.ts";
import { destinationIn, localPorts, progressLine, sizeText, tempDirOf, withStore, type LocalPorts } from "./local.ts";

type Flags = CatalogFlags & { json?: true };

export function registerRestore(group: Command, context: CliContext): void {
  const command = group
    .command("restore")
    .description(
      "Bring a backup back into an empty catalog, SQLite or PostgreSQL, and its objects into the object store of the " +
        "configuration. No server may run on it. Nothing is left there when a hash is wrong.",
    )
    .argument("<destination>", "where the backup is: a folder, or s3://BUCKET/PREFIX")
    .argument("[id]", "which one; the newest by default")
    .option(...CATALOG_FLAG)
    .option("--json", "print JSON");
  withExamples(command, [
    "ENGINE_HOME=~/restored engine backup restore ~/backups",
    "engine backup restore s3://backups/engine --catalog-url postgres://engine@db/engine",
  ]).action(context.action((text: string, id: string | undefined, flags: Flags) => restore(context, text, id, flags)));
}

async function restore(context: CliContext, text: string, id: string | undefined, flags: Flags): Promise<number> {
  const destination = destinationIn(text);
  const loaded = await context.loadConfig({ catalogUrl: flags.catalogUrl });
  const ports = localPorts(context, loaded);
  const restored = await withRepository(destination, "read", ports, async (repository) =>
    restoreInto(context, loaded, ports, { repository, manifest: await repository.find(id) }),
  );
  if (flags.json === true) await context.writeJson(restored);
  else {
    const { backup_id: of, snapshot, objects, bytes } = restored;
    const all = `${countText(objects, "object")} (${sizeText(bytes)})`;
    await context.writeLine(`backup ${of} is restored, as of snapshot ${snapshot}, with ${all}`);
    context.note("credentials are as sealed as they were: start the server with the ENGINE_SECRET_KEY of the old one");
  }
  return EXIT.ok;
}

async function restoreInto(
  context: CliContext,
  loaded: LoadedConfig,
  ports: LocalPorts,
  from: { repository: Repository; manifest: Manifest },
): Promise<Restored> {
  const { catalogUrl, pathPrefix: keyPrefix } = loaded.config;
  const { clock } = ports;
  const migrations = await context.deps.migrations();
  const line = progressLine(context);
  const withLoad = (load: (options: LoadOptions) => Promise<void>): Promise<Restored> =>
    withStore(loaded, ports, (store) =>
      restoreBackup(
        from.repository,
        from.manifest,
        { store, newId: ports.newId, load: (options) => load({ ...options, migrations, clock }) },
        {
          keyPrefix,
          tempDir: tempDirOf(ports),
          known: schemaNumbersOf(migrations),
          onProgress: (phase, done, total) => line.say(`${phase}: ${done} of ${total}`),
        },
      ),
    );
  try {
    if (catalogUrl.kind === "postgres") {
      const { withEmptyPostgres } = await import("../../catalog/postgres/transfer-load.ts");
      return await withEmptyPostgres({ url: catalogUrl.url, clock }, withLoad);
    }
    const { loadSqlite, withEmptySqlite } = await import("../../catalog/sqlite/transfer-load.ts");
    return await withEmptySqlite(catalogUrl.path, (path) => withLoad((options) => loadSqlite(path, options)));
  } finally {
    line.end();
  }
}
