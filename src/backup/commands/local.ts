import { join, resolve } from "node:path";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { objectStoreSettings } from "../../config/object-store.ts";
import { uuidV7Source, type IdSource } from "../../core/ids.ts";
import { createLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { openFilesystemStore } from "../../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { parseDestination, type Destination } from "../destination.ts";
import type { OpenPorts } from "../open-destination.ts";

/** What the commands work with that need no server. */
export type LocalPorts = OpenPorts & { newId: IdSource };

export function localPorts(context: CliContext, { config, origins }: LoadedConfig): LocalPorts {
  const { clock, random } = context.deps;
  const log = createLog(origins.logLevel === "default" ? "silent" : config.logLevel);
  return { config, clock, random, log, metrics: createMetrics(), newId: uuidV7Source(clock, random) };
}

/** A folder may be given as seen from here. */
export function destinationIn(text: string): Destination {
  const destination = parseDestination(/^[a-z0-9+]+:/i.test(text) ? text : resolve(text));
  if (destination !== undefined) return destination;
  throw new CliError(`${JSON.stringify(text)} is no destination: give a folder, or s3://BUCKET/PREFIX`, EXIT.usage);
}

/** Runs work on the object store of the configuration. */
export async function withStore<T>(
  loaded: LoadedConfig,
  ports: LocalPorts,
  work: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const settings = objectStoreSettings(loaded);
  if (settings.kind === "local") return await work(await openFilesystemStore({ root: settings.root, ...ports }));
  const { openS3Store } = await import("../../io/objectstore/s3/s3.ts");
  const store = openS3Store({ ...settings, ...ports });
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

export function tempDirOf({ config, newId }: LocalPorts): string {
  return join(config.home, "tmp", "backups", newId());
}

/** One line on a terminal that says how far it is; nothing elsewhere. */
export function progressLine(context: CliContext): { say: (text: string) => void; end: () => void } {
  const { stderr } = context.deps;
  let isShown = false;
  return {
    say: (text) => {
      if (stderr.isTTY !== true) return;
      isShown = true;
      stderr.write(`\r\u001b[K${text}`);
    },
    end: () => {
      if (isShown) stderr.write("\r\u001b[K");
    },
  };
}

export function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1_024 && unit < units.length - 1) [value, unit] = [value / 1_024, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ""}`;
}
