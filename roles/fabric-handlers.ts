import { join } from "node:path";

import { COMPACTION_OPTIONS } from "../src/compaction/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { createDeleteRows } from "../src/compaction/delete-rows.ts";
import { createVerifyExtents } from "../src/compaction/verify-extents.ts";
import type { JobHandler } from "../src/fabric/handler.ts";
import { createQueryExport } from "../src/query/exports/export.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import { RowMatcher } from "../src/query/row-matcher.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What the handlers of this process work with; `query` is there where this process answers queries. */
export type HandlerPorts = Storage & { query: QueryService | undefined };

const MIB = 1024 * 1024;
/** Each job that verifies has a process of its own, as many at once as there are slots. */
const VERIFY_LIMITS = { memoryBytes: 256 * MIB, spillBytes: 4_096 * MIB, threads: 1 };
/** The same, but that what stays of extents is sorted. */
const REWRITE_LIMITS = { memoryBytes: 512 * MIB, spillBytes: 4_096 * MIB, threads: 1 };
/** As compaction has it; and of the object store and the disk what a link of 1 Gbit/s carries. */
const BESIDE_CLIENTS = { cpuShare: 0.5, ioBytesPerSec: 128 * MIB };
const ALONE = { cpuShare: 1, ioBytesPerSec: 0 };

/**
 * Handlers that work with more than one feature, which the dispatcher of a server with the role `worker` runs. Features
 * bring the others themselves.
 */
export function engineHandlers(
  parts: Parts,
  ports: HandlerPorts,
  query: () => Promise<QueryService> = queryServiceOf(parts, ports),
): JobHandler[] {
  const { config } = parts;
  const { cpuShare, ioBytesPerSec } = ports.query === undefined ? ALONE : BESIDE_CLIENTS;
  const folder = (name: string): string => join(config.home, "tmp", name);
  const bounds = {
    cpuShare,
    ioBytesPerSec: valuesOf(COMPACTION_OPTIONS, config).compactionIoBytesPerSec ?? ioBytesPerSec,
  };
  return [
    createVerifyExtents({ ...parts, ...ports }, { tempDir: folder("verify"), limits: VERIFY_LIMITS, ...bounds }),
    createDeleteRows(
      { ...parts, ...ports, matcher: new RowMatcher(query) },
      {
        tempDir: folder("deletions"),
        limits: REWRITE_LIMITS,
        encodings: config.parquetEncodings,
        keyPrefix: config.pathPrefix,
        ...bounds,
      },
    ),
    createQueryExport({ ...parts, ...ports, query }, { keyPrefix: config.pathPrefix, tempDir: folder("exports") }),
  ];
}

/**
 * Exports, dreams, pipelines and clients share one query service, and so its budgets of memory, processes and turns. A process that answers
 * no queries makes its own with the first of these: until then it has neither processes nor memory for it.
 */
export function queryServiceOf(parts: Parts, { query, ...storage }: HandlerPorts): () => Promise<QueryService> {
  if (query !== undefined) return () => Promise.resolve(query);
  let made: Promise<QueryService> | undefined;
  const make = async (): Promise<QueryService> => {
    const { createQuery } = await import("./query.ts");
    return (await createQuery(parts, storage)).service;
  };
  return async () => {
    made ??= make();
    try {
      return await made;
    } catch (error) {
      // The next one may find what was missing.
      made = undefined;
      throw error;
    }
  };
}
