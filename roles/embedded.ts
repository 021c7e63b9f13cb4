import { AuditLog } from "../src/auth/audit.ts";
import type { EmbeddedEngine, EmbedOptions } from "../src/client/context.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { Cleanup, type Service } from "../src/core/lifecycle.ts";
import { assertLimits } from "../src/core/limits.ts";
import { createLog } from "../src/core/log.ts";
import { messageOf } from "../src/core/errors.ts";
import { keepPathsPrivate } from "../src/core/private-paths.ts";
import { VERSION } from "../src/core/version.ts";
import { CatalogInUse } from "../src/db/sqlite/lock.ts";
import { registerMetrics } from "../src/feature/collect.ts";
import { backgroundServices } from "./background.ts";
import { fileSyncAtStart } from "./file-sync.ts";
import { mcpHere, rowsHere } from "./mcp.ts";
import { mcpSocket } from "./mcp-socket.ts";
import { openGraphs } from "../src/knowledge/graph/open.ts";
import { memoryHere, recallService } from "./memory.ts";
import { createParts, type Parts, type PartsOptions } from "./parts.ts";
import { privatePathsOf } from "./private-paths.ts";
import { createQuery } from "./query.ts";
import { announceServer } from "./servers.ts";
import { skillsHere } from "./skills.ts";
import { openStorage, type Storage } from "./storage.ts";
import type { Plan } from "./plan.ts";

/** All that agents ask for, and the upkeep of the catalog; whatever the configuration says of roles. */
const PLAN: Plan = {
  roles: ["all_in_one"],
  query: "here",
  ingest: "here",
  background: { committer: false, worker: false, compaction: true },
  notes: [],
};

/**
 * The engine inside the process of `engine mcp`: memories, queries and tables, asked over the socket of its home. It has no
 * port, no routes, no jobs and no sandboxes.
 */
export async function embedEngine(
  options: LoadedConfig & PartsOptions & EmbedOptions,
): Promise<EmbeddedEngine | undefined> {
  assertLimits();
  const log = createLog(options.config.logLevel);
  for (const warning of options.warnings) log.warn(warning);
  keepPathsPrivate(privatePathsOf(options.config));
  const cleanup = new Cleanup();
  const started: Service[] = [];
  const close = async (): Promise<void> => {
    for (const step of ["drain", "stop"] as const) {
      for (const service of started.toReversed()) {
        await service[step]().catch((error: unknown) => log.error({ err: error }, `could not ${step} ${service.name}`));
      }
    }
    await cleanup.run();
  };
  try {
    const parts = createParts(options, log, cleanup);
    await registerMetrics(parts.features, parts.metrics);
    parts.metrics.buildInfo.set({ version: VERSION, roles: "mcp" }, 1);
    for (const service of await buildServices(parts, await openStorage(parts), options)) {
      await service.run();
      started.push(service);
    }
    log.info({ version: VERSION }, "agents are answered by this process");
    return { close };
  } catch (error) {
    await close();
    if (!(error instanceof CatalogInUse)) throw error;
    log.debug({ reason: messageOf(error) }, "another process has the catalog");
    return undefined;
  }
}

/** In the order in which they start: the socket last of what answers. */
async function buildServices(parts: Parts, storage: Storage, { isForAgent }: EmbedOptions): Promise<Service[]> {
  const heartBeat = await announceServer(PLAN, parts, storage);
  const deps = { ...parts, ...storage, audit: new AuditLog(storage.records, parts.newId) };
  const memory = memoryHere(deps);
  const { service: queries } = await createQuery(parts, storage);
  const graphs = openGraphs({ ...deps, ...memory, queries });
  const [rows, skills] = [rowsHere(parts, storage, undefined), skillsHere(deps)];
  const { mcp, service } = mcpHere({ ...deps, ...memory, graphs, queries, rows, skills });
  const ports = { ...storage, sealPool: undefined, isBusy: () => false, access: undefined };
  const background = await backgroundServices(PLAN, parts, ports);
  const files = isForAgent ? fileSyncAtStart(deps, memory.memory) : [];
  return [heartBeat, recallService(memory), service, ...background, mcpSocket(parts, mcp), ...files];
}
