import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { stringify } from "smol-toml";
import { z } from "zod";
import { countText } from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { visible } from "../../client/text.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { valuesOf, type Option } from "../../config/option.ts";
import { OPTIONS, type Config } from "../../config/options.ts";
import { programCommand } from "../../core/distribution.ts";
import { readIfThere, writeDurably } from "../../core/durable-file.ts";
import { factsIn, factsLine, type ServiceUnit } from "../../install/service/definition.ts";
import { installedUnit, managerOf, uninstallUnit } from "../../install/service/service.ts";
import { isWell, type PassResult } from "../../knowledge/filesync/file-sync.ts";
import { agentHomeOf, lastPass } from "../../knowledge/filesync/open.ts";
import { FILE_SYNC_OPTIONS } from "../../knowledge/filesync/options.ts";
import { EMBED_OPTIONS } from "../../knowledge/memory/embed/options.ts";

/** `engine worker install`, `uninstall` and `status`: the service of this user that runs `engine sync --watch`. */

const MARK = "engine worker install wrote this file";

const syncDefinition = z.strictObject({
  command: z.array(z.string()),
  /** Words behind `sync --watch`. */
  flags: z.array(z.string()),
  home: z.string(),
  configFile: z.string(),
});
type SyncDefinition = z.output<typeof syncDefinition>;

const SYNC_UNIT: ServiceUnit<SyncDefinition> = {
  unit: "engine-sync.service",
  label: "engine.sync",
  description: "engine, the sync of memories with files of coding agents and with a server",
  log: "sync.log",
  installedBy: "engine worker install",
  textOf: (definition) => ({
    header: factsLine(MARK, definition),
    remark: "`engine worker install` writes the options of the service into the file that ENGINE_CONFIG names.",
    words: [...definition.command, "sync", "--watch", ...definition.flags],
    environment: { ENGINE_HOME: definition.home, ENGINE_CONFIG: definition.configFile },
    home: definition.home,
  }),
  definitionIn: (text) => factsIn(text, MARK, syncDefinition),
};

type InstallFlags = { interval?: string; ccOnly?: true; cloudOnly?: true; json?: true };

export function registerSync(group: Command, context: CliContext): void {
  const install = group
    .command("install")
    .description(
      "Keep memories in step with files of coding agents and with the server of ENGINE_CLOUD_URL: a service of this user " +
        "that runs `engine sync --watch` with the options that this command has.",
    )
    .option("--interval <seconds>", "between two passes (ENGINE_CA_SYNC_POLL_SECS, 30)")
    .option("--cc-only", "only files")
    .option("--cloud-only", "only the server of ENGINE_CLOUD_URL")
    .option("--json", "print JSON");
  withExamples(install, ["engine worker install", "engine worker install --interval 60 --cc-only"]).action(
    context.action((flags: InstallFlags) => installSync(context, flags)),
  );
  const uninstall = group
    .command("uninstall")
    .description("Stop the service that syncs memories and remove it. Memories and files stay.")
    .option("--json", "print JSON");
  withExamples(uninstall, ["engine worker uninstall"]).action(
    context.action((flags: { json?: true }) => uninstallSync(context, flags)),
  );
  const status = group
    .command("status")
    .description(
      "Show whether the service that syncs memories runs, and what its last pass came to. Exit code 1 unless it is well.",
    )
    .option("--json", "print JSON");
  withExamples(status, ["engine worker status", "engine worker status --json"]).action(
    context.action((flags: { json?: true }) => showStatus(context, flags)),
  );
}

async function installSync(context: CliContext, flags: InstallFlags): Promise<number> {
  if (flags.ccOnly && flags.cloudOnly) throw new CliError("--cc-only and --cloud-only exclude each other", EXIT.usage);
  const { config, origins } = await context.loadConfig({});
  const values = valuesOf(FILE_SYNC_OPTIONS, config);
  if (flags.cloudOnly && values.cloudUrl === undefined) {
    throw new CliError("--cloud-only needs a server: set ENGINE_CLOUD_URL", EXIT.usage);
  }
  const { home } = config;
  const options = chosenOptions(config, origins);
  const filesync = { home: agentHomeOf(values), poll_secs: intervalOf(flags.interval) ?? values.caSyncPollSecs };
  options["filesync"] = { ...options["filesync"], ...filesync };
  const only = [...(flags.ccOnly ? ["--cc-only"] : []), ...(flags.cloudOnly ? ["--cloud-only"] : [])];
  const definition = { command: [...programCommand()], flags: only, home, configFile: join(home, "sync.toml") };
  const manager = managerOf(SYNC_UNIT, context);
  const before = await installedUnit(SYNC_UNIT, manager);
  for (const note of await manager.prepare()) context.warn(note);
  const texts = {
    unit: manager.render(definition),
    config: `# Written by \`engine worker install\`.\n${stringify(options)}\n`,
  };
  const isSame = before?.text === texts.unit && (await readIfThere(definition.configFile)) === texts.config;
  if (!isSame) {
    // It may hold a token.
    await writeDurably(definition.configFile, texts.config, 0o600, context.deps.random);
    await writeDurably(manager.file, texts.unit, 0o644, context.deps.random);
  }
  await manager.activate({ hasChanged: !isSame });
  if (flags.json) await context.writeJson({ changed: !isSame, file: manager.file, home });
  else await context.writeLine(`${isSame ? "unchanged" : "installed"}: ${manager.file}`);
  return EXIT.ok;
}

