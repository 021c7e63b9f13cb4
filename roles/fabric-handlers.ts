import { join } from "node:path";

import { COMPACTION_OPTIONS } from "../src/compaction/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { createDeleteRows } from "../src/compaction/delete-rows.ts";
import { createVerifyExtents } from "../src/compaction/verify-extents.ts";
import type { JobHandler } from "../src/fabric/handler.ts";
import { publishNow } from "../src/compaction/publish-now.ts";
import { PublishRequests } from "../src/compaction/publish-requests.ts";
import { EngineError } from "../src/core/errors.ts";
import { createQueryExport, type QueryExportPorts } from "../src/query/exports/export.ts";
import type { QueryProcesses } from "../src/query/contract/engines.ts";
import type { EngineRegistry } from "../src/query/engines/registry.ts";
import { RowMatcher } from "../src/query/row-matcher.ts";
import type { Parts } from "./parts.ts";
import { enginesWith } from "./query-engines.ts";
import type { Storage } from "./storage.ts";

/** What the handlers of this process work with; `query` is there where this process answers queries. */
export type HandlerPorts = Storage & { query: QueryProcesses | undefined; engines: EngineRegistry };

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
  query: () => Promise<QueryProcesses> = queryServiceOf(parts, ports),
): JobHandler[] {
  const { config } = parts;
  const { cpuShare, ioBytesPerSec } = ports.query === undefined ? ALONE : BESIDE_CLIENTS;
  const folder = (name: string): string => join(config.home, "tmp", name);
  const remote = enginesWith(parts, ports, ports.engines, { converter: query, folder: "remote-exports" });
  const publish = publisher(parts, ports);
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
    createQueryExport(
      { ...parts, ...ports, ...remote, query, publish },
      { keyPrefix: config.pathPrefix, tempDir: folder("exports") },
    ),
  ];
}

/** Has the rows of a table published, before a query engine reads them. */
function publisher(parts: Parts, storage: Storage): QueryExportPorts["publish"] {
  const requests = new PublishRequests(storage);
  return async ({ database, name }, signal) => {
    const table = await storage.catalog.table(database, name);
    if (table === undefined) {
      throw new EngineError("table_not_found", `table ${JSON.stringify(`${database}.${name}`)} does not exist`);
    }
    await publishNow({ ...parts, ...storage, requests }, table, signal);
  };
}

/**
 * Exports, dreams, pipelines and clients share one query service, and so its budgets of memory, processes and turns. A process that answers
 * no queries makes its own with the first of these: until then it has neither processes nor memory for it.
 */
export function queryServiceOf(
  parts: Parts,
  { query, engines, ...storage }: HandlerPorts,
): () => Promise<QueryProcesses> {
  if (query !== undefined) return () => Promise.resolve(query);
  let made: Promise<QueryProcesses> | undefined;
  const make = async (): Promise<QueryProcesses> => {
    const { createQuery } = await import("./query.ts");
    return (await createQuery(parts, storage, engines)).service;
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
