import type { RecordRow, RecordStore } from "../../../catalog/records.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import { jsonOf, textOf, type JobOwner } from "../../../fabric/job.ts";
import { nodesWithRoom, type NodeRoom } from "../room.ts";
import { IMAGE_BUILD_KIND, imageBuildPayload } from "../../contract/images/build-job.ts";

const AT_ONCE = 100;

export type PlacePorts = { records: RecordStore; fabric: Pick<Fabric, "prepare"> };

/** Gives builds that wait to nodes, the oldest first. `id`: this one alone. */
export async function placeBuilds({ records, fabric }: PlacePorts, { id }: { id?: string } = {}): Promise<void> {
  const rows = await records.rows(
    "SELECT id, tenant, region, instance_type, request FROM image_builds WHERE status = 'queued' AND job_id IS NULL " +
      `${id === undefined ? "" : "AND id = ?"} ORDER BY created_at_ms LIMIT ?`,
    [...(id === undefined ? [] : [id]), AT_ONCE],
  );
  if (rows.length === 0) return;
  const [nodes, busy] = await Promise.all([nodesWithRoom(records), buildsOfNodes(records)]);
  for (const row of rows) {
    const request = imageBuildPayload.parse(jsonOf(row, "request"));
    const node = pickBuilder(nodes, busy, {
      base: request.base.base,
      imageId: request.base.id,
      labels: { region: textOf(row, "region"), instance_type: textOf(row, "instance_type") },
    });
    if (node === undefined) continue;
    const job = fabric.prepare([{ kind: IMAGE_BUILD_KIND, payload: request, workerId: node.id }], jobOwnerOf(row));
    const [jobId] = job.ids;
    if (jobId === undefined) throw new Error("a job without an id");
    const update = {
      sql: "UPDATE image_builds SET job_id = ? WHERE id = ? AND status = 'queued' AND job_id IS NULL RETURNING id",
      values: [jobId, textOf(row, "id")],
      mustReturn: 1,
    };
    if (!(await records.transact([update, job.statement])).done) continue;
    job.stored();
    busy.set(node.id, (busy.get(node.id) ?? 0) + 1);
  }
}

/** The job has what the template says, secrets too: it is whose the build is. Rights it needs none. */
function jobOwnerOf(row: RecordRow): JobOwner {
  const tenant = textOf(row, "tenant");
  return { owner: tenant, subject: tenant, kind: "internal", role: "read", databases: undefined };
}

/** How many builds wait for each node, or are on it. */
async function buildsOfNodes(records: RecordStore): Promise<Map<string, number>> {
  const rows = await records.rows(
    "SELECT worker_id, count(*) AS builds FROM jobs WHERE kind = ? AND status IN ('queued', 'leased') " +
      "AND worker_id IS NOT NULL GROUP BY worker_id",
    [IMAGE_BUILD_KIND],
  );
  return new Map(rows.map((row) => [textOf(row, "worker_id"), Number(row["builds"])]));
}

/** The node with the fewest builds of those that have the base; of these one that has the built image, too. */
function pickBuilder(
  nodes: readonly NodeRoom[],
  busy: ReadonlyMap<string, number>,
  need: { base: string; imageId: string | undefined; labels: Readonly<Record<string, string>> },
): NodeRoom | undefined {
  const fits = nodes.filter(
    ({ images, labels }) => images.includes(need.base) && Object.entries(need.labels).every(hasOrLacks(labels)),
  );
  const rank = ({ id, images }: NodeRoom) =>
    (busy.get(id) ?? 0) * 2 + (need.imageId === undefined || images.includes(need.imageId) ? 0 : 1);
  return fits.toSorted((a, b) => rank(a) - rank(b))[0];
}

/** A node that says nothing of it is good for every value. */
function hasOrLacks(labels: NodeRoom["labels"]) {
  return ([name, value]: [string, string]): boolean => labels[name] === undefined || labels[name] === value;
}
