import type { Statement } from "../../../catalog/records.ts";
import { textOf, type JobOwner } from "../../../fabric/job.ts";
import type { PreparedJobs } from "../../../fabric/enqueue.ts";
import { type SandboxJobPayload, SANDBOX_JOB_KIND } from "../../contract/sandbox-job.ts";
import { credentialIdsIn } from "../../contract/credential-uses.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import type { SandboxPorts } from "./ports.ts";
import { IS_SILENT, nodesWithRoom, pickNode, roomGuard, type Need, type NodeRoom } from "../room.ts";
import { SANDBOX_COLUMNS, toSandbox, type Sandbox } from "./sandbox.ts";
import { unplace } from "./unleased.ts";
import { cancelQueued } from "../cancel-queued.ts";
import { knownVolumes, newVolumesIn, volumeStatements, type KnownVolumes } from "../volumes/volumes.ts";

/** Where a sandbox is to be, as statements of the transaction that says so. */
export type Placement = { node: NodeRoom; job: PreparedJobs; jobId: string; statements: Statement[] };

const AT_ONCE = 200;
/** A persistent sandbox waits for its node, however often that is lost. */
const EVER_AGAIN = 1_000_000_000;

/**
 * A place for a sandbox, on the one of the nodes that has the most room; undefined where none has enough. The statements
 * come after the one that puts the sandbox on the node, and do not return what they must when another was faster.
 */
export function planPlacement(
  ports: Pick<SandboxPorts, "fabric" | "newId" | "volumeLimits">,
  nodes: readonly NodeRoom[],
  { id, tenant, owner, spec, volumes }: Placed & { volumes: KnownVolumes },
): Placement | undefined {
  const node = pickNode(nodes, needOf(spec, volumes));
  if (node === undefined) return undefined;
  const payload: SandboxJobPayload = { sandbox_id: id };
  const maxAttempts = spec.persistence === "persistent" ? EVER_AGAIN : 1;
  const credentials = credentialIdsIn(spec);
  const request = { kind: SANDBOX_JOB_KIND, payload, workerId: node.id, maxAttempts, credentials };
  // Its credentials are opened with the rights of whose sandbox it is.
  const job = ports.fabric.prepare([request], { ...owner, owner: tenant });
  const [jobId] = job.ids;
  if (jobId === undefined) throw new Error("a job without an id");
  const statements = [
    ...volumeStatements(ports, { tenant, nodeId: node.id, spec, known: volumes }),
    roomGuard(node.id, node.capacity),
  ];
  return { node, job, jobId, statements: [...statements, job.statement] };
}

type Placed = { id: string; tenant: string; owner: JobOwner; spec: SandboxSpec };

/** What it takes where it is placed. */
export function needOf({ limits, image, builtImage, volumes, labels }: SandboxSpec, known: KnownVolumes): Need {
  const isNew = newVolumesIn(volumes, known);
  const { cpuMillis, memoryMb, diskMb } = takenBy(limits);
  const volumesMb = isNew.reduce((sum, { sizeMb }) => sum + sizeMb, 0);
  const [nodeId] = known.values();
  return {
    cpuMillis,
    memoryMb,
    diskMb: diskMb + volumesMb,
    image: builtImage?.base ?? image,
    builtImage: builtImage?.id,
    labels: nodeLabelsIn(labels),
    nodeId,
  };
}

/** A label of a sandbox that begins so is one that its node must have. */
const OF_THE_NODE = "node/";

function nodeLabelsIn(labels: SandboxSpec["labels"]): Record<string, string> {
  const wanted = Object.entries(labels).filter(([name]) => name.startsWith(OF_THE_NODE));
  return Object.fromEntries(wanted.map(([name, value]) => [name.slice(OF_THE_NODE.length), value]));
}

/** What goes into the columns of a sandbox. */
export function takenBy({ cpuCores, memoryMb, diskMb }: SandboxSpec["limits"]) {
  return { cpuMillis: Math.ceil(cpuCores * 1_000), memoryMb, diskMb };
}

/** Gives sandboxes that wait to nodes that have room by now, the oldest first. Returns how many found a place. */
export async function placeWaiting(ports: SandboxPorts): Promise<number> {
  await takeBackUnclaimed(ports);
  const rows = await ports.records.rows(
    `SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE node_id IS NULL AND state = 'pending' ` +
      "AND awaits_image IS NULL ORDER BY created_at_ms LIMIT ?",
    [AT_ONCE],
  );
  if (rows.length === 0) return 0;
  const nodes = await nodesWithRoom(ports.records);
  let placed = 0;
  for (const row of rows) if (nodes.length > 0 && (await place(ports, nodes, toSandbox(row)))) placed++;
  return placed;
}

async function place(ports: SandboxPorts, nodes: readonly NodeRoom[], sandbox: Sandbox): Promise<boolean> {
  const { id, tenant, owner, spec } = sandbox;
  const volumes = await knownVolumes(ports.records, tenant, spec.volumes).catch(() => undefined);
  // Its volumes came to lie apart while it waited: it has no place, and fails when its time is over.
  if (volumes === undefined) return false;
  const placement = planPlacement(ports, nodes, { id, tenant, owner, spec, volumes });
  if (placement === undefined) return false;
  const { node, job, jobId, statements } = placement;
  const update: Statement = {
    sql:
      "UPDATE sandboxes SET node_id = ?, job_id = ? " +
      "WHERE id = ? AND node_id IS NULL AND state = 'pending' AND deleted_at_ms IS NULL RETURNING id",
    values: [node.id, jobId, id],
    mustReturn: 1,
  };
  const { done } = await ports.records.transact([update, ...statements]);
  if (!done) return false;
  job.stored();
  take(node, spec);
  return true;
}

function take(node: NodeRoom, { limits }: SandboxSpec): void {
  const { cpuMillis, memoryMb, diskMb } = takenBy(limits);
  node.taken.cpuMillis += cpuMillis;
  node.taken.memoryMb += memoryMb;
  node.taken.diskMb += diskMb;
  node.taken.sandboxes++;
}

/** Sandboxes whose node fell silent before it began with them may go to another. */
async function takeBackUnclaimed({ records }: SandboxPorts): Promise<void> {
  const rows = await records.rows(
    "SELECT id, job_id FROM sandboxes WHERE state = 'pending' AND node_id IS NOT NULL AND recorded_fence = 0 " +
      "AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = sandboxes.job_id AND jobs.status = 'queued') " +
      `AND EXISTS (SELECT 1 FROM sandbox_nodes WHERE sandbox_nodes.id = sandboxes.node_id AND ${IS_SILENT.sql}) LIMIT ?`,
    [IS_SILENT.value, AT_ONCE],
  );
  for (const row of rows) {
    const [id, jobId] = [textOf(row, "id"), textOf(row, "job_id")];
    await records.transact([
      { ...cancelQueued(jobId), mustReturn: 1 },
      { ...unplace(id, jobId), mustReturn: 1 },
    ]);
  }
}
