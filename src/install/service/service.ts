import { open, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { connect } from "node:net";
import { join } from "node:path";
import { parse, stringify } from "smol-toml";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { formatAddress, type Address } from "../../config/kinds.ts";
import { programCommand } from "../../core/distribution.ts";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { readIfThere, writeDurably } from "../../core/durable-file.ts";
import { toolRunner } from "../run-tool.ts";
import { SERVE_UNIT, type ServiceDefinition, type ServiceManager, type ServiceUnit } from "./definition.ts";
import { Launchd } from "./launchd.ts";
import { Systemd } from "./systemd.ts";

/** The service of this user as files and the system's manager know it. */

/** Whether a system keeps services running by a manager that is known here. */
export function hasServices(platform: NodeJS.Platform = process.platform): boolean {
  return platform === "linux" || platform === "darwin";
}

/** @throws CliError (exit code 2) on a system of which no manager is known. */
export function serviceManager(context: CliContext): ServiceManager {
  return managerOf(SERVE_UNIT, context);
}

/** Of any service of this program. @throws CliError (exit code 2) on a system of which no manager is known. */
export function managerOf<D>(
  service: ServiceUnit<D>,
  context: CliContext,
  platform: NodeJS.Platform = process.platform,
): ServiceManager<D> {
  const { env, clock } = context.deps;
  const run = toolRunner(env);
  const userHome = env["HOME"] || homedir();
  const userId = process.getuid?.() ?? 0;
  if (platform === "darwin") return new Launchd(service, { run, clock, userHome, userId });
  if (platform === "linux") {
    const configHome = env["XDG_CONFIG_HOME"] || join(userHome, ".config");
    return new Systemd(service, { run, clock, configHome, userId, runtimeDir: env["XDG_RUNTIME_DIR"] || undefined });
  }
  throw new CliError(
    `services are kept running by systemd and launchd, and ${platform} has neither: run \`engine serve\` by its own means`,
    EXIT.usage,
  );
}

/** What the file of the service says; undefined where there is none. @throws CliError for a file that is not ours. */
export function installedService(manager: ServiceManager): Promise<Installed<ServiceDefinition> | undefined> {
  return installedUnit(SERVE_UNIT, manager);
}

/** The same of any service of this program. */
export async function installedUnit<D extends object>(
  service: ServiceUnit<D>,
  manager: ServiceManager<D>,
): Promise<Installed<D> | undefined> {
  const text = await readIfThere(manager.file);
  if (text === undefined) return undefined;
  const known = service.definitionIn(text);
  if (known === undefined) {
    throw new CliError(`${manager.file} was not written by \`${service.installedBy}\`: move it away first`);
  }
  return { text, ...known };
}

type Installed<D> = D & { text: string };

export type InstallOptions = { listen: Address; home: string; token: string | undefined };

/** Installs the service, or changes what differs. Returns what there is to say, and whether anything was changed. */
export async function installService(
  context: CliContext,
  manager: ServiceManager,
  { listen, home, token }: InstallOptions,
): Promise<{ notes: readonly string[]; hasChanged: boolean }> {
  const { random } = context.deps;
  const before = await installedService(manager);
  const configFile = join(home, "service.toml");
  const configText = await configTextFor(configFile, token);
  const definition: ServiceDefinition = { command: programCommand(), listen, home, configFile };
  const notes = await manager.prepare();
  const unitText = manager.render(definition);
  const isRunning = before !== undefined && (await manager.state()).isRunning;
  if (!isRunning || formatAddress(before.listen) !== formatAddress(listen)) await refuseTakenAddress(listen);
  const hasNewConfig = configText !== undefined;
  const hasNewUnit = before?.text !== unitText;
  if (hasNewConfig) await writeDurably(configFile, configText, 0o600, random);
  else await keepPrivate(configFile);
  if (hasNewUnit) await writeDurably(manager.file, unitText, 0o644, random);
  const hasChanged = hasNewConfig || hasNewUnit;
  await manager.activate({ hasChanged });
  return { notes, hasChanged };
}

/** Stops a service and removes its file; data and options stay. What there was; undefined where there was nothing. */
export async function uninstallUnit<D extends object>(
  service: ServiceUnit<D>,
  manager: ServiceManager<D>,
): Promise<Installed<D> | undefined> {
  const known = await installedUnit(service, manager);
  if (known === undefined) return undefined;
  await manager.deactivate();
  await rm(manager.file, { force: true });
  await manager.forget();
  return known;
}

const HEADER = [
  "# Options of `engine service`; docs/configuration.md has them all.",
  "# `engine service install --token TOKEN` sets auth.tokens; nothing else changes this file.",
];

/** The text that the file with options is to have; undefined where it stays as it is. */
async function configTextFor(file: string, token: string | undefined): Promise<string | undefined> {
  const text = await readIfThere(file);
  if (token === undefined) return text === undefined ? `${HEADER.join("\n")}\n` : undefined;
  const tokens = [`${token}:admin`];
  const wanted = `${HEADER.join("\n")}\n\n${stringify({ auth: { tokens } })}\n`;
  if (text === undefined) return wanted;
  const options = optionsIn(file, text);
  const isOurs = Object.keys(options).every((key) => key === "auth") && hasTokensAlone(options["auth"]);
  if (JSON.stringify((options["auth"] as { tokens?: unknown } | undefined)?.tokens) === JSON.stringify(tokens)) {
    return undefined;
  }
  if (isOurs) return wanted;
  throw new CliError(`${file} has options of yours beside the token: set auth.tokens there by hand`);
}

function optionsIn(file: string, text: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    throw new CliError(`${file} is not TOML (${messageOf(error).split("\n")[0]}): mend it first`, EXIT.usage);
  }
}

function hasTokensAlone(auth: unknown): boolean {
  return auth === undefined || (typeof auth === "object" && Object.keys(auth ?? {}).every((key) => key === "tokens"));
}

/** A file that others may read holds no secret. */
async function keepPrivate(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.chmod(0o600);
  } finally {
    await handle.close();
  }
}

const CONNECT_TIMEOUT_MS = 2_000;

/** @throws CliError where something else answers at the address already. */
async function refuseTakenAddress({ host, port }: Address): Promise<void> {
  if (port === 0) return;
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect({ host: reachable(host), port, timeout: CONNECT_TIMEOUT_MS });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    // Whatever the reason is, nobody is there.
    socket.once("error", (error) => end(systemCodeOf(error) === undefined));
  });
  if (!isTaken) return;
  const address = formatAddress({ host, port });
  throw new CliError(`something else listens on ${address}: stop it, or choose another address with --addr`);
}

/** Where a client reaches what listens there. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
