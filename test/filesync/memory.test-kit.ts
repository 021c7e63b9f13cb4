import { join } from "node:path";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import { AuditLog } from "../../src/auth/audit.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { openMemory } from "../../src/knowledge/memory/open.ts";
import type { MemoryScope, MemoryService } from "../../src/knowledge/memory/service.ts";

export type MemoryTask<T> = (memory: MemoryService, scope: MemoryScope) => Promise<T>;

/** Works on the memory of a home as any other process would. */
export async function memoryAt<T>(home: string, task: MemoryTask<T>): Promise<T> {
  const path = join(home, "catalog.db");
  const catalog = await openSqliteCatalog({
    path,
    clock: systemClock,
    log: silentLog,
    migrations: MIGRATIONS,
    mode: "admin",
  });
  try {
    const newId = uuidV7Source(systemClock, systemRandom);
    const { records } = catalog;
    const audit = new AuditLog(records, newId);
    const ports = {
      catalog,
      records,
      clock: systemClock,
      random: systemRandom,
      newId,
      metrics: createMetrics(),
      audit,
    };
    const memory = openMemory(ports);
    return await task(memory, await memory.scope(ANONYMOUS, "default"));
  } finally {
    await catalog.close();
  }
}
