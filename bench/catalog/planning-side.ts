import type { Catalog } from "../../src/catalog/catalog.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";

export type SideName = "sqlite" | "postgres" | "duckdb";

/** What the process of one side is asked for. */
export type PlanningJob = {
  side: SideName;
  /** A file, or the address of the database. */
  place: string;
  tableId: number;
  extents: number;
  plans: number;
};

export type PlanningResult = {
  /** The first plan of the process, and the median of the others. */
  firstPlanMs: number;
  planMs: number;
  listMs: number;
  /** Resident bytes above those after opening: after planning, and at most while listing. */
  planBytes: number;
  listBytes: number;
  /** What was planned, to be compared. */
  found: string;
};

/** Opens a catalog as a server does. */
export function openSide(side: "sqlite" | "postgres", place: string): Promise<Catalog> {
  if (side === "sqlite") {
    return openSqliteCatalog({
      path: place,
      clock: systemClock,
      log: silentLog,
      migrations: MIGRATIONS,
      mode: "server",
    });
  }
  return openPostgresCatalog({
    url: place,
    clock: systemClock,
    random: systemRandom,
    migrations: MIGRATIONS,
    mode: "server",
    maxConnections: 16,
    acquireTimeoutMs: 30_000,
  });
}
