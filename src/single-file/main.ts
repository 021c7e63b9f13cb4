import { createRequire } from "node:module";
import { join } from "node:path";
import { getAsset, getRawAsset } from "node:sea";
import { inspect } from "node:util";
import { systemClock } from "../core/clock.ts";
import { StartupError } from "../core/errors.ts";
import { ARCHIVE_ASSET, CONTENTS_ASSET, ENTRY, type Contents } from "./contents.ts";
import { prepare } from "./prepare.ts";

/**
 * What the single file runs: it finds the unpacked program, or unpacks it, and goes on as that program in this process.
 * The words after the name of the file are the program's, all of them: no script and no option of Node is taken.
 */
async function main(): Promise<void> {
  const contents = JSON.parse(getAsset(CONTENTS_ASSET, "utf8")) as Contents;
  const uid = process.geteuid?.() ?? 0;
  const folder = await prepare({ contents, archive }, { env: process.env, uid, clock: systemClock });
  const entry = join(folder, ENTRY);
  process.argv[1] = entry;
  createRequire(entry)(entry);
}

function archive(): Uint8Array {
  return new Uint8Array(getRawAsset(ARCHIVE_ASSET));
}

main().catch((error: unknown) => {
  const isExplained = error instanceof StartupError;
  process.stderr.write(isExplained ? `error: ${error.message}\n` : `${inspect(error)}\n`);
  process.exit(isExplained ? error.exitCode : 1);
});
