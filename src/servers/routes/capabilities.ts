import { z } from "zod";
import type { Capability, CapabilityContext } from "../../feature/capability.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** What a server says of what it can do. */
export type CapabilitiesDeps = { capabilities: readonly Capability[]; context: CapabilityContext };

const capability = z.object({
  name: z.string(),
  title: z.string(),
  enabled: z.boolean(),
  reason: z.string().nullable().describe("Why it is off, and what turns it on."),
});
const capabilities = z.object({ capabilities: z.array(capability).describe("By name.") });

nameSchemas({ Capability: capability, Capabilities: capabilities });

export type CapabilityState = z.output<typeof capability>;

export const capabilitiesRoute = defineRoute({
  method: "GET",
  path: "/v1/capabilities",
  role: "read",
  tag: "Service",
  summary: "What this installation can do",
  description:
    "What takes a setting, a program or a server of its own: whether it is on, and else what is missing. Everything else " +
    "is always on.",
  responses: [{ status: 200, description: "All of it.", type: "application/json", schema: capabilities }],
  errors: [],
  handler:
    ({ capabilities: all, context }: CapabilitiesDeps) =>
    async () => {
      const states = all.map(async (one): Promise<CapabilityState> => {
        const reason = await one.whyOff(context);
        return { name: one.name, title: one.title, enabled: reason === undefined, reason: reason ?? null };
      });
      const sorted = (await Promise.all(states)).sort((a, b) => (a.name < b.name ? -1 : 1));
      return jsonResponse(200, { capabilities: sorted });
    },
});
