import { NOW } from "../../catalog/records.ts";
import { textOf } from "../../fabric/job.ts";
import type { NodeAnswer, NodeReport } from "../node/control-port.ts";
import type { SandboxPorts } from "./ports.ts";
import { IS_SILENT } from "./room.ts";
import { forgetVolumes } from "./volumes.ts";

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
  const goneVolumes = await forgetVolumes(records, nodeId, node.unusedVolumes ?? []);
  return { drain: Number(row?.["drain"]) === 1, gone, goneVolumes };
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

export async function forgetNodes({ records }: Pick<SandboxPorts, "records">): Promise<void> {
  await records.write({
    sql:
      "DELETE FROM sandbox_nodes WHERE seen_at_ms <= ? AND NOT EXISTS (SELECT 1 FROM sandboxes " +
      "WHERE sandboxes.node_id = sandbox_nodes.id) AND NOT EXISTS (SELECT 1 FROM sandbox_volumes " +
      "WHERE sandbox_volumes.node_id = sandbox_nodes.id)",
    values: [{ nowPlusMs: -FORGOTTEN_AFTER_MS }],
  });
}
