/**
 * Quotas of sandboxes, in the vocabulary that both databases share but for `volumeId`; a migration, which never changes
 * once published.
 *
 * - `sandbox_events.size_bytes`: what the event counts for. An event of an earlier version has none, and counts as
 *   `sandbox/control/events/quota.ts` says.
 * - `sandboxes.events_bytes`: the sum of those that are kept, from `first_seq` on. `cut_bytes`: of those that are not.
 * - `sandboxes.volumes`: the mounts of the spec alone, JSON. NULL in a sandbox of an earlier version: the spec has them.
 * - `ended_sandbox_logs`: sandboxes that are gone, with events that are still to go.
 * - `sandbox_volumes.volume_id`: how clients call the volume. `used_at_ms`: when a sandbox that names it last changed; NULL until
 *   somebody looks at a volume of an earlier version, whose time begins then.
 * - `gone_volumes`: volumes that are deleted here and not yet on their node, by what the node calls them.
 */
const SANDBOX_QUOTAS = `
ALTER TABLE sandbox_events ADD COLUMN size_bytes bigint;
ALTER TABLE sandboxes ADD COLUMN events_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN cut_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN volumes text;
UPDATE sandboxes SET events_bytes = coalesce((SELECT sum(256 + length(sandbox_events.data)) FROM sandbox_events
  WHERE sandbox_events.sandbox_id = sandboxes.id AND sandbox_events.seq >= sandboxes.first_seq), 0);

CREATE TABLE ended_sandbox_logs (
  sandbox_id text PRIMARY KEY,
  ended_at_ms bigint NOT NULL
);
INSERT INTO ended_sandbox_logs (sandbox_id, ended_at_ms) SELECT DISTINCT sandbox_id, 0 FROM sandbox_events
  WHERE NOT EXISTS (SELECT 1 FROM sandboxes WHERE sandboxes.id = sandbox_events.sandbox_id);

ALTER TABLE sandbox_volumes ADD COLUMN volume_id text;
ALTER TABLE sandbox_volumes ADD COLUMN used_at_ms bigint;

CREATE TABLE gone_volumes (
  volume_key text PRIMARY KEY,
  node_id text NOT NULL,
  gone_at_ms bigint NOT NULL
);
CREATE INDEX gone_volumes_by_node ON gone_volumes (node_id);
`;

/** With an expression that makes a UUID of version 7 from `created_at_ms`, anew for each row. */
function sandboxQuotas(volumeId: string): string {
  return `${SANDBOX_QUOTAS}
UPDATE sandbox_volumes SET volume_id = ${volumeId};
CREATE UNIQUE INDEX sandbox_volumes_by_id ON sandbox_volumes (volume_id);
`;
}

export const SQLITE_SANDBOX_QUOTAS = sandboxQuotas(
  "printf('%08x-%04x-7%s-8%s-%s', created_at_ms >> 16, created_at_ms & 65535, " +
    "substr(lower(hex(randomblob(2))), 2), substr(lower(hex(randomblob(2))), 2), lower(hex(randomblob(6))))",
);

const POSTGRES_RANDOM = "replace(gen_random_uuid()::text, '-', '')";
export const POSTGRES_SANDBOX_QUOTAS = sandboxQuotas(
  "substr(lpad(to_hex(created_at_ms), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(created_at_ms), 12, '0'), 9) || " +
    `'-7' || substr(${POSTGRES_RANDOM}, 1, 3) || '-8' || substr(${POSTGRES_RANDOM}, 1, 3) || '-' || ` +
    `substr(${POSTGRES_RANDOM}, 1, 12)`,
);
