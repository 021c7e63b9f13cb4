import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MIGRATIONS } from "../../roles/migrations.ts";
import { VERSION } from "../../src/core/version.ts";
import { migrationTexts, OLDEST_OPENED, type Dialect } from "../../src/db/migration.ts";
import { releaseValues } from "../release-values.ts";
import { RELEASE_KEYS } from "../../src/install/release/keys.ts";
import { manifestText } from "../../src/install/release/manifest.ts";
import { sign, verify } from "../../src/install/release/minisign.ts";
import type { Artefact, MadeFile } from "./maker.ts";

export type ManifestInput = {
  made: readonly MadeFile[];
  timeSecs: number;
  expiresDays: number;
  /** Minisign's file with the secret key. */
  secretKeyText: string | undefined;
};

const DAY_SECS = 86_400;

/**
 * Writes `release.json`, and its signature where there is a key. Resolves to a line for each artefact.
 * @throws Error for a key whose releases the program would not install
 */
export async function writeSignedManifest(
  folder: string,
  { made, timeSecs, expiresDays, secretKeyText }: ManifestInput,
): Promise<{ lines: string[]; isSigned: boolean }> {
  const artefacts: Artefact[] = [];
  for (const file of made) artefacts.push({ ...file, ...(await measured(join(folder, file.name))) });
  const text = manifestText({
    version: VERSION,
    released_at: timeOf(timeSecs),
    expires_at: timeOf(timeSecs + expiresDays * DAY_SECS),
    catalog: { sqlite: schemaRange("sqlite"), postgres: schemaRange("postgres") },
    artefacts,
  });
  await writeFile(join(folder, "release.json"), text);
  const lines = artefacts.map(({ name, size_bytes: sizeBytes, sha256 }) => `${sha256}  ${name}  ${sizeBytes} bytes`);
  if (secretKeyText === undefined) return { lines, isSigned: false };
  const message = Buffer.from(text);
  const signature = sign(message, secretKeyText, `engine ${VERSION}`);
  // The keys of the program that was built.
  const trusted = releaseValues(process.env).ENGINE_RELEASE_KEYS?.split(" ") ?? RELEASE_KEYS;
  try {
    verify(message, signature, trusted);
  } catch (error) {
    const advice = "set ENGINE_RELEASE_KEYS to your public keys, or sign with one of those that are built in";
    throw new Error(
      `the program that was built would not install this release, since its signature ${String(error)}: ${advice}`,
      {
        cause: error,
      },
    );
  }
  await writeFile(join(folder, "release.json.minisig"), signature);
  return { lines, isSigned: true };
}

function timeOf(secs: number): string {
  return new Date(secs * 1_000).toISOString();
}

function schemaRange(dialect: Dialect): { reads_from: number; writes: number } {
  return { reads_from: OLDEST_OPENED[dialect], writes: migrationTexts(dialect, MIGRATIONS).length };
}

async function measured(file: string): Promise<{ size_bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) hash.update(piece);
  return { size_bytes: (await stat(file)).size, sha256: hash.digest("hex") };
}
