import type { RecordRow, RecordStore, Statement } from "../../db/records.ts";
import { jsonOf, textOf } from "../../fabric/job.ts";
import { isImageId } from "../contract/images/image.ts";
import type { NodeCapacity } from "../contract/control-port.ts";

/** What sandboxes take of a node, and whether another one fits. */

/** A node that was heard of not long ago, and takes sandboxes. */
export type NodeRoom = {
  id: string;
  labels: Readonly<Record<string, string>>;
  images: readonly string[];
  /** The less of what it reports and of its cap. */
  capacity: NodeCapacity;
  taken: NodeCapacity;
};

/** The most of each that sandboxes may take of a node, as an admin said; what is absent has no cap. */
export type NodeCap = Partial<NodeCapacity>;

/** What a sandbox takes where it is placed. */
export type Need = {
  cpuMillis: number;
  memoryMb: number;
  /** Its own, and that of volumes which are not there yet. */
  diskMb: number;
  image: string | undefined;
  /** A built image: a node that has it is taken before others. */
  builtImage: string | undefined;
  /** Labels that its node must have. */
  labels: Readonly<Record<string, string>>;
  /** The only node that it may be on: its volumes are there. */
  nodeId: string | undefined;
};

/** A node that was silent for longer gets no more sandboxes. */
const SILENT_MS = 15_000;
const MAX_NODES = 1_000;

// Paused sandboxes use no processor, stopped ones no memory; the disk of a persistent one stays.
const CPU = "CASE WHEN state IN ('paused', 'stopped', 'failed') THEN 0 ELSE cpu_millis END";
export const MEMORY = "CASE WHEN state IN ('stopped', 'failed') THEN 0 ELSE memory_mb END";
export const DISK = "CASE WHEN state IN ('stopped', 'failed') AND persistence = 'ephemeral' THEN 0 ELSE disk_mb END";
const VOLUMES = "(SELECT coalesce(sum(size_mb), 0) FROM sandbox_volumes WHERE sandbox_volumes.node_id =";

/** Nodes that may get sandboxes. */
export async function nodesWithRoom(records: Pick<RecordStore, "rows">): Promise<NodeRoom[]> {
  const rows = await records.rows(
    "WITH taken AS MATERIALIZED (SELECT node_id, count(*) AS sandboxes, " +
      `sum(${CPU}) AS cpu_millis, sum(${MEMORY}) AS memory_mb, sum(${DISK}) AS disk_mb ` +
      "FROM sandboxes WHERE node_id IS NOT NULL GROUP BY node_id) " +
      `SELECT id, labels, images, capacity, cap, sandboxes, cpu_millis, memory_mb, disk_mb, ${VOLUMES} sandbox_nodes.id) AS volumes_mb ` +
      "FROM sandbox_nodes LEFT JOIN taken ON node_id = id WHERE drain = 0 AND seen_at_ms > ? ORDER BY id LIMIT ?",
    [{ nowPlusMs: -SILENT_MS }, MAX_NODES],
  );
  return rows.map((row) => ({
    id: textOf(row, "id"),
    labels: jsonOf(row, "labels") as Record<string, string>,
    images: jsonOf(row, "images") as string[],
    capacity: capacityIn(row),
    taken: {
      cpuMillis: Number(row["cpu_millis"] ?? 0),
      memoryMb: Number(row["memory_mb"] ?? 0),
      diskMb: Number(row["disk_mb"] ?? 0) + Number(row["volumes_mb"]),
      sandboxes: Number(row["sandboxes"] ?? 0),
    },
  }));
}

/** Names of nodes' own images, of silent ones too; undefined where there is no node. */
export async function knownImages(records: RecordStore): Promise<ReadonlySet<string> | undefined> {
  const rows = await records.rows("SELECT images FROM sandbox_nodes ORDER BY seen_at_ms DESC LIMIT ?", [MAX_NODES]);
  return rows.length === 0
    ? undefined
    : new Set(rows.flatMap((row) => jsonOf(row, "images") as string[]).filter((name) => !isImageId(name)));
}

