import { NOW, type RecordValue, type Statement } from "../../../catalog/records.ts";
import type { Origin } from "../../../auth/audit.ts";
import { ownerOf } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import { ownerValues, type JobOwner } from "../../../fabric/job.ts";
import { chooseImage, type ChosenImage } from "../images/choose.ts";
import { bindCredentials } from "../credentials/bind.ts";
import { credentialIdsIn } from "../../contract/credential-uses.ts";
import { checkRepositories, type RepositoryRules } from "../requests/check-repositories.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { AWAITING_BYTES, AWAITS_IMAGE, awaitingEvent, type DefaultImageOf } from "./await-image.ts";
import { planPlacement, takenBy, type Placement } from "./place.ts";
import type { SandboxPorts } from "./ports.ts";
import { invalidField } from "../refusals.ts";
import { knownImages, nodesWithRoom } from "../room.ts";
import { labelsToColumn, SANDBOX_COLUMNS, toSandbox, type Sandbox } from "./sandbox.ts";
import { specToColumn } from "./sealed-env.ts";
import { checkVolumeQuota } from "../volumes/volume-quota.ts";
import { knownVolumes, newVolumesIn } from "../volumes/volumes.ts";

export type NewSandbox = {
  spec: SandboxSpec;
  owner: JobOwner;
  origin: Origin;
  /** That it is launched from. */
  workspaceId?: string;
  /** See `BindOptions`. */
  author?: string;
};

export type CreateLimits = {
  /** Sandboxes that a tenant has at once. */
  maxPerTenant: number;
  /** By agent provider: what those get that name no image. */
  defaultImages?: Readonly<Record<string, string>>;
  /** See `MachineImages.defaultOf`. */
  builtImage?: DefaultImageOf;
  repositories: RepositoryRules;
  /** Where the APIs of agents are, by agent provider. */
  providerUrls: Readonly<Record<string, string>>;
};

/** Others may take the room that was found. */
const PLACEMENTS = 3;
/** One who has too many may try again when some are gone; nobody knows when that is. */
const RETRY_SECS = "10";

/**
 * Stores a new sandbox, on a node at once where one has room, with the job by which the node gets it; on none while its
 * image is being built. Rejects with
 * `config_validation_error` for an image that no node has, `image_not_found` for a built one that the owner may not use, repositories that none may clone, and volumes that lie apart;
 * `sandbox_already_exists`; `unavailable` where its default image could not be built; what `bindCredentials` says of its credentials;
 * `rate_limited` for a tenant that has `maxPerTenant`, or would have more volumes than it may.
 */
export async function createSandbox(ports: SandboxPorts, given: NewSandbox, limits: CreateLimits): Promise<Sandbox> {
  const { records } = ports;
  const chosen = await withImage(ports, given, limits);
  const asked = await withCredentials(ports, chosen.asked, limits);
  const { isAwaited } = chosen;
  const { spec, owner } = asked;
  const { maxPerTenant } = limits;
  checkRepositories(spec, limits.repositories);
  const [id, tenant] = [ports.newId(), ownerOf(owner)];
  for (let attempt = 1; ; attempt++) {
    const [nodes, volumes] = await Promise.all([nodesWithRoom(records), knownVolumes(records, tenant, spec.volumes)]);
    await checkVolumeQuota(records, { tenant, added: newVolumesIn(spec.volumes, volumes) }, ports.volumeLimits);
    const isPlaced = !isAwaited && attempt <= PLACEMENTS;
    const place = isPlaced ? planPlacement(ports, nodes, { id, tenant, owner, spec, volumes }) : undefined;
    const outcome = await records.transact([
      countGuard(tenant, maxPerTenant),
      insertion(ports, id, asked, isAwaited ? "awaits its image" : place),
      ...(isAwaited ? [awaitingEvent(id, tenant)] : []),
      ...(place?.statements ?? []),
      auditEntry(ports, id, asked),
      ...useEntries(ports, id, asked),
    ]);
    if (outcome.done) {
      place?.job.stored();
      const [row] = outcome.rows[1] ?? [];
      if (row === undefined) throw new Error("a sandbox was stored and not returned");
      return toSandbox(row);
    }
    if (outcome.failed === 0) throw tooMany(maxPerTenant);
    if (outcome.failed === 1) {
      throw new EngineError("sandbox_already_exists", `there is a sandbox ${JSON.stringify(spec.name)} already`);
    }
  }
}

