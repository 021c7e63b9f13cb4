import { isDeepStrictEqual } from "node:util";
import type { RecordRow, RecordStore, Statement } from "../../../catalog/records.ts";
import { ENGINE_OWNER } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import { jsonOf, optionalText, textOf, type JobOwner } from "../../../fabric/job.ts";
import { imageBuildPayload } from "../../contract/images/build-job.ts";
import type { BuiltImage } from "../../contract/images/image.ts";
import { builtImageOf, UNFINISHED } from "./records.ts";
import type { Template } from "../../contract/images/template.ts";

/** Whose the images are that are built for everybody. */
export const ENGINE: JobOwner = { subject: "engine", kind: "internal", role: "admin", databases: undefined };
/** A template is changed by releases, now and then. */
const LOOKED_AT = 20;
/** A build that failed may go better later: what it downloads from may be there again. */
const TRIED_AGAIN_AFTER_MS = 600_000;
const RETRY_SECS = "30";

/** What has become of a default image: it is there, or why it is not; neither while it is being built. */
export type DefaultImage = { image?: BuiltImage; failure?: string };

/** Undefined where it is to be built, for the first time or again. */
export async function newestDefault(
  records: Pick<RecordStore, "rows">,
  provider: string,
  template: Template,
): Promise<DefaultImage | undefined> {
  const rows = await records.rows(
    "SELECT b.status, b.error, b.request, m.id, m.manifest, CASE WHEN b.completed_at_ms > ? THEN 1 ELSE 0 END AS is_fresh " +
      "FROM image_builds b LEFT JOIN machine_images m ON m.build_id = b.id AND m.deleted_at_ms IS NULL " +
      "WHERE b.tenant = ? AND b.provider = ? ORDER BY b.created_at_ms DESC LIMIT ?",
    [{ nowPlusMs: -TRIED_AGAIN_AFTER_MS }, ENGINE_OWNER, provider, LOOKED_AT],
  );
  const builds = rows.filter((row) =>
    isDeepStrictEqual(imageBuildPayload.parse(jsonOf(row, "request")).template, template),
  );
  const built = builds.find((row) => optionalText(row, "id") !== undefined);
  return built === undefined ? stateOf(builds[0]) : { image: builtImageOf(built) };
}

function stateOf(newest: RecordRow | undefined): DefaultImage | undefined {
  if (newest === undefined) return undefined;
  const status = textOf(newest, "status");
  if (status === "queued" || status === "building") return {};
  const isFresh = Number(newest["is_fresh"]) === 1;
  return status === "failed" && isFresh ? { failure: optionalText(newest, "error") ?? "its job failed" } : undefined;
}

/** Of those who ask for it at once, one begins to build it. */
export function noDefaultBuilding(provider: string): Statement {
  return {
    sql:
      "SELECT 1 AS fits WHERE NOT EXISTS (SELECT 1 FROM image_builds WHERE tenant = ? AND provider = ? " +
      `AND ${UNFINISHED})`,
    values: [ENGINE_OWNER, provider],
    mustReturn: 1,
  };
}

export function couldNotBeBuilt(provider: string, failure: string): EngineError {
  const message = `the default image of ${provider} could not be built: ${failure}; name another image, or try again later`;
  return new EngineError("unavailable", message, { headers: { "Retry-After": RETRY_SECS } });
}
