import { expect } from "vitest";

/** What a catalog of an earlier version has of sandboxes, and what it counts for after the upgrade; on both databases. */

const COLUMNS =
  "id, tenant, agent_provider, persistence, spec, labels, subject, caller_kind, role, state, wanted, version, " +
  "cpu_millis, memory_mb, disk_mb, recorded_fence, recorded_batch, first_seq, last_seq, created_at_ms, updated_at_ms, " +
  "state_since_ms";

export const EARLIER_LOGS = `
INSERT INTO sandboxes (${COLUMNS}) VALUES
  ('s', 'ann', 'codex', 'ephemeral', '{}', '{}', 'ann', 'session', 'write', 'running', 'running', 1, 1, 1, 1, 1, 1, 3, 5, 1, 1, 1),
  ('empty', 'ann', 'codex', 'ephemeral', '{}', '{}', 'ann', 'session', 'write', 'pending', 'running', 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1);
INSERT INTO sandbox_events (sandbox_id, seq, tenant, at_ms, event_type, data) VALUES
  ('s', 2, 'ann', 1, 'log_line', '{"left":"over"}'),
  ('s', 3, 'ann', 1, 'log_line', '{}'),
  ('s', 4, 'ann', 1, 'log_line', '{"line":"ünï"}'),
  ('s', 5, 'ann', 1, 'log_line', '{}'),
  ('gone', 1, 'ann', 1, 'log_line', '{}'),
  ('gone', 2, 'ann', 1, 'log_line', '{}');
INSERT INTO sandbox_volumes (tenant, name, node_id, size_mb, created_at_ms, volume_key) VALUES
  ('ann', 'a', 'n', 1, 1700000000000, 'k1'), ('ann', 'b', 'n', 1, 1700000000001, 'k2'), ('bob', 'a', 'n', 1, 7, 'k3');
`;

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

export async function expectCounts(query: Query): Promise<void> {
  const sandboxes = await query("SELECT id, events_bytes, cut_bytes, volumes FROM sandboxes ORDER BY id");
  expect(
    sandboxes.map((row) => [row["id"], Number(row["events_bytes"]), Number(row["cut_bytes"]), row["volumes"]]),
  ).toEqual([
    ["empty", 0, 0, null],
    ["s", 3 * 256 + 2 + 14 + 2, 0, null],
  ]);
  expect((await query("SELECT sandbox_id FROM ended_sandbox_logs")).map((row) => row["sandbox_id"])).toEqual(["gone"]);
  const volumes = await query("SELECT name, volume_id, used_at_ms FROM sandbox_volumes ORDER BY volume_id");
  // As ids of volumes are: in the order in which they were made.
  const made = [7, 1_700_000_000_000, 1_700_000_000_001].map((ms) => ms.toString(16).padStart(12, "0"));
  for (const [i, { volume_id: id }] of volumes.entries()) {
    expect(String(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(String(id).replace("-", "").slice(0, 12)).toBe(made[i]);
  }
  expect(new Set(volumes.map((row) => String(row["volume_id"]).slice(14))).size).toBe(3);
  expect(volumes.map((row) => row["used_at_ms"])).toEqual([null, null, null]);
}
