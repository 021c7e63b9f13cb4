import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { MAX_PARTS, PART_BYTES } from "../../contract/images/image.ts";
import { wirePart } from "../../contract/images/image-part.ts";
import { fenceHeader } from "../../../fabric/routes/jobs-leased.ts";
import { defineRoute, jsonResponse, workerOf } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { holdOfNode, nodeOf } from "./nodes.ts";

/** Layers of images, part by part, for the nodes that build and use them. */

type LayerDeps = Pick<SandboxDeps, "layers">;

const common = { role: "worker", tag: "Sandbox nodes" } as const;

const count = (max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "accepted are integers")
    .transform(Number)
    .refine((value) => value <= max, `accepted are integers up to ${max}`);
const part = count(MAX_PARTS - 1);

export const readLayerPartRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/sandbox-nodes/layers/{build_id}/{fence}/{part}",
  summary: "A part of a layer of an image",
  description: "For a node that has a sandbox with the image, or builds on it.",
  params: z.object({ build_id: z.uuid(), fence: count(Number.MAX_SAFE_INTEGER), part }),
  responses: [{ status: 200, description: "The part.", type: "application/json", schema: wirePart }],
  errors: ["invalid_parameter", "forbidden", "image_not_found"],
  handler:
    ({ layers }: LayerDeps) =>
    async (call) => {
      const { id } = nodeOf(workerOf(call));
      const { build_id: buildId, fence, part: number } = call.params;
      if (!(await layers.isFor(id, buildId))) {
        throw new EngineError("image_not_found", `this node has nothing of the build ${buildId}`);
      }
      const bytes = await layers.read({ buildId, fence }, number);
      return jsonResponse(200, { bytes: Buffer.from(bytes).toString("base64") });
    },
});

export const writeLayerPartRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/sandbox-nodes/jobs/{job_id}/layer/{part}",
  summary: "Store a part of what an image build made",
  params: z.object({ job_id: z.string(), part }),
  headers: fenceHeader,
  json: wirePart,
  jsonLimitBytes: 2 * PART_BYTES,
  responses: [{ status: 204, description: "It is stored." }],
  errors: ["invalid_parameter", "missing_header", "invalid_header", "forbidden", "lease_lost", "insufficient_storage"],
  handler:
    ({ layers }: LayerDeps) =>
    async (call) => {
      const hold = holdOfNode(call.params.job_id, call);
      await layers.write(hold, call.params.part, Buffer.from(call.json.bytes, "base64"));
      return { status: 204, headers: {} };
    },
});
