import type { OwnedTable } from "./owned-table.ts";

/** The tables of sandboxes among `OWNED_TABLES`. */
export const SANDBOX_TABLES: readonly OwnedTable[] = [];
