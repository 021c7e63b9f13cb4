import { access, constants, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CliContext } from "../../client/context.ts";
import { CliError } from "../../client/failure.ts";
import type { CatalogUrl } from "../../config/kinds.ts";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { ArchiveError } from "../../io/tar/archive-error.ts";
import type { Artefact, Release } from "../release/manifest.ts";
import { reasonOf, type RunTool } from "../run-tool.ts";
import { awaitHealth } from "../service/await-health.ts";
import type { RunningService } from "../service/running.ts";
import { checkCatalog } from "./catalog-check.ts";
import type { Replacement } from "./replacement.ts";

/** What installing a release works with. */
export type UpdateDeps = {
  replacement: Replacement;
  catalogUrl: CatalogUrl;
  /** For the new program, whose test is not to find the options of this one. */
  run: RunTool;
  /** The service to restart, if there is one that runs this program. */
  service: RunningService | undefined;
};

const SELF_TEST_TIMEOUT_MS = 180_000;
/** From the restart of the service to its first good answer: a catalog may be migrated in it. */
const HEALTH_TIMEOUT_MS = 120_000;

/**
 * Installs a release in place of this program: beside it, tried, then by one rename, and back again where the service
 * does not come up with it. Whenever the process is killed, what the user starts is the old program or the new one.
 * @throws CliError; then the old program is in its place
 */
export async function installRelease(context: CliContext, release: Release, deps: UpdateDeps): Promise<void> {
  const { replacement, catalogUrl, service } = deps;
  const artefact = artefactFor(release, replacement);
  await checkCatalog(catalogUrl, release, context.deps.clock);
  await saying(replacement, artefact, async () => {
    await access(replacement.folder, constants.W_OK);
    await replacement.tidy();
    try {
      const program = await replacement.stage(release, artefact);
      await selfTest(program, release, deps.run);
      await replacement.commit();
    } catch (error) {
      await replacement.discard();
      throw error;
    }
  });
  const problem = service && (await restartProblem(context, service, release.version));
  if (service === undefined || problem === undefined) await replacement.prune();
  else await putBack(context, replacement, service, `${release.version} does not start (${problem})`);
}

function artefactFor({ version, artefacts }: Release, { kind }: Replacement): Artefact {
  const { platform, arch } = process;
  const found = artefacts.find((one) => one.kind === kind && one.os === platform && one.arch === arch);
  if (found !== undefined) return found;
  throw new CliError(`release ${version} has no ${kind} for ${platform} on ${arch}: install it in another way`);
}

/** Has the new program say its version, then serve, ingest and query: that loads all its native parts. */
async function selfTest(program: string, { version }: Release, run: RunTool): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "engine-self-test-"));
  try {
    const options = { env: { ENGINE_HOME: home, ENGINE_NO_UPDATE_CHECK: "1" }, timeoutMs: SELF_TEST_TIMEOUT_MS };
    const told = await run(program, ["version", "--json"], options);
    if (told.code !== 0 || versionIn(told.stdout) !== version) throw refused(version, reasonOf(told));
    const tested = await run(program, ["self-test"], options);
    if (tested.code !== 0) throw refused(version, reasonOf(tested));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function versionIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { version?: unknown } | null)?.version;
  } catch {
    return undefined;
  }
}

function refused(version: string, reason: string): CliError {
  return new CliError(`${version} does not run on this machine (${reason}): this version stays; report it`);
}

async function restartProblem(context: CliContext, service: RunningService, version: string) {
  try {
    await service.manager.restart();
  } catch (error) {
    return messageOf(error);
  }
  return await awaitHealth(context, service.listen, { timeoutMs: HEALTH_TIMEOUT_MS, version });
}

/** @throws CliError always: the update has failed. */
async function putBack(context: CliContext, replacement: Replacement, service: RunningService, why: string) {
  await replacement.revert();
  const problem = await restartProblem(context, service, context.deps.version);
  const log = service.manager.logCommand;
  if (problem === undefined) throw new CliError(`${why}: the version before is back and answers; see \`${log}\``);
  throw new CliError(`${why}, and neither does the version before, which is back (${problem}): see \`${log}\``);
}

/** Failures of the system, in a sentence with what to do. */
async function saying(replacement: Replacement, artefact: Artefact, task: () => Promise<void>): Promise<void> {
  try {
    await task();
  } catch (error) {
    const code = systemCodeOf(error);
    const { folder } = replacement;
    const options = { cause: error };
    if (code === "ENOSPC" || code === "EDQUOT") {
      const mb = Math.ceil((4 * artefact.size_bytes) / 1e6);
      throw new CliError(`no space is left in ${folder}: free ${mb} MB there; this version stays`, 1, options);
    }
    if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
      throw new CliError(`${folder} may not be written by this user: run it as the owner (sudo)`, 1, options);
    }
    if (error instanceof ArchiveError) {
      throw new CliError(`${artefact.name} is not accepted, ${error.message}: this version stays`, 1, options);
    }
    throw error;
  }
}
