import { NOW, type RecordRow } from "../../../catalog/records.ts";
import type { Origin } from "../../../auth/audit.ts";
import { EngineError } from "../../../core/errors.ts";
import { jsonOf, textOf } from "../../../fabric/job.ts";
import type { NodeAnswer, NodeCapacity, NodeReport } from "../../contract/control-port.ts";
import type { SandboxPorts } from "./ports.ts";
import { capIn, IS_SILENT, type NodeCap } from "../room.ts";
import { goneVolumesOf, unknownVolumes } from "../volumes/remove-volumes.ts";

/** Nodes that are asked about at once for disks that they keep. */
const KEEPS_AT_ONCE = 500;
/** A node that has no sandbox and is silent for so long is forgotten. */
const FORGOTTEN_AFTER_MS = 86_400_000;

/** A node says what it is and has. A worker that is to take no further jobs takes no further sandboxes either. */
export async function reportNode(
  { records, signals }: SandboxPorts,
  nodeId: string,
  node: NodeReport,
): Promise<Omit<NodeAnswer, "gateways">> {
  const known = await records.rows(`SELECT 1 AS one FROM sandbox_nodes WHERE id = ? AND NOT (${IS_SILENT.sql})`, [
    nodeId,
    IS_SILENT.value,
  ]);
  const [row] = await records.write({
    sql:
      "INSERT INTO sandbox_nodes (id, name, runtime, labels, images, capacity, boot_id, seen_at_ms, drain) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce((SELECT drain FROM workers WHERE workers.id = ?), 0)) " +
      "ON CONFLICT (id) DO UPDATE SET name = excluded.name, runtime = excluded.runtime, labels = excluded.labels, " +
      "images = excluded.images, capacity = excluded.capacity, boot_id = excluded.boot_id, " +
      "seen_at_ms = excluded.seen_at_ms, drain = excluded.drain RETURNING drain",
    values: [
      nodeId,
      node.name,
      node.runtime,
      JSON.stringify(node.labels),
      JSON.stringify(node.images),
      JSON.stringify(node.capacity),
      node.bootId,
      NOW,
      nodeId,
    ],
  });
  if (known.length === 0) signals.roomFreed();
  const gone = await goneOf({ records }, nodeId, node.keeps ?? []);
  const goneVolumes = await unknownVolumes(records, nodeId, node.unusedVolumes ?? []);
  const deletedVolumes = await goneVolumesOf(records, nodeId, node.removedVolumes ?? []);
  return { drain: Number(row?.["drain"]) === 1, gone, goneVolumes, deletedVolumes };
}

/** Those that are not this node's any more, and never will be again. */
async function goneOf(
  { records }: Pick<SandboxPorts, "records">,
  nodeId: string,
  ids: readonly string[],
): Promise<string[]> {
  const gone: string[] = [];
  for (let from = 0; from < ids.length; from += KEEPS_AT_ONCE) {
    const asked = ids.slice(from, from + KEEPS_AT_ONCE);
    const rows = await records.rows(
      `SELECT id FROM sandboxes WHERE node_id = ? AND id IN (${asked.map(() => "?").join(", ")}) ` +
        "AND NOT (state = 'failed' AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = sandboxes.job_id " +
        "AND jobs.status IN ('queued', 'leased')))",
      [nodeId, ...asked],
    );
    const kept = new Set(rows.map((row) => textOf(row, "id")));
    gone.push(...asked.filter((id) => !kept.has(id)));
  }
  return gone;
}

/** A node as admins see it. */
export type SandboxNode = {
  id: string;
  name: string;
  runtime: string;
  labels: Readonly<Record<string, string>>;
  /** As it reported last. */
  capacity: NodeCapacity;
  cap: NodeCap;
  drain: boolean;
  isSilent: boolean;
  sandboxes: number;
  seenAtMs: number;
};

const MAX_LISTED = 1_000;
const COLUMNS =
  "id, name, runtime, labels, capacity, cap, drain, seen_at_ms, " +
  `CASE WHEN ${IS_SILENT.sql} THEN 1 ELSE 0 END AS is_silent, ` +
  "(SELECT count(*) FROM sandboxes WHERE sandboxes.node_id = sandbox_nodes.id) AS sandboxes";

/** All nodes that are known. */
export async function listNodes({ records }: Pick<SandboxPorts, "records">): Promise<SandboxNode[]> {
  const sql = `SELECT ${COLUMNS} FROM sandbox_nodes ORDER BY id LIMIT ?`;
  return (await records.rows(sql, [IS_SILENT.value, MAX_LISTED])).map(toNode);
}

/**
 * Says how much of a node sandboxes may take, in place of what was said before. What is there stays, also where it is
 * more. Rejects with `not_found`.
 */
export async function capNode(
  { records, audit, signals }: Pick<SandboxPorts, "records" | "audit" | "signals">,
  nodeId: string,
  { cap, origin }: { cap: NodeCap; origin: Origin },
): Promise<SandboxNode> {
  const stored = Object.keys(cap).length === 0 ? null : JSON.stringify(cap);
  const update = {
    sql: "UPDATE sandbox_nodes SET cap = ? WHERE id = ? RETURNING id",
    values: [stored, nodeId],
    mustReturn: 1,
  };
  const entry = audit.statement({ origin, action: "sandbox_node.cap", target: nodeId, outcome: "ok", details: cap });
  const isKnown = !nodeId.includes("\0") && (await records.transact([update, entry])).done;
  if (!isKnown) throw new EngineError("not_found", `there is no sandbox node ${nodeId}`);
  signals.roomFreed();
  const [row] = await records.rows(`SELECT ${COLUMNS} FROM sandbox_nodes WHERE id = ?`, [IS_SILENT.value, nodeId]);
  if (row === undefined) throw new EngineError("not_found", `there is no sandbox node ${nodeId}`);
  return toNode(row);
}

function toNode(row: RecordRow): SandboxNode {
  return {
    id: textOf(row, "id"),
    name: textOf(row, "name"),
    runtime: textOf(row, "runtime"),
    labels: jsonOf(row, "labels") as Record<string, string>,
    capacity: jsonOf(row, "capacity") as NodeCapacity,
    cap: capIn(row),
    drain: Number(row["drain"]) === 1,
    isSilent: Number(row["is_silent"]) === 1,
    sandboxes: Number(row["sandboxes"]),
    seenAtMs: Number(row["seen_at_ms"]),
  };
}

/** One with a cap is kept until its worker is revoked: it would come back without. */
export async function forgetNodes({ records }: Pick<SandboxPorts, "records">): Promise<void> {
  await records.write({
    sql:
      "DELETE FROM sandbox_nodes WHERE seen_at_ms <= ? AND NOT EXISTS (SELECT 1 FROM sandboxes " +
      "WHERE sandboxes.node_id = sandbox_nodes.id) AND NOT EXISTS (SELECT 1 FROM sandbox_volumes " +
      "WHERE sandbox_volumes.node_id = sandbox_nodes.id) AND (cap IS NULL OR EXISTS (SELECT 1 FROM workers " +
      "WHERE workers.id = sandbox_nodes.id AND workers.revoked_at_ms IS NOT NULL))",
    values: [{ nowPlusMs: -FORGOTTEN_AFTER_MS }],
  });
  await records.write({
    sql:
      "DELETE FROM gone_volumes WHERE NOT EXISTS " +
      "(SELECT 1 FROM sandbox_nodes WHERE sandbox_nodes.id = gone_volumes.node_id)",
  });
}
