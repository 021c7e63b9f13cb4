import { CliError, EXIT } from "../../client/failure.ts";
import { ManifestError, MAX_MANIFEST_BYTES, readManifest, type Release } from "../release/manifest.ts";
import { SignatureError, verify } from "../release/minisign.ts";
import { compareVersions, VERSION_TEXT } from "../release/version-order.ts";
import { readWhole, type ReleaseSource } from "./source.ts";
import type { UpdateMemory } from "./memory.ts";

export type Wanted = {
  /** A version by name; the newest otherwise. */
  tag: string | undefined;
  /** Takes what is older, and by name also what has expired. */
  force: boolean;
};

export type FindDeps = { source: ReleaseSource; publicKeys: readonly string[]; nowMs: number; memory: UpdateMemory };

/**
 * The release that is wanted, once its manifest is signed, of this product, has not expired, and is none that somebody
 * passes off as the newest. @throws CliError
 */
export async function findRelease({ tag, force }: Wanted, deps: FindDeps): Promise<Release> {
  if (tag !== undefined && !VERSION_TEXT.test(tag)) {
    throw new CliError(`--version is ${JSON.stringify(tag)}; expected a version as 1.2.3`, EXIT.usage);
  }
  const { source, publicKeys, nowMs } = deps;
  const folder = tag === undefined ? [] : [tag];
  const bytes = await readWhole(source, [...folder, "release.json"], MAX_MANIFEST_BYTES);
  const signature = await readWhole(source, [...folder, "release.json.minisig"], MAX_MANIFEST_BYTES);
  const release = checkedManifest(bytes, signature.toString("utf8"), publicKeys, source.url);
  const { version, expires_at: expiresAt } = release;
  if (tag !== undefined && version !== tag) {
    throw new CliError(`${source.url} has version ${version} in the place of ${tag}: ask whoever runs it`);
  }
  const mayBeExpired = tag !== undefined && force;
  if (Date.parse(expiresAt) <= nowMs && !mayBeExpired) {
    throw new CliError(
      `what ${source.url} says of version ${version} expired on ${expiresAt}, so newer releases may be held back: ` +
        "check the clock of this machine, or set ENGINE_UPDATE_URL to a mirror that is up to date",
    );
  }
  if (tag === undefined && !force) refuseRollback(release, deps);
  return release;
}

function checkedManifest(bytes: Buffer, signature: string, publicKeys: readonly string[], url: string): Release {
  try {
    verify(bytes, signature, publicKeys);
    return readManifest(bytes);
  } catch (error) {
    if (error instanceof SignatureError) {
      const advice = "do not install from there, and tell whoever runs it";
      throw new CliError(`the signature of ${url}/release.json ${error.message}: ${advice}`, EXIT.failed, {
        cause: error,
      });
    }
    if (error instanceof ManifestError) {
      const advice = "check ENGINE_UPDATE_URL, or install the newer program by hand";
      throw new CliError(`${url}/release.json is not for this program, ${error.message}: ${advice}`, EXIT.failed, {
        cause: error,
      });
    }
    throw error;
  }
}

/** Who answers with an old manifest, which is signed as well, would keep a machine on a version with known faults. */
function refuseRollback({ version }: Release, { source, memory }: FindDeps): void {
  const { newest } = memory;
  if (newest === undefined || compareVersions(version, newest.version) >= 0) return;
  const seen = `${newest.version} of ${new Date(newest.releasedAtMs).toISOString()} was published before`;
  throw new CliError(
    `${source.url} says that ${version} is the newest version, but ${seen}: it is out of date or holds releases back; ` +
      "set ENGINE_UPDATE_URL to another mirror, or take this one by --force",
  );
}
