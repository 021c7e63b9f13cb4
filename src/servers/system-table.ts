import type { SystemTable } from "../feature/system-table.ts";
import type { ColumnSpec, ScalarTypeName } from "../format/types.ts";

const NS_PER_MS = 1_000_000n;
const time = (value: unknown): bigint => BigInt(Number(value)) * NS_PER_MS;
const column = (name: string, kind: ScalarTypeName): ColumnSpec => ({ name, type: { kind } });
const SERVERS_SQL =
  "SELECT id, name, roles, version, known_schema, started_at_ms, seen_at_ms FROM servers ORDER BY name, id";

/** `system.servers`: servers on the catalog, for callers who may see every database. */
export const SERVERS_TABLE: SystemTable = {
  name: "servers",
  columns: [
    ...["id", "name", "roles", "version"].map((name) => column(name, "string")),
    column("known_schema", "long"),
    ...["started_at", "seen_at"].map((name) => column(name, "timestamp")),
  ],
  async *rows({ records, caller }) {
    if (caller.databases !== undefined) return;
    for (const row of await records.rows(SERVERS_SQL)) {
      yield {
        id: String(row["id"]),
        name: String(row["name"]),
        roles: String(row["roles"]),
        version: String(row["version"]),
        known_schema: Number(row["known_schema"]),
        started_at: time(row["started_at_ms"]),
        seen_at: time(row["seen_at_ms"]),
      };
    }
  },
};
