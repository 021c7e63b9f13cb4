import type { RecordRow } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import { jsonOf, optionalNumber, optionalText, textOf } from "../../../fabric/job.ts";
import { imageManifest } from "../../contract/images/build-job.ts";
import type { BuiltImage } from "../../contract/images/image.ts";

/**
 * Image builds and images as the control plane keeps them. Times are the database's, in ms since 1970.
 *
 * | status of a build | moved by | to |
 * |---|---|---|
 * | (none) | a build request | `queued` |
 * | `queued` | a node that took its job | `building` |
 * | `queued` | no node for it in time | `failed` |
 * | `building` | its node is lost, or could not do it just now | `queued` |
 * | `building` | its job is done, has failed, or was cancelled | `succeeded`, `failed` |
 */
export const BUILD_STATUSES = ["queued", "building", "succeeded", "failed"] as const;
export type BuildStatus = (typeof BUILD_STATUSES)[number];

/** Condition of a build, in a WHERE, that it is not at its end. */
export const UNFINISHED = "status IN ('queued', 'building')";

export type ImageBuild = {
  id: string;
  tenant: string;
  status: BuildStatus;
  provider: string;
  region: string;
  instanceType: string;
  imageId: string | undefined;
  /** Why it failed. */
  error: string | undefined;
  createdAtMs: number;
  startedAtMs: number | undefined;
  completedAtMs: number | undefined;
};

export const BUILD_COLUMNS =
  "id, tenant, status, provider, region, instance_type, image_id, error, created_at_ms, started_at_ms, completed_at_ms";

export function toBuild(row: RecordRow): ImageBuild {
  const status = BUILD_STATUSES.find((one) => one === row["status"]);
  if (status === undefined) throw new Error(`the status of a stored image build is ${String(row["status"])}`);
  return {
    id: textOf(row, "id"),
    tenant: textOf(row, "tenant"),
    status,
    provider: textOf(row, "provider"),
    region: textOf(row, "region"),
    instanceType: textOf(row, "instance_type"),
    imageId: optionalText(row, "image_id"),
    error: optionalText(row, "error"),
    createdAtMs: Number(row["created_at_ms"]),
    startedAtMs: optionalNumber(row, "started_at_ms"),
    completedAtMs: optionalNumber(row, "completed_at_ms"),
  };
}

/** One that new sandboxes may have: images that were deleted are shown to nobody. */
export type MachineImage = {
  id: string;
  /** Its owner: see `auth/owner.ts`. */
  tenant: string;
  /** Whether everybody may make sandboxes and images of it. */
  shared: boolean;
  provider: string;
  region: string;
  status: "available";
  buildId: string;
  contentHash: string;
  sizeBytes: number;
  createdAtMs: number;
};

export const IMAGE_COLUMNS = "id, tenant, shared, provider, region, build_id, content_hash, size_bytes, created_at_ms";

export function toImage(row: RecordRow): MachineImage {
  return {
    id: textOf(row, "id"),
    tenant: textOf(row, "tenant"),
    shared: Number(row["shared"]) === 1,
    provider: textOf(row, "provider"),
    region: textOf(row, "region"),
    status: "available",
    buildId: textOf(row, "build_id"),
    contentHash: textOf(row, "content_hash"),
    sizeBytes: Number(row["size_bytes"]),
    createdAtMs: Number(row["created_at_ms"]),
  };
}

/** Of a row with `id` and `manifest`. */
export function builtImageOf(row: RecordRow): BuiltImage {
  return { id: textOf(row, "id"), ...imageManifest.parse(jsonOf(row, "manifest")) };
}

export function buildNotFound(id: string): EngineError {
  return new EngineError("build_not_found", `there is no image build ${id}`);
}

export function imageNotFound(id: string): EngineError {
  return new EngineError("image_not_found", `there is no image ${id}`);
}
