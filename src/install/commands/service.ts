import type { Command } from "commander";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { address, bearerToken, formatAddress } from "../../config/kinds.ts";
import { SERVE_UNIT } from "../service/definition.ts";
import { awaitHealth, healthAt } from "../service/await-health.ts";
import { installedService, installService, serviceManager, uninstallUnit } from "../service/service.ts";

/** From the start of the service to its first good answer. */
const START_TIMEOUT_MS = 60_000;
const DEFAULT_ADDRESS = "127.0.0.1:7777";

type InstallFlags = { addr: string; token?: string; json?: true };

export const register: RegisterCommand = (program, context) => {
  const group = program
    .command("service")
    .description("Keep the engine of this machine running as a service of this user.");
  registerInstall(group, context);
  registerUninstall(group, context);
  registerStatus(group, context);
};

function registerInstall(group: Command, context: CliContext): void {
  const command = group
    .command("install")
    .description(
      "Install the service and start it, now and whenever the machine starts (Linux) or the user signs in (macOS). " +
        "It runs `engine serve` with the ENGINE_HOME of this command; other options belong in service.toml there.",
    )
    .option("--addr <host:port>", "address to listen on", DEFAULT_ADDRESS)
    .option("--token <token>", "token of an admin, which clients must show")
    .option("--json", "print JSON");
  withExamples(command, ["engine service install", "engine service install --token $(openssl rand -hex 24)"]).action(
    context.action((flags: InstallFlags) => install(context, flags)),
  );
}

async function install(context: CliContext, flags: InstallFlags): Promise<number> {
  const read = { baseDir: process.cwd(), userHome: "/" };
  const listen = address.parse(flags.addr, read);
  if (listen === undefined || listen.port === 0) {
    throw new CliError(
      `--addr is ${JSON.stringify(flags.addr)}; expected ${address.accepts}, and not port 0`,
      EXIT.usage,
    );
  }
  const token = flags.token === undefined ? undefined : bearerToken.parse(flags.token, read);
  if (flags.token !== undefined && token === undefined) {
    throw new CliError(`--token is not accepted; expected ${bearerToken.accepts}`, EXIT.usage);
  }
  const manager = serviceManager(context);
  const { home } = (await context.loadConfig({})).config;
  const { notes, hasChanged } = await installService(context, manager, { listen, home, token });
  for (const note of notes) context.warn(note);
  const problem = await awaitHealth(context, listen, { timeoutMs: START_TIMEOUT_MS });
  if (problem !== undefined) {
    throw new CliError(`the service is installed and does not answer (${problem}): see \`${manager.logCommand}\``);
  }
  const url = `http://${formatAddress(listen)}`;
  if (flags.json) await context.writeJson({ changed: hasChanged, file: manager.file, url, home });
  else {
    await context.writeLine(`${hasChanged ? "installed" : "unchanged"}: ${manager.file}`);
    await context.writeLine(`the engine answers at ${url}, with its data in ${home}`);
  }
  return EXIT.ok;
}

function registerUninstall(group: Command, context: CliContext): void {
  const command = group
    .command("uninstall")
    .description("Stop the service and remove it. Data and options stay.")
    .option("--json", "print JSON");
  withExamples(command, ["engine service uninstall"]).action(
    context.action(async ({ json }: { json?: true }) => {
      const manager = serviceManager(context);
      const known = await uninstallUnit(SERVE_UNIT, manager);
      if (json) await context.writeJson({ changed: known !== undefined, file: manager.file });
      else if (known !== undefined) await context.writeLine(`removed ${manager.file}; ${known.home} stays as it is`);
      else await context.writeLine("no service is installed");
      return EXIT.ok;
    }),
  );
}

function registerStatus(group: Command, context: CliContext): void {
  const command = group
    .command("status")
    .description(
      "Show whether the service is installed, enabled and running, since when, in which version, and how it is. " +
        "Exit code 1 unless it runs and is well.",
    )
    .option("--json", "print JSON");
  withExamples(command, ["engine service status", "engine service status --json"]).action(
    context.action(({ json }: { json?: true }) => status(context, json === true)),
  );
}

async function status(context: CliContext, asJson: boolean): Promise<number> {
  const manager = serviceManager(context);
  const known = await installedService(manager);
  if (known === undefined) {
    if (asJson) await context.writeJson({ installed: false });
    else await context.writeLine("no service is installed: `engine service install` does it");
    return EXIT.failed;
  }
  const state = await manager.state();
  const { health, reason } = await healthAt(context, known.listen);
  const isWell = state.isRunning && health?.status === "ok";
  const since = state.runningSinceMs === undefined ? undefined : new Date(state.runningSinceMs).toISOString();
  const url = `http://${formatAddress(known.listen)}`;
  if (asJson) {
    await context.writeJson({
      installed: true,
      enabled: state.isEnabled,
      running: state.isRunning,
      running_since: since ?? null,
      state: state.detail,
      version: health?.version ?? null,
      health: health?.status ?? null,
      url,
      home: known.home,
      file: manager.file,
    });
    return isWell ? EXIT.ok : EXIT.failed;
  }
  const running = state.isRunning ? `yes${since === undefined ? "" : `, since ${since}`}` : `no, ${state.detail}`;
  await context.writeLine(`installed  ${manager.file}`);
  await context.writeLine(`enabled    ${state.isEnabled ? "yes" : "no"}`);
  await context.writeLine(`running    ${running}`);
  await context.writeLine(`version    ${health?.version ?? "unknown"}`);
  await context.writeLine(`health     ${health === undefined ? reason : `${health.status} at ${url}`}`);
  if (!isWell) await context.writeLine(`log        ${manager.logCommand}`);
  return isWell ? EXIT.ok : EXIT.failed;
}
