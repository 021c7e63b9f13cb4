import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../../catalog/records.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { isJobStatus, jsonOf, optionalNumber, optionalText, textOf } from "../../../fabric/job.ts";
import { IS_SILENT } from "../room.ts";
import { cancelQueued } from "../cancel-queued.ts";
import { imageBuildPayload, imageBuildResult } from "../../contract/images/build-job.ts";
import { UNFINISHED } from "./records.ts";
import type { LayerStore } from "./layer-store.ts";

export type SettlePorts = {
  records: RecordStore;
  layers: LayerStore;
  newId: IdSource;
  log: Log;
  /** How long a build waits for a node. */
  pendingTimeoutMs: number;
};

const AT_ONCE = 200;

/**
 * Makes of unfinished builds what their jobs have come to: a build is its job, and this may be done by anybody, at any
 * time, any number of times. `id`: of this build alone. Returns how many are not finished.
 */
export async function settleBuilds(ports: SettlePorts, { id }: { id?: string } = {}): Promise<number> {
  const rows = await ports.records.rows(
    "SELECT b.id, b.tenant, b.status, b.provider, b.region, b.job_id, b.request, j.status AS job_status, j.result, " +
      "j.error AS job_error, j.started_at_ms AS job_started_at_ms, " +
      "CASE WHEN b.created_at_ms < ? THEN 1 ELSE 0 END AS is_late, " +
      `CASE WHEN n.id IS NULL OR n.${IS_SILENT.sql} THEN 1 ELSE 0 END AS is_silent ` +
      "FROM image_builds b LEFT JOIN jobs j ON j.id = b.job_id LEFT JOIN sandbox_nodes n ON n.id = j.worker_id " +
      `WHERE b.${UNFINISHED} ${id === undefined ? "" : "AND b.id = ?"} ORDER BY b.created_at_ms LIMIT ?`,
    [{ nowPlusMs: -ports.pendingTimeoutMs }, IS_SILENT.value, ...(id === undefined ? [] : [id]), AT_ONCE],
  );
  let unfinished = 0;
  for (const row of rows) if (!(await settle(ports, row))) unfinished++;
  return unfinished;
}

/** Whether it is finished. */
async function settle(ports: SettlePorts, row: RecordRow): Promise<boolean> {
  const id = textOf(row, "id");
  const jobId = optionalText(row, "job_id");
  if (jobId === undefined) {
    if (Number(row["is_late"]) === 0) return false;
    return await fail(ports, id, "no node that has its base took it in time");
  }
  const jobStatus = row["job_status"];
  if (!isJobStatus(jobStatus)) return await fail(ports, id, "its job is gone");
  switch (jobStatus) {
    case "queued":
      if (Number(row["is_silent"]) === 1) await takeBack(ports, id, jobId);
      else await note(ports, row, "queued");
      return false;
    case "leased":
      await note(ports, row, "building");
      return false;
    case "done":
      return await succeed(ports, row);
    case "cancelled":
      return await fail(ports, id, "it was cancelled");
    case "failed":
      return await fail(ports, id, optionalText(row, "job_error") ?? "its job failed");
  }
}

async function note({ records }: SettlePorts, row: RecordRow, status: "queued" | "building"): Promise<void> {
  if (row["status"] === status) return;
  const startedAtMs: RecordValue = optionalNumber(row, "job_started_at_ms") ?? null;
  await records.write({
    sql: `UPDATE image_builds SET status = ?, started_at_ms = ? WHERE id = ? AND ${UNFINISHED}`,
    values: [status, startedAtMs, textOf(row, "id")],
  });
}

/** Another node may have it: the one that it is for fell silent before it began. */
async function takeBack({ records }: SettlePorts, id: string, jobId: string): Promise<void> {
  await records.transact([
    { ...cancelQueued(jobId), mustReturn: 1 },
    {
      sql: `UPDATE image_builds SET job_id = NULL, status = 'queued' WHERE id = ? AND job_id = ? AND ${UNFINISHED}`,
      values: [id, jobId],
    },
  ]);
}

async function fail({ records, layers }: SettlePorts, id: string, error: string): Promise<true> {
  // First, so that nothing of it is left when nobody looks at it any more.
  await layers.remove(id);
  await records.write({
    sql: `UPDATE image_builds SET status = 'failed', error = ?, completed_at_ms = ? WHERE id = ? AND ${UNFINISHED}`,
    values: [error, NOW, id],
  });
  return true;
}

async function succeed(ports: SettlePorts, row: RecordRow): Promise<true> {
  const { records, layers, newId, log } = ports;
  const id = textOf(row, "id");
  const { data } = imageBuildResult.safeParse(jsonOf(row, "result"));
  if (data === undefined || data.layer.buildId !== id)
    return await fail(ports, id, "its node did not say what it built");
  const { base, template } = imageBuildPayload.parse(jsonOf(row, "request"));
  await layers.remove(id, data.layer);
  const imageId = newId();
  const manifest = {
    base: base.base,
    layers: [...base.layers, data.layer],
    environment: { ...base.environment, ...template.environment },
  };
  const startedAtMs: RecordValue = optionalNumber(row, "job_started_at_ms") ?? null;
  const update: Statement = {
    sql:
      "UPDATE image_builds SET status = 'succeeded', image_id = ?, started_at_ms = ?, completed_at_ms = ? " +
      `WHERE id = ? AND ${UNFINISHED} RETURNING id`,
    values: [imageId, startedAtMs, NOW, id],
    mustReturn: 1,
  };
  const sizeBytes = manifest.layers.reduce((sum, layer) => sum + layer.sizeBytes, 0);
  const insert: Statement = {
    sql:
      "INSERT INTO machine_images (id, tenant, provider, region, status, build_id, content_hash, size_bytes, manifest, " +
      "created_at_ms) VALUES (?, ?, ?, ?, 'available', ?, ?, ?, ?, ?)",
    values: [
      imageId,
      textOf(row, "tenant"),
      textOf(row, "provider"),
      textOf(row, "region"),
      id,
      data.layer.sha256,
      sizeBytes,
      JSON.stringify(manifest),
      NOW,
    ],
  };
  const { done } = await records.transact([update, insert]);
  if (done) log.info({ buildId: id, imageId, sizeBytes }, "an image was built");
  return true;
}
