import { SANDBOX_TABLES } from "./owned-sandbox-tables.ts";

/** A table whose records have owners: what a transfer of ownership changes. */
export type OwnedTable = {
  name: string;
  /** The column that holds the owner. */
  column: string;
  /** Of records that an owner has once each: the columns that tell them apart, and which records count. */
  unique?: { columns: readonly string[]; where?: string };
  /** What else holds the owner, as assignments of an UPDATE with their values. */
  also?: (from: string, to: string) => { set: string; values: readonly string[] };
};

const JOB_KEY = ["kind", "coalesce(database_name, '')", "dedup_key"];

const ENGINE_TABLES: readonly OwnedTable[] = [
  { name: "credentials", column: "owner" },
  { name: "oauth_flows", column: "owner" },
  { name: "oauth_device_flows", column: "owner" },
  { name: "workers", column: "owner" },
  {
    name: "jobs",
    column: "owner",
    unique: { columns: JOB_KEY, where: "dedup_key IS NOT NULL AND status IN ('queued', 'leased')" },
    // The owner is the last part of a lane: see `laneKey`.
    also: (from, to) => ({
      set: "lane = substr(lane, 1, length(lane) - length(?)) || ?",
      values: [`${JSON.stringify(from)}]`, `${JSON.stringify(to)}]`],
    }),
  },
  { name: "schedules", column: "owner", unique: { columns: ["name"] } },
];

export const OWNED_TABLES: readonly OwnedTable[] = [...ENGINE_TABLES, ...SANDBOX_TABLES];
