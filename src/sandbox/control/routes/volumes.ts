import { z } from "zod";
import { ownerFilter } from "../../../auth/owner.ts";
import type { Volume } from "../volumes/volume.ts";
import { originOf } from "../../../server/origin.ts";
import { timeOf, timeOrNull } from "../../../server/schemas.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";

/** Named storage that outlives sandboxes. Create requests make it; here it is found and deleted. */

type VolumeDeps = Pick<SandboxDeps, "sandboxes">;

const BASE = "/api/v1/volumes";
const MAX_LISTED = 100;
const common = { tag: "Sandboxes" } as const;

const volumeBody = z.object({
  id: z.string(),
  name: z.string().describe("By which create requests of its owner find it."),
  owned_by: z.string(),
  size_mb: z.number().describe("MiB, as its first create request said: what it counts for in quotas and on its node."),
  node_id: z.string().nullable().describe("The node that it lies on, for admins; null for others."),
  in_use: z.boolean().describe("Whether a sandbox names it, in whatever state."),
  created_at: z.string(),
  last_used_at: z
    .string()
    .nullable()
    .describe("When a sandbox that names it last changed its state or was deleted; now, while one is up."),
  expires_at: z
    .string()
    .nullable()
    .describe("When it is deleted, unless a sandbox names it by then; null for one that is in use or kept for ever."),
});

export const listVolumesRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: BASE,
  summary: "List volumes",
  description: 'The caller\'s own; admins see all. Where there are more, `Link` leads to the next ones (`rel="next"`).',
  query: z.object({
    limit: pageLimit(MAX_LISTED),
    before: pageBefore,
  }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.array(volumeBody),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["invalid_parameter"],
  handler:
    ({ sandboxes }: VolumeDeps) =>
    async ({ caller, request, query: { limit: most, before } }) => {
      const list = (limit: number) => sandboxes.volumes({ limit, before }, caller);
      const { items, headers } = await pageOf(request, most, list);
      const showsNodes = ownerFilter(caller) === undefined;
      return jsonResponse(
        200,
        items.map((volume) => bodyOf(volume, showsNodes)),
        headers,
      );
    },
});

export const deleteVolumeRoute = defineRoute({
  ...common,
  role: "write",
  method: "DELETE",
  path: `${BASE}/{id}`,
  summary: "Delete a volume",
  description:
    "For ever, with everything in it. `conflict` while a sandbox names it, be it stopped or failed: delete that first. Its " +
    "name and its part of quotas are free at once; its node removes the disk when it hears of it.",
  params: z.object({ id: z.string() }),
  responses: [{ status: 204, description: "It is gone." }],
  errors: ["volume_not_found", "conflict", "insufficient_storage", "unavailable"],
  handler:
    ({ sandboxes }: VolumeDeps) =>
    async (call) => {
      await sandboxes.deleteVolume(call.params.id, { asker: call.caller, origin: originOf(call) });
      return { status: 204, headers: {} };
    },
});

function bodyOf(volume: Volume, showsNode: boolean): z.output<typeof volumeBody> {
  return {
    id: volume.id,
    name: volume.name,
    owned_by: volume.tenant,
    size_mb: volume.sizeMb,
    node_id: showsNode ? volume.nodeId : null,
    in_use: volume.isInUse,
    created_at: timeOf(volume.createdAtMs),
    last_used_at: timeOrNull(volume.usedAtMs),
    expires_at: timeOrNull(volume.expiresAtMs),
  };
}
