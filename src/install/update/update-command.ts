import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { valuesOf } from "../../config/option.ts";
import { commandOf, type Distribution } from "../../core/distribution.ts";
import type { Release } from "../release/manifest.ts";
import { compareVersions } from "../release/version-order.ts";
import { toolRunner } from "../run-tool.ts";
import type { ServiceManager } from "../service/definition.ts";
import { serviceRunning } from "../service/running.ts";
import { findRelease } from "./find-release.ts";
import { readMemory, remembering, writeMemory } from "./memory.ts";
import { UPDATE_OPTIONS } from "./options.ts";
import { ArchiveReplacement } from "./replace-archive.ts";
import { FileReplacement } from "./replace-file.ts";
import type { Replacement } from "./replacement.ts";
import { openSource, type ReleaseSource } from "./source.ts";
import { installRelease } from "./update.ts";
import { alone } from "./update-lock.ts";

export type UpdateFlags = { check?: true; version?: string; force?: true; restart: boolean; json?: true };

/** What the program is, and whom it trusts. */
export type UpdateSetting = {
  distribution: Distribution;
  execPath: string;
  publicKeys: readonly string[];
  /** Of the service that may run this program; undefined on systems without one. */
  manager: ServiceManager | undefined;
};

/** `engine update --check` where there is a newer release. */
export const EXIT_NEWER = 10;

/** `engine update`: resolves to its exit code. @throws CliError */
export async function runUpdate(context: CliContext, flags: UpdateFlags, setting: UpdateSetting): Promise<number> {
  const { kind } = setting.distribution;
  if (flags.check !== true) refuseOthersWork(setting.distribution, flags.version);
  const config = valuesOf(UPDATE_OPTIONS, (await context.loadConfig({})).config);
  if (config.updateUrl === undefined) {
    throw new CliError(
      "this program was built without an address of releases: set ENGINE_UPDATE_URL to where they are published",
      EXIT.usage,
    );
  }
  const userAgent = `engine/${context.deps.version} (${kind})`;
  const source = await openSource(config.updateUrl, { userAgent, env: context.deps.env });
  try {
    return await alone(config.home, async () => {
      const release = await wantedRelease(context, flags, { source, setting, home: config.home });
      const order = compareVersions(release.version, context.deps.version);
      if (flags.check === true) return await tell(context, flags, release, order);
      if (flags.version === undefined && order <= 0 && flags.force !== true)
        return await tell(context, flags, release, order);
      refuseOlder(context, flags, release, order);
      const replacement = replacementOf(setting.distribution, source, context);
      const service = await serviceToRestart(flags, setting);
      await installRelease(context, release, {
        replacement,
        catalogUrl: config.catalogUrl,
        run: toolRunner(withoutOptions(context.deps.env)),
        service,
      });
      return await report(context, flags, release, service !== undefined);
    });
  } finally {
    await source.close();
  }
}

type Finding = { source: ReleaseSource; setting: UpdateSetting; home: string };

async function wantedRelease(context: CliContext, flags: UpdateFlags, finding: Finding): Promise<Release> {
  const { clock, random } = context.deps;
  const { source, setting, home } = finding;
  const memory = await readMemory(home);
  const wanted = { tag: flags.version, force: flags.force === true };
  const deps = { source, publicKeys: setting.publicKeys, nowMs: clock.nowMs(), memory };
  const release = await findRelease(wanted, deps);
  const seen = { version: release.version, releasedAtMs: Date.parse(release.released_at) };
  const known = remembering(memory, seen);
  if (known !== memory) await writeMemory(home, known, random);
  return release;
}

/** Programs that somebody else installs are updated by them. @throws CliError with the command that does it */
function refuseOthersWork({ kind, folder }: Distribution, tag: string | undefined): void {
  if (kind === "single-file" || kind === "archive") return;
  const how = {
    npm: () => `npm installed this program: npm install --global ${packageIn(folder)}@${tag ?? "latest"}`,
    image: () => `this program is part of an image: pull the image of ${tag ?? "the newer version"} and start it`,
    checkout: () =>
      `this is a checkout: git ${tag === undefined ? "pull" : `checkout v${tag}`} && npm ci && npm run build`,
  }[kind];
  throw new CliError(how(), EXIT.usage);
}

function packageIn(folder: string): string {
  const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: unknown };
  return typeof name === "string" ? name : "engine";
}

function refuseOlder(context: CliContext, { force }: UpdateFlags, { version }: Release, order: number): void {
  if (order >= 0 || force === true) return;
  throw new CliError(
    `${version} is older than this version, ${context.deps.version}: --force installs it all the same, and it may not ` +
      "open what this version has written",
  );
}

function replacementOf(distribution: Distribution, source: ReleaseSource, context: CliContext): Replacement {
  const { random } = context.deps;
  return distribution.kind === "archive"
    ? new ArchiveReplacement(distribution.folder, { source, random })
    : new FileReplacement(distribution.program, { source, random });
}

async function serviceToRestart({ restart }: UpdateFlags, { manager, distribution, execPath }: UpdateSetting) {
  if (!restart || manager === undefined) return undefined;
  return await serviceRunning(manager, commandOf(distribution, execPath));
}

/** The new program is tried with options of its own. */
function withoutOptions(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("ENGINE_")));
}

async function tell(context: CliContext, flags: UpdateFlags, release: Release, order: number): Promise<number> {
  const { version } = context.deps;
  const isNewer = order > 0;
  if (flags.json) await context.writeJson({ version, newest: release.version, update_available: isNewer });
  else if (isNewer) await context.writeLine(`${release.version} is available (this is ${version}): engine update`);
  else if (order === 0) await context.writeLine(`${version} is the newest version`);
  else await context.writeLine(`${version} is newer than what is published, ${release.version}`);
  return isNewer && flags.check === true ? EXIT_NEWER : EXIT.ok;
}

async function report(context: CliContext, { json, restart }: UpdateFlags, release: Release, isRestarted: boolean) {
  const { version } = context.deps;
  if (json) await context.writeJson({ version: release.version, before: version, restarted: isRestarted });
  else {
    await context.writeLine(
      `updated from ${version} to ${release.version}${isRestarted ? "; the service runs it" : ""}`,
    );
    if (!isRestarted && !restart) await context.writeLine("what runs already keeps its version until it starts again");
  }
  return EXIT.ok;
}
