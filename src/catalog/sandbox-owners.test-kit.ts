import { expect } from "vitest";

/** What a catalog of an earlier version has of sandboxes, and whose it is after the upgrade; the same on both databases. */

type Made = { id: string; tenant: string; kind: string };

const OTHERS: readonly Made[] = [
  { id: "s-ann", tenant: "ann", kind: "session" },
  { id: "s-token", tenant: "token:ci", kind: "static" },
  { id: "s-issuer", tenant: "https://issuer#ann", kind: "oidc" },
  { id: "s-local", tenant: "local", kind: "session" },
  { id: "s-engine", tenant: "engine", kind: "idp" },
  { id: "s-off", tenant: "anonymous", kind: "anonymous" },
];

/** All of these have the same name, and each a volume of the same name, as only different tenants may. */
function rowsOf({ id, tenant, kind }: Made): string {
  const who = `'${tenant}', '${kind}', 'write', NULL`;
  return `
INSERT INTO sandboxes (id, tenant, name, agent_provider, persistence, spec, labels, subject, caller_kind, role, databases,
  state, wanted, version, job_id, cpu_millis, memory_mb, disk_mb, recorded_fence, recorded_batch, first_seq, last_seq,
  created_at_ms, updated_at_ms, state_since_ms)
  VALUES ('${id}', '${tenant}', 'box', 'codex', 'ephemeral', '{}', '{}', ${who}, 'running', 'running', 1, 'j-${id}', 1, 1, 1,
  1, 1, 1, 1, 1, 1, 1);
INSERT INTO jobs (id, kind, status, lane, priority, run_after_ms, payload, subject, caller_kind, role, attempt, max_attempts,
  backoff_ms, lease_ms, fence, cancel_requested, created_at_ms, updated_at_ms)
  VALUES ('j-${id}', 'sandbox', 'queued', '["sandbox",null,"node-1",null,0]', 0, 1, '{}', 'engine', 'internal', 'admin', 0, 1, 1,
  1, 0, 0, 1, 1);
INSERT INTO sandbox_events VALUES ('${id}', 1, '${tenant}', 1, 'log_line', NULL, '{}');
INSERT INTO sandbox_volumes VALUES ('${tenant}', 'data', 'node-1', 1, 1);
INSERT INTO workspaces VALUES ('w-${id}', '${tenant}', 'app', NULL, '{}', '{}', 1, 1, 1);
INSERT INTO machine_images VALUES ('i-${id}', '${tenant}', 'codex', 'local', 'available', 'b', 'h', 1, '{}', 1, NULL);
`;
}

const NODE = `
INSERT INTO sandbox_nodes VALUES ('node-1', 'node-1', 'bubblewrap', '{}', '[]', '{}', 0, 'b', 1);
INSERT INTO workers (id, name, token_hash, preview, labels, drain, created_by, created_at_ms)
  VALUES ('node-1', 'node-1', 'h', 'p', '{}', 0, 'engine', 1);
INSERT INTO audit_log VALUES ('a', 1, 'engine', 'internal', 'worker.create', 'node-1', 'ok', '', '', '{}');
`;

/** In a catalog of the version before. */
export const EARLIER_SANDBOXES = OTHERS.map(rowsOf).join("") + NODE;

/** Where a user has the name that stood for nobody. */
export const USER_CALLED_ANONYMOUS = `
INSERT INTO users (id, name, folded_name, role, source, created_at_ms, updated_at_ms)
  VALUES ('u', 'anonymous', 'anonymous', 'read', 'password', 1, 1);
`;

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

export async function expectOwners(query: Query, ofNobody = "local"): Promise<void> {
  const owners = ["ann", "token:ci", "https://issuer#ann", "user:local", "user:engine", ofNobody];
  const column = async (table: string, name: string, order: string) =>
    (await query(`SELECT ${name} AS value FROM ${table} ORDER BY ${order}`)).map(({ value }) => value);
  const ordered = (ids: readonly string[]) =>
    [...ids.entries()]
      .toSorted(([a], [b]) => ((OTHERS[a]?.id ?? "") < (OTHERS[b]?.id ?? "") ? -1 : 1))
      .map(([, id]) => id);
  expect(await column("sandboxes", "tenant", "id")).toEqual(ordered(owners));
  expect(await column("sandbox_events", "tenant", "sandbox_id")).toEqual(ordered(owners));
  expect(await column("workspaces", "tenant", "id")).toEqual(ordered(owners));
  expect(await column("jobs", "owner", "id")).toEqual(ordered(owners));
  expect(await column("jobs", "subject", "id")).toEqual(ordered(OTHERS.map(({ tenant }) => tenant)));
  expect(await column("jobs", "role", "id")).toEqual(owners.map(() => "write"));
  const lanes = ordered(owners).map((owner) => `["sandbox",null,"node-1",null,0,${JSON.stringify(owner)}]`);
  expect(await column("jobs", "lane", "id")).toEqual(lanes);
  // Images of this name are this program's own.
  const images = owners.map((owner) => (owner === "user:engine" ? "engine" : owner));
  expect(await column("machine_images", "tenant", "id")).toEqual(ordered(images));
  expect((await column("machine_images", "shared", "id")).map(Number)).toEqual(owners.map(() => 0));
  const volumes = await query("SELECT tenant, keyed_by, volume_key FROM sandbox_volumes");
  const keys = new Map(volumes.map(({ tenant, keyed_by: keyedBy }) => [tenant, keyedBy]));
  expect(keys).toEqual(new Map(owners.map((owner, i) => [owner, OTHERS[i]?.tenant])));
  expect(volumes.map(({ volume_key: key }) => key)).toEqual(owners.map(() => null));
  expect(await query("SELECT cap FROM sandbox_nodes")).toEqual([{ cap: null }]);
  // The worker that this program made for itself goes on as a node.
  expect(await query("SELECT owner, admitted FROM workers")).toEqual([{ owner: "engine", admitted: null }]);
}
