import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { openPostgres, openSqlite } from "../support/open-catalog.ts";

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
export function openSide(side: "sqlite" | "postgres", place: string): Promise<CatalogDatabase> {
  return side === "sqlite" ? openSqlite(place) : openPostgres(place);
}
