import { isAllowed } from "../../contract/host-names.ts";
import type { SetupSources } from "../../network/egress/egress.ts";
import type { Binary, PreCommand, SandboxSpec, Skill } from "../../contract/spec.ts";
import { cloneRepository, type ClonePorts } from "./clone.ts";
import { configureAgent } from "./configure-agent.ts";
import { AGENT_ROOTS } from "../../contract/agent-folders.ts";
import { installSkills } from "./install-skills.ts";
import { CommandFailed, runCommand, type Command } from "./run-command.ts";
import { repositoryHost } from "../../contract/repository-url.ts";

export type SetUpOptions = ClonePorts & {
  spec: SandboxSpec;
  sources: SetupSources;
  /** Until the returned function is called, the sandbox reaches these hosts, too, for that step. */
  letOut: (step: string, hosts: readonly string[]) => Promise<() => Promise<void>>;
};

/** One step of the pipeline, with the name that events have. */
export type SetUpStep = { name: string; run: () => Promise<void> };

const INSTALL_MS = 1_800_000;
const FOLDER_MS = 60_000;

/**
 * What is set up in a machine before the owner's scripts: folders and repositories, packages and skills. Steps that there is
 * nothing to do in are left out. Each may be begun again after its node died in the middle.
 */
export function setUpSteps(options: SetUpOptions): SetUpStep[] {
  const { gitRepos = [], binaries = [], skills = [], workingDirectory } = options.spec;
  const folders = [...new Set([...gitRepos.map(({ path }) => path), workingDirectory ?? AGENT_ROOTS[0]])];
  const isAnyNew = gitRepos.length > 0 || workingDirectory !== undefined;
  return [
    { name: "PrepareDisk", isThere: isAnyNew, run: () => prepareDisk(options, folders) },
    { name: "CloneRepositories", isThere: gitRepos.length > 0, run: () => cloneAll(options) },
    { name: "InstallBinaries", isThere: binaries.length > 0, run: () => installAll(options, binaries) },
    { name: "InstallSkills", isThere: skills.length > 0, run: () => installAllSkills(options, skills) },
  ].filter(({ isThere }) => isThere);
}

/** What comes after the owner's scripts. */
export function lastSteps(options: SetUpOptions): SetUpStep[] {
  const { preCommands = [], subagents = [] } = options.spec;
  return [
    { name: "RunPreCommands", isThere: preCommands.length > 0, run: () => runAll(options, preCommands) },
    { name: "ConfigureAgent", isThere: subagents.length > 0, run: () => configureAgent(options, options.spec) },
  ].filter(({ isThere }) => isThere);
}

/** The second root is no folder of an image: it is made, and given to the agent, as root of the sandbox. */
const MAKE_ROOT = '[ -d "$1" ] || mkdir -- "$1" && chown agent: -- "$1"';
/** Where links were followed, the folder would be another one than was said. */
const MAKE_FOLDER = `
at=$1
while [ ! -e "$at" ] && [ ! -L "$at" ]; do at=\${at%/*}; done
[ "$(cd -P -- "$at" 2>/dev/null && pwd -P)" = "$at" ] || { echo "$at is no folder, or there is a link on the way" >&2; exit 1; }
mkdir -p -- "$1"
`;

async function prepareDisk(options: SetUpOptions, folders: readonly string[]): Promise<void> {
  const { workingDirectory } = options.spec;
  const [, root] = AGENT_ROOTS;
  if (folders.some((folder) => folder === root || folder.startsWith(`${root}/`))) {
    await runCommand(options, { ...shell(MAKE_ROOT, root), key: "workspace", user: "root", timeoutMs: FOLDER_MS });
  }
  if (workingDirectory === undefined) return;
  const make = shell(MAKE_FOLDER, workingDirectory);
  await runCommand(options, { ...make, key: "working directory", user: "agent", timeoutMs: FOLDER_MS });
}

async function cloneAll(options: SetUpOptions): Promise<void> {
  const { gitRepos: repos = [], exclusions } = options.spec;
  // The gateway reaches those with a credential, and nothing else of their hosts.
  const open = repos.filter(({ credentialId }) => credentialId === undefined);
  const hosts = open.map(({ url }) => repositoryHost(url));
  const close = await options.letOut("CloneRepositories", listed(options, hosts));
  try {
    for (const [i, repo] of repos.entries()) await cloneRepository(options, { ...repo, exclusions, key: `clone ${i}` });
  } finally {
    await close();
  }
}