/** What somebody has chosen of the options that a pass reads, as in a file. It may hold a token, and the password of a catalog. */
function chosenOptions(
  config: Config,
  origins: LoadedConfig["origins"],
): Record<string, Record<string, string | number>> {
  const tables: Record<string, Record<string, string | number>> = {};
  const rows = { catalogUrl: OPTIONS.catalogUrl, ...FILE_SYNC_OPTIONS, ...EMBED_OPTIONS };
  for (const [name, row] of Object.entries<Option<unknown>>(rows)) {
    const value: unknown = config[name as keyof Config];
    if (value === undefined || row.toml === undefined || origins[name] === "default") continue;
    const [table = "", key = ""] = row.toml.split(".");
    tables[table] = { ...tables[table], [key]: row.kind.format(value) };
  }
  return tables;
}

function intervalOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > 86_400)
    throw new CliError("--interval is a number of seconds from 1 to 86400", EXIT.usage);
  return seconds;
}

async function uninstallSync(context: CliContext, { json }: { json?: true }): Promise<number> {
  const manager = managerOf(SYNC_UNIT, context);
  const known = await uninstallUnit(SYNC_UNIT, manager);
  // Its token goes with it.
  if (known !== undefined) await rm(known.configFile, { force: true });
  if (json) await context.writeJson({ changed: known !== undefined, file: manager.file });
  else await context.writeLine(known === undefined ? "no service is installed" : `removed ${manager.file}`);
  return EXIT.ok;
}

async function showStatus(context: CliContext, { json }: { json?: true }): Promise<number> {
  const manager = managerOf(SYNC_UNIT, context);
  const known = await installedUnit(SYNC_UNIT, manager);
  const { config } = await context.loadConfig({});
  const last = await lastPass(config, context.deps.random);
  const state = known === undefined ? undefined : await manager.state();
  const isFine = state?.isRunning === true && (last === undefined || isWell(last));
  if (json) {
    await context.writeJson({
      installed: known !== undefined,
      enabled: state?.isEnabled ?? false,
      running: state?.isRunning ?? false,
      state: state?.detail ?? null,
      file: manager.file,
      last: last ?? null,
    });
    return isFine ? EXIT.ok : EXIT.failed;
  }
  if (state === undefined) await context.writeLine("no service is installed: `engine worker install` does it");
  else {
    await context.writeLine(`installed  ${manager.file}`);
    await context.writeLine(`enabled    ${state.isEnabled ? "yes" : "no"}`);
    await context.writeLine(`running    ${state.isRunning ? "yes" : `no, ${state.detail}`}`);
    if (!state.isRunning) await context.writeLine(`log        ${manager.logCommand}`);
  }
  await context.writeLine(`last pass  ${last === undefined ? "none yet" : visible(summaryOf(last))}`);
  return isFine ? EXIT.ok : EXIT.failed;
}

function summaryOf({ finished_at: at, projects, cloud }: PassResult): string {
  const changes = projects.reduce((sum, { done }) => sum + done.length, 0);
  const errors = [...projects.map(({ error }) => error), cloud?.error].filter((error) => error !== undefined);
  const facts = [at, countText(projects.length, "project"), countText(changes, "change")];
  const stale = projects.reduce((sum, { review }) => sum + review.stale_count, 0);
  const duplicates = projects.reduce((sum, { review }) => sum + review.duplicate_count, 0);
  if (stale + duplicates > 0) facts.push(`to review: ${stale} stale, ${countText(duplicates, "duplicate")}`);
  if (cloud !== undefined) facts.push(`${cloud.pulled} came, ${cloud.pushed} went`);
  return [...facts, ...errors].join("; ");
}
