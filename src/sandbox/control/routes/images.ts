import { z } from "zod";
import { checkProvider } from "../requests/create-request.ts";
import { AGENT_PROVIDERS } from "../../contract/agents/providers.ts";
import { BUILD_STATUSES, type ImageBuild, type MachineImage } from "../images/records.ts";
import { TEMPLATE_CHARS } from "../images/template.ts";
import { originOf } from "../../../server/origin.ts";
import { timeOf, timeOrNull } from "../../../server/schemas.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** Images that sandboxes are made from, and how they are built. */

type ImageDeps = Pick<SandboxDeps, "images">;

const common = { tag: "Images" } as const;
const MAX_LISTED = 1_000;
const PLACE = /^[A-Za-z0-9][\w.:/@+-]{0,254}$/;
const PLACE_RULE = "accepted are up to 255 letters, digits, and `_.:/@+-`, a letter or digit first";

const place = z.string().regex(PLACE, PLACE_RULE);

const buildRequest = z
  .strictObject({
    provider: z.string().describe(`One of ${AGENT_PROVIDERS.join(", ")}.`),
    region: place.nullish().describe("A node that has a label `region` builds only for that one."),
    instance_type: place.nullish().describe("A node that has a label `instance_type` builds only for that one."),
    template_source: z
      .string()
      .max(TEMPLATE_CHARS)
      .nullish()
      .describe("A template, in TOML; null for the default one of the provider."),
    variables: z.record(z.string(), z.string()).default({}).describe("Values for variables of the template."),
  })
  .transform((body) => ({
    provider: body.provider,
    region: body.region ?? undefined,
    instanceType: body.instance_type ?? undefined,
    templateSource: body.template_source ?? undefined,
    variables: body.variables,
  }));

const started = z.object({
  build_id: z.string(),
  status: z.enum(BUILD_STATUSES),
  provider: z.string(),
  region: z.string(),
  created_at: z.string(),
});

const buildBody = started.extend({
  image_id: z.string().nullable().describe("When it has succeeded."),
  started_at: z.string().nullable().describe("Of its newest attempt."),
  completed_at: z.string().nullable(),
  error: z.string().nullable().describe("Why it failed, with the step that did."),
});

const imageBody = z.object({
  image_id: z.string(),
  provider: z.string(),
  region: z.string(),
  status: z.enum(["available"]),
  created_at: z.string(),
  build_id: z.string(),
  content_hash: z.string().describe("SHA-256 of its topmost layer, as it is stored."),
  size_bytes: z.number().describe("Of all its layers, as they are stored."),
  shared: z.boolean().describe("Whether everybody may make sandboxes and images of it."),
});

nameSchemas({ StartedImageBuild: started, ImageBuild: buildBody, Image: imageBody });

export const buildImageRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: "/api/v1/images/build",
  summary: "Build an image",
  description: "It is built after the answer, by a node. The image is the caller's, and so is what it is built from.",
  json: buildRequest,
  jsonLimitBytes: 1024 * 1024,
  jsonErrors: { unreadable: "config_error", invalid: "config_validation_error" },
  responses: [{ status: 202, description: "It will be built.", type: "application/json", schema: started }],
  errors: ["agent_provider_not_found", "image_not_found", "rate_limited", "insufficient_storage"],
  handler:
    ({ images }: ImageDeps) =>
    async (call) => {
      checkProvider({ agentProvider: call.json.provider });
      const build = await images.build(call.json, { owner: call.caller, origin: originOf(call) });
      return jsonResponse(202, startedOf(build));
    },
});

export const listImagesRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/images",
  summary: "List images",
  description: "The caller's own, and those that others share; admins see all.",
  query: z.object({
    region: place.optional().describe("Those of this region."),
    provider: place.optional().describe("Those for this agent provider."),
    limit: pageLimit(MAX_LISTED),
    before: pageBefore,
  }),
  responses: [
    {
      status: 200,
      description: "The newest first.",
      type: "application/json",
      schema: z.object({ images: z.array(imageBody) }),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter", "insufficient_storage"],
  handler:
    ({ images }: ImageDeps) =>
    async ({ caller, request, query: { limit: most, ...filter } }) => {
      const { items, headers } = await pageOf(request, most, (limit) => images.list({ ...filter, limit }, caller));
      return jsonResponse(200, { images: items.map(imageOf) }, headers);
    },
});

export const getImageBuildRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/images/builds/{build_id}",
  summary: "How far an image build is",
  params: z.object({ build_id: z.string() }),
  responses: [{ status: 200, description: "The build.", type: "application/json", schema: buildBody }],
  errors: ["build_not_found", "insufficient_storage"],
  handler:
    ({ images }: ImageDeps) =>
    async ({ caller, params }) =>
      jsonResponse(200, buildOf(await images.getBuild(params.build_id, caller))),
});

export const shareImageRoute = defineRoute({
  ...common,
  role: "write",
  method: "PATCH",
  path: "/api/v1/images/{image_id}",
  summary: "Share an image, or end that",
  description:
    "Everybody may make sandboxes and images of one that is shared, and so see every file in it. Its build and its " +
    "template stay its owner's, who alone, beside admins, may share and delete it.",
  params: z.object({ image_id: z.string() }),
  json: z.strictObject({ shared: z.boolean() }),
  responses: [{ status: 200, description: "The image.", type: "application/json", schema: imageBody }],
  errors: ["image_not_found", "insufficient_storage"],
  handler:
    ({ images }: ImageDeps) =>
    async (call) => {
      const { caller: asker, params, json } = call;
      const by = { shared: json.shared, asker, origin: originOf(call) };
      return jsonResponse(200, imageOf(await images.share(params.image_id, by)));
    },
});

export const deleteImageRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: "/api/v1/images/{image_id}",
  summary: "Delete an image",
  description: "For ever. Sandboxes that have it keep it; new ones cannot have it.",
  params: z.object({ image_id: z.string() }),
  responses: [{ status: 204, description: "It is gone." }],
  errors: ["image_not_found", "insufficient_storage"],
  handler:
    ({ images }: ImageDeps) =>
    async (call) => {
      await images.remove(call.params.image_id, { asker: call.caller, origin: originOf(call) });
      return { status: 204, headers: {} };
    },
});

function startedOf({ id, status, provider, region, createdAtMs }: ImageBuild): z.output<typeof started> {
  return { build_id: id, status, provider, region, created_at: timeOf(createdAtMs) };
}

function buildOf(build: ImageBuild): z.output<typeof buildBody> {
  return {
    ...startedOf(build),
    image_id: build.imageId ?? null,
    started_at: timeOrNull(build.startedAtMs),
    completed_at: timeOrNull(build.completedAtMs),
    error: build.error ?? null,
  };
}

function imageOf(image: MachineImage): z.output<typeof imageBody> {
  return {
    image_id: image.id,
    provider: image.provider,
    region: image.region,
    status: image.status,
    created_at: timeOf(image.createdAtMs),
    build_id: image.buildId,
    content_hash: image.contentHash,
    size_bytes: image.sizeBytes,
    shared: image.shared,
  };
}
