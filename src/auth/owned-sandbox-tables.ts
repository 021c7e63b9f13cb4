import type { OwnedTable } from "./owned-table.ts";

/**
 * The tables of sandboxes among `OWNED_TABLES`. A sandbox that is handed over has its credentials with the rights of its
 * new owner, which are nobody's as an admin; its events and sessions go with it, and its volumes keep their bytes.
 */
export const SANDBOX_TABLES: readonly OwnedTable[] = [
  {
    name: "sandboxes",
    column: "tenant",
    unique: { columns: ["name"], where: "name IS NOT NULL AND deleted_at_ms IS NULL" },
    also: (_from, to) => ({ set: "subject = ?, role = 'write'", values: [to] }),
  },
  { name: "sandbox_events", column: "tenant" },
  { name: "sandbox_sessions", column: "tenant" },
  { name: "sandbox_volumes", column: "tenant", unique: { columns: ["name"] } },
  { name: "workspaces", column: "tenant" },
  { name: "image_builds", column: "tenant" },
  { name: "machine_images", column: "tenant" },
];
