import { z } from "zod";
import type { JobKind } from "../../../fabric/kinds.ts";
import { SANDBOX_JOB_KIND } from "../sandbox-job.ts";
import type { BuiltImage, ImageLayer } from "./image.ts";
import { PACKAGE_MANAGERS, type Template } from "./template.ts";

/** The job by which a node builds an image: what it is given, and what it answers. */

export const IMAGE_BUILD_KIND = "image_build";

const layer = z.strictObject({
  buildId: z.uuid(),
  fence: z.int().min(0),
  parts: z.int().min(1),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().min(1),
  unpackedBytes: z.int().min(0),
}) satisfies z.ZodType<ImageLayer>;

const texts = z.record(z.string(), z.string());
const user = z.enum(["root", "agent"]);

const template = z.strictObject({
  base: z.string(),
  packages: z.record(z.enum(PACKAGE_MANAGERS), z.array(z.string())),
  files: z.array(z.strictObject({ path: z.string(), contentBase64: z.string(), mode: z.int(), user })),
  commands: z.array(z.strictObject({ run: z.string(), user })),
  environment: texts,
}) satisfies z.ZodType<Template>;

/** `id`: of the image; undefined where the base is a node's own. */
export type ImageBase = Omit<BuiltImage, "id"> & { id?: string | undefined };

export const imageBuildPayload = z.strictObject({
  buildId: z.uuid(),
  base: z.strictObject({
    id: z.uuid().optional(),
    base: z.string(),
    layers: z.array(layer),
    environment: texts,
  }) satisfies z.ZodType<ImageBase>,
  template,
});
export type ImageBuildPayload = { buildId: string; base: ImageBase; template: Template };

/** What was built, on top of the base. */
export const imageBuildResult = z.object({ layer });

/** What is stored of an image. */
export const imageManifest = z.object({ base: z.string(), layers: z.array(layer), environment: texts });

/** Jobs of this kind are for nodes that run sandboxes: each is for one of them, which the control plane picks. */
export function imageBuildJobKind(leaseMs: number): JobKind {
  return {
    name: IMAGE_BUILD_KIND,
    payload: imageBuildPayload,
    enqueue: "nobody",
    claim: "both",
    needsAdmission: true,
    comesWith: SANDBOX_JOB_KIND,
    leaseMs,
    maxAttempts: 3,
  };
}