async function installAllSkills(options: SetUpOptions, skills: readonly Skill[]): Promise<void> {
  const hosts = skills.map(({ source }) => repositoryHost(source));
  const close = await options.letOut("InstallSkills", listed(options, hosts));
  try {
    await installSkills(options, options.spec);
  } finally {
    await close();
  }
}

/** Those that the operator lets repositories come from. */
function listed({ sources }: SetUpOptions, hosts: readonly string[]): string[] {
  return hosts.filter((host) => isAllowed(host, sources.repositoryHosts));
}

/** Each manager is asked once, for everything; root's comes first, for others may need what it brings. */
const MANAGERS = ["apt", "pip", "npm", "cargo"] as const;

async function installAll(options: SetUpOptions, binaries: readonly Binary[]): Promise<void> {
  const close = await options.letOut("InstallBinaries", options.sources.registryHosts);
  try {
    for (const manager of MANAGERS) {
      const packages = binaries.filter((binary) => binary.manager === manager);
      if (packages.length === 0) continue;
      const commands = commandsOf(manager, packages);
      for (const [i, command] of commands.entries()) {
        const named = { ...command, key: `${manager} ${i}`, timeoutMs: INSTALL_MS };
        await naming(manager, runCommand(options, named));
      }
    }
  } finally {
    await close();
  }
}

type Installation = Pick<Command, "argv" | "user" | "env">;

function commandsOf(manager: Binary["manager"], packages: readonly Binary[]): Installation[] {
  const names = (separator: string) =>
    packages.map(({ name, version }) => (version === undefined ? name : `${name}${separator}${version}`));
  const agent = { user: "agent" } as const;
  switch (manager) {
    case "apt":
      return [{ ...shell(APT, ...names("=")), user: "root", env: { DEBIAN_FRONTEND: "noninteractive" } }];
    case "pip":
      return [{ ...shell(PIP, ...names("==")), ...agent, env: { PIP_BREAK_SYSTEM_PACKAGES: "1" } }];
    case "npm":
      return [{ ...shell(NPM, ...names("@")), ...agent }];
    case "cargo":
      // It takes one version for all that it is given.
      return packages.map(({ name, version }) => ({
        ...shell(CARGO, name, ...(version === undefined ? [] : ["--version", version])),
        ...agent,
      }));
  }
}

const missing = (program: string) =>
  `command -v ${program} >/dev/null || { echo "the image has no ${program}" >&2; exit 1; }\n`;
const APT = `${missing("apt-get")}apt-get -q update && exec apt-get -q install -y --no-install-recommends -- "$@"`;
const PIP = `${missing("pip3")}exec pip3 install --user --no-input --disable-pip-version-check --no-warn-script-location -- "$@"`;
const NPM = `${missing("npm")}exec npm install --global --prefix "$HOME/.local" --no-audit --no-fund --no-update-notifier -- "$@"`;
const CARGO = `${missing("cargo")}exec cargo install --locked --root "$HOME/.local" "$@"`;

async function runAll(options: SetUpOptions, commands: readonly PreCommand[]): Promise<void> {
  const cwd = options.spec.workingDirectory;
  for (const [i, { name, command, args, timeoutSecs }] of commands.entries()) {
    const run = { argv: [command, ...args], user: "agent", cwd, timeoutMs: timeoutSecs * 1_000 } as const;
    await naming(name, runCommand(options, { ...run, key: `pre-command ${i}` }));
  }
}

async function naming(what: string, running: Promise<void>): Promise<void> {
  try {
    await running;
  } catch (error) {
    if (error instanceof CommandFailed) throw new CommandFailed(`${what}: ${error.message}`, error.lines);
    throw error;
  }
}

/** The arguments are `$1` and so on, whatever is in them. */
function shell(script: string, ...args: readonly string[]): Pick<Command, "argv"> {
  return { argv: ["/bin/sh", "-c", script, "sh", ...args] };
}
