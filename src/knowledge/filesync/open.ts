import { ANONYMOUS } from "../../auth/caller.ts";
import { catalogUrl } from "../../config/kinds.ts";
import type { Config } from "../../config/options.ts";
import { valuesOf } from "../../config/option.ts";
import type { Clock } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import type { MemoryService } from "../memory/service.ts";
import { FileSync } from "./file-sync.ts";
import { FILE_SYNC_OPTIONS } from "./options.ts";

/** Memories of projects are in the database that everybody has. */
const DATABASE = "default";

/** The sync of this machine's files, as the options say. Whoever runs it owns the files and the catalog. */
export function openFileSync(
  config: Config,
  { memory, clock, random, version }: { memory: MemoryService; clock: Clock; random: Random; version: string },
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
      catalog: catalogUrl.format(values.catalogUrl),
      agentHome: values.caHome,
      promotion: {
        isOn: values.caPromote,
        max: values.caPromoteMax,
        minImportance: values.caPromoteMinImportance,
        quietMs: values.caQuietWindow * 1_000,
      },
      lockTtlMs: values.caLockTtl * 1_000,
      cloud: values.cloudUrl === undefined ? undefined : { ...cloud, url: values.cloudUrl },
      userAgent: `engine/${version}`,
    },
  });
}