/** Whether any node could take a sandbox at this moment. */
export async function hasLiveNode(records: Pick<RecordStore, "rows">): Promise<boolean> {
  const values = [{ nowPlusMs: -SILENT_MS }];
  return (await records.rows("SELECT 1 AS one FROM sandbox_nodes WHERE seen_at_ms > ? LIMIT 1", values)).length > 0;
}

/** Condition in a WHERE, of a row of `sandbox_nodes`, that it was not heard of for too long; with its value. */
export const IS_SILENT = { sql: "seen_at_ms <= ?", value: { nowPlusMs: -SILENT_MS } } as const;

export async function capacityOf(records: RecordStore, nodeId: string): Promise<NodeCapacity | undefined> {
  const [row] = await records.rows("SELECT capacity, cap FROM sandbox_nodes WHERE id = ?", [nodeId]);
  return row === undefined ? undefined : capacityIn(row);
}

/**
 * The node of those that fit whose scarcest resource is the least scarce when the sandbox is there; one that would have to
 * bring its image first only where all would.
 */
export function pickNode(nodes: readonly NodeRoom[], need: Need): NodeRoom | undefined {
  let best: { node: NodeRoom; rank: number } | undefined;
  for (const node of nodes) {
    if (!fitsOtherwise(node, need)) continue;
    const share = freeShare(node, need);
    const hasIt = need.builtImage === undefined || node.images.includes(need.builtImage);
    const rank = share + (hasIt ? 1 : 0);
    if (share >= 0 && rank > (best?.rank ?? -1)) best = { node, rank };
  }
  return best?.node;
}

/** Whether the sandbox may be there, if there is room. */
export function fitsOtherwise(node: NodeRoom, need: Need): boolean {
  if (need.nodeId !== undefined && need.nodeId !== node.id) return false;
  if (need.image !== undefined && !node.images.includes(need.image)) return false;
  return Object.entries(need.labels).every(([name, value]) => node.labels[name] === value);
}

/** Below 0 where the sandbox does not fit. */
function freeShare({ capacity, taken }: NodeRoom, { cpuMillis, memoryMb, diskMb }: Need): number {
  return Math.min(
    share(capacity.cpuMillis, taken.cpuMillis + cpuMillis),
    share(capacity.memoryMb, taken.memoryMb + memoryMb),
    share(capacity.diskMb, taken.diskMb + diskMb),
    share(capacity.sandboxes, taken.sandboxes + 1),
  );
}

function share(all: number, used: number): number {
  return (all - used) / Math.max(1, all);
}

/** Returns a row while what is on the node fits it: at the end of a transaction that puts something there. */
export function roomGuard(nodeId: string, { cpuMillis, memoryMb, diskMb, sandboxes }: NodeCapacity): Statement {
  const all = "FROM sandboxes WHERE sandboxes.node_id = sandbox_nodes.id";
  return {
    sql:
      "SELECT id FROM sandbox_nodes WHERE id = ? " +
      `AND (SELECT coalesce(sum(${CPU}), 0) ${all}) <= CAST(? AS bigint) ` +
      `AND (SELECT coalesce(sum(${MEMORY}), 0) ${all}) <= CAST(? AS bigint) ` +
      `AND (SELECT coalesce(sum(${DISK}), 0) ${all}) + ${VOLUMES} sandbox_nodes.id) <= CAST(? AS bigint) ` +
      `AND (SELECT count(*) ${all}) <= CAST(? AS bigint)`,
    values: [nodeId, cpuMillis, memoryMb, diskMb, sandboxes],
    mustReturn: 1,
  };
}

/** Of a row of `sandbox_nodes`. */
export function capIn(row: RecordRow): NodeCap {
  const cap = jsonOf(row, "cap");
  return cap === undefined ? {} : (cap as NodeCap);
}

/** What a node says it has, but no more than the admins let it have. */
function capacityIn(row: RecordRow): NodeCapacity {
  const reported = jsonOf(row, "capacity") as NodeCapacity;
  const cap = capIn(row);
  const least = (name: keyof NodeCapacity) => Math.min(reported[name], cap[name] ?? Number.POSITIVE_INFINITY);
  return {
    cpuMillis: least("cpuMillis"),
    memoryMb: least("memoryMb"),
    diskMb: least("diskMb"),
    sandboxes: least("sandboxes"),
  };
}