/** With the image that it gets, if that is there. */
async function withImage(
  ports: SandboxPorts,
  asked: NewSandbox,
  { defaultImages: named = {}, builtImage }: CreateLimits,
): Promise<{ asked: NewSandbox; isAwaited: boolean }> {
  const { spec, owner, origin } = asked;
  const built = builtImage === undefined ? undefined : (provider: string) => builtImage(provider, origin);
  const { isAwaited = false, ...chosen } = await chooseImage(ports.records, spec, {
    asker: owner,
    defaults: { named, built },
  });
  await checkImage(ports, chosen);
  return { asked: { ...asked, spec: { ...spec, ...chosen } }, isAwaited };
}

/** With the hosts of its credentials. */
async function withCredentials(
  { credentials: directory }: SandboxPorts,
  asked: NewSandbox,
  { providerUrls }: CreateLimits,
): Promise<NewSandbox> {
  const { spec, owner, author } = asked;
  return { ...asked, spec: await bindCredentials(spec, { directory, owner, author, providerUrls }) };
}

async function checkImage({ records }: SandboxPorts, { image, builtImage }: ChosenImage): Promise<void> {
  if (image === undefined || builtImage !== undefined) return;
  const known = await knownImages(records);
  if (known === undefined || known.has(image)) return;
  const names = [...known].toSorted().join(", ");
  throw invalidField("image", `no node has it; there are ${names === "" ? "none" : names}`);
}

function countGuard(tenant: string, max: number): Statement {
  return {
    sql:
      "SELECT 1 AS fits WHERE (SELECT count(*) FROM sandboxes WHERE tenant = ? AND deleted_at_ms IS NULL) " +
      "< CAST(? AS bigint)",
    values: [tenant, max],
    mustReturn: 1,
  };
}

const COLUMNS =
  "id, tenant, name, agent_provider, persistence, spec, labels, subject, caller_kind, role, databases, state, wanted, " +
  "version, node_id, job_id, cpu_millis, memory_mb, disk_mb, recorded_fence, recorded_batch, first_seq, last_seq, " +
  "created_at_ms, updated_at_ms, state_since_ms, workspace_id, image_id, volumes, events_bytes, awaits_image, reason";

function insertion(
  { envSealing }: SandboxPorts,
  id: string,
  { spec, owner, workspaceId }: NewSandbox,
  at: Placement | "awaits its image" | undefined,
): Statement {
  const isAwaited = at === "awaits its image";
  const place = isAwaited ? undefined : at;
  const { cpuMillis, memoryMb, diskMb } = takenBy(spec.limits);
  const values: RecordValue[] = [
    id,
    ownerOf(owner),
    spec.name ?? null,
    spec.agentProvider,
    spec.persistence,
    specToColumn(envSealing, id, spec),
    labelsToColumn(spec.labels),
    ...ownerValues(owner),
    "pending",
    "running",
    1,
    place?.node.id ?? null,
    place?.jobId ?? null,
    cpuMillis,
    memoryMb,
    diskMb,
    0,
    0,
    1,
    isAwaited ? 1 : 0,
    NOW,
    NOW,
    NOW,
    workspaceId ?? null,
    spec.builtImage?.id ?? null,
    JSON.stringify(spec.volumes),
    isAwaited ? AWAITING_BYTES : 0,
    isAwaited ? 1 : null,
    isAwaited ? AWAITS_IMAGE : null,
  ];
  return {
    sql:
      `INSERT INTO sandboxes (${COLUMNS}) VALUES (${values.map(() => "?").join(", ")}) ` +
      `ON CONFLICT DO NOTHING RETURNING ${SANDBOX_COLUMNS}`,
    values,
    mustReturn: 1,
  };
}

/** Nothing of what may be a secret. */
function auditEntry({ audit }: SandboxPorts, id: string, { spec, origin }: NewSandbox): Statement {
  const details = { name: spec.name ?? null, agent_provider: spec.agentProvider, image: spec.image ?? null };
  return audit.statement({ origin, action: "sandbox.create", target: id, outcome: "ok", details });
}

/** Who lets which sandbox use what: found by the id of the credential. */
function useEntries({ audit }: SandboxPorts, id: string, { spec, origin }: NewSandbox): Statement[] {
  const entry = { origin, action: "credential.use", outcome: "ok", details: { sandbox: id } } as const;
  return credentialIdsIn(spec).map((target) => audit.statement({ ...entry, target }));
}

function tooMany(max: number): EngineError {
  const headers = { "Retry-After": RETRY_SECS };
  return new EngineError("rate_limited", `a tenant has at most ${max} sandboxes: delete some`, { headers });
}
