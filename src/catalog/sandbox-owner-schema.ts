/**
 * Owners of the records of sandboxes: a part of `OWNER_RECORDS`, while the audit log has an index by target.
 *
 * Each has a column `tenant` since it is there, with the subject of whoever made it, which is its owner but for three words.
 * Where a user is called `anonymous`, nobody can say any more what was made while authentication was off: that is the
 * admins'.
 *
 * - `jobs`: those by which nodes have sandboxes and build images belong to the owner of the sandbox and of the build.
 * - `sandbox_volumes.volume_key`: how its node calls the volume. Of one of an earlier version that is made of its name and
 *   of `keyed_by`, the tenant that made it (`sandbox/contract/volume-key.ts`).
 * - `sandbox_nodes.cap`: the most that sandboxes may take of a node, JSON; NULL for what it reports.
 * - `machine_images.shared`, `workspaces.shared`: others may use it, too.
 * - `workers`: one that this program made for itself has everybody's sandboxes.
 */
export const SANDBOX_OWNERS = `
ALTER TABLE sandbox_volumes ADD COLUMN volume_key text;
ALTER TABLE sandbox_volumes ADD COLUMN keyed_by text;
UPDATE sandbox_volumes SET keyed_by = tenant;

${["sandboxes", "sandbox_events", "sandbox_sessions", "sandbox_volumes", "workspaces"].map(callersTenants).join("")}
${["image_builds", "machine_images"].map(ownTenants).join("")}
ALTER TABLE machine_images ADD COLUMN shared bigint NOT NULL DEFAULT 0;
CREATE INDEX machine_images_shared ON machine_images (id) WHERE shared = 1;
ALTER TABLE sandbox_nodes ADD COLUMN cap text;

UPDATE jobs SET owner = coalesce((SELECT tenant FROM sandboxes WHERE sandboxes.job_id = jobs.id), 'engine'),
  subject = coalesce((SELECT subject FROM sandboxes WHERE sandboxes.job_id = jobs.id), subject),
  caller_kind = coalesce((SELECT caller_kind FROM sandboxes WHERE sandboxes.job_id = jobs.id), caller_kind),
  role = coalesce((SELECT role FROM sandboxes WHERE sandboxes.job_id = jobs.id), role)
  WHERE kind = 'sandbox';
UPDATE jobs SET owner = coalesce((SELECT tenant FROM image_builds WHERE image_builds.job_id = jobs.id), 'engine')
  WHERE kind = 'image_build';
UPDATE jobs SET lane = substr(lane, 1, length(lane) - length('"engine"]')) || '"' ||
  replace(replace(owner, '\\', '\\\\'), '"', '\\"') || '"]'
  WHERE kind IN ('sandbox', 'image_build') AND owner <> 'engine';

UPDATE workers SET admitted = NULL WHERE owner = 'engine';
`;

/** Callers alone make these: `engine` is a user. */
function callersTenants(table: string): string {
  return `${ownTenants(table)}UPDATE ${table} SET tenant = 'user:engine' WHERE tenant = 'engine';\n`;
}

function ownTenants(table: string): string {
  return `
UPDATE ${table} SET tenant = 'user:local' WHERE tenant = 'local';
UPDATE ${table} SET tenant = CASE WHEN EXISTS (SELECT 1 FROM users WHERE users.name = 'anonymous') THEN 'admins:'
  ELSE 'local' END WHERE tenant = 'anonymous';
`;
}
