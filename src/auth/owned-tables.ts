import type { OwnedTable } from "./owned-table.ts";
import { SANDBOX_TABLES } from "./owned-sandbox-tables.ts";

/** What an admin asked for runs with an admin's rights no more when it is another one's. */
const NO_ADMIN = "role = CASE WHEN role = 'admin' THEN 'write' ELSE role END";

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
      set: `lane = substr(lane, 1, length(lane) - length(?)) || ?, ${NO_ADMIN}`,
      values: [`${JSON.stringify(from)}]`, `${JSON.stringify(to)}]`],
    }),
  },
  {
    name: "schedules",
    column: "owner",
    unique: { columns: ["name"] },
    also: () => ({ set: NO_ADMIN, values: [] }),
  },
  { name: "agent_sessions", column: "owner" },
  { name: "agent_runs", column: "owner" },
  { name: "saved_queries", column: "owner" },
  { name: "query_history", column: "owner" },
];

export const OWNED_TABLES: readonly OwnedTable[] = [...ENGINE_TABLES, ...SANDBOX_TABLES];
