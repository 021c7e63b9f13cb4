import { INGEST_OPTIONS } from "../src/ingest/options.ts";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { rolesOf } from "../src/config/kinds.ts";
import { valuesOf } from "../src/config/option.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { createLeaseLoop } from "../src/feature/lease-loop.ts";
import type { ByteBudget } from "../src/ingest/byte-budget.ts";
import { createFileDrop } from "../src/ingest/inputs/filedrop/file-drop.ts";
import { FILEDROP_OPTIONS } from "../src/ingest/inputs/filedrop/options.ts";
import { dropPrefixes } from "../src/ingest/inputs/filedrop/prefixes.ts";
import { PieceRoom } from "../src/ingest/piece-room.ts";
import type { SealPool } from "../src/ingest/seal-pool.ts";
import { confinementOf } from "./confinement.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** A node that died is followed by another one soon; a look renews the lease while it lasts. */
const LEASE_MS = 15_000;

/**
 * One duty for each prefix, which one node of the cluster does at a time; none where it is off, or on nodes without the
 * role. @throws StartupError for prefixes that cannot be.
 */
export async function fileDropServices(
  parts: Parts,
  storage: Storage,
  { seal, budget }: { seal: SealPool["seal"]; budget: ByteBudget },
): Promise<Service[]> {
  const { clock, newId } = parts;
  const config = valuesOf(INGEST_OPTIONS, parts.config);
  const options = valuesOf(FILEDROP_OPTIONS, config);
  const roles = rolesOf(config.roles);
  if (!options.filedropEnabled || !(roles.has("all_in_one") || roles.has("ingest"))) return [];
  const prefixes = dropPrefixes(config);
  const tempFolder = join(config.home, "tmp", "filedrop");
  // What a run that was killed has left.
  await rm(tempFolder, { recursive: true, force: true });
  const holder = newId();
  const ports = {
    ...parts,
    ...storage,
    seal,
    sealThreads: config.sealThreads,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    inferTypes: config.ingestInferTypes,
    windowMs: config.commitWindowMs,
    maxExtents: config.commitMaxExtents,
    room: new PieceRoom({ budget, clock }),
    tempFolder,
    confinement: await confinementOf(parts),
  };
  return prefixes.map((prefix) => {
    const duty = createFileDrop(ports, {
      prefix,
      autoCreate: options.filedropAutoCreate,
      evolve: options.filedropSchemaEvolve,
      deleteAfterIngest: options.filedropDeleteAfterIngest,
      growsInPlace: storage.store.localPath !== undefined,
    });
    const name = `filedrop ${prefix}`;
    return createLeaseLoop({
      ...parts,
      ...storage,
      holder,
      name,
      pollMs: options.filedropPollSecs * 1000,
      ttlMs: LEASE_MS,
      duty,
    });
  });
}
