import { homedir } from "node:os";
import { join } from "node:path";
import { ANONYMOUS } from "../../auth/caller.ts";
import { catalogUrl } from "../../config/kinds.ts";
import type { Config } from "../../config/options.ts";
import { valuesOf } from "../../config/option.ts";
import type { Clock } from "../../core/clock.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import type { RecordStore } from "../../db/records.ts";
import { EMBED_OPTIONS } from "../memory/embed/options.ts";
import { openStoredVectors } from "../memory/embed/stored-vectors.ts";
import type { MemoryService } from "../memory/service.ts";
import { Verdicts } from "../memory/verdicts.ts";
import { FileSync, LAST, passResult, type PassResult } from "./file-sync.ts";
import { FILE_SYNC_OPTIONS } from "./options.ts";
import { StateFiles } from "./state.ts";

/** Memories of projects are in the database that everybody has. */
const DATABASE = "default";

/** The sync of this machine's files, as the options say. Whoever runs it owns the files and the catalog. */
export function openFileSync(
  config: Config,
  {
    memory,
    records,
    clock,
    random,
    version,
  }: { memory: MemoryService; records: RecordStore; clock: Clock; random: Random; version: string },
): FileSync {
  const values = valuesOf(FILE_SYNC_OPTIONS, config);
  const cloud = { token: values.cloudToken, realm: values.syncRealm, database: DATABASE };
  return new FileSync({
    memory,
    scope: () => memory.scope(ANONYMOUS, DATABASE),
    clock,
    random,
    options: {
      home: values.home,
      of: ofWhat(values),
      agentHome: agentHomeOf(values),
      promotion: {
        isOn: values.caPromote,
        max: values.caPromoteMax,
        minImportance: values.caPromoteMinImportance,
        quietMs: values.caQuietWindow * 1_000,
      },
      curation: {
        isOn: values.caCurate,
        staleDays: values.caStaleDays,
        band: values.caDupCosine,
        verdicts: new Verdicts(records),
        vectors: openStoredVectors(valuesOf(EMBED_OPTIONS, config), records),
      },
      lockTtlMs: values.caLockTtl * 1_000,
      cloud: values.cloudUrl === undefined ? undefined : { ...cloud, url: values.cloudUrl },
      userAgent: `engine/${version}`,
    },
  });
}

/** What the last pass came to, whichever process made it; undefined where there was none. */
export async function lastPass(config: Config, random: Random): Promise<PassResult | undefined> {
  const values = valuesOf(FILE_SYNC_OPTIONS, config);
  return await new StateFiles({ home: values.home, of: ofWhat(values), random }).read(LAST, passResult);
}

/** Of another agent's home, or another catalog, nothing was synced yet. */
function ofWhat(values: FileSyncValues): string {
  return JSON.stringify([agentHomeOf(values), catalogUrl.format(values.catalogUrl)]);
}

type FileSyncValues = Pick<Config, "home" | "catalogUrl"> & { caHome: string | undefined };

/** The home of the coding agent. A user without a home folder has none, and nothing is found in that of the engine. */
export function agentHomeOf({ caHome, home }: Pick<FileSyncValues, "home" | "caHome">): string {
  if (caHome !== undefined) return caHome;
  try {
    return join(homedir(), ".claude");
  } catch (error) {
    if (systemCodeOf(error) === "ERR_SYSTEM_ERROR") return home;
    throw error;
  }
}
